// SPDX-License-Identifier: Apache-2.0
// grammar/schema/grammar_testing.h: tells tests which texts follow a grammar.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/grammar.h"

namespace foretoken::grammar {

using grammar::Grammar;
using grammar::TokenTrie;

class GrammarTexts {
 public:
  explicit GrammarTexts(const Result<std::string>& gbnf) {
    EXPECT_TRUE(gbnf.has_value()) << gbnf.error().message;
    if (!gbnf) return;
    auto compiled = Grammar::Compile(
        *gbnf, std::make_shared<const TokenTrie>(std::vector<std::string>{"a", "{\"", "\"", ""},
                                                 std::vector<Token>{3}));
    EXPECT_TRUE(compiled.has_value()) << compiled.error().message << "\n" << *gbnf;
    if (compiled) grammar_ = *compiled;
  }

  // Whether the whole text follows the grammar.
  bool Has(std::string_view text) const {
    const Grammar::State state = After(text);
    // A grammar that has ended gives kOver too, so kOver does not tell.
    return state != Grammar::kOver && grammar_->CanEnd(state);
  }
  bool CanBegin(std::string_view text) const { return After(text) != Grammar::kOver; }

 private:
  Grammar::State After(std::string_view text) const {
    return grammar_ ? grammar_->After(grammar_->Start(), text) : Grammar::kOver;
  }

  std::shared_ptr<const Grammar> grammar_;
};

}  // namespace foretoken::grammar
