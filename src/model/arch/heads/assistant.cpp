// SPDX-License-Identifier: Apache-2.0
// Gemma 4's assistants: heads in files of their own, which read their target's cache.
#include <algorithm>

#include "model/arch/common_config.h"
#include "model/arch/families/gemma.h"
#include "model/arch/heads/head_kind.h"
#include "model/arch/registry.h"
#include "model/blocks/gather.h"
#include "model/blocks/phase.h"
#include "model/blocks/product.h"
#include "model/weights/plan/head_plan.h"
#include "model/weights/weights.h"

namespace foretoken::model::arch {

extern const HeadKind kAssistantHead;

namespace {

Result<ModelConfig> ReadAssistant(const MetadataReader& read, const formats::Checkpoint& file) {
  FORETOKEN_TRY(ModelConfig config, ReadCommonConfig(read, {.next_alone = true}));
  config.head = HeadConfig{.kind = &kAssistantHead, .reads_cache = true};
  FORETOKEN_CHECK_OK(CompleteAssistant(read, config));
  FORETOKEN_CHECK_OK(CheckExpertsAreUsed(read, config));
  FORETOKEN_TRY(config.vocabulary, VocabularyRows(file));
  return config;
}

// ---- Tensors ------------------------------------------------------------------------------------

std::string AssistantOutput(const ModelConfig&) {
  return "token_embd.weight";
}

Result<HeadTensors> PlanAssistant(HeadPlan& plan, const Weights&, int) {
  const ModelConfig& c = plan.config();
  const int target = c.head->target_dim;
  HeadWeights& own = plan.own();
  FORETOKEN_CHECK_OK(plan.Divided("nextn.pre_projection.weight", c.dim, 2 * target, own.mix));
  FORETOKEN_CHECK_OK(plan.Matrix("nextn.post_projection.weight", target, c.dim, own.next));
  FORETOKEN_CHECK_OK(plan.RopeFactors());
  return HeadTensors{"", "output_norm.weight"};
}

// ---- Entry --------------------------------------------------------------------------------------

// Assistants: x = pre_projection [scale * embedding(token), feature], with the target's embedding.
class AssistantEntry final : public Block {
 public:
  AssistantEntry(const Workspace& space, const ModelConfig& config, const Weights& weights);

  void AddPhases(std::vector<Phase>& phases) const override;

 private:
  void Pair(const Pass& pass, int thread) const noexcept;
  void Mix(const Pass& pass, int thread) const noexcept;

  const Workspace space_;
  const Weights& weights_;
  const int width_;  // of the embedding, and of the feature
  const float scale_;
  const Activation residual_, pair_;
  const Gather gather_mixed_;
};

AssistantEntry::AssistantEntry(const Workspace& space, const ModelConfig& config,
                               const Weights& weights)
    : space_(space),
      weights_(weights),
      width_(config.head->target_dim),
      scale_(config.embedding_scale),
      residual_(space.scratch.residual.View(config.dim)),
      pair_(space.scratch.pair.View(2 * width_)),
      gather_mixed_(space, residual_, GatheredForm::kFloat,
                    ColumnsByRank(space.division, config.dim)) {}

void AssistantEntry::AddPhases(std::vector<Phase>& phases) const {
  phases.push_back(PhaseOf<&AssistantEntry::Pair>(*this, Split::kRows));
  phases.push_back(PhaseOf<&AssistantEntry::Mix>(*this, Split::kOther));
  gather_mixed_.AddPhases(phases);
}

void AssistantEntry::Pair(const Pass& pass, int thread) const noexcept {
  const auto rows = space_.RowsOf(pass, thread);
  for (int row = rows.begin; row < rows.end; ++row) {
    float* const pair = pair_.Row(row);
    weights_.Embed(pass.tokens[static_cast<std::size_t>(row)], pair);
    space_.kernels.scale(pair, width_, scale_);
    std::copy_n(pass.features + std::int64_t{row} * width_, width_, pair + width_);
  }
  if (weights_.head->mix.quantised()) Quantise(space_.kernels, pair_, rows);
}

void AssistantEntry::Mix(const Pass& pass, int thread) const noexcept {
  MultiplyShare(space_, weights_.head->mix, pair_, pass.n_rows(), residual_, thread);
}

}  // namespace

extern const HeadKind kAssistantHead = {.architecture = "gemma4-assistant",
                                        .noun = "an assistant head",
                                        .drafter = "mtp",
                                        .read = ReadAssistant,
                                        .output = AssistantOutput,
                                        .plan = PlanAssistant,
                                        .add_entry = AddEntry<AssistantEntry>};

}  // namespace foretoken::model::arch
