// SPDX-License-Identifier: Apache-2.0
#include "draft/lookup/suffix_automaton.h"

#include <algorithm>
#include <bit>

#include "base/seeded_hash.h"

namespace foretoken::draft {

void SuffixAutomaton::Clear() {
  states_.assign(1, State{});
  edges_.clear();
  if (slots_.empty()) slots_.resize(16);
  std::fill(slots_.begin(), slots_.end(), 0);
  n_tokens_ = 0;
  StartText();
}

void SuffixAutomaton::Reserve(int n_tokens) {
  const auto n = static_cast<std::size_t>(n_tokens);
  states_.reserve(2 * n + 2);
  edges_.reserve(3 * n + 2);
  Rehash(std::bit_ceil(4 * n + 16));
}

void SuffixAutomaton::MakeRoom(int n_more) {
  const auto n = static_cast<std::size_t>(n_tokens_);
  const std::size_t all = n + static_cast<std::size_t>(n_more), grown = std::max(all, 2 * n);
  if (states_.capacity() < 2 * all + 2) states_.reserve(2 * grown + 2);
  if (edges_.capacity() < 3 * all + 2) edges_.reserve(3 * grown + 2);
  if (slots_.size() < 4 * all + 16) Rehash(std::bit_ceil(4 * grown + 16));
}

void SuffixAutomaton::StartText() noexcept {
  last_ = kRoot;
  newest_ = {};
}

std::size_t SuffixAutomaton::Slot(std::int32_t from, Token token) const noexcept {
  const auto key = static_cast<std::uint64_t>(static_cast<std::uint32_t>(from)) << 32 |
                   static_cast<std::uint32_t>(token);
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t i = SeededHashOf(key) & mask;; i = (i + 1) & mask) {
    if (slots_[i] == 0) return i;
    const Edge& edge = edges_[static_cast<std::size_t>(slots_[i] - 1)];
    if (edge.from == from && edge.token == token) return i;
  }
}

std::int32_t SuffixAutomaton::FindEdge(std::int32_t from, Token token) const noexcept {
  return slots_[Slot(from, token)] - 1;
}

std::int32_t SuffixAutomaton::To(std::int32_t from, Token token) const noexcept {
  const std::int32_t edge = FindEdge(from, token);
  return edge == kNone ? kNone : edges_[static_cast<std::size_t>(edge)].to;
}

void SuffixAutomaton::AddEdge(std::int32_t from, Token token, std::int32_t to) {
  if ((edges_.size() + 1) * 4 > slots_.size() * 3) Rehash(slots_.size() * 2);
  const std::size_t slot = Slot(from, token);
  edges_.push_back({from, token, to, At(from).first_edge});
  At(from).first_edge = static_cast<std::int32_t>(edges_.size()) - 1;
  slots_[slot] = static_cast<std::int32_t>(edges_.size());
}

void SuffixAutomaton::Rehash(std::size_t n_slots) {
  slots_.assign(n_slots, 0);
  for (std::size_t i = 0; i < edges_.size(); ++i)
    slots_[Slot(edges_[i].from, edges_[i].token)] = static_cast<std::int32_t>(i) + 1;
}

// The state of the text that `last` stands for and one more token.
std::int32_t SuffixAutomaton::Extend(std::int32_t last, Token token) {
  // An earlier text begins the same way.
  if (const std::int32_t to = To(last, token); to != kNone) return TargetAfter(last, token, to);
  const auto state = static_cast<std::int32_t>(states_.size());
  states_.push_back({.length = At(last).length + 1, .link = kRoot});
  for (std::int32_t from = last; from != kNone; from = At(from).link) {
    if (const std::int32_t to = To(from, token); to != kNone) {
      At(state).link = TargetAfter(from, token, to);
      break;
    }
    AddEdge(from, token, state);
  }
  return state;
}

// The state whose longest substring is the longest one of `from` and then the token. That is `to`,
// or where `to` has longer substrings, a state that is split from it.
std::int32_t SuffixAutomaton::TargetAfter(std::int32_t from, Token token, std::int32_t to) {
  return At(to).length == At(from).length + 1 ? to : Split(from, token, to);
}

std::int32_t SuffixAutomaton::Split(std::int32_t from, Token token, std::int32_t to) {
  const auto shorter = static_cast<std::int32_t>(states_.size());
  states_.push_back(At(to));  // until now both occurred at the same places
  At(shorter).length = At(from).length + 1;
  At(shorter).first_edge = kNone;
  At(to).link = shorter;
  for (std::int32_t e = At(to).first_edge; e != kNone;) {
    const Edge edge = edges_[static_cast<std::size_t>(e)];
    AddEdge(shorter, edge.token, edge.to);
    e = edge.next;
  }
  for (; from != kNone; from = At(from).link) {
    const std::int32_t e = FindEdge(from, token);
    if (e == kNone || edges_[static_cast<std::size_t>(e)].to != to) break;
    edges_[static_cast<std::size_t>(e)].to = shorter;
  }
  return shorter;
}

void SuffixAutomaton::Add(Token token) {
  last_ = Extend(last_, token);
  ++n_tokens_;
  // The state of the newest end may just have been split.
  if (newest_.length > 0 && At(At(newest_.state).link).length >= newest_.length)
    newest_.state = At(newest_.state).link;
  const std::int32_t to = To(newest_.state, token);
  CountNewest(to, token);
  newest_ = Cut({to, newest_.length + 1});
}

// Each suffix of the text before `token` has one follower more. Each suffix of the text with it,
// the longest of which is in `to`, has one occurrence more.
void SuffixAutomaton::CountNewest(std::int32_t to, Token token) noexcept {
  for (std::int32_t s = to; s != kRoot; s = At(s).link) ++At(s).count;
  for (std::int32_t s = newest_.state; s != kRoot; s = At(s).link) {
    State& state = At(s);
    ++state.followed;
    const std::int32_t count = At(To(s, token)).count;
    if (count >= state.best_count) state.best = token, state.best_count = count;
  }
}

SuffixAutomaton::Match SuffixAutomaton::Cut(Match m) const noexcept {
  if (m.length <= kMaxContext) return m;
  const std::int32_t link = At(m.state).link;
  return {At(link).length >= kMaxContext ? link : m.state, kMaxContext};
}

SuffixAutomaton::Match SuffixAutomaton::Advance(Match m, Token token) const noexcept {
  for (;;) {
    const std::int32_t to = To(m.state, token);
    if (to != kNone) return Cut({to, m.length + 1});
    if (m.state == kRoot) return {};
    m.state = At(m.state).link;
    m.length = At(m.state).length;
  }
}

SuffixAutomaton::Match SuffixAutomaton::Followed(Match m) const noexcept {
  while (m.state != kRoot && At(m.state).followed == 0) {
    m.state = At(m.state).link;
    m.length = At(m.state).length;
  }
  return m;
}

SuffixAutomaton::Follower SuffixAutomaton::Next(Match m) const noexcept {
  const State& state = At(m.state);
  return {state.best, state.best_count, state.followed};
}

}  // namespace foretoken::draft
