// SPDX-License-Identifier: Apache-2.0
// Drafters of whole blocks (DFlash, DFlash 2, DSpark): files of their own.
#include <fmt/format.h>

#include <array>
#include <utility>

#include "model/arch/common_config.h"
#include "model/arch/heads/head_kind.h"
#include "model/arch/registry.h"
#include "model/arch/windows.h"
#include "model/blocks/embedding.h"
#include "model/blocks/heads/injection.h"
#include "model/weights/plan/head_plan.h"

namespace foretoken::model::arch {

extern const HeadKind kDflashHead;

namespace {

// ---- Configuration ------------------------------------------------------------------------------

constexpr int kUsualBlock = 16, kMostBlock = 1 << 10;
constexpr int kMostCandidates = 64, kMostSelectorRank = 1 << 12;

Status ReadMask(const formats::Metadata& metadata, HeadConfig& head) {
  constexpr const char* kKey = "tokenizer.ggml.mask_token_id";
  const auto mask = metadata.Int(kKey);
  if (!mask || *mask < 0 || *mask >= 1 << 24)
    return Fail(ErrorCode::kInvalidFile,
                fmt::format("{}: a token is needed, which stands for those to be drafted; this is "
                            "not a complete DFlash drafter",
                            kKey));
  head.mask = static_cast<int>(*mask);
  return {};
}

// Drafters for targets that rotate by several positions have all their pairs in the first section,
// which rotates by the position in the text.
Status CheckFirstSection(const MetadataReader& read, const RopeConfig& rope) {
  const auto* sections = read.Ints("rope.dimension_sections");
  if (sections == nullptr && !read.Int("rope.dimension_sections")) return {};
  if (sections != nullptr && !sections->empty() && sections->front() == rope.n_rot / 2) return {};
  return Fail(ErrorCode::kUnsupported,
              fmt::format("{}: only sections that begin with all {} pairs are supported",
                          read.Key("rope.dimension_sections"), rope.n_rot / 2));
}

// Drafters that have more than DFlash, DFlash 2 or DSpark, and would draft something else without it.
Status CheckKind(const formats::Checkpoint& checkpoint) {
  constexpr std::array<std::pair<const char*, const char*>, 2> kKinds = {
      {{"lilicorr.token_proj.weight", "a LiLiCorr drafter"},
       {"blk.0.attn_q_a.weight", "a drafter with latent attention"}}};
  for (const auto& [tensor, kind] : kKinds)
    if (checkpoint.Find(tensor) != nullptr)
      return Fail(
          ErrorCode::kUnsupported,
          fmt::format("tensor {}: this is {}, which is not supported; use a DFlash, DFlash 2 "
                      "or DSpark drafter",
                      tensor, kind));
  if (checkpoint.Find("markov_w1.weight") != nullptr &&
      checkpoint.Find("selector_hidden.weight") != nullptr)
    return Fail(ErrorCode::kUnsupported,
                "tensors markov_w1.weight and selector_hidden.weight: a drafter with both a DSpark "
                "head and a DFlash 2 selector is not supported; use one that has one of them");
  return {};
}

Result<GateFunction> ReadGate(const MetadataReader& read) {
  const std::string* const name = read.String("hidden_activation");
  if (name == nullptr || *name == "silu") return GateFunction::kSilu;
  if (*name == "gelu" || *name == "gelu_pytorch_tanh") return GateFunction::kGelu;
  return Fail(ErrorCode::kUnsupported,
              fmt::format("{}: '{}' is not supported; known are silu, gelu, gelu_pytorch_tanh",
                          read.Key("hidden_activation"), Shown(*name)));
}

// DFlash 2: what the layers have beside those of DFlash.
Status ReadConvolution(const MetadataReader& read, const formats::Checkpoint& checkpoint,
                       ModelConfig& c) {
  if (!read.Int("conv_kernel_size") && checkpoint.Find("blk.0.attn_conv_base") == nullptr)
    return {};
  LocalConvolutionConfig convolution;
  FORETOKEN_TRY(convolution.taps, read.Size("conv_kernel_size", kMostTaps));
  FORETOKEN_TRY(convolution.group, read.Size("conv_group_size", c.dim));
  if (c.dim % convolution.group != 0)
    return Fail(ErrorCode::kInvalidFile,
                fmt::format("{}: {} does not divide the width {}", read.Key("conv_group_size"),
                            convolution.group, c.dim));
  for (LayerConfig& layer : c.layers) layer.convolution = convolution;
  return {};
}

// DFlash 2: how drafts are chosen. The target's ways of its logits count there, as candidates are weighed
// against each other.
Status ReadSelector(const MetadataReader& read, const formats::Checkpoint& checkpoint,
                    ModelConfig& c) {
  if (!read.Int("selector_top_k") && checkpoint.Find("selector_hidden.weight") == nullptr)
    return {};
  FORETOKEN_TRY(c.head->n_candidates, read.Size("selector_top_k", kMostCandidates));
  FORETOKEN_TRY(c.head->selector_rank, read.Size("selector_rank", kMostSelectorRank));
  FORETOKEN_TRY(const double scale, read.Positive("logit_scale", 1));
  FORETOKEN_TRY(const double cap, read.NotNegative("final_logit_softcapping", 0));
  c.logit_scale = static_cast<float>(scale);
  c.logit_soft_cap = static_cast<float>(cap);
  return {};
}

Result<HeadConfig> ReadHead(const MetadataReader& read, const formats::Metadata& metadata,
                            int dim) {
  HeadConfig head{.kind = &kDflashHead};
  FORETOKEN_TRY(head.target_dim, read.Size("target_hidden_size", 1 << 17, dim));
  FORETOKEN_TRY(head.feature_layers, ReadFeatureLayers(read, "target_layers"));
  if (head.feature_layers.empty())
    return Fail(ErrorCode::kInvalidFile,
                fmt::format("{}: missing; this is not a complete DFlash drafter",
                            read.Key("target_layers")));
  FORETOKEN_TRY(head.block_size, read.Size("block_size", kMostBlock, kUsualBlock));
  FORETOKEN_CHECK_OK(ReadMask(metadata, head));
  return head;
}

// DSpark: the token before a draft counts for it, too.
Status ReadTransition(const MetadataReader& read, const formats::Checkpoint& checkpoint, int dim,
                      HeadConfig& head) {
  const bool from_first = read.Bool("sample_from_anchor").value_or(true);
  const auto* const tokens = checkpoint.Find("markov_w1.weight");
  if (tokens == nullptr) return {};
  const std::int64_t rank = tokens->shape[0];
  if (rank < 1 || rank > dim)
    return Fail(
        ErrorCode::kUnsupported,
        fmt::format("tensor markov_w1.weight: {} numbers for a token; 1 to {} are supported", rank,
                    dim));
  head.transition_rank = static_cast<int>(rank);
  head.drafts_first_row = from_first;
  return {};
}

Result<ModelConfig> ReadDflash(const MetadataReader& read, const formats::Checkpoint& checkpoint) {
  FORETOKEN_CHECK_OK(CheckKind(checkpoint));
  FORETOKEN_TRY(ModelConfig c, ReadCommonConfig(read));
  const bool causal = read.Bool("attention.causal").value_or(false);
  FORETOKEN_TRY(const double embedding, read.Positive("embedding_scale", 1));
  c.embedding_scale = static_cast<float>(embedding);
  FORETOKEN_TRY(const GateFunction gate, ReadGate(read));
  for (LayerConfig& layer : c.layers) {
    AttentionConfig& attention = layer.attention();
    layer.ffn().function = gate;
    attention.causal = causal;
    attention.qk_norm = QkNorm::kHead;
    attention.rope->interleaved = false;
    const std::string sinks = fmt::format("blk.{}.attn_sinks.weight", layer.block);
    attention.sinks = checkpoint.Find(sinks) != nullptr;
    FORETOKEN_CHECK_OK(CheckFirstSection(read, *attention.rope));
  }
  FORETOKEN_CHECK_OK(ReadWindows(read, 0, c));
  FORETOKEN_TRY(c.head, ReadHead(read, checkpoint.metadata(), c.dim));
  FORETOKEN_CHECK_OK(ReadTransition(read, checkpoint, c.dim, *c.head));
  FORETOKEN_CHECK_OK(ReadConvolution(read, checkpoint, c));
  FORETOKEN_CHECK_OK(ReadSelector(read, checkpoint, c));
  FORETOKEN_CHECK_OK(ReadOutputRows(checkpoint, c));
  return c;
}

// ---- Tensors ------------------------------------------------------------------------------------

Status PlanTransition(HeadPlan& plan) {
  const ModelConfig& c = plan.config();
  const int rank = c.head->transition_rank;
  const std::string certainty = "conf_proj.weight";
  HeadWeights& own = plan.own();
  FORETOKEN_TRY(const int rows, EmbeddingRows(plan.checkpoint(), kTransitions));
  FORETOKEN_CHECK_OK(plan.SecondEmbedding(kTransitions, rank, rows));
  FORETOKEN_CHECK_OK(plan.Divided("markov_w2.weight", c.vocabulary, rank, own.transition));
  if (plan.checkpoint().Find(certainty) == nullptr) return {};
  FORETOKEN_CHECK_OK(plan.Vector(certainty, c.dim + rank, own.certainty));
  return plan.Bias("conf_proj.bias", 1, false, own.certainty_bias);
}

Status PlanSelector(HeadPlan& plan, int target_vocabulary) {
  const int rank = plan.config().head->selector_rank;
  FORETOKEN_CHECK_OK(plan.SecondEmbedding(kBefore, rank, target_vocabulary));
  FORETOKEN_CHECK_OK(plan.ThirdEmbedding(kBehind, rank, target_vocabulary));
  return plan.Matrix("selector_hidden.weight", rank, plan.config().dim, plan.own().selector);
}

Result<HeadTensors> PlanDflash(HeadPlan& plan, const Weights&, int target_vocabulary) {
  const ModelConfig& c = plan.config();
  HeadWeights& own = plan.own();
  FORETOKEN_CHECK_OK(plan.Divided("fc.weight", c.dim, c.head->features_width(), own.mix));
  FORETOKEN_CHECK_OK(plan.Vector("enc.output_norm.weight", c.dim, own.feature_norm));
  FORETOKEN_CHECK_OK(plan.RopeFactors());
  FORETOKEN_CHECK_OK(plan.TargetIds(target_vocabulary));
  if (c.head->transition_rank != 0) FORETOKEN_CHECK_OK(PlanTransition(plan));
  if (c.head->n_candidates != 0) FORETOKEN_CHECK_OK(PlanSelector(plan, target_vocabulary));
  return HeadTensors{plan.IfPresent("token_embd.weight"), "output_norm.weight"};
}

// ---- Entry --------------------------------------------------------------------------------------

// Passes begin with their tokens, or with the target's features.
void AddEntries(const Workspace& space, const ModelConfig& config, const Weights& weights,
                std::vector<std::unique_ptr<Block>>& blocks) {
  AddEntry<Embedding>(space, config, weights, blocks);
  AddEntry<Injection>(space, config, weights, blocks);
}

}  // namespace

extern const HeadKind kDflashHead = {.architecture = "dflash",
                                     .noun = "a DFlash drafter",
                                     .drafter = "dflash",
                                     .read = ReadDflash,
                                     .output = UsualOutput,
                                     .plan = PlanDflash,
                                     .add_entry = AddEntries};

}  // namespace foretoken::model::arch
