// SPDX-License-Identifier: Apache-2.0
// Random GBNF and random text: a grammar compiles or gives one line of complaint, and one that
// compiles is followed the same way byte by byte and at once, by the mask and by the text.
#include <fuzzer/FuzzedDataProvider.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/check.h"
#include "sampling/grammar.h"

namespace {

using foretoken::Token;
using foretoken::sampling::Grammar;
using foretoken::sampling::TokenTrie;

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

void CheckMask(const Grammar& grammar, Grammar::State state) {
  std::vector<float> logits(Texts().size() + 1, 1.0f);
  grammar.Mask(state, logits);
  for (std::size_t t = 0; t < logits.size(); ++t) {
    const bool follows = grammar.After(state, static_cast<Token>(t)) != Grammar::kOver;
    FORETOKEN_CHECK(std::isfinite(logits[t]) == follows);
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
  Grammar::State state = (*grammar)->start();
  FORETOKEN_CHECK(state != Grammar::kOver);
  for (std::size_t i = 0; i < text.size() && state != Grammar::kOver; ++i) {
    if (i % 16 == 0) CheckMask(**grammar, state);
    state = (*grammar)->After(state, std::string_view(text).substr(i, 1));
    FORETOKEN_CHECK(
        state == (*grammar)->After((*grammar)->start(), std::string_view(text).substr(0, i + 1)));
  }
  CheckMask(**grammar, state);
  FORETOKEN_CHECK((*grammar)->CanEnd(Grammar::kOver));
  return 0;
}
