// SPDX-License-Identifier: Apache-2.0
// draft/networks/reducible_drafter.h: drafters whose network may have a reduced output beside the whole
// one: some rows of the same matrix, so its logits are those of the whole output, for fewer tokens.
#pragma once

#include <optional>

#include "draft/networks/wide_logits.h"
#include "draft/registry.h"
#include "model/runner.h"

namespace foretoken::draft {

class ReducibleDrafter : public ListedDrafter {
 public:
  bool HasReducedOutput() const final { return reduced_.has_value(); }
  void UseReducedOutput(bool reduced) noexcept final { uses_reduced_ = reduced; }

 protected:
  // info: the network's. shared: tokens that may be drafted.
  ReducibleDrafter(const DrafterSpec& spec, const SharedTokens& shared,
                   const model::RunnerInfo& info)
      : ListedDrafter(spec), whole_(shared, info.output_tokens) {
    if (!info.reduced_tokens.empty()) reduced_.emplace(shared, info.reduced_tokens);
  }

  // For the passes of this proposal.
  bool uses_reduced() const noexcept { return uses_reduced_; }
  // The logits of such a pass in the target's vocabulary; valid until the next call.
  const float* Wide(const float* logits) noexcept {
    return uses_reduced_ ? reduced_->Of(logits) : whole_.Of(logits);
  }

 private:
  WideLogits whole_;
  std::optional<WideLogits> reduced_;
  bool uses_reduced_ = false;
};

}  // namespace foretoken::draft
