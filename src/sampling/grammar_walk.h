// SPDX-License-Identifier: Apache-2.0
// sampling/grammar_walk.h: one text, token by token, in the states of a grammar.
//
// A walk knows its tokens, so where the grammar had to forget its states the walk finds its own
// again: whether a text can be followed does not depend on what other texts of the same grammar
// take. What a walk may cost is bounded too (kMaxWork, kMaxWorkPerToken).
//
// Where something fails, the walk remembers at which length of the text. Tokens that are taken back
// take no failure with them; the caller asks after it has decided how many tokens stay.
//
// A value; one thread at a time. Memory is taken in Begin.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/ids.h"
#include "sampling/grammar.h"

namespace foretoken::sampling {

class GrammarWalk {
 public:
  // Of a text, once for its tokens and masks and once more for drafts (Follows, Forced): so much at
  // once, and so much more for each token that it has. Some 0.2 s and 3 ms. What is known already
  // from other texts of the grammar costs nothing.
  static constexpr std::int64_t kMaxWork = std::int64_t{1} << 22;
  static constexpr std::int64_t kMaxWorkPerToken = std::int64_t{1} << 16;

  GrammarWalk() = default;  // without a grammar: every token follows
  explicit GrammarWalk(std::shared_ptr<const Grammar> grammar);
  const Grammar* grammar() const noexcept { return grammar_.get(); }

  // An empty text, with room for so many tokens.
  void Begin(int max_tokens);
  void Push(Token token) noexcept;
  void Pop(int n) noexcept;
  int length() const noexcept { return static_cast<int>(tokens_.size()); }

  bool CanEnd() noexcept;
  // As Grammar::Mask.
  bool Mask(std::span<float> logits) noexcept;

  // As Grammar::Forced. It fails silently: then nothing is forced.
  int Forced(std::span<Token> out) noexcept;
  // How many of the tokens, from the first on, may follow; `ends` may where the text may end, and
  // nothing follows them. A token that cannot be followed within the budget counts as one that may
  // not.
  int Follows(std::span<const Token> tokens, std::span<const Token> ends) noexcept;

  // Of the text so far, without drafts.
  std::int64_t work() const noexcept { return of_text_.work; }

  // What failed at a text of at most this length since the last ForgetFailure.
  GrammarFailure FailureWithin(int length) const noexcept;
  void ForgetFailure() noexcept { failure_ = GrammarFailure::kNone; }

 private:
  struct Spent {
    std::int64_t work = 0;
    int most_tokens = 0;  // that the text had
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
  GrammarFailure lost_ = GrammarFailure::kNone;  // why the last states are unknown, where they are
  Spent of_text_, of_drafts_;
  GrammarFailure failure_ = GrammarFailure::kNone;
  int failed_at_ = 0;  // the text's length
};

}  // namespace foretoken::sampling
