// SPDX-License-Identifier: Apache-2.0
// calibrate/host_meter.h: times what a step costs besides the arithmetic of its passes: barriers,
// verification, drawing.
#pragma once

#include <vector>

#include "base/aligned_buffer.h"
#include "base/machine/thread_pool.h"
#include "sampling/sampler.h"
#include "verify/verifier.h"

namespace foretoken::calibrate {

double DispatchMicroseconds(ThreadPool& pool) noexcept;
double BarrierMicroseconds(ThreadPool& pool) noexcept;

// Times the verification of drafts that are all accepted, which is the most work for a verifier.
class VerifyMeter {
 public:
  // logits: n_drafts + 1 rows, each as after one more token of the sampler's text; they and the
  // verifier must outlive the meter. The sampler has begun, with room for n_drafts + 1 tokens.
  VerifyMeter(const verify::Verifier& verifier, sampling::Sampler sampler,
              verify::LogitsView logits, int n_drafts);

  double VerifyMicroseconds() noexcept;
  double DrawMicroseconds() noexcept;

 private:
  round::Verdict Verify() noexcept {
    return verifier_.Verify(proposal_, logits_, sampler_, scratch_.data());
  }

  const verify::Verifier& verifier_;
  sampling::Sampler sampler_;
  verify::LogitsView logits_;
  std::vector<Token> drafts_;
  AlignedBuffer<float> distributions_;  // [drafts, vocabulary], empty where greedy
  AlignedBuffer<float> scratch_;        // [2, vocabulary]
  round::Proposal proposal_;
};

}  // namespace foretoken::calibrate
