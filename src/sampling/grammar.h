// SPDX-License-Identifier: Apache-2.0
// sampling/grammar.h: which tokens may follow where a text must be one that a grammar gives.
//
// A text's state (sampling/grammar_states.h) is a plain value: equal texts have equal states, and a
// rejected branch leaves no trace but memory. States are found as they are needed and kept with
// what was learnt: where each byte leads and which tokens may follow.
//
// A grammar comes from a client, so its cost is bounded: the memory of its states (then Trim makes
// room) and of its masks, and the work of each operation. An operation that would need more gives
// nothing and says why; it never gives part of a mask. Follow a request's text with a GrammarWalk
// (sampling/grammar_walk.h), which makes room where that helps.
//
// One object serves any number of requests, from any thread (a lock inside). Cost: of a state met
// before, a pass over the vocabulary's bits; of a new one, a walk over the token texts that can
// follow.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "foretoken/result.h"
#include "sampling/grammar_states.h"
#include "sampling/token_trie.h"

namespace foretoken::sampling {

// What operations took, and the first reason why one of them has no result.
struct GrammarCost {
  std::int64_t work = 0;
  GrammarFailure failure = GrammarFailure::kNone;
};

// REQUIRES: not kNone.
Error ErrorOf(GrammarFailure failure);

class Grammar {
 public:
  static constexpr std::size_t kMaxMaskBytes = std::size_t{16} << 20;

  // Known until the next Trim.
  struct State {
    std::int32_t number = 0;
    std::uint32_t generation = 0;
    friend bool operator==(const State&, const State&) = default;
  };
  // No text can follow: it has ended, or left the grammar.
  static constexpr State kOver = {GrammarStates::kOver, 0};
  // What an operation gives that failed; operations on it fail too.
  static constexpr State kUnknown = {GrammarStates::kNone, 0};

  // How the vocabulary's tokenizer cuts a text that stands behind other text.
  using Cut = std::function<std::vector<Token>(std::string_view)>;

  // Finds the first token's mask too. Without a cut nothing is Forced. Errors: as CompileGbnf;
  // those of a budget that does not even hold the first token's mask.
  [[nodiscard]] static Result<std::shared_ptr<const Grammar>> Compile(
      std::string_view gbnf, std::shared_ptr<const TokenTrie> vocabulary, Cut cut = {});
  ~Grammar();

  // Operations add to `cost`, where there is one.
  State Start(GrammarCost* cost = nullptr) const noexcept;
  // After one more token. A token without a text leads to kOver.
  State After(State state, Token token, GrammarCost* cost = nullptr) const noexcept;
  State After(State state, std::string_view bytes, GrammarCost* cost = nullptr) const noexcept;
  // Whether the text may end here: so always at kOver. False where it fails.
  bool CanEnd(State state, GrammarCost* cost = nullptr) const noexcept;

  // Sets the logits of tokens whose text cannot follow to -inf, also of those without a text and
  // those beyond the vocabulary. False: it failed, and the logits are as they were.
  bool Mask(State state, std::span<float> logits, GrammarCost* cost = nullptr) const noexcept;

  // The tokens that must follow as the tokenizer cuts their text, as far as `out` holds them;
  // returns how many. Where the text can only end, the last is the vocabulary's first end token.
  int Forced(State state, std::span<Token> out, GrammarCost* cost = nullptr) const noexcept;

  // Forgets all states and what was learnt of them, and gives their memory back.
  void Trim() const noexcept;
  // The same, but only while the states of this generation are known: of several threads that want
  // room, one makes it.
  void Trim(std::uint32_t generation) const noexcept;

  // Memory that the grammar and its states take. Not the vocabulary.
  std::size_t bytes() const noexcept;

  // The vocabulary's.
  std::span<const Token> end_tokens() const noexcept;

 private:
  class Machine;
  explicit Grammar(std::unique_ptr<Machine> machine);
  std::unique_ptr<Machine> machine_;
};

}  // namespace foretoken::sampling
