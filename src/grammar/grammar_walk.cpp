// SPDX-License-Identifier: Apache-2.0
#include "grammar/grammar_walk.h"

#include <algorithm>
#include <utility>

namespace foretoken::grammar {

GrammarWalk::GrammarWalk(std::shared_ptr<const Grammar> grammar) : grammar_(std::move(grammar)) {}

void GrammarWalk::Begin(int max_tokens) {
  tokens_.clear(), states_.clear();
  of_text_ = {}, of_drafts_ = {};
  ForgetFailure();
  if (grammar_ == nullptr) return;
  tokens_.reserve(static_cast<std::size_t>(max_tokens));
  states_.reserve(static_cast<std::size_t>(max_tokens) + 1);
  states_.push_back(Grammar::kUnknown);
  Retrace(of_text_);
}

// Finds the states of the same tokens, with the grammar's present numbers.
void GrammarWalk::Retrace(Spent& spent) noexcept {
  GrammarCost cost;
  states_[0] = grammar_->Start(&cost);
  for (std::size_t i = 0; i < tokens_.size(); ++i)
    states_[i + 1] = grammar_->After(states_[i], tokens_[i], &cost);
  lost_ = cost.failure;
  spent.work += cost.work;
}

// Runs an operation on the last state. Makes room for its states, or finds the walk's own again, if
// that is what is missing. If other threads make room at the same time, tries again.
template <typename Operation>
GrammarFailure GrammarWalk::Try(Spent& spent, const Operation& operation) noexcept {
  constexpr int kMostAttempts = 8;
  if (states_.back() == Grammar::kUnknown) return lost_;
  spent.most_tokens = std::max(spent.most_tokens, length());
  bool trimmed = false;
  GrammarCost cost;
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    if (spent.over()) return GrammarFailure::kRequestWork;
    cost = {};
    operation(&cost);
    spent.work += cost.work;
    if (cost.failure == GrammarFailure::kStateBytes && !std::exchange(trimmed, true))
      grammar_->Trim(states_.back().generation);
    else if (cost.failure != GrammarFailure::kForgotten)
      break;
    Retrace(spent);
  }
  return cost.failure;
}

template <typename Operation>
bool GrammarWalk::Note(const Operation& operation) noexcept {
  const GrammarFailure failure = Try(of_text_, operation);
  if (failure == GrammarFailure::kNone) return true;
  if (failure_ == GrammarFailure::kNone || length() < failed_at_)
    failure_ = failure, failed_at_ = length();
  return false;
}

GrammarFailure GrammarWalk::Enter(Token token, Spent& spent) noexcept {
  Grammar::State next = Grammar::kUnknown;
  const GrammarFailure failure =
      Try(spent, [&](GrammarCost* cost) { next = grammar_->After(states_.back(), token, cost); });
  tokens_.push_back(token);
  states_.push_back(next);
  if (failure != GrammarFailure::kNone) lost_ = failure;
  return failure;
}

void GrammarWalk::Push(Token token) noexcept {
  if (grammar_ == nullptr) return;
  Enter(token, of_text_);
}

void GrammarWalk::Pop(int n) noexcept {
  if (grammar_ == nullptr) return;
  tokens_.resize(tokens_.size() - static_cast<std::size_t>(n));
  states_.resize(tokens_.size() + 1);
}

bool GrammarWalk::CanEnd() noexcept {
  bool can_end = false;
  Note([&](GrammarCost* cost) { can_end = grammar_->CanEnd(states_.back(), cost); });
  return can_end;
}

bool GrammarWalk::Mask(std::span<float> logits) noexcept {
  return Note([&](GrammarCost* cost) { grammar_->Mask(states_.back(), logits, cost); });
}

int GrammarWalk::Forced(std::span<Token> out) noexcept {
  int n = 0;
  if (grammar_ == nullptr) return n;
  Try(of_drafts_, [&](GrammarCost* cost) { n = grammar_->Forced(states_.back(), out, cost); });
  return n;
}

int GrammarWalk::Follows(std::span<const Token> tokens, std::span<const Token> ends) noexcept {
  if (grammar_ == nullptr) return static_cast<int>(tokens.size());
  int n = 0, n_entered = 0;
  for (const Token token : tokens) {
    if (std::find(ends.begin(), ends.end(), token) != ends.end()) {
      Try(of_drafts_, [&](GrammarCost* cost) { n += grammar_->CanEnd(states_.back(), cost); });
      break;
    }
    Enter(token, of_drafts_);
    ++n_entered;
    if (states_.back() == Grammar::kUnknown || states_.back() == Grammar::kOver) break;
    ++n;
  }
  Pop(n_entered);
  return n;
}

GrammarFailure GrammarWalk::FailureWithin(int length) const noexcept {
  return failed_at_ <= length ? failure_ : GrammarFailure::kNone;
}

}  // namespace foretoken::grammar
