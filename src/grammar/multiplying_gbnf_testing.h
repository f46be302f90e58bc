// SPDX-License-Identifier: Apache-2.0
// grammar/multiplying_gbnf_testing.h: short grammars whose programs would have billions of steps.
#pragma once

namespace foretoken::grammar {

constexpr const char* kMultiplyingGbnf[] = {
    "root ::= ((((\"a\"{65536}){65536}){65536}){65536}){65536}",
    "root ::= (((\"\"{65536}){65536}){65536}){65536} \"a\"",
    "root ::= ((((\"a\"?){0,999}){0,999}){0,999}){0,999}",
    "root ::= a{999}\na ::= b{999}\nb ::= [a-z]{65536} {65536}"};

}  // namespace foretoken::grammar
