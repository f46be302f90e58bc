// SPDX-License-Identifier: Apache-2.0
#include "model/arch/registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "model/arch/common_config.h"
#include "model/arch/experts_config.h"
#include "model/arch/heads/head_kind.h"

namespace foretoken {
namespace model {
namespace arch {

extern const Architecture kDeepSeek2, kErnie45, kExaone4, kFalconH1, kGemma2, kGemma3, kGemma4,
    kGlm4, kGlm4Moe, kGptOss, kGranite, kGraniteHybrid, kGraniteMoe, kLfm2, kLfm2Moe, kLlama,
    kMistral3, kNemotronH, kNemotronHMoe, kOlmo2, kPhi3, kQwen2, kQwen2Moe, kQwen3, kQwen35,
    kQwen35Moe, kQwen3Moe, kQwen3Next, kSeedOss, kSmolLm3;
extern const HeadKind kAssistantHead, kDflashHead, kEagleHead, kMtpHead;

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

constexpr std::array kHeads = {&arch::kAssistantHead, &arch::kDflashHead, &arch::kEagleHead,
                               &arch::kMtpHead};

// Null: no head is called so.
const HeadKind* FindHead(const std::string& architecture) {
  for (const HeadKind* const head : kHeads)
    if (!head->architecture.empty() && head->architecture == architecture) return head;
  return nullptr;
}

Result<ModelConfig> ReadConfig(const MetadataReader& read, const Architecture& row) {
  FORETOKEN_TRY(ModelConfig config,
                ReadCommonConfig(read, {row.latent, row.recurrent, row.single_parts}));
  FORETOKEN_CHECK_OK(row.complete(read, config));
  FORETOKEN_CHECK_OK(CheckExpertsAreUsed(read, config));
  return config;
}

}  // namespace

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

Status ReadOutputRows(const formats::Checkpoint& file, ModelConfig& config) {
  const auto* const output = file.Find("output.weight");
  if (output == nullptr) return {};
  if (output->shape[1] > 1 << 24)
    return Fail(ErrorCode::kInvalidFile, "tensor output.weight: too many rows");
  config.vocabulary = static_cast<int>(output->shape[1]);
  return {};
}

Result<std::vector<int>> ReadFeatureLayers(const MetadataReader& read, std::string_view key) {
  constexpr int kLastLayer = 1024;
  const auto* const list = read.Ints(key);
  if (list == nullptr && !read.Int(key)) return std::vector<int>();
  if (list == nullptr || list->empty() || list->size() > kMostFeatureLayers)
    return Fail(ErrorCode::kInvalidFile,
                fmt::format("{}: this is not a list of 1 to {} layers of the target; the head is "
                            "damaged",
                            read.Key(key), kMostFeatureLayers));
  std::vector<int> layers;
  for (const std::int64_t layer : *list) {
    if (layer < 0 || layer > kLastLayer)
      return Fail(ErrorCode::kInvalidFile, fmt::format("{}: {} is out of range (0 to {})",
                                                       read.Key(key), layer, kLastLayer));
    layers.push_back(static_cast<int>(layer));
  }
  return layers;
}

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
  if (const HeadKind* const head = FindHead(*name))
    return Fail(ErrorCode::kUnsupported,
                fmt::format("architecture '{}': this is {}, no whole model; give it as the draft "
                            "(EngineOptions::draft_model) of the model it was trained for",
                            *name, head->noun));
  return Fail(ErrorCode::kUnsupported,
              fmt::format("architecture '{}': not supported; this build runs {}", Shown(*name),
                          fmt::join(NamesOf(AllArchitectures()), ", ")));
}

DraftFile DraftFileOf(const formats::Checkpoint& checkpoint) {
  const std::string* name = checkpoint.metadata().String("general.architecture");
  if (name == nullptr) return {.model = true};
  if (const HeadKind* const head = FindHead(*name)) return {.head = head};
  if (checkpoint.metadata().Int(*name + ".nextn_predict_layers").value_or(0) <= 0)
    return {.model = true};
  const bool has_layers = checkpoint.Find("blk.0.attn_q.weight") != nullptr ||
                          checkpoint.Find("blk.0.attn_q_a.weight") != nullptr ||
                          checkpoint.Find("blk.0.attn_qkv.weight") != nullptr;
  return {.model = has_layers, .head = &arch::kMtpHead};
}

std::string DraftFile::Noun() const {
  if (head == nullptr) return "a whole model";
  return model ? fmt::format("a model with {}", head->noun) : std::string(head->noun);
}

Result<ModelConfig> HeadConfigFromFile(const formats::Checkpoint& checkpoint) {
  const DraftFile file = DraftFileOf(checkpoint);
  if (file.head == nullptr) return MtpConfigFromMetadata(checkpoint.metadata());
  const MetadataReader read(checkpoint.metadata(), std::string(file.head->architecture));
  auto config = file.head->read(read, checkpoint);
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
