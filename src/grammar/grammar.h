// SPDX-License-Identifier: Apache-2.0
// grammar/grammar.h: which tokens may come next in a text that must follow a grammar.
//
// The state of a text (grammar/grammar_states.h) is a plain value: equal texts have equal states,
// and a rejected branch leaves nothing behind but memory. States are found when they are needed,
// and kept with what was learned: where each byte leads, and which tokens may follow.
//
// A grammar comes from a client, so its cost is bounded: the memory of its states (Trim makes room)
// and of its masks, and the work of each operation. An operation that would need more gives no
// result and says why; it never gives part of a mask. Use a GrammarWalk (grammar/grammar_walk.h)
// to follow a request's text; it makes room where that helps.
//
// One object serves any number of requests, from any thread (it has a lock). Cost: for a known
// state, a pass over the vocabulary's bits; for a new one, a walk over the token texts that can
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
#include "grammar/grammar_states.h"
#include "grammar/token_trie.h"

namespace foretoken::grammar {

// The cost of operations, and the first reason why one of them has no result.
struct GrammarCost {
  std::int64_t work = 0;
  GrammarFailure failure = GrammarFailure::kNone;
};

// REQUIRES: not kNone.
Error ErrorOf(GrammarFailure failure);

class Grammar {
 public:
  static constexpr std::size_t kMaxMaskBytes = std::size_t{16} << 20;

  // Valid until the next Trim.
  struct State {
    std::int32_t number = 0;
    std::uint32_t generation = 0;
    friend bool operator==(const State&, const State&) = default;
  };
  // No text can follow: the text has ended, or does not follow the grammar.
  static constexpr State kOver = {GrammarStates::kOver, 0};
  // The result of an operation that failed; operations on it fail too.
  static constexpr State kUnknown = {GrammarStates::kNone, 0};

  // Cuts a text that follows other text into tokens, as the vocabulary's tokenizer does.
  using Cut = std::function<std::vector<Token>(std::string_view)>;

  // Also finds the first token's mask. Without `cut`, Forced gives nothing. Errors: as CompileGbnf;
  // those of a limit that does not even allow the first token's mask.
  [[nodiscard]] static Result<std::shared_ptr<const Grammar>> Compile(
      std::string_view gbnf, std::shared_ptr<const TokenTrie> vocabulary, Cut cut = {});
  ~Grammar();

  // Operations add their cost to `cost`, if it is given.
  State Start(GrammarCost* cost = nullptr) const noexcept;
  // The state after one more token. A token without a text leads to kOver.
  State After(State state, Token token, GrammarCost* cost = nullptr) const noexcept;
  State After(State state, std::string_view bytes, GrammarCost* cost = nullptr) const noexcept;
  // Whether the text may end here; always true at kOver. False if it fails.
  bool CanEnd(State state, GrammarCost* cost = nullptr) const noexcept;

  // Sets the logits of tokens that cannot follow to -inf, including those without a text and those
  // beyond the vocabulary. False: it failed, and the logits are unchanged.
  bool Mask(State state, std::span<float> logits, GrammarCost* cost = nullptr) const noexcept;

  // The tokens that must follow, as the tokenizer cuts their text, as many as `out` holds; returns
  // how many. Where the text must end, the last one is the vocabulary's first end token.
  int Forced(State state, std::span<Token> out, GrammarCost* cost = nullptr) const noexcept;

  // Forgets all states and what was learned about them, and releases their memory.
  void Trim() const noexcept;
  // Trims only while the states of this generation are in use: if several threads want room, only
  // one makes it.
  void Trim(std::uint32_t generation) const noexcept;

  // Memory of the grammar and its states, without the vocabulary.
  std::size_t bytes() const noexcept;

  // The vocabulary's.
  std::span<const Token> end_tokens() const noexcept;

 private:
  class Machine;
  explicit Grammar(std::unique_ptr<Machine> machine);
  std::unique_ptr<Machine> machine_;
};

}  // namespace foretoken::grammar
