// SPDX-License-Identifier: Apache-2.0
// verify/strategies/relaxed.h: accepts drafts that are almost as probable as the target's best token.
//
//   accept d_i iff d_i is among the top_n most probable tokens of p_i and p_i(d_i) >= max p_i -
//   delta else the most probable token
// Not lossless.
#pragma once

#include "verify/verifier.h"

namespace foretoken::verify {

class Relaxed final : public Verifier {
 public:
  explicit Relaxed(const VerifierSettings& settings = {})
      : top_n_(settings.relaxed_top_n), delta_(static_cast<double>(settings.relaxed_delta)) {}
  std::string_view name() const override { return "relaxed"; }
  bool Lossless() const override { return false; }
  bool NeedsLaws() const override { return false; }
  bool SharesNoise() const override { return false; }
  round::Verdict Judge(const round::Proposal& proposal, LogitsView logits,
                       sampling::Sampler& sampler, float* scratch) const noexcept override;

 private:
  bool Accepts(const sampling::Sampler& sampler, const float* p, Token best,
               Token d) const noexcept;

  int top_n_;
  double delta_;
};

}  // namespace foretoken::verify
