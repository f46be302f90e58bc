// SPDX-License-Identifier: Apache-2.0
// formats/huggingface/json_file.h: JSON files that nobody vouches for. A field that is absent and one
// that is null are the same.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/json/json_reader.h"
#include "foretoken/result.h"

namespace foretoken::formats::huggingface {

inline constexpr std::string_view kFetchAgain = "the file is damaged, fetch it again";

struct ObjectLimits {
  std::size_t most_bytes = std::size_t{256} << 20;
  std::size_t most_depth = 64;  // of objects and lists in each other
};

// An object. `place` begins the messages. Errors: kInvalidFile (not JSON in UTF-8, not an object,
// nested too deeply, a name given twice in the
// outermost object).
[[nodiscard]] Result<Json> ParseObject(std::string_view text, const std::string& place,
                                       const ObjectLimits& limits = {});

// An object of a file; null if there is no such file. Errors: also kInvalidFile (too large), kIo.
[[nodiscard]] Result<Json> ReadObject(const std::string& path, const ObjectLimits& limits = {});

// Reads the fields of an object. A value of another kind is an error that names file and field.
class JsonFields {
 public:
  // `object` must outlive it; if it is not an object, it has no fields. place: "x/config.json".
  JsonFields(const Json& object, std::string place) : object_(object), place_(std::move(place)) {}

  // Null if the field is absent.
  const Json* Find(std::string_view name) const;
  [[nodiscard]] Result<std::optional<std::int64_t>> Int(std::string_view name) const;
  [[nodiscard]] Result<std::optional<double>> Number(std::string_view name) const;
  [[nodiscard]] Result<std::optional<bool>> Bool(std::string_view name) const;
  [[nodiscard]] Result<std::optional<std::string>> String(std::string_view name) const;
  // Null if the field is absent.
  [[nodiscard]] Result<const Json*> Object(std::string_view name) const;
  [[nodiscard]] Result<const Json*> List(std::string_view name) const;
  // An error if the field is absent.
  [[nodiscard]] Result<const Json*> NeedObject(std::string_view name) const;

  const std::string& place() const { return place_; }
  // "x/config.json: field vocab_size: WHY", with the advice to fetch the file again.
  tl::unexpected<Error> Bad(std::string_view name, std::string_view why) const;
  // Says so of what is well-formed and not supported; `advice` says what to do.
  tl::unexpected<Error> Unsupported(std::string_view name, std::string_view why,
                                    std::string_view advice) const;

 private:
  const Json& object_;
  std::string place_;
};

}  // namespace foretoken::formats::huggingface
