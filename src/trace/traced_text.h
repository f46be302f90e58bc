// SPDX-License-Identifier: Apache-2.0
// trace/traced_text.h: what a recorded run tells about drafts at each position of its texts.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "foretoken/tools/replay.h"

namespace foretoken::trace {

// How often there was a draft, and how often it was right, over a whole trace.
class TracedRates {
 public:
  explicit TracedRates(const RunTrace& trace);

  // The probability that a draft behind `depth` accepted ones of its round is accepted, if there is
  // one.
  double Accepted(int depth) const { return accepted_[At(depth)]; }
  // The probability that the drafter has no draft there.
  double Nothing(int depth) const { return nothing_[At(depth)]; }
  // The probability that it has no further draft behind a wrong one.
  double NothingBehindRejection() const { return nothing_behind_; }

 private:
  static constexpr int kDepths = 64;
  static std::size_t At(int depth) {
    return static_cast<std::size_t>(depth < kDepths ? depth : kDepths - 1);
  }

  std::array<double, kDepths> accepted_{}, nothing_{};
  double nothing_behind_ = 0;
};

// The text of one request. Positions count from its first generated token.
class TracedText {
 public:
  TracedText(const RunTrace& trace, int request);
  void Add(const TracedRound& round);

  int tokens() const { return tokens_; }
  const TracedRequest& request() const { return *request_; }

  struct Round {
    int drafted = 0, accepted = 0;
    int at_random = 0, verified = 0;  // positions, and those without a recorded verdict among them
  };
  // The evidence of drafts in a round that begins there, as far as the recording tells.
  int Evidence(int position) const;
  // Plays a round that begins at `position` and asks for k drafts.
  Round Play(int position, int k, const TracedRates& rates, std::uint64_t seed) const;

 private:
  enum class Verdict : std::uint8_t { kUnknown, kAccepted, kRejected, kNothing };
  struct Start {  // of a recorded round; asked 0: none began there, or nothing was asked for
    int asked = 0, drafted = 0, evidence = 0;
  };

  void Set(int position, Verdict verdict);
  Verdict Lot(int position, const TracedRates& rates, std::uint64_t seed) const;
  int LengthBehindRejection(int position, int accepted, int k, const TracedRates& rates,
                            std::uint64_t seed) const;

  const TracedRequest* request_;
  int number_;
  int tokens_ = 0;
  std::vector<Verdict> verdicts_;
  std::vector<int> depth_;  // accepted drafts of its round before the position
  std::vector<Start> starts_;
};

}  // namespace foretoken::trace
