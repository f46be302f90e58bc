// SPDX-License-Identifier: Apache-2.0
// draft/ngram.h: prompt lookup: what followed the last words when they stood in the text before is
// likely to follow again (Saxena 2023, "Prompt Lookup Decoding").
//
// The context is the last n tokens, n from ngram_max down to ngram_min; the longest that occurred
// before wins, then the token that followed it most often at its 32 latest occurrences, then the
// most recent. The next draft is looked up with the drafted tokens as context; only committed text
// votes. Where nothing is known the draft ends. Drafts are certain: proposals carry no law.
//
// Costs: a few hash look-ups for each draft, O(ngram_max) for each committed token. Memory is taken
// at Begin, for the whole request.
#pragma once

#include <cstdint>
#include <vector>

#include "draft/drafter.h"

namespace foretoken::draft {

// Where each n-gram of a growing text occurred: for one n, chains of end positions from the latest
// back.
class NgramIndex {
 public:
  // Forgets everything and makes room for a text of max_tokens.
  void Begin(int n, int max_tokens);
  // The n-gram that ends at text.back() has now occurred there. text grows by one token between
  // calls.
  void Add(std::span<const Token> text) noexcept;
  // The latest end position of this n-gram (of n tokens) in the text, -1 if it never occurred.
  int Last(std::span<const Token> ngram, std::span<const Token> text) const noexcept;
  // The occurrence before the one that ends at `position`, -1 if that was the first.
  int Before(int position) const noexcept { return before_[static_cast<std::size_t>(position)]; }

 private:
  std::size_t Slot(std::span<const Token> ngram, std::span<const Token> text) const noexcept;

  int n_ = 0;
  std::vector<std::int32_t> slots_;  // end position + 1 of the latest occurrence; 0 = free. A power
                                     // of two, at most half full
  std::vector<std::int32_t> before_;  // [max_tokens]
};

class NgramDrafter final : public Drafter {
 public:
  NgramDrafter(int max_sequences, int ngram_max, int ngram_min, int max_context);

  std::string_view name() const override { return "ngram"; }
  bool ReportsLaws() const override { return false; }
  void Begin(const SequenceStart& start) override;
  void Propose(std::span<const Ask> asks, std::span<round::Proposal> proposals) noexcept override;
  void Observe(std::span<const Observation> observations) noexcept override;
  void End(SeqId seq) noexcept override;

 private:
  struct Sequence {
    std::vector<Token> text;    // committed tokens; drafts stand behind them during Propose
    std::vector<Token> drafts;  // the last proposal
    int n_committed = 0, n_prompt = 0, min_new_tokens = 0, room = 0;
    std::vector<Token> end_tokens;
    std::vector<NgramIndex> indices;  // [i]: n = ngram_min + i
    bool IsEnd(Token token) const;
  };

  void Append(Sequence& s, Token token) noexcept;
  Token Next(const Sequence& s) const noexcept;
  Token MostFrequent(const Sequence& s, const NgramIndex& index, int last) const noexcept;

  const int ngram_max_, ngram_min_, max_context_;
  std::vector<Sequence> sequences_;
};

}  // namespace foretoken::draft
