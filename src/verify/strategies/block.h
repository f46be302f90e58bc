// SPDX-License-Identifier: Apache-2.0
// verify/strategies/block.h: block verification (Sun et al. 2024, "Block Verification Accelerates Speculative
// Decoding", Algorithm 2): drafts are verified together, not one by one.
//
//   P_0 = 1;   P_i = min(1, P_(i-1) p_i(d_i) / q_i(d_i))                        joint acceptance
//   r_i(x) = max(0, P_i p_(i+1)(x) - q_(i+1)(x)),   R_i = its sum
//   h_i = R_i / (R_i + 1 - P_i) for i < m;   h_m = P_m
//   A = the largest i with u_i < h_i, of independent uniforms u_1 .. u_m; 0 if there is none
//   next token: from r_A normalised, or, for A = m, from p_(m+1)
//
// Why it is exact: given d_1 .. d_i, A is at least i with probability P_i. That holds for i = m.
// For i < m it is
//   P(A >= i) = E P_(i+1) + (1 - E P_(i+1)) h_i,   E P_(i+1) = sum min(P_i p, q) = P_i - R_i,
// which is P_i. So A = i with probability R_i. The text d_1 .. d_i x is committed by the next token
// with q(d_1 .. d_i) r_i(x), and by an accepted draft with q(d_1 .. d_i) min(P_i p(x), q(x)),
// together q(d_1 .. d_i) P_i p(x): each token continues the kept text with the target's
// distribution. P_i is at least the product of min(1, p / q) with which `residual` keeps i drafts,
// so no fewer drafts are accepted, and mostly more. A certain draft has a one-hot q.
//
// NOISE. Drafts and uniforms behind the A-th also decide here, and their positions are drafted and
// verified again. So the index of each uniform is the position at which its round began, which
// never repeats. Drafters do the same (draft/networks/chain.h). The distribution of the text over rounds
// depends on it.
#pragma once

#include "verify/registry.h"

namespace foretoken::verify {

extern const VerifierSpec kBlockSpec;

class Block final : public ListedVerifier {
 public:
  Block() : ListedVerifier(kBlockSpec) {}
  round::Verdict Verify(const round::Proposal& proposal, LogitsView logits,
                        sampling::Sampler& sampler, float* scratch) const noexcept override;
};

}  // namespace foretoken::verify
