// SPDX-License-Identifier: Apache-2.0
#include "verify/strategies/sample_match.h"

#include "verify/strategies/greedy.h"

namespace foretoken::verify {

round::Verdict SampleMatch::Verify(const round::Proposal& proposal, LogitsView logits,
                                   sampling::Sampler& sampler, float* scratch) const noexcept {
  for (int i = 0;; ++i) {
    const Token sample = sampler.Sample(logits.Row(i), scratch);
    if (i == proposal.length() || sample != proposal.tokens[static_cast<std::size_t>(i)])
      return EndWalk(proposal, i, sample, sampler);
    sampler.Push(sample);
  }
}

extern const VerifierSpec kSampleMatchSpec = {
    .info = {.name = "sample-match",
             .help = "draws as plain decoding does, and accepts drafts that are that token",
             .accepts_if = "d_i = s_i, with s_i ~ p_i",
             .else_takes = "that same s_i",
             .random_numbers = "target",
             .lossless = true,
             .same_text = true},
    .make = Make<SampleMatch>};

}  // namespace foretoken::verify
