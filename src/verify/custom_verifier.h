// SPDX-License-Identifier: Apache-2.0
// verify/custom_verifier.h: makes a program's own verifier (foretoken/verifier.h) safe. An invalid
// verdict keeps no draft and takes the target's own token; exceptions are caught here.
//
// One thread at a time: the object keeps distributions while a draft is verified.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>

#include "base/aligned_buffer.h"
#include "foretoken/verifier.h"
#include "verify/verifier.h"

namespace foretoken::verify {

struct CustomSettings {
  int vocabulary = 0;
  // Gets the first fault of each kind, on the thread that calls Verify.
  std::function<void(std::string)> on_fault = {};
};

class CustomVerifier final : public Verifier {
 public:
  // REQUIRES: verifier is not null.
  CustomVerifier(std::shared_ptr<foretoken::Verifier> verifier, const CustomSettings& settings);

  std::string_view name() const override { return name_; }
  bool Lossless() const override { return lossless_; }
  bool NeedsDistributions() const override { return needs_distributions_; }
  bool SharesNoise() const override { return false; }
  round::Verdict Verify(const round::Proposal& proposal, LogitsView logits,
                        sampling::Sampler& sampler, float* scratch) const noexcept override;

 private:
  enum class Fault { kVerdict, kException };
  void Report(Fault fault, const std::string& what) const;
  void ReportThrown(const char* what) const noexcept;

  const std::shared_ptr<foretoken::Verifier> verifier_;
  const std::string name_;
  const bool lossless_, needs_distributions_;
  const CustomSettings settings_;
  // Distributions of the draft that is being verified: [kMaxDraft + 1, vocabulary]. Unused pages
  // take no memory.
  mutable AlignedBuffer<float> distributions_;
  mutable std::array<bool, 2> reported_ = {};
};

}  // namespace foretoken::verify
