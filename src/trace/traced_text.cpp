// SPDX-License-Identifier: Apache-2.0
#include "trace/traced_text.h"

#include <algorithm>

#include "base/rng.h"

namespace foretoken::trace {
namespace {

// Lots of one position, by what they decide.
enum Lots : std::uint32_t { kThere = 0, kRight = 1, kBehind = 2 };  // kBehind + i: the i-th draft

}  // namespace

// Rates of depths that were seldom seen lean on those of the depth before.
TracedRates::TracedRates(const RunTrace& trace) {
  std::array<double, kDepths> verified{}, accepted{}, reached{}, nothing{};
  double behind = 0, stops_behind = 0;
  for (const TracedRound& r : trace.rounds) {
    const auto drafted = static_cast<int>(r.drafts.size());
    if (r.asked == 0) continue;
    for (int i = 0; i < std::min({r.accepted + 1, r.asked, kDepths}); ++i) {
      const std::size_t at = At(i);
      reached[at] += 1;
      nothing[at] += i >= drafted;
      if (i >= drafted) break;
      verified[at] += 1;
      accepted[at] += i < r.accepted;
    }
    if (r.accepted >= drafted) continue;
    behind += drafted - r.accepted - 1 + (drafted < r.asked);
    stops_behind += drafted < r.asked;
  }
  constexpr double kWeight = 4;
  double right = 0.5, none = 0;
  for (std::size_t i = 0; i < kDepths; ++i) {
    accepted_[i] = right = (accepted[i] + kWeight * right) / (verified[i] + kWeight);
    nothing_[i] = none = (nothing[i] + kWeight * none) / (reached[i] + kWeight);
  }
  if (behind > 0) nothing_behind_ = stops_behind / behind;
}

TracedText::TracedText(const RunTrace& trace, int request)
    : request_(&trace.requests[static_cast<std::size_t>(request)]), number_(request) {}

void TracedText::Set(int position, Verdict verdict) {
  const auto at = static_cast<std::size_t>(position);
  if (verdicts_.size() <= at) verdicts_.resize(at + 1);
  verdicts_[at] = verdict;
}

void TracedText::Add(const TracedRound& round) {
  const int begin = round.position - request_->prompt_tokens;
  tokens_ += round.committed;
  if (round.asked == 0) return;
  const auto drafted = static_cast<int>(round.drafts.size()), after = begin + round.accepted;
  for (int i = begin; i < after; ++i) Set(i, Verdict::kAccepted);
  if (round.accepted < drafted)
    Set(after, Verdict::kRejected);
  else if (drafted < round.asked)
    Set(after, Verdict::kNothing);
  if (starts_.size() <= static_cast<std::size_t>(begin))
    starts_.resize(static_cast<std::size_t>(begin) + 1);
  starts_[static_cast<std::size_t>(begin)] = {round.asked, drafted, round.evidence};
  if (depth_.size() <= static_cast<std::size_t>(after))
    depth_.resize(static_cast<std::size_t>(after) + 1);
  for (int i = begin; i <= after; ++i) depth_[static_cast<std::size_t>(i)] = i - begin;
}

// The verdict by chance for the position, whatever round comes there.
TracedText::Verdict TracedText::Lot(int position, const TracedRates& rates,
                                    std::uint64_t seed) const {
  const auto at = static_cast<std::size_t>(position);
  const int depth = at < depth_.size() ? depth_[at] : 0;
  const Noise noise(seed, static_cast<std::uint64_t>(number_));
  if (noise.Uniform(Stream::kSynthetic, position, kThere) < rates.Nothing(depth))
    return Verdict::kNothing;
  return noise.Uniform(Stream::kSynthetic, position, kRight) < rates.Accepted(depth)
             ? Verdict::kAccepted
             : Verdict::kRejected;
}

TracedText::Round TracedText::Play(int position, int k, const TracedRates& rates,
                                   std::uint64_t seed) const {
  Round round;
  while (round.accepted < k) {
    const auto at = static_cast<std::size_t>(position + round.accepted);
    Verdict verdict = at < verdicts_.size() ? verdicts_[at] : Verdict::kUnknown;
    // What lies behind the text's end decides nothing.
    const bool counts = position + round.accepted < tokens_;
    round.verified += counts;
    if (verdict == Verdict::kUnknown) {
      round.at_random += counts;
      verdict = Lot(position + round.accepted, rates, seed);
    }
    if (verdict == Verdict::kNothing) break;
    if (verdict == Verdict::kRejected) {
      round.drafted = LengthBehindRejection(position, round.accepted, k, rates, seed);
      return round;
    }
    ++round.accepted;
  }
  round.drafted = round.accepted;
  return round;
}

// Where no recorded round with drafts begins, that of the last one before.
int TracedText::Evidence(int position) const {
  for (auto at = std::min<std::ptrdiff_t>(position, std::ssize(starts_) - 1); at >= 0; --at)
    if (starts_[static_cast<std::size_t>(at)].drafted > 0)
      return starts_[static_cast<std::size_t>(at)].evidence;
  return 0;
}

// A drafter does not know that it is wrong, and continues.
int TracedText::LengthBehindRejection(int position, int accepted, int k, const TracedRates& rates,
                                      std::uint64_t seed) const {
  int drafted = accepted + 1;
  if (const auto at = static_cast<std::size_t>(position);
      at < starts_.size() && starts_[at].drafted > accepted) {
    const Start& start = starts_[at];
    if (k <= start.drafted || start.drafted < start.asked) return std::min(k, start.drafted);
    drafted = start.drafted;
  }
  const Noise noise(seed, static_cast<std::uint64_t>(number_));
  for (; drafted < k; ++drafted)
    if (noise.Uniform(Stream::kSynthetic, position, kBehind + static_cast<std::uint32_t>(drafted)) <
        rates.NothingBehindRejection())
      break;
  return drafted;
}

}  // namespace foretoken::trace
