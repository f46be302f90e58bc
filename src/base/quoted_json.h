// SPDX-License-Identifier: Apache-2.0
// base/quoted_json.h: a text as a string of JSON.
#pragma once

#include <string>
#include <string_view>

namespace foretoken {

// With its quotes. REQUIRES: UTF-8.
std::string QuotedJson(std::string_view text);

}  // namespace foretoken
