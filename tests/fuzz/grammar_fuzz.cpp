// SPDX-License-Identifier: Apache-2.0
// Random GBNF and random text: a grammar compiles or gives an error of one line. A grammar that
// compiles gives the same result byte by byte and at once, by the mask and by the text.
#include <fuzzer/FuzzedDataProvider.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/check.h"
#include "grammar/grammar_walk.h"

namespace {

using foretoken::Token;
using foretoken::grammar::Grammar;
using foretoken::grammar::GrammarWalk;
using foretoken::grammar::TokenTrie;

constexpr std::size_t kMaxBytes =
    Grammar::kMaxMaskBytes + foretoken::grammar::GrammarStates::kMaxStateBytes + (4 << 20);

const std::vector<std::string>& Texts() {
  static const std::vector<std::string> texts = [] {
    std::vector<std::string> all = {"", "ab", "abc", "é", "\xC3", "\xA9", "\"a", "</s>"};
    for (const char c : std::string("abcxyz019 \n\t\"'\\-[]{}(),.:")) all.emplace_back(1, c);
    return all;
  }();
  return texts;
}

std::shared_ptr<const TokenTrie> Trie() {
  static const auto trie = std::make_shared<const TokenTrie>(Texts(), std::vector<Token>{7});
  return trie;
}

// If a limit is exceeded, the logits are unchanged.
void CheckMask(const Grammar& grammar, Grammar::State state) {
  std::vector<float> logits(Texts().size() + 1, 1.0f);
  const bool masked = grammar.Mask(state, logits);
  for (std::size_t t = 0; t < logits.size(); ++t) {
    const Grammar::State after = grammar.After(state, static_cast<Token>(t));
    if (after == Grammar::kUnknown) continue;
    FORETOKEN_CHECK(std::isfinite(logits[t]) == (!masked || after != Grammar::kOver));
  }
  FORETOKEN_CHECK(grammar.bytes() < kMaxBytes);
}

// Whole tokens do what their bytes do one by one, even if all states are forgotten in between.
void CheckWalk(const std::shared_ptr<const Grammar>& grammar, std::string_view tokens) {
  GrammarWalk walk(grammar);
  walk.Begin(static_cast<int>(tokens.size()));
  Grammar::State state = grammar->Start();
  for (const char c : tokens) {
    const auto token = static_cast<Token>(static_cast<unsigned char>(c) % Texts().size());
    if (state != Grammar::kUnknown) state = grammar->After(state, token);
    if (c == 'T') {
      grammar->Trim();
      state = Grammar::kUnknown;
    }
    walk.Push(token);
    std::vector<float> logits(Texts().size(), 1.0f), other = logits;
    if (!walk.Mask(logits) || state == Grammar::kUnknown || !grammar->Mask(state, other)) continue;
    FORETOKEN_CHECK(logits == other);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  FuzzedDataProvider data(bytes, size);
  std::string gbnf = data.ConsumeRandomLengthString(2000);
  if (gbnf.find("root") == std::string::npos) gbnf = "root ::= " + gbnf;
  const auto grammar = Grammar::Compile(gbnf, Trie());
  if (!grammar) {
    FORETOKEN_CHECK(grammar.error().message.starts_with("grammar: "));
    FORETOKEN_CHECK(grammar.error().message.find('\n') == std::string::npos);
    return 0;
  }
  std::string text = data.ConsumeRemainingBytesAsString();
  text.resize(std::min<std::size_t>(text.size(), 48));
  Grammar::State state = (*grammar)->Start();
  FORETOKEN_CHECK(state != Grammar::kOver);
  const auto goes_on = [&] { return state != Grammar::kOver && state != Grammar::kUnknown; };
  for (std::size_t i = 0; i < text.size() && goes_on(); ++i) {
    if (i % 16 == 0) CheckMask(**grammar, state);
    state = (*grammar)->After(state, std::string_view(text).substr(i, 1));
    const Grammar::State at_once =
        (*grammar)->After((*grammar)->Start(), std::string_view(text).substr(0, i + 1));
    FORETOKEN_CHECK(state == at_once || state == Grammar::kUnknown || at_once == Grammar::kUnknown);
  }
  CheckMask(**grammar, state);
  CheckWalk(*grammar, text);
  FORETOKEN_CHECK((*grammar)->CanEnd(Grammar::kOver));
  return 0;
}
