// SPDX-License-Identifier: Apache-2.0
// draft/lookup/ngram_text.h: a text, or several one after the other, that can be asked what followed an
// n-gram in it. A question is answered from the texts of one salt.
//
// At each position stand the token itself and, where they are known, the tokens that the target
// held to be likely there. Both followed the context before the position, each token once.
//
// Begin allocates; nothing else does.
#pragma once

#include <array>
#include <vector>

#include "draft/lookup/ngram_index.h"

namespace foretoken::draft {

// Which tokens followed a context, counted over its 32 latest occurrences, and how far back the
// text before an occurrence is the same as before the context.
class NgramVotes {
 public:
  static constexpr int kMaxOccurrences = 32;
  static constexpr int kMaxLikely = 64;  // tokens at one position beside its own

  bool full() const { return n_occurrences_ == kMaxOccurrences; }
  // Occurrences come from the latest back: first NextOccurrence, then its tokens, each once, the
  // committed one first. matched: tokens up to its end that are those of the context.
  void NextOccurrence(int matched) noexcept { ++n_occurrences_, matched_ = matched; }
  void Add(Token token) noexcept;
  int n_occurrences() const { return n_occurrences_; }
  // The token that followed the longest match; of equals the one with the most votes, then the one
  // that was added first; kNoToken without votes.
  struct Winner {
    Token token = kNoToken;
    int count = 0, matched = 0;
  };
  Winner Best() const noexcept;

 private:
  static constexpr std::size_t kMaxTokens = kMaxOccurrences * (1 + kMaxLikely);

  int n_occurrences_ = 0, matched_ = 0;
  std::size_t n_tokens_ = 0;
  std::array<Token, kMaxTokens> tokens_;  // [n_tokens]; the rest of all three is not written
  std::array<std::int16_t, kMaxTokens> counts_, longest_;
};

class NgramText {
 public:
  struct Shape {
    int ngram_max = 0, ngram_min = 0;
    int n_likely = 0;  // at each position at most, <= NgramVotes::kMaxLikely
  };

  // Forgets everything and makes room for max_tokens.
  void Begin(const Shape& shape, int max_tokens);
  // What comes next does not follow what is there.
  void StartText(SaltId salt = kNoSalt) noexcept { n_joined_ = 0, salt_ = salt; }
  // likely: of any size; the first n_likely count.
  void Add(Token token, std::span<const Token> likely) noexcept;
  void Clear() noexcept { tokens_.clear(), salts_.clear(); }  // until the next Begin

  int room() const { return max_tokens_ - size(); }
  bool full() const { return room() == 0; }
  int size() const { return static_cast<int>(tokens_.size()); }
  std::span<const Token> tokens() const { return tokens_; }
  std::span<const Token> likely(int position) const {  // [n_likely]; kNoToken where unknown
    const auto n = static_cast<std::size_t>(shape_.n_likely);
    return std::span(likely_).subspan(static_cast<std::size_t>(position) * n, n);
  }

  // Counts what followed the last n tokens of the context, from the latest occurrence back, until
  // the votes are full. Matches are as long as the context at most.
  void Count(std::span<const Token> context, int n, NgramVotes& votes,
             SaltId salt = kNoSalt) const noexcept;

 private:
  int Matched(std::span<const Token> context, int n, int end) const noexcept;

  Shape shape_;
  int max_tokens_ = 0;
  std::vector<Token> tokens_;
  std::vector<SaltId> salts_;        // of each token
  std::vector<Token> likely_;        // [size, n_likely]
  std::vector<bool> starts_;         // a text begins here: the token follows nothing
  std::vector<NgramIndex> indices_;  // [i]: n = ngram_min + i
  int n_joined_ = 0;                 // tokens since the text began
  SaltId salt_ = kNoSalt;            // of that text
};

}  // namespace foretoken::draft
