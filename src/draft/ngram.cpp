// SPDX-License-Identifier: Apache-2.0
#include "draft/ngram.h"

#include <algorithm>
#include <array>
#include <bit>

#include "base/check.h"

namespace foretoken::draft {
namespace {

constexpr int kMaxDrafts = 64;       // of one proposal
constexpr int kMaxOccurrences = 32;  // the most recent ones vote

std::uint64_t HashOf(std::span<const Token> ngram) {
  std::uint64_t h = 0x9E3779B97F4A7C15u;
  for (const Token t : ngram) {
    h = (h ^ static_cast<std::uint32_t>(t)) * 0xD6E8FEB86659FD93u;
    h ^= h >> 32;
  }
  return h;
}

}  // namespace

void NgramIndex::Begin(int n, int max_tokens) {
  n_ = n;
  slots_.assign(std::bit_ceil(static_cast<std::size_t>(max_tokens) * 2 + 2), 0);
  before_.assign(static_cast<std::size_t>(max_tokens), -1);
}

// The slot that holds this n-gram, or the free one where it would go.
std::size_t NgramIndex::Slot(std::span<const Token> ngram,
                             std::span<const Token> text) const noexcept {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t i = HashOf(ngram) & mask;; i = (i + 1) & mask) {
    const int end = slots_[i] - 1;
    if (end < 0 || std::equal(ngram.begin(), ngram.end(), text.begin() + (end + 1 - n_))) return i;
  }
}

void NgramIndex::Add(std::span<const Token> text) noexcept {
  const int size = static_cast<int>(text.size());
  if (size < n_) return;
  auto& slot = slots_[Slot(text.last(static_cast<std::size_t>(n_)), text)];
  before_[static_cast<std::size_t>(size - 1)] = slot - 1;
  slot = size;
}

int NgramIndex::Last(std::span<const Token> ngram, std::span<const Token> text) const noexcept {
  return slots_[Slot(ngram, text)] - 1;
}

NgramDrafter::NgramDrafter(int max_sequences, int ngram_max, int ngram_min, int max_context)
    : ngram_max_(ngram_max),
      ngram_min_(ngram_min),
      max_context_(max_context),
      sequences_(static_cast<std::size_t>(max_sequences)) {
  FORETOKEN_CHECK(1 <= ngram_min && ngram_min <= ngram_max);
}

bool NgramDrafter::Sequence::IsEnd(Token token) const {
  return std::find(end_tokens.begin(), end_tokens.end(), token) != end_tokens.end();
}

void NgramDrafter::Begin(const SequenceStart& start) {
  Sequence& s = sequences_[static_cast<std::size_t>(start.seq)];
  // In 64 bits: max_new_tokens may be anything.
  const auto prompt = static_cast<std::int64_t>(start.prompt.size());
  const auto context = std::max<std::int64_t>(prompt, max_context_);
  const int most =
      static_cast<int>(std::min<std::int64_t>(prompt + start.max_new_tokens, context)) + 1;
  s.room = most;
  s.drafts.clear();
  s.drafts.reserve(kMaxDrafts);
  s.text.clear();
  s.text.reserve(static_cast<std::size_t>(most + kMaxDrafts));
  s.indices.resize(static_cast<std::size_t>(ngram_max_ - ngram_min_ + 1));
  for (int n = ngram_min_; n <= ngram_max_; ++n)
    s.indices[static_cast<std::size_t>(n - ngram_min_)].Begin(n, most);
  s.end_tokens.assign(start.end_tokens.begin(), start.end_tokens.end());
  s.n_committed = 0;
  s.n_prompt = static_cast<int>(start.prompt.size());
  s.min_new_tokens = start.min_new_tokens;
  for (const Token t : start.prompt) Append(s, t);
}

void NgramDrafter::Append(Sequence& s, Token token) noexcept {
  if (s.n_committed == s.room) return;  // more than was announced at Begin: it stays unknown
  s.text.push_back(token);
  ++s.n_committed;
  for (NgramIndex& index : s.indices) index.Add(s.text);
}

void NgramDrafter::Observe(std::span<const Observation> observations) noexcept {
  for (const Observation& o : observations)
    for (const Token t : o.committed) Append(sequences_[static_cast<std::size_t>(o.seq)], t);
}

void NgramDrafter::End(SeqId seq) noexcept {
  sequences_[static_cast<std::size_t>(seq)].text.clear();
}

void NgramDrafter::Propose(std::span<const Ask> asks,
                           std::span<round::Proposal> proposals) noexcept {
  for (std::size_t i = 0; i < asks.size(); ++i) {
    Sequence& s = sequences_[static_cast<std::size_t>(asks[i].seq)];
    const int most = s.n_committed == s.room ? 0 : std::min(asks[i].max_tokens, kMaxDrafts);
    for (int n = 0; n < most; ++n) {
      const Token next = Next(s);
      if (next == kNoToken) break;
      const bool end = s.IsEnd(next);
      // An end token is masked until enough tokens are there: the target cannot agree with it.
      if (end && static_cast<int>(s.text.size()) - s.n_prompt < s.min_new_tokens) break;
      s.text.push_back(next);
      if (end) break;
    }
    s.drafts.assign(s.text.begin() + s.n_committed, s.text.end());
    proposals[i] = {.tokens = s.drafts, .q = nullptr, .q_stride = 0};
    s.text.resize(static_cast<std::size_t>(s.n_committed));
  }
}

Token NgramDrafter::Next(const Sequence& s) const noexcept {
  const std::span<const Token> text = s.text;
  for (int n = std::min(ngram_max_, static_cast<int>(text.size())); n >= ngram_min_; --n) {
    const NgramIndex& index = s.indices[static_cast<std::size_t>(n - ngram_min_)];
    const Token next =
        MostFrequent(s, index, index.Last(text.last(static_cast<std::size_t>(n)), text));
    if (next != kNoToken) return next;
  }
  return kNoToken;
}

// Which token followed the n-gram most often at its recent occurrences, the latest winning a tie;
// kNoToken if none has a successor.
Token NgramDrafter::MostFrequent(const Sequence& s, const NgramIndex& index,
                                 int last) const noexcept {
  struct Vote {
    Token token;
    int count;
  };
  std::array<Vote, kMaxOccurrences> votes;
  int n_votes = 0, n_seen = 0;
  for (int end = last; end >= 0 && n_seen < kMaxOccurrences; end = index.Before(end)) {
    if (end + 1 >= s.n_committed) continue;  // the context itself: nothing follows it yet
    ++n_seen;
    const Token follower = s.text[static_cast<std::size_t>(end + 1)];
    const auto found = std::find_if(votes.begin(), votes.begin() + n_votes,
                                    [&](const Vote& v) { return v.token == follower; });
    if (found == votes.begin() + n_votes)
      votes[static_cast<std::size_t>(n_votes++)] = {follower, 1};
    else
      ++found->count;
  }
  // Votes stand in order of recency, and max_element gives the first of equals.
  const auto best =
      std::max_element(votes.begin(), votes.begin() + n_votes,
                       [](const Vote& a, const Vote& b) { return a.count < b.count; });
  return n_votes == 0 ? kNoToken : best->token;
}

}  // namespace foretoken::draft
