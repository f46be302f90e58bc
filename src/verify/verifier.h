// SPDX-License-Identifier: Apache-2.0
// verify/verifier.h: decides how many drafts of a proposal are accepted.
//
// In a round the verifier gets one proposal for each sequence (drafts with the distributions q they
// were drawn from) and one row of target logits for each draft plus one. The verdict keeps the
// first drafts and adds exactly one token drawn from the target, so every round makes progress,
// even with an empty proposal. At temperature 0 every strategy is `greedy`. That is decided for
// each request, so batches may mix strategies.
//
// Thread-safe except for the sampler and scratch that are passed in. Cost: one Distribution for each
// verified row.
#pragma once

#include <span>
#include <string_view>

#include "base/ids.h"
#include "round/proposal.h"
#include "round/verdict.h"
#include "sampling/sampler.h"

namespace foretoken::verify {

struct LogitsView {
  const float* data = nullptr;  // [rows, stride]; row 0 belongs to the last committed token
  std::int64_t stride = 0;
  std::span<const Token> chosen = {};  // of each row: its token, or kNoToken; empty: rows are whole

  // The rows from `first` on.
  LogitsView From(int first) const {
    return {data + first * stride, stride,
            chosen.empty() ? chosen : chosen.subspan(static_cast<std::size_t>(first))};
  }

  sampling::LogitsRow Row(int i) const {
    return {data + i * stride, chosen.empty() ? kNoToken : chosen[static_cast<std::size_t>(i)]};
  }
};

// What a verdict reads of a row of logits.
enum class RowUse {
  kWhole,
  kBest,    // Sampler::Argmax of it
  kSample,  // Sampler::Sample of it
};

class Verifier {
 public:
  virtual ~Verifier() = default;

  virtual std::string_view name() const = 0;  // "residual"

  // True if the kept tokens are distributed exactly as in plain decoding. The test suite then
  // applies the chi-square tests to this verifier; see docs/speculation.md.
  virtual bool Lossless() const = 0;

  // True if it needs the distributions that drafts were drawn from, so a drafter that reports none
  // is refused.
  virtual bool NeedsDistributions() const = 0;

  // True if it compares raw logits of the drafter.
  virtual bool NeedsLogits() const { return false; }

  // True if the target's own sample at a position does not depend on drafts: a seed gives the same
  // text with and without speculation. Drafters then draw with the target's noise
  // (Stream::kTarget), which raises agreement.
  virtual bool SharesNoise() const = 0;

  // What the verdict on so many drafts reads of each row.
  virtual RowUse Use(int /*n_drafts*/, bool /*greedy*/) const { return RowUse::kWhole; }

  // What is needed of row i of a round with so many drafts: the token that it chooses, or, where the
  // rule is kNone, the whole row. sampler: the request's, before the round.
  kernels::Choice ChoiceOf(int n_drafts, int i, const sampling::Sampler& sampler) const {
    const RowUse use = Use(n_drafts, sampler.greedy());
    if (use == RowUse::kWhole) return {};
    return sampler.ChoiceAhead(i, use == RowUse::kSample);
  }

  // Returns the number of kept drafts and the next token for one sequence.
  //   proposal  may be empty: a plain decoding step
  //   logits    [proposal.length() + 1 rows]; row i verifies draft i + 1, the last row gives the
  //             bonus token. Only what Use says of them.
  //   sampler   the request's; pushed along the drafts meanwhile, and unchanged on return, because
  //             the caller commits
  //   scratch   [2 * vocabulary] floats
  // REQUIRES: each draft was drawn from the q it carries.
  virtual round::Verdict Verify(const round::Proposal& proposal, LogitsView logits,
                                sampling::Sampler& sampler, float* scratch) const noexcept = 0;
};

}  // namespace foretoken::verify
