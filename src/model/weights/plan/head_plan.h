// SPDX-License-Identifier: Apache-2.0
// model/weights/plan/head_plan.h: what a head needs of its file and of its target.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/weights/plan/network_plan.h"

namespace foretoken::model {

// The tensor of a head's own output matrix.
std::string HeadOutputName(const ModelConfig& config);

class HeadPlan final : public NetworkPlan {
 public:
  using NetworkPlan::NetworkPlan;

  // Errors: as Weights::LoadHead.
  [[nodiscard]] Status Plan(const Weights& target, const ModelConfig& target_config,
                            std::span<const std::int32_t> reduced_tokens);

 private:
  // Names of a head's tensors; empty: the target's is used.
  struct HeadTensors {
    std::string embedding, norm;
  };
  std::string Optional(const std::string& tensor) const;
  // The name of a tensor in the head's first block.
  std::string OfHead(const char* part) const;
  // Each plans what stands before the head's layers.
  Result<HeadTensors> EagleTensors(int target_vocabulary);
  Result<HeadTensors> BlockTensors(int target_vocabulary);
  Status Transition(HeadWeights& own);
  Status Selector(int target_vocabulary, HeadWeights& own);
  Result<HeadTensors> MtpTensors(const Weights& target);
  Result<HeadTensors> AssistantTensors();
  // The tensor d2t holds the target's id of each of the head's tokens, as int64.
  Status TargetIds(int target_vocabulary, std::vector<std::int32_t>& ids) const;
  // Without one of its own, a head uses its target's.
  Status HeadOutput(const Weights& target);
};

}  // namespace foretoken::model
