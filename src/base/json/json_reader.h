// SPDX-License-Identifier: Apache-2.0
// base/json/json_reader.h: reads a text that nobody vouches for as JSON.
//
// The time is linear in the text, however many names an object has, and so is the memory, which a limit
// bounds.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.h"
#include "foretoken/result.h"

namespace foretoken {

struct JsonLimits {
  // Which objects may not have a name twice; in others the later value counts.
  enum class Distinct { kNone, kOutermost, kAll };

  std::size_t most_depth = 256;                            // of objects and arrays in each other
  std::size_t most_memory = static_cast<std::size_t>(-1);  // of the values, about, in bytes
  Distinct distinct = Distinct::kNone;
  bool keeps_text = false;  // for Json::written(): the text, below 4 GiB, must outlive the value
};

struct JsonError {
  enum class Kind { kSyntax, kDepth, kMemory, kTwice };

  Kind kind;
  // For kSyntax: the byte that shows it, counted from 1; one more than all at the end.
  std::size_t byte = 0;
  // For kTwice: the name, and the names and numbers that lead to its object.
  std::string name = {};
  std::vector<std::string> path = {};
};

// One value in UTF-8; a byte order mark may precede it.
[[nodiscard]] tl::expected<Json, JsonError> ReadJson(std::string_view text,
                                                     const JsonLimits& limits = {});

// Null where it cannot be read.
Json JsonOrNull(std::string_view text);

}  // namespace foretoken
