// SPDX-License-Identifier: Apache-2.0
#include "model/weights/plan/head_plan.h"

#include <fmt/format.h>

#include <cstring>

namespace foretoken::model {

std::string InFirstLayer(const ModelConfig& config, std::string_view part) {
  return fmt::format("blk.{}.{}", config.layers[0].block, part);
}

Status HeadPlan::Plan(const Weights& target, const ModelConfig& target_config,
                      std::span<const std::int32_t> reduced_tokens) {
  weights_.head.emplace();
  FORETOKEN_TRY(const HeadTensors names,
                config_.head->kind->plan(*this, target, target_config.vocabulary));
  FORETOKEN_CHECK_OK(Layers());
  if (names.norm.empty())
    weights_.output_norm = target.output_norm;
  else
    FORETOKEN_CHECK_OK(Vector(names.norm, config_.dim, weights_.output_norm));
  if (names.embedding.empty()) {
    weights_.embedding_ = target.embedding_;
  } else {
    FORETOKEN_TRY(const int rows, EmbeddingRows(checkpoint_, names.embedding));
    FORETOKEN_CHECK_OK(Embedding(names.embedding, rows));
  }
  FORETOKEN_CHECK_OK(HeadOutput(target));
  if (reduced_tokens.empty()) return {};
  SomeRows(*weights_.output_tensor_, reduced_tokens, weights_.reduced_output,
           weights_.reduced_tokens);
  return {};
}

std::string HeadPlan::IfPresent(const std::string& tensor) const {
  return checkpoint_.Find(tensor) == nullptr ? std::string() : tensor;
}

Status HeadPlan::SecondEmbedding(const char* name, int width, int rows) {
  FORETOKEN_TRY(second_embedding_, Find(name, width, rows));
  return {};
}

Status HeadPlan::ThirdEmbedding(const char* name, int width, int rows) {
  FORETOKEN_TRY(third_embedding_, Find(name, width, rows));
  return {};
}

void HeadPlan::UseRopeFactorsOf(const Weights& target) {
  weights_.rope_factors_ = target.rope_factors_;
}

Status HeadPlan::TargetIds(int target_vocabulary) {
  constexpr std::uint32_t kInt64 = 27;  // ggml's type number
  const auto refuse = [](std::string why) {
    return Fail(ErrorCode::kInvalidFile, fmt::format("tensor d2t: {}; the head is damaged", why));
  };
  const formats::TensorView* t = checkpoint_.Find("d2t");
  if (t == nullptr) return {};
  if (t->ggml_type != kInt64 || t->n_dims != 1 || t->shape[0] != config_.vocabulary ||
      checkpoint_.Find("output.weight") == nullptr)
    return refuse(fmt::format("it must hold one int64 for each of the {} rows of output.weight",
                              config_.vocabulary));
  std::vector<bool> seen(static_cast<std::size_t>(target_vocabulary));
  for (int i = 0; i < config_.vocabulary; ++i) {
    std::int64_t id = 0;
    std::memcpy(&id, t->Row(0) + 8 * static_cast<std::size_t>(i), 8);
    if (id < 0 || id >= target_vocabulary)
      return refuse(fmt::format("{} is not a token of the target's {}", id, target_vocabulary));
    if (seen[static_cast<std::size_t>(id)]) return refuse(fmt::format("token {} comes twice", id));
    seen[static_cast<std::size_t>(id)] = true;
    weights_.output_tokens.push_back(static_cast<std::int32_t>(id));
  }
  return {};
}

Status HeadPlan::HeadOutput(const Weights& target) {
  const std::string name = config_.head->kind->output(config_);
  if (checkpoint_.Find(name) == nullptr) {
    weights_.output = target.output;
    weights_.output_tensor_ = target.output_tensor_;
    return {};
  }
  FORETOKEN_TRY(weights_.output_tensor_, Find(name, config_.dim, config_.vocabulary));
  return Divided(name, config_.vocabulary, config_.dim, weights_.output);
}

}  // namespace foretoken::model
