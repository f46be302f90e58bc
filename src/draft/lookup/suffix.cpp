// SPDX-License-Identifier: Apache-2.0
#include "draft/lookup/suffix.h"

#include <algorithm>
#include <utility>

#include "draft/lookup/text_room.h"

namespace foretoken::draft {
namespace {

// What one more automaton costs besides its tokens, as tokens: so that many salts take no more
// memory than long texts.
constexpr int kAutomatonCost = 8;

int EvidenceOf(SuffixAutomaton::Match m, const SuffixAutomaton::Follower& follower) {
  if (follower.count < follower.total) return 0;
  const int length = m.length + (follower.count > 1 ? 2 : 0);
  return (length >= 2) + (length >= 4) + (length >= 7);
}

Result<std::unique_ptr<Drafter>> MakeSuffix(DrafterSettings settings) {
  return std::make_unique<SuffixDrafter>(
      SuffixSettings{.max_sequences = settings.max_sequences,
                     .max_context = settings.max_context,
                     .max_tokens = settings.options.suffix_max_tokens});
}

}  // namespace

extern const DrafterSpec kSuffixSpec = {
    .info = {.name = "suffix",
             .help = "looks up the text so far and earlier texts",
             .lookup_only = true,
             .reads_p_min = true},
    .make = MakeSuffix};

SuffixDrafter::SuffixDrafter(const SuffixSettings& settings)
    : ListedDrafter(kSuffixSpec),
      settings_(settings),
      sequences_(static_cast<std::size_t>(settings.max_sequences)) {}

void SuffixDrafter::Begin(const SequenceStart& start) {
  Sequence& s = sequences_[static_cast<std::size_t>(start.seq)];
  s.ended = true;  // the text that was there before
  RememberEnded();
  s.ended = false;
  s.own_text_only = start.own_text_only;
  s.teaches = start.teaches;
  s.salt = start.salt;
  s.n_prompt = start.prompt.size();
  s.room = static_cast<std::size_t>(TextRoom(start, settings_.max_context));
  s.draft_p_min = start.draft_p_min;
  s.draft.Begin(start);
  s.text.reserve(s.room);
  s.own.Clear();
  s.own.Reserve(static_cast<int>(s.room));
  FindMatches(s);
  for (const Token t : start.prompt) Append(s, t);
}

// Begin calls this, and not End, because End is part of a round that other sequences wait for.
void SuffixDrafter::RememberEnded() {
  for (Sequence& s : sequences_) s.sources = {};  // also if memory is refused below
  for (Sequence& s : sequences_) {
    if (!s.ended) continue;
    if (s.teaches) Remember(std::span(s.text).subspan(std::min(s.n_prompt, s.text.size())), s.salt);
    s.text.clear();
  }
  for (Sequence& s : sequences_)
    if (!s.ended) FindMatches(s);
}

void SuffixDrafter::Forget() {
  for (Sequence& s : sequences_)
    if (s.ended) s.text.clear();
  outputs_ = {};
  for (Sequence& s : sequences_) s.sources = {};
}

void SuffixDrafter::Remember(std::span<const Token> output, SaltId salt) {
  const auto most = static_cast<std::size_t>(settings_.max_tokens / 2);
  output = output.last(std::min(output.size(), most));
  if (output.empty()) return;
  if (static_cast<std::size_t>(outputs_[0].n_tokens) + output.size() > most) {
    std::swap(outputs_[0], outputs_[1]);
    outputs_[0] = {};
  }
  const std::size_t before = outputs_[0].of.size();
  SuffixAutomaton& outputs = outputs_[0].of[salt];
  if (before > 0 && outputs_[0].of.size() > before) outputs_[0].n_tokens += kAutomatonCost;
  outputs.MakeRoom(static_cast<int>(output.size()));
  outputs.StartText();
  for (const Token t : output) outputs.Add(t);
  outputs_[0].n_tokens += static_cast<int>(output.size());
}

void SuffixDrafter::FindMatches(Sequence& s) const noexcept {
  const std::span<const Token> text = s.text;
  const std::size_t n = std::min<std::size_t>(text.size(), SuffixAutomaton::kMaxContext);
  s.sources = {};
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const auto found = outputs_[i].of.find(s.salt);
    if (found == outputs_[i].of.end()) continue;
    s.sources[i].outputs = &found->second;
    for (const Token t : text.last(n)) Advance(s.sources[i], t);
  }
}

void SuffixDrafter::Advance(Source& source, Token token) noexcept {
  if (source.outputs != nullptr) source.match = source.outputs->Advance(source.match, token);
}

void SuffixDrafter::Append(Sequence& s, Token token) noexcept {
  if (s.text.size() == s.room) return;  // longer than announced at Begin: the rest is ignored
  s.text.push_back(token);
  s.own.Add(token);
  for (Source& source : s.sources) Advance(source, token);
}

void SuffixDrafter::Observe(std::span<const Observation> observations) noexcept {
  for (const Observation& o : observations)
    for (const Token t : o.committed) Append(sequences_[static_cast<std::size_t>(o.seq)], t);
}

void SuffixDrafter::End(SeqId seq) noexcept {
  sequences_[static_cast<std::size_t>(seq)].ended = true;
}

void SuffixDrafter::Propose(std::span<const Ask> asks,
                            std::span<round::Proposal> proposals) noexcept {
  for (std::size_t i = 0; i < asks.size(); ++i) {
    Sequence& s = sequences_[static_cast<std::size_t>(asks[i].seq)];
    proposals[i] = Draft(s, s.text.size() == s.room ? 0 : asks[i].max_tokens);
  }
}

round::Proposal SuffixDrafter::Draft(Sequence& s, int max_tokens) const noexcept {
  const SuffixAutomaton* source = &s.own;
  Match longest = s.own.Followed(s.own.newest());
  for (const Source& other : s.sources) {
    if (other.outputs == nullptr || s.own_text_only) continue;
    const Match match = other.outputs->Followed(other.match);
    if (match.length > longest.length) source = other.outputs, longest = match;
  }
  const double most = settings_.length_factor * longest.length;
  s.draft.Start(static_cast<int>(std::min<double>(max_tokens, most)),
                static_cast<int>(s.text.size() - s.n_prompt));
  Follow(s, *source, longest);
  return s.draft.proposal(longest.length == 0 ? 0 : EvidenceOf(longest, source->Next(longest)));
}

void SuffixDrafter::Follow(Sequence& s, const SuffixAutomaton& source, Match m) const noexcept {
  double path = 1;
  while (s.draft.open()) {
    m = source.Followed(m);
    if (m.length == 0) break;
    const auto next = source.Next(m);
    const double share = static_cast<double>(next.count) / next.total;
    path *= share;
    if (path < settings_.min_path_probability || share < static_cast<double>(s.draft_p_min)) break;
    s.draft.Push(next.token);
    m = source.Advance(m, next.token);
  }
}

}  // namespace foretoken::draft
