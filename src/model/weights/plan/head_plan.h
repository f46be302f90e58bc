// SPDX-License-Identifier: Apache-2.0
// model/weights/plan/head_plan.h: what a head needs of its file and of its target.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "model/arch/heads/head_kind.h"
#include "model/weights/plan/network_plan.h"

namespace foretoken::model {

// The name of a tensor in the head's first block.
std::string InFirstLayer(const ModelConfig& config, std::string_view part);

class HeadPlan final : public NetworkPlan {
 public:
  using NetworkPlan::NetworkPlan;

  // Errors: as Weights::LoadHead.
  [[nodiscard]] Status Plan(const Weights& target, const ModelConfig& target_config,
                            std::span<const std::int32_t> reduced_tokens);

  // What HeadKind::plan plans with.
  using NetworkPlan::RopeFactors;
  using TensorPlan::Bias;
  using TensorPlan::Divided;
  using TensorPlan::Matrix;
  using TensorPlan::Vector;
  const ModelConfig& config() const { return config_; }
  HeadWeights& own() { return *weights_.head; }
  // The tensor's name; empty where the file lacks it.
  std::string IfPresent(const std::string& tensor) const;
  void UseRopeFactorsOf(const Weights& target);
  // Tables of tokens beside the embedding.
  Status SecondEmbedding(const char* name, int width, int rows);
  Status ThirdEmbedding(const char* name, int width, int rows);
  // The tensor d2t, which a file may lack, holds the target's id of each of the head's tokens, as int64.
  Status TargetIds(int target_vocabulary);

 private:
  // Without one of its own, a head uses its target's.
  Status HeadOutput(const Weights& target);
};

}  // namespace foretoken::model
