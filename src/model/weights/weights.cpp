// SPDX-License-Identifier: Apache-2.0
#include "model/weights/weights.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/repack.h"
#include "model/weights/plan/head_plan.h"
#include "model/weights/plan/network_plan.h"
#include "model/weights/weights_loader.h"
#include "tensor/dtype.h"

namespace foretoken::model {

Error LoadingStopped() {
  return {ErrorCode::kStopped,
          "loading: the program stopped it before the end; open the model again"};
}

Result<Weights> Weights::Load(const formats::Checkpoint& checkpoint, const ModelConfig& config,
                              std::span<const std::int32_t> output_tokens, const Division& division,
                              ThreadPool& pool, const LoadOptions& options) {
  Weights weights;
  NetworkPlan plan(checkpoint, config, division, weights);
  FORETOKEN_CHECK_OK(plan.Plan(output_tokens));
  FORETOKEN_CHECK_OK(WeightsLoader(plan, weights).Fill(pool, options));
  return weights;
}

Result<Weights> Weights::LoadHead(const formats::Checkpoint& checkpoint, const ModelConfig& config,
                                  const Weights& target, const ModelConfig& target_config,
                                  std::span<const std::int32_t> reduced_tokens,
                                  const Division& division, ThreadPool& pool) {
  Weights weights;
  HeadPlan plan(checkpoint, config, division, weights);
  FORETOKEN_CHECK_OK(plan.Plan(target, target_config, reduced_tokens));
  FORETOKEN_CHECK_OK(WeightsLoader(plan, weights).Fill(pool, {}));
  return weights;
}

Result<Weights> Weights::LoadCopy(const formats::Checkpoint& checkpoint, const ModelConfig& config,
                                  const Weights& network, const CopyTypes& types,
                                  std::span<const std::int32_t> reduced_tokens,
                                  const Division& division, ThreadPool& pool,
                                  const LoadOptions& options) {
  Weights weights;
  NetworkPlan plan(checkpoint, config, division, weights, types);
  FORETOKEN_CHECK_OK(plan.Plan(network.output_tokens, reduced_tokens));
  FORETOKEN_CHECK_OK(WeightsLoader(plan, weights, &network).Fill(pool, options));
  return weights;
}

Result<CopySize> Weights::SizeOfCopy(const formats::Checkpoint& checkpoint,
                                     const ModelConfig& config, const CopyTypes& types,
                                     std::span<const std::int32_t> reduced_tokens,
                                     const Division& division) {
  Weights weights;
  NetworkPlan plan(checkpoint, config, division, weights, types);
  FORETOKEN_CHECK_OK(plan.Plan({}, reduced_tokens));
  return plan.copy_size();
}

Status Weights::Check(const formats::Checkpoint& checkpoint, const ModelConfig& config) {
  Weights weights;
  return NetworkPlan(checkpoint, config, {}, weights).Plan({});
}

std::span<const float> Weights::FactorsOf(const RopeConfig& rope, int max_positions) const {
  const bool is_long = !rope.long_factors.empty() && max_positions > rope.original_context;
  const std::string_view name = is_long ? rope.long_factors : rope.factors;
  for (const RopeFactors& factors : rope_factors_)
    if (factors.name == name) return factors.values;
  return {};
}

Status Weights::CheckEmbeddings() const {
  for (const auto& table : {embedding_, second_embedding_, third_embedding_})
    if (table != nullptr) FORETOKEN_CHECK_OK(table->Check());
  return {};
}

Status Weights::CheckFiles(ThreadPool& pool) {
  FORETOKEN_CHECK_OK(CheckEmbeddings());
  return tiles_.Check(pool);
}

Status Weights::QuickCheckFiles() const {
  FORETOKEN_CHECK_OK(CheckEmbeddings());
  return tiles_.QuickCheck();
}

namespace {

std::int64_t TileBytesOf(const formats::TensorView& t) {
  const tensor::DTypeInfo* info = tensor::FindDType(t.ggml_type);
  if (info == nullptr) return static_cast<std::int64_t>(t.bytes());
  constexpr int kValues = tensor::kSuperBlock;  // whole blocks of every type
  const auto strip_bytes = static_cast<std::int64_t>(kernels::StripBytes(info->tile, kValues));
  return t.n_values() * (strip_bytes / tensor::kTileOutputs) / kValues;
}

}  // namespace

const formats::TensorView* ReducibleOutput(const formats::Checkpoint& checkpoint,
                                           const ModelConfig& config,
                                           const formats::Checkpoint& target) {
  const HeadConfig& head = *config.head;
  if (checkpoint.Find("d2t") != nullptr || head.transition_rank != 0 || head.n_candidates != 0)
    return nullptr;
  for (const auto& [file, name] : {std::pair(&checkpoint, head.kind->output(config)),
                                   std::pair(&target, std::string("output.weight")),
                                   std::pair(&target, std::string("token_embd.weight"))})
    if (const formats::TensorView* output = file->Find(name)) return output;
  return nullptr;
}

std::int64_t BytesOfRows(const formats::TensorView& matrix, std::int64_t n_rows) {
  return TileBytesOf(matrix) / std::max<std::int64_t>(1, matrix.shape[1]) * n_rows;
}

WeightBytes WeightBytesOf(const formats::Checkpoint& checkpoint) {
  constexpr std::array<std::string_view, 4> kTables = {kLayerEmbedding, kTransitions, kBefore,
                                                       kBehind};
  WeightBytes bytes;
  const bool tied = checkpoint.Find("output.weight") == nullptr;
  for (const formats::TensorView& t : checkpoint.tensors()) {
    const bool is_table = std::find(kTables.begin(), kTables.end(), t.name) != kTables.end(),
               of_tokens = t.name == "token_embd.weight";
    if (is_table || of_tokens) bytes.embedding += static_cast<std::int64_t>(t.bytes());
    if (is_table || (of_tokens && !tied)) continue;
    (t.name.ends_with("_exps.weight") ? bytes.experts : bytes.dense) += TileBytesOf(t);
  }
  return bytes;
}

WeightBytes WeightBytes::PartOf(const Division& division) const {
  return {
      .dense = division.PartOf(dense), .experts = division.PartOf(experts), .embedding = embedding};
}

Result<int> VocabularyRows(const formats::Checkpoint& checkpoint) {
  constexpr const char* kName = "token_embd.weight";
  if (checkpoint.Find(kName) == nullptr)
    return Fail(ErrorCode::kInvalidFile,
                "tensor token_embd.weight: missing; a vocabulary-only file cannot generate, only "
                "`tokenize` and `inspect` read it");
  return EmbeddingRows(checkpoint, kName);
}

}  // namespace foretoken::model
