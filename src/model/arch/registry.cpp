// SPDX-License-Identifier: Apache-2.0
#include "model/arch/registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

namespace foretoken::model {
namespace {

struct Row {
  std::string_view name;
  arch::Adjust adjust;
};
constexpr std::array kRows = {
    // sorted
    Row{"llama", arch::Llama},
    Row{"qwen2", arch::Qwen2},
    Row{"qwen3", arch::Qwen3},
};

// Reads "<architecture>.<key>" values with their ranges.
class Reader {
 public:
  Reader(const formats::Metadata& metadata, std::string architecture)
      : metadata_(metadata), architecture_(std::move(architecture)) {}

  std::string Key(std::string_view key) const { return fmt::format("{}.{}", architecture_, key); }
  auto Int(std::string_view key) const { return metadata_.Int(Key(key)); }
  auto Float(std::string_view key) const { return metadata_.Float(Key(key)); }
  auto String(std::string_view key) const { return metadata_.String(Key(key)); }

  Result<int> Size(std::string_view key, std::int64_t most, std::int64_t fallback = -1) const {
    const auto* per_layer = metadata_.Ints(Key(key));
    if (per_layer != nullptr) {
      if (per_layer->empty())
        return Fail(ErrorCode::kInvalidFile, fmt::format("{}: an empty list", Key(key)));
      for (const auto v : *per_layer)
        if (v != per_layer->front())
          return Fail(
              ErrorCode::kUnsupported,
              fmt::format("{}: differs between layers, which is not supported yet", Key(key)));
    }
    const auto value = per_layer != nullptr ? std::optional(per_layer->front()) : Int(key);
    if (!value && fallback < 0)
      return Fail(ErrorCode::kInvalidFile,
                  fmt::format("{}: missing; this is not a complete model file", Key(key)));
    const std::int64_t v = value.value_or(fallback);
    if (v < 1 || v > most)
      return Fail(ErrorCode::kInvalidFile,
                  fmt::format("{}: {} is out of range (1 to {})", Key(key), v, most));
    return static_cast<int>(v);
  }

  Result<double> Positive(std::string_view key, double fallback) const {
    const double v = Float(key).value_or(fallback);
    if (!(v > 0 && v < 1e12))
      return Fail(ErrorCode::kInvalidFile, fmt::format("{}: {} is out of range", Key(key), v));
    return v;
  }

 private:
  const formats::Metadata& metadata_;
  std::string architecture_;
};

Status ReadRope(const Reader& read, const ModelConfig& config, RopeConfig& rope) {
  FORETOKEN_TRY(rope.n_rot, read.Size("rope.dimension_count", config.head_dim, config.head_dim));
  if (rope.n_rot % 2 != 0)
    return Fail(ErrorCode::kInvalidFile,
                fmt::format("{}: {} is odd", read.Key("rope.dimension_count"), rope.n_rot));
  FORETOKEN_TRY(rope.freq_base, read.Positive("rope.freq_base", 10000));
  FORETOKEN_TRY(const double old_linear, read.Positive("rope.scale_linear", 1));
  FORETOKEN_TRY(const double factor, read.Positive("rope.scaling.factor", old_linear));
  const std::string* kind = read.String("rope.scaling.type");
  const std::string type = kind != nullptr ? *kind : (factor != 1 ? "linear" : "none");
  if (type != "none" && type != "linear" && type != "yarn" && type != "longrope")
    return Fail(ErrorCode::kUnsupported,
                fmt::format("{}: '{}' is not supported; known are none, linear, yarn",
                            Shown(read.Key("rope.scaling.type")), Shown(type)));
  if (type == "longrope")
    return Fail(ErrorCode::kUnsupported,
                fmt::format("{}: 'longrope' is not supported yet", read.Key("rope.scaling.type")));
  if (type != "none") rope.freq_scale = 1 / factor;
  rope.yarn = type == "yarn";
  FORETOKEN_TRY(rope.original_context,
                read.Size("rope.scaling.original_context_length", 1 << 30, config.context_length));
  FORETOKEN_TRY(rope.attention_factor, read.Positive("rope.scaling.attn_factor", 1));
  FORETOKEN_TRY(rope.yarn_beta_fast, read.Positive("rope.scaling.yarn_beta_fast", 32));
  FORETOKEN_TRY(rope.yarn_beta_slow, read.Positive("rope.scaling.yarn_beta_slow", 1));
  FORETOKEN_TRY(rope.yarn_ext_factor, read.Positive("rope.scaling.yarn_ext_factor", 1));
  return {};
}

Result<ModelConfig> ReadCommon(const Reader& read, std::string architecture) {
  ModelConfig c;
  c.architecture = std::move(architecture);
  FORETOKEN_TRY(const int blocks, read.Size("block_count", 1024));
  const std::int64_t next = read.Int("nextn_predict_layers").value_or(0);
  if (next < 0 || next >= blocks)
    return Fail(ErrorCode::kInvalidFile,
                fmt::format("{}: {} is out of range (0 to {})", read.Key("nextn_predict_layers"),
                            next, blocks - 1));
  c.n_next_layers = static_cast<int>(next), c.n_layers = blocks - c.n_next_layers;
  FORETOKEN_TRY(c.dim, read.Size("embedding_length", 1 << 17));
  FORETOKEN_TRY(c.ff, read.Size("feed_forward_length", 1 << 19));
  FORETOKEN_TRY(c.n_heads, read.Size("attention.head_count", 1 << 12));
  FORETOKEN_TRY(c.n_kv_heads, read.Size("attention.head_count_kv", 1 << 12, c.n_heads));
  FORETOKEN_TRY(c.context_length, read.Size("context_length", 1 << 27));
  if (c.n_heads % c.n_kv_heads != 0)
    return Fail(ErrorCode::kInvalidFile,
                fmt::format("{}: {} heads cannot share {} key-value heads",
                            read.Key("attention.head_count"), c.n_heads, c.n_kv_heads));
  if (!read.Int("attention.key_length") && c.dim % c.n_heads != 0)
    return Fail(ErrorCode::kInvalidFile,
                fmt::format("{}: {} is not a multiple of {} heads", read.Key("embedding_length"),
                            c.dim, c.n_heads));
  FORETOKEN_TRY(c.head_dim, read.Size("attention.key_length", 1024, c.dim / c.n_heads));
  FORETOKEN_TRY(const int value_length, read.Size("attention.value_length", 1024, c.head_dim));
  if (value_length != c.head_dim)
    return Fail(ErrorCode::kUnsupported,
                fmt::format("{}: {} differs from the key length {}, which is not supported",
                            read.Key("attention.value_length"), value_length, c.head_dim));
  if (c.head_dim % 8 != 0)
    return Fail(
        ErrorCode::kUnsupported,
        fmt::format("head size {}: not a multiple of 8, which is not supported", c.head_dim));
  FORETOKEN_TRY(const double eps, read.Positive("attention.layer_norm_rms_epsilon", 1e-5));
  c.norm_eps = static_cast<float>(eps);
  FORETOKEN_CHECK_OK(ReadRope(read, c, c.rope));
  return c;
}

constexpr std::string_view kEagle = "eagle3";

Result<ModelConfig> EagleConfig(const formats::Checkpoint& checkpoint) {
  const Reader read(checkpoint.metadata(), std::string(kEagle));
  FORETOKEN_TRY(ModelConfig c, ReadCommon(read, std::string(kEagle)));
  if (c.n_layers != 1)
    return Fail(ErrorCode::kUnsupported, fmt::format("{}: {} blocks; an EAGLE-3 head has one",
                                                     read.Key("block_count"), c.n_layers));
  HeadConfig head{.kind = HeadKind::kEagle};
  FORETOKEN_TRY(head.target_dim, read.Size("target_hidden_size", 1 << 17));
  const auto* layers = checkpoint.metadata().Ints(read.Key("target_layers"));
  if (layers == nullptr || layers->size() != 3)
    return Fail(
        ErrorCode::kInvalidFile,
        fmt::format(
            "{}: three layers of the target are needed; this is not a complete EAGLE-3 head",
            read.Key("target_layers")));
  for (const std::int64_t layer : *layers) {
    if (layer < 0 || layer > 1024)
      return Fail(ErrorCode::kInvalidFile, fmt::format("{}: {} is out of range (0 to 1024)",
                                                       read.Key("target_layers"), layer));
    head.feature_layers.push_back(static_cast<int>(layer));
  }
  head.norm_before_residual =
      checkpoint.metadata().Bool(read.Key("norm_before_residual")).value_or(false);
  head.norm_before_fc = checkpoint.metadata().Bool(read.Key("norm_before_fc")).value_or(false);
  if (const auto* output = checkpoint.Find("output.weight")) {
    if (output->shape[1] > 1 << 24)
      return Fail(ErrorCode::kInvalidFile, "tensor output.weight: too many rows");
    c.vocabulary = static_cast<int>(output->shape[1]);
  }
  c.head = std::move(head);
  return c;
}

// The block behind the trunk's, of the trunk's shape.
Result<ModelConfig> MtpConfig(const formats::Checkpoint& checkpoint) {
  FORETOKEN_TRY(ModelConfig c, ConfigFromMetadata(checkpoint.metadata()));
  if (c.n_next_layers != 1)
    return Fail(
        ErrorCode::kUnsupported,
        fmt::format(
            "{}.nextn_predict_layers: {} next-n blocks; heads of one block are supported, which "
            "drafts any number of tokens",
            c.architecture, c.n_next_layers));
  c.head = HeadConfig{.kind = HeadKind::kMtp,
                      .block = c.n_layers,
                      .target_dim = c.dim,
                      .target_layers = c.n_layers};
  c.n_layers = 1, c.n_next_layers = 0;
  return c;
}

}  // namespace

DraftFile KindOfDraft(const formats::Checkpoint& checkpoint) {
  const std::string* name = checkpoint.metadata().String("general.architecture");
  if (name == nullptr) return DraftFile::kModel;
  if (*name == kEagle) return DraftFile::kEagleHead;
  if (checkpoint.metadata().Int(*name + ".nextn_predict_layers").value_or(0) <= 0)
    return DraftFile::kModel;
  return checkpoint.Find("blk.0.attn_q.weight") == nullptr ? DraftFile::kMtpHead
                                                           : DraftFile::kModelWithMtpHead;
}

Result<ModelConfig> HeadConfigFromFile(const formats::Checkpoint& checkpoint) {
  return KindOfDraft(checkpoint) == DraftFile::kEagleHead ? EagleConfig(checkpoint)
                                                          : MtpConfig(checkpoint);
}

std::vector<std::string_view> ArchitectureNames() {
  std::vector<std::string_view> names;
  for (const Row& row : kRows) names.push_back(row.name);
  return names;
}

Result<ModelConfig> ConfigFromMetadata(const formats::Metadata& metadata) {
  const std::string* name = metadata.String("general.architecture");
  if (name == nullptr)
    return Fail(ErrorCode::kInvalidFile, "general.architecture: missing; this is not a model file");
  for (const Row& row : kRows) {
    if (row.name != *name) continue;
    FORETOKEN_TRY(ModelConfig config, ReadCommon(Reader(metadata, *name), *name));
    FORETOKEN_CHECK_OK(row.adjust(metadata, config));
    return config;
  }
  if (*name == kEagle)
    return Fail(
        ErrorCode::kUnsupported,
        "architecture 'eagle3': this is an EAGLE-3 head, no whole model; give it as the draft "
        "(--model-draft) of the model it was trained for");
  return Fail(ErrorCode::kUnsupported,
              fmt::format("architecture '{}': not supported; this build runs {}", Shown(*name),
                          fmt::join(ArchitectureNames(), ", ")));
}

}  // namespace foretoken::model
