// SPDX-License-Identifier: Apache-2.0
// server/api/json_member.h: a member's value as it was written, for readers that need the order of
// members.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace foretoken::server {

// Follows the names from object to object. Empty: there is no such member. REQUIRES: json is valid
// JSON, without a name twice.
std::string_view RawMember(std::string_view json, std::initializer_list<std::string_view> path);

// The elements of a list, as they were written. REQUIRES: json is a valid JSON list.
std::vector<std::string_view> RawElements(std::string_view json);

// An object with the members of both as they were written; those of `own` replace others of the
// same name. Either may be empty. The time grows with the texts, however many names they have. If one
// of them is no JSON object, the result is `own`, or `defaults` where there is none.
std::string MergedObjects(const std::string& defaults, const std::string& own);

}  // namespace foretoken::server
