// SPDX-License-Identifier: Apache-2.0
// sampling/grammar.h: which tokens may follow where a text must be one that a grammar gives.
//
// A grammar (sampling/gbnf.h) is a machine that reads bytes and has a stack. After a text it may
// be in several situations at once (a step of the program and a stack each); their set is the
// text's state. States are found as they are needed, numbered, and kept with what was learnt: where
// each byte leads and which tokens may follow. So a state is a plain value, equal texts have equal
// states, and a rejected branch leaves no trace but memory.
//
// One object serves any number of requests, from any thread (a lock inside). Cost: of a state met
// before, a pass over the vocabulary's bits; of a new one, a walk over the token texts that can
// follow. New states take memory, some KB each; masks at most kMaskBytes together.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "foretoken/result.h"
#include "sampling/token_trie.h"

namespace foretoken::sampling {

class Grammar {
 public:
  // A grammar that a text could leave in more than kMaxSituations ways at once is followed in that
  // many of them: what the mask then allows is still of the grammar, but not all of it.
  static constexpr int kMaxSituations = 4096;
  static constexpr std::size_t kMaskBytes = std::size_t{64} << 20;

  using State = std::int32_t;
  static constexpr State kOver = 0;  // no text can follow: it has ended, or left the grammar

  // How the vocabulary's tokenizer cuts a text that stands behind other text.
  using Cut = std::function<std::vector<Token>(std::string_view)>;

  // Without a cut nothing is Forced. Errors: as CompileGbnf.
  [[nodiscard]] static Result<std::shared_ptr<const Grammar>> Compile(
      std::string_view gbnf, std::shared_ptr<const TokenTrie> vocabulary, Cut cut = {});
  ~Grammar();

  State start() const noexcept;
  // After one more token. A token without a text leads to kOver.
  State After(State state, Token token) const noexcept;
  State After(State state, std::string_view bytes) const noexcept;
  // Whether the text may end here: so always at kOver.
  bool CanEnd(State state) const noexcept;

  // Sets the logits of tokens whose text cannot follow to -inf, also of those without a text and
  // those beyond the vocabulary.
  void Mask(State state, std::span<float> logits) const noexcept;

  // The tokens that must follow as the tokenizer cuts their text, as far as `out` holds them;
  // returns how many. Where the text can only end, the last is the vocabulary's first end token.
  int Forced(State state, std::span<Token> out) const noexcept;

  // Memory that the states met so far take, about.
  std::size_t bytes() const noexcept;

  // The vocabulary's.
  std::span<const Token> end_tokens() const noexcept;

 private:
  class Machine;
  explicit Grammar(std::unique_ptr<Machine> machine);
  std::unique_ptr<Machine> machine_;
};

}  // namespace foretoken::sampling
