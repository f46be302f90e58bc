// SPDX-License-Identifier: Apache-2.0
// foretoken/verify_strategy.h: the verification strategies, by name.
#pragma once

namespace foretoken {

// How drafts are verified; docs/speculation.md has the rules. kAuto: greedy at temperature 0. Above
// it, sample-match, whose text depends on no draft, for deterministic drafters and where the draft
// length follows measured time or the load (cost-model, batch-size); otherwise residual. kGreedy,
// kResidual, kSampleMatch, kTargetProbability and kBlock are lossless. The others change the
// distribution of the text and say so in every result.
enum class VerifyStrategy {
  kAuto,
  kGreedy,
  kResidual,
  kSampleMatch,
  kTypicalAcceptance,
  kTargetProbability,
  kLogitComparison,
  kBlock,
  kRelaxed,
};
const char* Name(VerifyStrategy strategy);  // "auto", "typical-acceptance"

}  // namespace foretoken
