// SPDX-License-Identifier: Apache-2.0
#include "model/weights/plan/head_plan.h"

#include <fmt/format.h>

#include <cstring>

namespace foretoken::model {

std::string HeadOutputName(const ModelConfig& config) {
  if (config.head->kind == HeadKind::kAssistant) return "token_embd.weight";
  if (config.head->kind == HeadKind::kMtp)
    return fmt::format("blk.{}.nextn.shared_head_head.weight", config.layers[0].block);
  return "output.weight";
}

Status HeadPlan::Plan(const Weights& target, const ModelConfig& target_config,
                      std::span<const std::int32_t> reduced_tokens) {
  HeadTensors names;
  switch (config_.head->kind) {
    case HeadKind::kEagle: {
      FORETOKEN_TRY(names, EagleTensors(target_config.vocabulary));
      break;
    }
    case HeadKind::kMtp: {
      FORETOKEN_TRY(names, MtpTensors(target));
      break;
    }
    case HeadKind::kAssistant: {
      FORETOKEN_TRY(names, AssistantTensors());
      break;
    }
    case HeadKind::kBlock: {
      FORETOKEN_TRY(names, BlockTensors(target_config.vocabulary));
      break;
    }
  }
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

std::string HeadPlan::Optional(const std::string& tensor) const {
  return checkpoint_.Find(tensor) == nullptr ? std::string() : tensor;
}

std::string HeadPlan::OfHead(const char* part) const {
  return fmt::format("blk.{}.{}", config_.layers[0].block, part);
}

Result<HeadPlan::HeadTensors> HeadPlan::EagleTensors(int target_vocabulary) {
  const int features = config_.head->features_width(), dim = config_.dim;
  HeadWeights& own = weights_.head.emplace();
  FORETOKEN_CHECK_OK(Divided("fc.weight", dim, features, own.mix));
  if (config_.head->norm_before_fc)
    FORETOKEN_CHECK_OK(Vector("enc.output_norm.weight", features, own.features_norm));
  FORETOKEN_CHECK_OK(Vector(OfHead("attn_norm.weight"), dim, own.token_norm));
  FORETOKEN_CHECK_OK(Vector(OfHead("attn_norm_2.weight"), dim, own.feature_norm));
  FORETOKEN_CHECK_OK(RopeFactors());
  FORETOKEN_CHECK_OK(TargetIds(target_vocabulary, weights_.output_tokens));
  return HeadTensors{Optional("token_embd.weight"), "output_norm.weight"};
}

Result<HeadPlan::HeadTensors> HeadPlan::BlockTensors(int target_vocabulary) {
  const HeadConfig& head = *config_.head;
  HeadWeights& own = weights_.head.emplace();
  FORETOKEN_CHECK_OK(Divided("fc.weight", config_.dim, head.features_width(), own.mix));
  FORETOKEN_CHECK_OK(Vector("enc.output_norm.weight", config_.dim, own.feature_norm));
  FORETOKEN_CHECK_OK(RopeFactors());
  FORETOKEN_CHECK_OK(TargetIds(target_vocabulary, weights_.output_tokens));
  if (head.transition_rank != 0) FORETOKEN_CHECK_OK(Transition(own));
  if (head.n_candidates != 0) FORETOKEN_CHECK_OK(Selector(target_vocabulary, own));
  return HeadTensors{Optional("token_embd.weight"), "output_norm.weight"};
}

Status HeadPlan::Transition(HeadWeights& own) {
  const int rank = config_.head->transition_rank;
  const std::string certainty = "conf_proj.weight";
  FORETOKEN_TRY(const int rows, EmbeddingRows(checkpoint_, kTransitions));
  FORETOKEN_TRY(second_embedding_, Find(kTransitions, rank, rows));
  FORETOKEN_CHECK_OK(Divided("markov_w2.weight", config_.vocabulary, rank, own.transition));
  if (checkpoint_.Find(certainty) == nullptr) return {};
  FORETOKEN_CHECK_OK(Vector(certainty, config_.dim + rank, own.certainty));
  return Bias("conf_proj.bias", 1, false, own.certainty_bias);
}

Status HeadPlan::Selector(int target_vocabulary, HeadWeights& own) {
  const int rank = config_.head->selector_rank;
  FORETOKEN_TRY(second_embedding_, Find(kBefore, rank, target_vocabulary));
  FORETOKEN_TRY(third_embedding_, Find(kBehind, rank, target_vocabulary));
  return Matrix("selector_hidden.weight", rank, config_.dim, own.selector);
}

Result<HeadPlan::HeadTensors> HeadPlan::MtpTensors(const Weights& target) {
  const int dim = config_.dim;
  HeadWeights& own = weights_.head.emplace();
  FORETOKEN_CHECK_OK(Divided(OfHead("nextn.eh_proj.weight"), dim, 2 * dim, own.mix));
  FORETOKEN_CHECK_OK(Vector(OfHead("nextn.enorm.weight"), dim, own.token_norm));
  FORETOKEN_CHECK_OK(Vector(OfHead("nextn.hnorm.weight"), dim, own.feature_norm));
  weights_.rope_factors_ = target.rope_factors_;
  return HeadTensors{Optional(OfHead("nextn.embed_tokens.weight")),
                     Optional(OfHead("nextn.shared_head_norm.weight"))};
}

Result<HeadPlan::HeadTensors> HeadPlan::AssistantTensors() {
  const int dim = config_.dim, target = config_.head->target_dim;
  HeadWeights& own = weights_.head.emplace();
  FORETOKEN_CHECK_OK(Divided("nextn.pre_projection.weight", dim, 2 * target, own.mix));
  FORETOKEN_CHECK_OK(Matrix("nextn.post_projection.weight", target, dim, own.next));
  FORETOKEN_CHECK_OK(RopeFactors());
  return HeadTensors{"", "output_norm.weight"};
}

Status HeadPlan::TargetIds(int target_vocabulary, std::vector<std::int32_t>& ids) const {
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
    ids.push_back(static_cast<std::int32_t>(id));
  }
  return {};
}

Status HeadPlan::HeadOutput(const Weights& target) {
  const std::string name = HeadOutputName(config_);
  if (checkpoint_.Find(name) == nullptr) {
    weights_.output = target.output;
    weights_.output_tensor_ = target.output_tensor_;
    return {};
  }
  FORETOKEN_TRY(weights_.output_tensor_, Find(name, config_.dim, config_.vocabulary));
  return Divided(name, config_.vocabulary, config_.dim, weights_.output);
}

}  // namespace foretoken::model
