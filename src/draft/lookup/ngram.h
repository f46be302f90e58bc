// SPDX-License-Identifier: Apache-2.0
// draft/lookup/ngram.h: prompt lookup: what followed the last words when they stood in the text before is
// likely to follow again (Saxena 2023, "Prompt Lookup Decoding"). The context is the last n tokens,
// n from ngram_max down to ngram_min; the longest that occurred before wins. Of its 32 latest
// occurrences those count first before which the text is the same farthest back, up to 16 tokens;
// then the token that followed most often, then the most recent. The next draft is looked up with
// the drafted tokens as context; only committed text votes. Where nothing is known the draft ends.
// Drafts are certain: proposals carry no law.
//
// "Before" is the sequence's own text, and only where that does not know a context of this length,
// together and from the latest back: with `keep`, the texts of sequences that have ended; the
// corpus. (Of an edited text, what other texts say of a context is a worse guide than its own one
// occurrence.) With filler_top_k > 1 the tokens that the target held to be the most likely ones at
// a position followed its context too, each once, whichever was committed.
//
// Evidence of the first draft: where all occurrences agree, it grows by one with each token of the
// context and with a second occurrence. Where they differ it is 0, but 2 from a match of 6 tokens
// on and 3 from 12 on: there a first draft was right in 34 to 100 % of the cases (tales, code and
// JSON; below 6 tokens in 0 to 55 %, where all agree in 71 to 99 from 3 tokens on).
//
// Costs: a few hash look-ups for each draft, O(ngram_max) for each committed token. Memory is taken
// at Begin, for the whole request; that of kept texts is bounded, and the oldest are forgotten.
#pragma once

#include <array>
#include <vector>

#include "draft/drafter.h"
#include "draft/lookup/certain_draft.h"
#include "draft/lookup/ngram_text.h"
#include "foretoken/options.h"

namespace foretoken::draft {

struct NgramSettings {
  int max_sequences = 1;
  int max_context = 0;  // tokens of a sequence's text
  int ngram_max = 3, ngram_min = 1;
  NgramStorage storage = NgramStorage::kMultiLevel;  // kSingleLevel: contexts of ngram_max only
  int filler_top_k = 1;                              // [1, NgramVotes::kMaxLikely]; 1: off
  bool keep = false;
  int max_kept_tokens = 1 << 18;  // with keep: about 60 bytes each for three lengths of context
  std::span<const Token> corpus = {};  // copied
};

class NgramDrafter final : public Drafter {
 public:
  explicit NgramDrafter(const NgramSettings& settings);

  std::string_view name() const override { return "ngram"; }
  bool ReportsLaws() const override { return false; }
  int LikelyTokens() const override { return shape_.n_likely; }
  void Begin(const SequenceStart& start) override;
  void Propose(std::span<const Ask> asks, std::span<round::Proposal> proposals) noexcept override;
  void Observe(std::span<const Observation> observations) noexcept override;
  void End(SeqId seq) noexcept override;
  void Forget() override;

 private:
  static constexpr int kMaxMatch = 16;  // tokens up to which matches are compared

  struct Sequence {
    NgramText text;
    int n_prompt = 0;
    bool ended = true, own_text_only = false;
    CertainDraft draft;
    std::vector<Token> context;  // the text's last kMaxMatch tokens and the drafts behind them
  };

  void KeepEnded();
  void Keep(const NgramText& text);
  struct Next {
    Token token = kNoToken;
    int evidence = 0;
  };
  Next Find(const Sequence& s) const noexcept;
  static Next Chosen(int n, const NgramVotes& votes) noexcept;

  const NgramText::Shape shape_;
  const int max_context_;
  const int max_kept_tokens_;  // of one generation; 0: nothing is kept
  std::vector<Sequence> sequences_;
  // Generations of kept texts, the younger first: where it is full the older one is forgotten.
  std::array<NgramText, 2> kept_;
  NgramText corpus_;
};

}  // namespace foretoken::draft
