// SPDX-License-Identifier: Apache-2.0
#include "draft/lookup/ngram.h"
#include "foretoken/drafts.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "draft/lookup/text_room.h"

namespace foretoken::draft {
namespace {

NgramText::Shape ShapeOf(const NgramSettings& s) {
  const bool single = s.storage == NgramStorage::kSingleLevel;
  return {.ngram_max = s.ngram_max,
          .ngram_min = single ? s.ngram_max : s.ngram_min,
          .n_likely = s.filler_top_k > 1 ? s.filler_top_k : 0};
}

int EvidenceOf(int n, const NgramVotes::Winner& best, int n_occurrences) {
  constexpr int kLong = 6, kVeryLong = 12;  // tokens that match
  if (best.count < n_occurrences)
    return best.matched < kLong ? 0 : best.matched < kVeryLong ? 2 : 3;
  return std::min(3, n - 1 + (best.count > 1));
}

constexpr std::array<std::string_view, 5> kNgramAliases = {
    "ngram-simple", "ngram-map-k", "ngram-map-k4v", "ngram-mod", "ngram-cache"};

Result<std::unique_ptr<Drafter>> MakeNgram(DrafterSettings settings) {
  const SpeculativeOptions& o = settings.options;
  std::vector<Token> corpus;
  if (!o.ngram_corpus.empty()) {
    FORETOKEN_TRY(corpus, settings.read_text(o.ngram_corpus));
  }
  return std::make_unique<NgramDrafter>(NgramSettings{.max_sequences = settings.max_sequences,
                                                      .max_context = settings.max_context,
                                                      .ngram_max = o.ngram_max,
                                                      .ngram_min = o.ngram_min,
                                                      .storage = o.ngram_storage,
                                                      .filler_top_k = o.ngram_filler_top_k,
                                                      .keep = o.ngram_keep,
                                                      .corpus = corpus});
}

}  // namespace

extern const DrafterSpec kNgramSpec = {.info = {.name = "ngram",
                                                .aliases = kNgramAliases,
                                                .help = "looks up the text so far",
                                                .lookup_only = true},
                                       .make = MakeNgram};

NgramDrafter::NgramDrafter(const NgramSettings& settings)
    : ListedDrafter(kNgramSpec),
      shape_(ShapeOf(settings)),
      max_context_(settings.max_context),
      max_kept_tokens_(settings.keep ? settings.max_kept_tokens / 2 : 0),
      sequences_(static_cast<std::size_t>(settings.max_sequences)) {
  FORETOKEN_CHECK(1 <= settings.ngram_min && settings.ngram_min <= settings.ngram_max);
  FORETOKEN_CHECK(settings.filler_top_k <= NgramVotes::kMaxLikely);
  if (settings.corpus.empty()) return;
  NgramText::Shape shape = shape_;
  shape.n_likely = 0;
  corpus_.Begin(shape, static_cast<int>(settings.corpus.size()));
  for (const Token t : settings.corpus) corpus_.Add(t, {});
}

void NgramDrafter::Begin(const SequenceStart& start) {
  Sequence& s = sequences_[static_cast<std::size_t>(start.seq)];
  s.ended = true;  // the text that was there before
  KeepEnded();
  s.ended = false;
  s.own_text_only = start.own_text_only;
  s.teaches = start.teaches;
  s.salt = start.salt;
  s.n_prompt = static_cast<int>(start.prompt.size());
  s.draft.Begin(start);
  s.context.reserve(static_cast<std::size_t>(std::max(shape_.ngram_max, kMaxMatch) + kMaxDraft));
  s.text.Begin(shape_, TextRoom(start, max_context_));
  for (const Token t : start.prompt) s.text.Add(t, {});
}

// Begin calls this, and not End, because End is part of a round that other sequences wait for.
void NgramDrafter::KeepEnded() {
  for (Sequence& s : sequences_) {
    if (!s.ended) continue;
    if (max_kept_tokens_ > 0 && s.teaches) Keep(s.text, s.salt);
    s.text.Clear();
  }
}

void NgramDrafter::Forget() {
  for (Sequence& s : sequences_)
    if (s.ended) s.text.Clear();
  kept_ = {};
}

void NgramDrafter::Keep(const NgramText& text, SaltId salt) {
  if (text.size() == 0) return;
  const int first = std::max(0, text.size() - max_kept_tokens_);
  if (kept_[0].room() < text.size() - first) {
    std::swap(kept_[0], kept_[1]);
    kept_[0].Begin(shape_, max_kept_tokens_);
  }
  kept_[0].StartText(salt);
  for (int i = first; i < text.size(); ++i)
    kept_[0].Add(text.tokens()[static_cast<std::size_t>(i)], text.likely(i));
}

void NgramDrafter::Observe(std::span<const Observation> observations) noexcept {
  for (const Observation& o : observations) {
    NgramText& text = sequences_[static_cast<std::size_t>(o.seq)].text;
    const auto n = static_cast<std::size_t>(o.likely == nullptr ? 0 : o.n_likely);
    for (std::size_t i = 0; i < o.committed.size(); ++i)
      text.Add(o.committed[i], {n == 0 ? nullptr : o.likely + i * n, n});
  }
}

void NgramDrafter::End(SeqId seq) noexcept {
  sequences_[static_cast<std::size_t>(seq)].ended = true;
}

void NgramDrafter::Propose(std::span<const Ask> asks,
                           std::span<round::Proposal> proposals) noexcept {
  for (std::size_t i = 0; i < asks.size(); ++i) {
    Sequence& s = sequences_[static_cast<std::size_t>(asks[i].seq)];
    const auto text = s.text.tokens();
    s.draft.Start(s.text.full() ? 0 : asks[i].max_tokens, s.text.size() - s.n_prompt);
    const auto most = static_cast<std::size_t>(std::max(shape_.ngram_max, kMaxMatch));
    const auto known = text.last(std::min(text.size(), most));
    s.context.assign(known.begin(), known.end());
    int evidence = 0;
    while (s.draft.open()) {
      const Next next = Find(s);
      if (next.token == kNoToken) break;
      if (s.context.size() == known.size()) evidence = next.evidence;
      s.draft.Push(next.token);
      s.context.push_back(next.token);
    }
    proposals[i] = s.draft.proposal(evidence);
  }
}

NgramDrafter::Next NgramDrafter::Chosen(int n, const NgramVotes& votes) noexcept {
  const NgramVotes::Winner best = votes.Best();
  return {best.token, EvidenceOf(n, best, votes.n_occurrences())};
}

NgramDrafter::Next NgramDrafter::Find(const Sequence& s) const noexcept {
  const auto most = static_cast<std::size_t>(std::max(shape_.ngram_max, kMaxMatch));
  const auto context = std::span(s.context).last(std::min(s.context.size(), most));
  for (int n = std::min(shape_.ngram_max, static_cast<int>(context.size())); n >= shape_.ngram_min;
       --n) {
    NgramVotes own, others;
    s.text.Count(context, n, own);
    if (own.n_occurrences() > 0) return Chosen(n, own);
    if (!s.own_text_only)
      for (const NgramText& kept : kept_) kept.Count(context, n, others, s.salt);
    corpus_.Count(context, n, others);
    if (others.n_occurrences() > 0) return Chosen(n, others);
  }
  return {};
}

}  // namespace foretoken::draft
