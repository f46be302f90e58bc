// SPDX-License-Identifier: Apache-2.0
// MTP heads (next-n prediction): the blocks behind a model's, in its file or in one of their own.
#include <fmt/format.h>

#include "model/arch/heads/head_kind.h"
#include "model/arch/registry.h"
#include "model/blocks/heads/head_entry.h"
#include "model/blocks/product.h"
#include "model/weights/plan/head_plan.h"

namespace foretoken::model {
namespace arch {

extern const HeadKind kMtpHead;

namespace {

Result<ModelConfig> ReadMtp(const MetadataReader&, const formats::Checkpoint& file) {
  return MtpConfigFromMetadata(file.metadata());
}

// ---- Tensors ------------------------------------------------------------------------------------

std::string MtpOutput(const ModelConfig& config) {
  return InFirstLayer(config, "nextn.shared_head_head.weight");
}

Result<HeadTensors> PlanMtp(HeadPlan& plan, const Weights& target, int) {
  const ModelConfig& c = plan.config();
  HeadWeights& own = plan.own();
  FORETOKEN_CHECK_OK(
      plan.Divided(InFirstLayer(c, "nextn.eh_proj.weight"), c.dim, 2 * c.dim, own.mix));
  FORETOKEN_CHECK_OK(plan.Vector(InFirstLayer(c, "nextn.enorm.weight"), c.dim, own.token_norm));
  FORETOKEN_CHECK_OK(plan.Vector(InFirstLayer(c, "nextn.hnorm.weight"), c.dim, own.feature_norm));
  plan.UseRopeFactorsOf(target);
  return HeadTensors{plan.IfPresent(InFirstLayer(c, "nextn.embed_tokens.weight")),
                     plan.IfPresent(InFirstLayer(c, "nextn.shared_head_norm.weight"))};
}

// ---- Entry --------------------------------------------------------------------------------------

// MTP: x = eh_proj pair.
class MtpEntry final : public HeadEntry {
 public:
  MtpEntry(const Workspace& space, const ModelConfig& config, const Weights& weights)
      : HeadEntry(space, config, weights) {}

  void AddPhases(std::vector<Phase>& phases) const override;

 private:
  void Pair(const Pass& pass, int thread) const noexcept;
  void Mix(const Pass& pass, int thread) const noexcept;
};

void MtpEntry::AddPhases(std::vector<Phase>& phases) const {
  phases.push_back(PhaseOf<&MtpEntry::Pair>(*this, Split::kRows));
  phases.push_back(PhaseOf<&MtpEntry::Mix>(*this, Split::kOther));
  gather_mixed_.AddPhases(phases);
}

void MtpEntry::Pair(const Pass& pass, int thread) const noexcept {
  const auto rows = space_.RowsOf(pass, thread);
  for (int row = rows.begin; row < rows.end; ++row)
    WritePair(pass.tokens[static_cast<std::size_t>(row)],
              pass.features + std::int64_t{row} * config_.dim, row);
  if (head_.mix.quantised()) Quantise(space_.kernels, pair_, rows);
}

void MtpEntry::Mix(const Pass& pass, int thread) const noexcept {
  MultiplyShare(space_, head_.mix, pair_, pass.n_rows(), residual_, thread);
}

}  // namespace

extern const HeadKind kMtpHead = {.noun = "an MTP head",
                                  .drafter = "mtp",
                                  .read = ReadMtp,
                                  .output = MtpOutput,
                                  .plan = PlanMtp,
                                  .add_entry = AddEntry<MtpEntry>};

}  // namespace arch

// The block behind the trunk's, of the trunk's kind. Where a file has several, each further one was
// trained for one more token; the first drafts any number of them from its own features.
Result<ModelConfig> MtpConfigFromMetadata(const formats::Metadata& metadata) {
  FORETOKEN_TRY(ModelConfig c, ConfigOfAllBlocks(metadata));
  if (c.n_next_layers == 0)
    return Fail(
        ErrorCode::kInvalidFile,
        fmt::format("{}.nextn_predict_layers: missing; this is no MTP head", c.architecture));
  const int trunk = c.n_layers() - c.n_next_layers;
  c.head = HeadConfig{.kind = &arch::kMtpHead,
                      .target_dim = c.dim,
                      .target_layers = trunk,
                      .begins_with_zeros = true};
  c.layers = {c.layers[static_cast<std::size_t>(trunk)]};
  c.n_next_layers = 0;
  return c;
}

}  // namespace foretoken::model
