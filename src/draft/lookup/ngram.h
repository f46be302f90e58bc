// SPDX-License-Identifier: Apache-2.0
// draft/lookup/ngram.h: prompt lookup: what followed the last words earlier in the text is likely
// to follow again (Saxena 2023, "Prompt Lookup Decoding"). The context is the last n tokens, n from
// ngram_max down to ngram_min; the longest that occurred before wins. Its 32 latest occurrences are
// compared: those count before which the text agrees farthest back, up to 16 tokens; then the token
// that followed most often, then the most recent. The next draft is looked up with the drafted
// tokens as context; only committed text votes. If nothing is known, the draft ends. Drafts are
// certain: proposals have no distribution.
//
// "Earlier in the text" means the sequence's own text. Only if it does not know a context of this
// length, other texts are asked, together and from the latest back: with `keep`, the texts of
// sequences of the same salt that have ended; the corpus. (In an edited text, its own single
// occurrence is a better guide than those of other texts.) With filler_top_k > 1 the target's most likely tokens at a
// position count as having followed its context too, each once, whichever was committed.
//
// Evidence of the first draft: if all occurrences agree, it grows by one with each token of the
// context and with a second occurrence. If they differ it is 0, but 2 from a match of 6 tokens on
// and 3 from 12 on: there a first draft was right in 34 to 100 % of the cases (tales, code and
// JSON). Below 6 tokens it was right in 0 to 55 %; where all agree, in 71 to 99 % from 3 tokens on.
//
// Cost: a few hash look-ups for each draft, O(ngram_max) for each committed token. Begin reserves
// the memory for the whole request. The memory of kept texts is bounded, and the oldest are
// forgotten.
#pragma once

#include <array>
#include <vector>

#include "draft/lookup/certain_draft.h"
#include "draft/lookup/ngram_text.h"
#include "draft/registry.h"
#include "foretoken/options.h"

namespace foretoken::draft {

struct NgramSettings {
  int max_sequences = 1;
  int max_context = 0;  // tokens of a sequence's text
  int ngram_max = 3, ngram_min = 1;
  NgramStorage storage = NgramStorage::kMultiLevel;  // kSingleLevel: contexts of ngram_max only
  int filler_top_k = 1;                              // [1, NgramVotes::kMaxLikely]; 1: off
  bool keep = false;
  int max_kept_tokens = 1 << 18;  // with keep: about 70 bytes each for three lengths of context
  std::span<const Token> corpus = {};  // copied
};

extern const DrafterSpec kNgramSpec;

class NgramDrafter final : public ListedDrafter {
 public:
  explicit NgramDrafter(const NgramSettings& settings);

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
    bool ended = true, own_text_only = false, teaches = true;
    SaltId salt = kNoSalt;
    CertainDraft draft;
    std::vector<Token> context;  // the text's last kMaxMatch tokens and the drafts behind them
  };

  void KeepEnded();
  void Keep(const NgramText& text, SaltId salt);
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
