// SPDX-License-Identifier: Apache-2.0
// grammar/grammar_walk.h: follows one text, token by token, through the states of a grammar.
//
// A walk knows its tokens, so when the grammar had to forget its states, the walk finds its own
// again. Whether a text can be followed does not depend on other texts of the same grammar. The
// cost of a walk is bounded too (kMaxWork, kMaxWorkPerToken).
//
// When something fails, the walk remembers the length of the text at that moment. Removing tokens
// does not remove the failure; the caller asks for it after deciding how many tokens stay.
//
// A value; one thread at a time. Begin reserves the memory.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/ids.h"
#include "grammar/grammar.h"

namespace foretoken::grammar {

class GrammarWalk {
 public:
  // Limits for a text, once for its tokens and masks and once more for drafts (Follows, Forced):
  // the first is the base, the second is added for each token. About 0.2 s and 3 ms. What other
  // texts of the grammar have made known costs nothing.
  static constexpr std::int64_t kMaxWork = std::int64_t{1} << 22;
  static constexpr std::int64_t kMaxWorkPerToken = std::int64_t{1} << 16;

  GrammarWalk() = default;  // without a grammar: every token follows
  explicit GrammarWalk(std::shared_ptr<const Grammar> grammar);
  const Grammar* grammar() const noexcept { return grammar_.get(); }

  // Starts an empty text with room for max_tokens.
  void Begin(int max_tokens);
  void Push(Token token) noexcept;
  void Pop(int n) noexcept;
  int length() const noexcept { return static_cast<int>(tokens_.size()); }

  // Whether the text so far follows the grammar, and that could be found within the limits.
  bool follows() const noexcept {
    return grammar_ == nullptr ||
           !(states_.back() == Grammar::kOver || states_.back() == Grammar::kUnknown);
  }
  bool CanEnd() noexcept;
  // As Grammar::Mask.
  bool Mask(std::span<float> logits) noexcept;

  // As Grammar::Forced. If it fails, nothing is forced, and no failure is recorded.
  int Forced(std::span<Token> out) noexcept;
  // How many of the tokens, from the first on, may follow. Tokens of `ends` may follow where the
  // text may end, and nothing follows them. A token that cannot be followed within the limits
  // counts as one that may not.
  int Follows(std::span<const Token> tokens, std::span<const Token> ends) noexcept;

  // The work for the text so far, without drafts.
  std::int64_t work() const noexcept { return of_text_.work; }

  // The failure at a text of at most this length since the last ForgetFailure.
  GrammarFailure FailureWithin(int length) const noexcept;
  void ForgetFailure() noexcept { failure_ = GrammarFailure::kNone; }

 private:
  struct Spent {
    std::int64_t work = 0;
    int most_tokens = 0;  // the most tokens that the text had
    bool over() const { return work > kMaxWork + kMaxWorkPerToken * most_tokens; }
  };

  template <typename Operation>
  GrammarFailure Try(Spent& spent, const Operation& operation) noexcept;
  template <typename Operation>
  bool Note(const Operation& operation) noexcept;
  void Retrace(Spent& spent) noexcept;
  GrammarFailure Enter(Token token, Spent& spent) noexcept;

  std::shared_ptr<const Grammar> grammar_;
  std::vector<Token> tokens_;
  std::vector<Grammar::State> states_;           // before the first token and after each
  GrammarFailure lost_ = GrammarFailure::kNone;  // why the last states are unknown, if they are
  Spent of_text_, of_drafts_;
  GrammarFailure failure_ = GrammarFailure::kNone;
  int failed_at_ = 0;  // the text's length
};

}  // namespace foretoken::grammar
