// SPDX-License-Identifier: Apache-2.0
#include "model/arch/experts_config.h"

#include <fmt/format.h>

#include <algorithm>

namespace foretoken::model {

bool HasExperts(const MetadataReader& read) {
  return read.Int("expert_count").value_or(0) != 0;
}

Result<ExpertsConfig> ReadExperts(const MetadataReader& read, const ModelConfig& config) {
  ExpertsConfig e;
  FORETOKEN_TRY(e.n_experts, read.Size("expert_count", 4096));
  FORETOKEN_TRY(e.n_used, read.Size("expert_used_count", e.n_experts));
  int dense = 0;  // of the first layer that has a width
  for (auto layer = config.layers.begin(); dense == 0 && layer != config.layers.end(); ++layer)
    dense = layer->ffn().width;
  FORETOKEN_TRY(e.width,
                read.Size("expert_feed_forward_length", 1 << 19, std::max(dense / e.n_used, 1)));
  return e;
}

Status ReadRouter(const MetadataReader& read, ExpertsConfig& experts) {
  if (const auto kind = read.Int("expert_gating_func"); kind && *kind != 0) {
    if (*kind < 1 || *kind > 3)
      return Fail(ErrorCode::kUnsupported,
                  fmt::format("{}: {} is not known; known are 1 (softmax), 2 (sigmoid), 3 (softmax "
                              "over the chosen)",
                              read.Key("expert_gating_func"), *kind));
    constexpr ExpertGating kKinds[] = {ExpertGating::kSoftmax, ExpertGating::kSigmoid,
                                       ExpertGating::kChosenSoftmax};
    experts.gating = kKinds[*kind - 1];
  }
  experts.normalised = read.Bool("expert_weights_norm").value_or(experts.normalised);
  FORETOKEN_TRY(const double scale,
                read.Positive("expert_weights_scale", double{experts.weights_scale}));
  experts.weights_scale = static_cast<float>(scale);
  FORETOKEN_TRY(experts.n_groups, read.Size("expert_group_count", kMostExpertGroups, 1));
  FORETOKEN_TRY(experts.n_used_groups,
                read.Size("expert_group_used_count", experts.n_groups, experts.n_groups));
  const int in_group = experts.n_experts / experts.n_groups;
  if (experts.n_experts % experts.n_groups != 0 ||
      experts.n_used > experts.n_used_groups * in_group)
    return Fail(ErrorCode::kInvalidFile,
                fmt::format("{}: {} of {} groups cannot give {} of {} experts",
                            read.Key("expert_group_count"), experts.n_used_groups, experts.n_groups,
                            experts.n_used, experts.n_experts));
  return {};
}

Status UseExperts(const MetadataReader& read, const ExpertsConfig& experts, ModelConfig& config) {
  const std::int64_t dense = read.Int("leading_dense_block_count").value_or(0);
  // A file with a head may call all of its blocks dense.
  const int most = config.n_layers() - (config.n_next_layers > 0 ? 0 : 1);
  if (dense < 0 || dense > most)
    return Fail(ErrorCode::kInvalidFile,
                fmt::format("{}: {} is out of range (0 to {})",
                            read.Key("leading_dense_block_count"), dense, most));
  for (auto i = static_cast<std::size_t>(dense); i < config.layers.size(); ++i)
    config.layers[i].feed_forward = experts;
  return {};
}

}  // namespace foretoken::model
