// SPDX-License-Identifier: Apache-2.0
#include "attack/colliding_names.h"

#include <string_view>

namespace foretoken::attack {
namespace {

// Parts of names that lead from one state of FNV-1a (64 bits, a step for each character) to one
// other: n rows are 2^n names.
constexpr std::string_view kTwins[][2] = {
    {"\u66B1\u6D77\u8318\u86F0\U00040000", "\u7295\u76A5\u77A9\u57B0\U0006C9E7"},
    {"\u846F\u883F\u7970\u87AF\U00040000", "\u6913\u64F2\u704F\u6CF4\U0005BC49"},
    {"\u66CF\u70F0\u769D\u82E8\U00040000", "\u7D87\u4E3A\u764A\u608B\U000705C0"},
    {"\u579A\u6B67\u4F8E\u8D91\U00040000", "\u8A10\u5D1B\u66F9\u89AB\U0007383B"},
    {"\u624E\u6842\u57FF\u530B\U00040000", "\u6A4F\u7EB1\u6852\u8A26\U00073DC6"},
    {"\u593E\u5087\u6789\u85B9\U00040000", "\u5B6C\u8449\u5B99\u8AC4\U0007B58F"},
    {"\u7F5C\u832B\u6C90\u5977\U00040000", "\u66CC\u7E69\u6E32\u66E3\U00059C38"},
    {"\u7D03\u78D9\u85DA\u5F84\U00040000", "\u7F83\u74CD\u6C77\u566D\U0006B642"},
    {"\u65C1\u7785\u6D37\u5D0E\U00040000", "\u6601\u6F30\u6CD2\u7C24\U00073B20"},
    {"\u5BEE\u87FF\u85EB\u730F\U00040000", "\u5162\u72B9\u66CD\u5F64\U000752D5"}};

}  // namespace

std::string CollidingName(std::size_t number) {
  std::string name;
  for (const auto& twins : kTwins) name += twins[number % 2], number /= 2;
  return name;
}

}  // namespace foretoken::attack
