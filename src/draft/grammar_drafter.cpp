// SPDX-License-Identifier: Apache-2.0
#include "draft/grammar_drafter.h"

#include <algorithm>

namespace foretoken::draft {
namespace {

Result<std::unique_ptr<Drafter>> MakeGrammarDrafter(DrafterSettings settings) {
  return std::make_unique<GrammarDrafter>(settings.max_sequences);
}

}  // namespace

extern const DrafterSpec kGrammarSpec = {
    .info = {.name = "grammar",
             .help = "drafts what the request's grammar forces, beside all others too",
             .lookup_only = true,
             .drafts_from = "a grammar"},
    .serves = [](const Request& request) { return !request.sampling.grammar.empty(); },
    .joins_others = true,
    .make = MakeGrammarDrafter};

GrammarDrafter::GrammarDrafter(int max_sequences)
    : ListedDrafter(kGrammarSpec), sequences_(static_cast<std::size_t>(max_sequences)) {}

void GrammarDrafter::Begin(const SequenceStart& start) {
  Sequence& s = sequences_[static_cast<std::size_t>(start.seq)];
  s.walk = grammar::GrammarWalk(start.grammar);
  s.walk.Begin(start.max_new_tokens + 1);
  s.n_output = 0;
  s.draft.Begin(start);
}

void GrammarDrafter::Observe(std::span<const Observation> observations) noexcept {
  for (const Observation& o : observations) {
    Sequence& s = sequences_[static_cast<std::size_t>(o.seq)];
    s.n_output += static_cast<int>(o.committed.size());
    for (const Token t : o.committed) s.walk.Push(t);
  }
}

void GrammarDrafter::End(SeqId seq) noexcept {
  sequences_[static_cast<std::size_t>(seq)].walk = {};
}

void GrammarDrafter::Propose(std::span<const Ask> asks,
                             std::span<round::Proposal> proposals) noexcept {
  for (std::size_t i = 0; i < asks.size(); ++i) {
    Sequence& s = sequences_[static_cast<std::size_t>(asks[i].seq)];
    s.draft.Start(asks[i].max_tokens, s.n_output);
    const int n = s.walk.Forced(forced_);
    for (int t = 0; t < n && s.draft.open(); ++t)
      s.draft.Push(forced_[static_cast<std::size_t>(t)]);
    proposals[i] = s.draft.proposal((n >= 2) + (n >= 4) + (n >= 8));
  }
}

}  // namespace foretoken::draft
