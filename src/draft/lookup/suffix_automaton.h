// SPDX-License-Identifier: Apache-2.0
// draft/lookup/suffix_automaton.h: every substring of a growing text, or of several, with the
// counts of what followed it (Blumer et al. 1985, "The smallest automaton recognizing the subwords
// of a text").
//
//   state       a class of substrings that end at the same places: suffixes of one another, longer
//               than those of its link, up to `length` tokens
//   edge        state and token to the state of the substring one token longer; (state, token) is
//               looked up in an open hash table, and a state's edges also form a list, to be copied
//               when a class is split
//   count       places where the substrings of a state end. Only those of up to kMaxContext + 1
//               tokens are counted, so that a token costs at most that many steps, also in a text
//               like a a a a; in others it is a handful
//
// At most 2n states and 3n edges for n tokens: about 130 bytes a token at worst. Add allocates only
// beyond what Reserve was told.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"

namespace foretoken::draft {

class SuffixAutomaton {
 public:
  static constexpr int kMaxContext = 64;  // tokens

  // A substring of the text: the state it belongs to and its length, <= kMaxContext. {} is the
  // empty one. Add invalidates matches.
  struct Match {
    std::int32_t state = 0;
    std::int32_t length = 0;
  };
  // What followed a substring.
  struct Follower {
    Token token = kNoToken;  // the most frequent; of equal ones the latest
    std::int32_t count = 0;  // its occurrences
    std::int32_t total = 0;  // those of all
  };

  SuffixAutomaton() { Clear(); }
  // Forgets everything; keeps the memory.
  void Clear();
  // Makes room for n_tokens in all.
  void Reserve(int n_tokens);
  // Makes room for n_more. If memory is refused, nothing has changed.
  void MakeRoom(int n_more);

  // The next token does not follow the present text.
  void StartText() noexcept;
  void Add(Token token);
  int size() const { return n_tokens_; }

  // The longest end of the text since StartText, at most kMaxContext tokens.
  Match newest() const { return newest_; }
  // The longest end of (m, token) that occurs, at most kMaxContext tokens.
  Match Advance(Match m, Token token) const noexcept;
  // The longest end of m that something followed.
  Match Followed(Match m) const noexcept;
  // REQUIRES: m = Followed(m), not empty.
  Follower Next(Match m) const noexcept;

 private:
  static constexpr std::int32_t kRoot = 0, kNone = -1;

  struct State {
    std::int32_t length = 0, link = kNone, first_edge = kNone;
    std::int32_t count = 0, followed = 0;
    Token best = kNoToken;  // the most frequent follower
    std::int32_t best_count = 0;
  };
  struct Edge {
    std::int32_t from;
    Token token;
    std::int32_t to, next;  // next: of the same state
  };

  State& At(std::int32_t state) { return states_[static_cast<std::size_t>(state)]; }
  const State& At(std::int32_t state) const { return states_[static_cast<std::size_t>(state)]; }
  std::size_t Slot(std::int32_t from, Token token) const noexcept;
  std::int32_t FindEdge(std::int32_t from, Token token) const noexcept;
  std::int32_t To(std::int32_t from, Token token) const noexcept;
  void AddEdge(std::int32_t from, Token token, std::int32_t to);
  void Rehash(std::size_t n_slots);
  std::int32_t Extend(std::int32_t last, Token token);
  std::int32_t TargetAfter(std::int32_t from, Token token, std::int32_t to);
  std::int32_t Split(std::int32_t from, Token token, std::int32_t to);
  void CountNewest(std::int32_t to, Token token) noexcept;
  Match Cut(Match m) const noexcept;

  std::vector<State> states_;
  std::vector<Edge> edges_;
  std::vector<std::int32_t> slots_;  // edge + 1; 0 = free. A power of two, at most 3/4 full
  std::int32_t last_ = kRoot;        // the state of the whole text since StartText
  Match newest_;
  int n_tokens_ = 0;
};

}  // namespace foretoken::draft
