// SPDX-License-Identifier: Apache-2.0
// formats/settings_file.h: a YAML or JSON file as a flat list of settings.
//
//   speculative_config:
//     gamma: 4                      -> {"gamma", "4", 2}
//     speculative_method: [a, b]    -> {"speculative_method", "[a,b]", 3}
//     ewma: {min: 1}                -> {"ewma.min", "1", 4}
//
// The reader decides what a value means: scalars stay as they are written, without quotes. Files
// are not trusted: size, depth and the kinds of nodes are limited, there are no aliases (so nothing
// grows), and a duplicate key is an error.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "foretoken/result.h"

namespace foretoken::formats {

struct Setting {
  std::string key;  // dots separate the keys of nested maps
  // A list in brackets, with commas and without spaces: "[[1,4,8],[5,8,2]]"; a map in a list, which
  // holds values only, in braces: "[{from:1,to:4}]".
  std::string text;
  int line = 0;  // from 1
};

inline constexpr std::size_t kMaxSettingsBytes = 64 * 1024;

// The settings of one section, a map at the top of the document, in order; of the whole document if
// `section` is empty. Messages call the file `name`. Errors: kInvalidFile (with the line),
// kNotFound (no such section; the message names those that exist), kTooLarge.
[[nodiscard]] Result<std::vector<Setting>> ParseSettings(const std::string& text,
                                                         std::string_view name,
                                                         std::string_view section);
// The settings of a file's section. Errors: also kNotFound and kIo.
[[nodiscard]] Result<std::vector<Setting>> ReadSettings(const std::string& path,
                                                        std::string_view section);

}  // namespace foretoken::formats
