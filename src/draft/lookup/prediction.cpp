// SPDX-License-Identifier: Apache-2.0
#include "draft/lookup/prediction.h"

#include <algorithm>

namespace foretoken::draft {
namespace {

Result<std::unique_ptr<Drafter>> MakePrediction(DrafterSettings settings) {
  return std::make_unique<PredictionDrafter>(settings.max_sequences, settings.max_context);
}

}  // namespace

extern const DrafterSpec kPredictionSpec = {
    .info = {.name = "prediction",
             .help = "follows a text that comes with the request",
             .lookup_only = true,
             .drafts_from = "a prediction"},
    .serves = [](const Request& request) { return !request.prediction.empty(); },
    .make = MakePrediction};

PredictionDrafter::PredictionDrafter(int max_sequences, int max_context)
    : ListedDrafter(kPredictionSpec),
      max_context_(max_context),
      sequences_(static_cast<std::size_t>(max_sequences)) {}

void PredictionDrafter::Begin(const SequenceStart& start) {
  Sequence& s = sequences_[static_cast<std::size_t>(start.seq)];
  const auto prediction = start.prediction.first(
      std::min(start.prediction.size(), static_cast<std::size_t>(max_context_)));
  s.prediction.assign(prediction.begin(), prediction.end());
  s.index.Begin(kShortest, static_cast<int>(prediction.size()));
  for (std::size_t n = 1; n <= prediction.size(); ++n) s.index.Add({prediction.first(n)});
  s.next = s.n_output = s.n_followed = 0;
  s.followed = true;
  s.draft.Begin(start);
}

void PredictionDrafter::Append(Sequence& s, Token token) noexcept {
  std::shift_left(s.newest.begin(), s.newest.end(), 1);
  s.newest.back() = token;
  ++s.n_output;
  s.followed = s.followed && s.next < static_cast<int>(s.prediction.size()) &&
               s.prediction[static_cast<std::size_t>(s.next)] == token;
  s.next += s.followed;
  s.n_followed += s.followed;
}

void PredictionDrafter::Observe(std::span<const Observation> observations) noexcept {
  for (const Observation& o : observations)
    for (const Token t : o.committed) Append(sequences_[static_cast<std::size_t>(o.seq)], t);
}

void PredictionDrafter::End(SeqId seq) noexcept {
  sequences_[static_cast<std::size_t>(seq)].prediction.clear();
}

void PredictionDrafter::Propose(std::span<const Ask> asks,
                                std::span<round::Proposal> proposals) noexcept {
  for (std::size_t i = 0; i < asks.size(); ++i) {
    Sequence& s = sequences_[static_cast<std::size_t>(asks[i].seq)];
    if (!s.followed) Realign(s);
    s.draft.Start(s.followed ? asks[i].max_tokens : 0, s.n_output);
    const auto size = static_cast<int>(s.prediction.size());
    for (int at = s.next; at < size && s.draft.open(); ++at)
      s.draft.Push(s.prediction[static_cast<std::size_t>(at)]);
    const int evidence = (s.n_followed >= 2) + (s.n_followed >= 4) + (s.n_followed >= 8);
    proposals[i] = s.draft.proposal(evidence);
  }
}

void PredictionDrafter::Realign(Sequence& s) noexcept {
  if (s.n_output < kShortest || s.prediction.empty()) return;
  int longest = 0, best = 0;
  // The loop runs from the last place to the first one. So places ahead come first, and the nearest
  // of them comes last.
  for (int end = s.index.Last(std::span(s.newest).last<kShortest>(), kNoSalt, {s.prediction});
       end >= 0; end = s.index.Before(end)) {
    const int length = MatchLength(s, end);
    const bool ahead = end + 1 > s.next;
    if (length > longest || (length == longest && ahead)) longest = length, best = end + 1;
  }
  if (longest == 0) return;
  s.next = best;
  s.followed = true;
  s.n_followed = longest;
}

// How many of the output's last tokens equal those of the prediction that end at `end`.
int PredictionDrafter::MatchLength(const Sequence& s, int end) noexcept {
  const int most = std::min({kLongest, s.n_output, end + 1});
  int length = 0;
  while (length < most && s.newest[static_cast<std::size_t>(kLongest - 1 - length)] ==
                              s.prediction[static_cast<std::size_t>(end - length)])
    ++length;
  return length;
}

}  // namespace foretoken::draft
