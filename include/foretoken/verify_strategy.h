// SPDX-License-Identifier: Apache-2.0
// foretoken/verify_strategy.h: the rules by which drafts are judged, by name.
#pragma once

namespace foretoken {

// How drafts are judged; docs/speculation.md has the rules. kAuto: greedy at temperature 0; else
// sample-match, whose text depends on no draft, for deterministic drafters and wherever the draft
// length follows measured time or the load (cost-model, batch-size); else residual. Lossless are
// kGreedy, kResidual, kSampleMatch, kTargetProbability and kBlock; the others change the text's law
// and say so in every result.
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
