// SPDX-License-Identifier: Apache-2.0
// EAGLE-3 heads: files of their own.
#include <fmt/format.h>

#include <algorithm>

#include "model/arch/common_config.h"
#include "model/arch/heads/head_kind.h"
#include "model/arch/registry.h"
#include "model/blocks/heads/head_entry.h"
#include "model/blocks/product.h"
#include "model/weights/plan/head_plan.h"

namespace foretoken::model::arch {

extern const HeadKind kEagleHead;

namespace {

// ---- Configuration ------------------------------------------------------------------------------

// Older files have another key.
Result<std::vector<int>> FeatureLayers(const MetadataReader& read) {
  FORETOKEN_TRY(std::vector<int> layers, ReadFeatureLayers(read, "target_layers"));
  FORETOKEN_TRY(const std::vector<int> older, ReadFeatureLayers(read, "extract_layers"));
  if (layers.empty()) layers = older;
  if (!layers.empty()) return layers;
  return Fail(
      ErrorCode::kInvalidFile,
      fmt::format("{}: missing; this is not a complete EAGLE-3 head", read.Key("target_layers")));
}

Result<HeadConfig> ReadHead(const MetadataReader& read) {
  HeadConfig head{.kind = &kEagleHead, .feature_is_residual = true};
  FORETOKEN_TRY(head.target_dim, read.Size("target_hidden_size", 1 << 17));
  FORETOKEN_TRY(head.feature_layers, FeatureLayers(read));
  head.norm_before_residual = read.Bool("norm_before_residual").value_or(false);
  head.norm_before_fc = read.Bool("norm_before_fc").value_or(false);
  return head;
}

Result<ModelConfig> ReadEagle(const MetadataReader& read, const formats::Checkpoint& file) {
  FORETOKEN_TRY(ModelConfig c, ReadCommonConfig(read));
  // The first block reads the entry's pair. Blocks behind it are those of any network.
  c.layers[0].attention().norm = {};
  c.layers[0].attention().reads_pair = true;
  FORETOKEN_TRY(c.head, ReadHead(read));
  FORETOKEN_CHECK_OK(ReadOutputRows(file, c));
  return c;
}

// ---- Tensors ------------------------------------------------------------------------------------

Result<HeadTensors> PlanEagle(HeadPlan& plan, const Weights&, int target_vocabulary) {
  const ModelConfig& c = plan.config();
  const int features = c.head->features_width();
  HeadWeights& own = plan.own();
  FORETOKEN_CHECK_OK(plan.Divided("fc.weight", c.dim, features, own.mix));
  if (c.head->norm_before_fc)
    FORETOKEN_CHECK_OK(plan.Vector("enc.output_norm.weight", features, own.features_norm));
  FORETOKEN_CHECK_OK(plan.Vector(InFirstLayer(c, "attn_norm.weight"), c.dim, own.token_norm));
  FORETOKEN_CHECK_OK(plan.Vector(InFirstLayer(c, "attn_norm_2.weight"), c.dim, own.feature_norm));
  FORETOKEN_CHECK_OK(plan.RopeFactors());
  FORETOKEN_CHECK_OK(plan.TargetIds(target_vocabulary));
  return HeadTensors{plan.IfPresent("token_embd.weight"), "output_norm.weight"};
}

// ---- Entry --------------------------------------------------------------------------------------

bool ReadsOwnFeatures(const Pass& pass) {
  return pass.own_features;
}
bool ReadsTargetFeatures(const Pass& pass) {
  return !pass.own_features;
}

bool AttentionQuantises(const LayerWeights& layer) {
  const auto& attention = std::get<AttentionWeights>(layer.mixer);
  return attention.q.quantised() || attention.k.quantised() || attention.v.quantised();
}

// EAGLE-3: x = feature, or the normed feature; the attention of the layer reads the pair. The
// feature is fc applied to the target's features, or the head's own feature of an earlier row.
class EagleEntry final : public HeadEntry {
 public:
  EagleEntry(const Workspace& space, const ModelConfig& config, const Weights& weights);

  void AddPhases(std::vector<Phase>& phases) const override;

 private:
  void TakeTarget(const Pass& pass, int thread) const noexcept;
  void Mix(const Pass& pass, int thread) const noexcept;
  void TakeOwn(const Pass& pass, int thread) const noexcept;
  void Pair(const Pass& pass, int thread) const noexcept;

  const bool quantise_pair_;
  const Activation mixed_;
};

EagleEntry::EagleEntry(const Workspace& space, const ModelConfig& config, const Weights& weights)
    : HeadEntry(space, config, weights, ReadsTargetFeatures),
      quantise_pair_(AttentionQuantises(weights.layers[0])),
      mixed_(space.scratch.mixed.View(config.head->features_width())) {}

void EagleEntry::AddPhases(std::vector<Phase>& phases) const {
  phases.push_back(PhaseOf<&EagleEntry::TakeOwn>(*this, Split::kRows, ReadsOwnFeatures));
  phases.push_back(PhaseOf<&EagleEntry::TakeTarget>(*this, Split::kRows, ReadsTargetFeatures));
  phases.push_back(PhaseOf<&EagleEntry::Mix>(*this, Split::kOther, ReadsTargetFeatures));
  gather_mixed_.AddPhases(phases);
  phases.push_back(PhaseOf<&EagleEntry::Pair>(*this, Split::kRows));
}

void EagleEntry::TakeOwn(const Pass& pass, int thread) const noexcept {
  const auto rows = space_.RowsOf(pass, thread);
  for (int row = rows.begin; row < rows.end; ++row)
    std::copy_n(pass.features + std::int64_t{row} * config_.dim, config_.dim, residual_.Row(row));
}

void EagleEntry::TakeTarget(const Pass& pass, int thread) const noexcept {
  const auto rows = space_.RowsOf(pass, thread);
  for (int row = rows.begin; row < rows.end; ++row) {
    const float* const features = pass.features + std::int64_t{row} * mixed_.width;
    if (head_.features_norm != nullptr)
      space_.kernels.rms_norm(features, head_.features_norm, mixed_.width, config_.norm_eps,
                              mixed_.Row(row));
    else
      std::copy_n(features, mixed_.width, mixed_.Row(row));
  }
  if (head_.mix.quantised()) Quantise(space_.kernels, mixed_, rows);
}

void EagleEntry::Mix(const Pass& pass, int thread) const noexcept {
  MultiplyShare(space_, head_.mix, mixed_, pass.n_rows(), residual_, thread);
}

void EagleEntry::Pair(const Pass& pass, int thread) const noexcept {
  const auto rows = space_.RowsOf(pass, thread);
  for (int row = rows.begin; row < rows.end; ++row) {
    WritePair(pass.tokens[static_cast<std::size_t>(row)], residual_.Row(row), row);
    if (config_.head->norm_before_residual)
      std::copy_n(pair_.Row(row) + config_.dim, config_.dim, residual_.Row(row));
  }
  if (quantise_pair_) Quantise(space_.kernels, pair_, rows);
}

}  // namespace

extern const HeadKind kEagleHead = {.architecture = "eagle3",
                                    .noun = "an EAGLE-3 head",
                                    .drafter = "eagle",
                                    .read = ReadEagle,
                                    .output = UsualOutput,
                                    .plan = PlanEagle,
                                    .add_entry = AddEntry<EagleEntry>};

}  // namespace foretoken::model::arch
