// SPDX-License-Identifier: Apache-2.0
#include "model/arch/registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "model/arch/block_config.h"
#include "model/arch/common_config.h"
#include "model/arch/experts_config.h"
#include "model/arch/families/gemma.h"
#include "model/weights/weights.h"

namespace foretoken {
namespace model {
namespace arch {

extern const Architecture kDeepSeek2, kErnie45, kExaone4, kFalconH1, kGemma2, kGemma3, kGemma4,
    kGlm4, kGlm4Moe, kGptOss, kGranite, kGraniteHybrid, kGraniteMoe, kLfm2, kLfm2Moe, kLlama,
    kMistral3, kNemotronH, kNemotronHMoe, kOlmo2, kPhi3, kQwen2, kQwen2Moe, kQwen3, kQwen35,
    kQwen35Moe, kQwen3Moe, kQwen3Next, kSeedOss, kSmolLm3;

}  // namespace arch

namespace {

constexpr std::array kRows = {
    &arch::kDeepSeek2,  &arch::kErnie45,   &arch::kExaone4,      &arch::kFalconH1,
    &arch::kGemma2,     &arch::kGemma3,    &arch::kGemma4,       &arch::kGlm4,
    &arch::kGlm4Moe,    &arch::kGptOss,    &arch::kGranite,      &arch::kGraniteHybrid,
    &arch::kGraniteMoe, &arch::kLfm2,      &arch::kLfm2Moe,      &arch::kLlama,
    &arch::kMistral3,   &arch::kNemotronH, &arch::kNemotronHMoe, &arch::kOlmo2,
    &arch::kPhi3,       &arch::kQwen2,     &arch::kQwen2Moe,     &arch::kQwen3,
    &arch::kQwen35,     &arch::kQwen35Moe, &arch::kQwen3Moe,     &arch::kQwen3Next,
    &arch::kSeedOss,    &arch::kSmolLm3,
};

constexpr std::string_view kEagle = "eagle3", kAssistant = "gemma4-assistant", kBlock = "dflash";

// An architecture without experts whose file has some is something else than its name says.
Status CheckExpertsAreUsed(const MetadataReader& read, const ModelConfig& config) {
  const bool used =
      std::any_of(config.layers.begin(), config.layers.end(),
                  [](const LayerConfig& layer) { return layer.experts() != nullptr; });
  if (used || !HasExperts(read)) return {};
  if (read.Int("leading_dense_block_count") == config.n_layers()) return {};
  return Fail(ErrorCode::kUnsupported,
              fmt::format("{} = {}: architecture '{}' with experts is not supported",
                          read.Key("expert_count"), read.Int("expert_count").value_or(0),
                          Shown(config.architecture)));
}

Result<ModelConfig> ReadConfig(const MetadataReader& read, const Architecture& row) {
  FORETOKEN_TRY(ModelConfig config,
                ReadCommonConfig(read, {row.latent, row.recurrent, row.single_parts}));
  FORETOKEN_CHECK_OK(row.complete(read, config));
  FORETOKEN_CHECK_OK(CheckExpertsAreUsed(read, config));
  return config;
}

// With the layers of an MTP head.
Result<ModelConfig> ConfigOfAllBlocks(const formats::Metadata& metadata) {
  const std::string* name = metadata.String("general.architecture");
  if (name == nullptr)
    return Fail(ErrorCode::kInvalidFile, "general.architecture: missing; this is not a model file");
  for (const Architecture* row : kRows) {
    if (row->info.name != *name) continue;
    const MetadataReader read(metadata, *name);
    auto config = ReadConfig(read, *row);
    FORETOKEN_CHECK_OK(read.Kinds());
    return config;
  }
  if (*name == kEagle)
    return Fail(
        ErrorCode::kUnsupported,
        "architecture 'eagle3': this is an EAGLE-3 head, no whole model; give it as the draft "
        "(EngineOptions::draft_model) of the model it was trained for");
  if (*name == kAssistant)
    return Fail(
        ErrorCode::kUnsupported,
        fmt::format("architecture '{}': this is a head, no whole model; give it as the draft "
                    "(EngineOptions::draft_model) of the model it was trained for",
                    kAssistant));
  if (*name == kBlock)
    return Fail(ErrorCode::kUnsupported,
                "architecture 'dflash': this is a DFlash drafter, no whole model; give it as the "
                "draft (EngineOptions::draft_model) of the model it was trained for");
  return Fail(ErrorCode::kUnsupported,
              fmt::format("architecture '{}': not supported; this build runs {}", Shown(*name),
                          fmt::join(NamesOf(AllArchitectures()), ", ")));
}

// A list of layers of the target; nothing where the file lacks the key.
Result<std::vector<int>> LayersOf(const MetadataReader& read, std::string_view key) {
  const auto* const list = read.Ints(key);
  if (list == nullptr && !read.Int(key)) return std::vector<int>();
  if (list == nullptr || list->empty() || list->size() > kMostFeatureLayers)
    return Fail(ErrorCode::kInvalidFile,
                fmt::format("{}: this is not a list of 1 to {} layers of the target; the head is "
                            "damaged",
                            read.Key(key), kMostFeatureLayers));
  std::vector<int> layers;
  for (const std::int64_t layer : *list) {
    if (layer < 0 || layer > 1024)
      return Fail(ErrorCode::kInvalidFile,
                  fmt::format("{}: {} is out of range (0 to 1024)", read.Key(key), layer));
    layers.push_back(static_cast<int>(layer));
  }
  return layers;
}

// The layers whose input a head reads. Older files have another key.
Result<std::vector<int>> ReadFeatureLayers(const MetadataReader& read) {
  FORETOKEN_TRY(std::vector<int> layers, LayersOf(read, "target_layers"));
  FORETOKEN_TRY(const std::vector<int> older, LayersOf(read, "extract_layers"));
  if (layers.empty()) layers = older;
  if (!layers.empty()) return layers;
  return Fail(
      ErrorCode::kInvalidFile,
      fmt::format("{}: missing; this is not a complete EAGLE-3 head", read.Key("target_layers")));
}

Result<HeadConfig> ReadEagleHead(const MetadataReader& read) {
  HeadConfig head{.kind = HeadKind::kEagle};
  FORETOKEN_TRY(head.target_dim, read.Size("target_hidden_size", 1 << 17));
  FORETOKEN_TRY(head.feature_layers, ReadFeatureLayers(read));
  head.norm_before_residual = read.Bool("norm_before_residual").value_or(false);
  head.norm_before_fc = read.Bool("norm_before_fc").value_or(false);
  return head;
}

Result<ModelConfig> ReadEagleConfig(const MetadataReader& read,
                                    const formats::Checkpoint& checkpoint) {
  FORETOKEN_TRY(ModelConfig c, ReadCommonConfig(read));
  // The first block reads the entry's pair. Blocks behind it are those of any network.
  c.layers[0].attention().norm = {};
  c.layers[0].attention().reads_pair = true;
  FORETOKEN_TRY(c.head, ReadEagleHead(read));
  if (const auto* output = checkpoint.Find("output.weight")) {
    if (output->shape[1] > 1 << 24)
      return Fail(ErrorCode::kInvalidFile, "tensor output.weight: too many rows");
    c.vocabulary = static_cast<int>(output->shape[1]);
  }
  return c;
}

Result<ModelConfig> ReadAssistantConfig(const MetadataReader& read) {
  FORETOKEN_TRY(ModelConfig config, ReadCommonConfig(read, {.next_alone = true}));
  FORETOKEN_CHECK_OK(arch::CompleteAssistant(read, config));
  FORETOKEN_CHECK_OK(CheckExpertsAreUsed(read, config));
  return config;
}

Result<ModelConfig> AssistantConfig(const formats::Checkpoint& checkpoint) {
  const MetadataReader read(checkpoint.metadata(), std::string(kAssistant));
  auto config = ReadAssistantConfig(read);
  FORETOKEN_CHECK_OK(read.Kinds());
  if (!config) return config;
  FORETOKEN_TRY(config->vocabulary, VocabularyRows(checkpoint));
  return config;
}

}  // namespace

DraftFile KindOfDraft(const formats::Checkpoint& checkpoint) {
  const std::string* name = checkpoint.metadata().String("general.architecture");
  if (name == nullptr) return DraftFile::kModel;
  if (*name == kEagle) return DraftFile::kEagleHead;
  if (*name == kAssistant) return DraftFile::kAssistant;
  if (*name == kBlock) return DraftFile::kBlockHead;
  if (checkpoint.metadata().Int(*name + ".nextn_predict_layers").value_or(0) <= 0)
    return DraftFile::kModel;
  const bool has_layers = checkpoint.Find("blk.0.attn_q.weight") != nullptr ||
                          checkpoint.Find("blk.0.attn_q_a.weight") != nullptr ||
                          checkpoint.Find("blk.0.attn_qkv.weight") != nullptr;
  return has_layers ? DraftFile::kModelWithMtpHead : DraftFile::kMtpHead;
}

// The block behind the trunk's, of the trunk's kind. Where a file has several, each further one was
// trained for one more token; the first drafts any number of them from its own features.
Result<ModelConfig> MtpConfigFromMetadata(const formats::Metadata& metadata) {
  FORETOKEN_TRY(ModelConfig c, ConfigOfAllBlocks(metadata));
  if (c.n_next_layers == 0)
    return Fail(
        ErrorCode::kInvalidFile,
        fmt::format("{}.nextn_predict_layers: missing; this is no MTP head", c.architecture));
  const int trunk = c.n_layers() - c.n_next_layers;
  c.head = HeadConfig{.kind = HeadKind::kMtp, .target_dim = c.dim, .target_layers = trunk};
  c.layers = {c.layers[static_cast<std::size_t>(trunk)]};
  c.n_next_layers = 0;
  return c;
}

std::string_view NameOf(DraftFile kind) {
  constexpr std::array<std::string_view, 6> kNames = {"a whole model", "an EAGLE-3 head",
                                                      "an MTP head",   "a model with an MTP head",
                                                      "an assistant",  "a DFlash drafter"};
  return kNames[static_cast<std::size_t>(kind)];
}

Result<ModelConfig> HeadConfigFromFile(const formats::Checkpoint& checkpoint) {
  const DraftFile kind = KindOfDraft(checkpoint);
  if (kind == DraftFile::kAssistant) return AssistantConfig(checkpoint);
  if (kind != DraftFile::kEagleHead && kind != DraftFile::kBlockHead)
    return MtpConfigFromMetadata(checkpoint.metadata());
  const MetadataReader read(checkpoint.metadata(),
                            std::string(kind == DraftFile::kEagleHead ? kEagle : kBlock));
  auto config = kind == DraftFile::kEagleHead ? ReadEagleConfig(read, checkpoint)
                                              : ReadBlockConfig(read, checkpoint);
  FORETOKEN_CHECK_OK(read.Kinds());
  return config;
}

Result<ModelConfig> ConfigFromMetadata(const formats::Metadata& metadata) {
  FORETOKEN_TRY(ModelConfig config, ConfigOfAllBlocks(metadata));
  config.layers.resize(config.layers.size() - static_cast<std::size_t>(config.n_next_layers));
  return config;
}

}  // namespace model

std::span<const ArchitectureInfo* const> AllArchitectures() {
  static const auto rows = [] {
    std::array<const ArchitectureInfo*, model::kRows.size()> all{};
    std::transform(model::kRows.begin(), model::kRows.end(), all.begin(),
                   [](const model::Architecture* row) { return &row->info; });
    return all;
  }();
  return rows;
}

}  // namespace foretoken
