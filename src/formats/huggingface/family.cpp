// SPDX-License-Identifier: Apache-2.0
#include "formats/huggingface/family.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "formats/huggingface/rope_fields.h"

namespace foretoken::formats::huggingface {

namespace {

constexpr std::string_view kConvert =
    "convert the folder to GGUF with llama.cpp's convert_hf_to_gguf.py";

constexpr Family Llama(std::string_view model_type, std::int64_t window) {
  return {.model_type = model_type,
          .architecture = "llama",
          .alternates = true,
          .defaults = {.window = window}};
}
constexpr Family Qwen(std::string_view model_type, std::string_view architecture,
                      std::int64_t head_dim) {
  return {.model_type = model_type,
          .architecture = architecture,
          .defaults = {.head_dim = head_dim, .context = 32768}};
}
constexpr Family Gemma3(std::string_view model_type) {
  return {.model_type = model_type,
          .architecture = "gemma3",
          .sandwich = true,
          .norm_offset = 1,
          .activation = "gelu_pytorch_tanh",
          .defaults = {.heads = 8,
                       .kv_heads = 4,
                       .head_dim = 256,
                       .context = 131072,
                       .window = 4096,
                       .vocabulary = 262208,
                       .rope_base = 1000000,
                       .tied = true}};
}
constexpr Family Qwen3Moe() {
  Family family = Qwen("qwen3_moe", "qwen3moe", 0);
  family.has_experts = true;
  return family;
}

constexpr Family kFamilies[] = {
    Gemma3("gemma3"),          Gemma3("gemma3_text"),       Llama("llama", 0), Llama("mistral", 0),
    Qwen("qwen2", "qwen2", 0), Qwen("qwen3", "qwen3", 128), Qwen3Moe()};

class ConfigurationReader {
 public:
  ConfigurationReader(const JsonFields& fields, const Family& family, Metadata& metadata)
      : fields_(fields), family_(family), metadata_(metadata) {
    configuration_.family = &family;
  }

  Result<Configuration> Read() {
    metadata_.Set("general.architecture", std::string(family_.architecture));
    FORETOKEN_CHECK_OK(RefuseQuantised());
    FORETOKEN_CHECK_OK(CheckActivation());
    FORETOKEN_CHECK_OK(ReadSizes());
    FORETOKEN_CHECK_OK(ReadWindow());
    FORETOKEN_CHECK_OK(ReadRope(fields_, family_, configuration_.head_dim, metadata_,
                                configuration_.rope_factors));
    if (family_.has_experts) FORETOKEN_CHECK_OK(ReadExperts());
    if (family_.sandwich) FORETOKEN_CHECK_OK(CheckScores());
    return std::move(configuration_);
  }

 private:
  void Set(std::string_view key, MetadataValue value) {
    metadata_.Set(fmt::format("{}.{}", family_.architecture, key), std::move(value));
  }

  // fallback: 0: the field must be there.
  Result<std::int64_t> Size(std::string_view name, std::int64_t most,
                            std::int64_t fallback = 0) const {
    FORETOKEN_TRY(const auto value, fields_.Int(name));
    if (!value && fallback == 0) return fields_.Bad(name, "it is missing");
    const std::int64_t size = value.value_or(fallback);
    if (size < 1 || size > most)
      return fields_.Bad(name, fmt::format("{} is out of range (1 to {})", size, most));
    return size;
  }

  Status RefuseQuantised() const {
    FORETOKEN_TRY(const Json* quantised, fields_.Object("quantization_config"));
    if (quantised == nullptr) return {};
    return fields_.Unsupported("quantization_config", "quantised folders cannot be read",
                               "fetch the model in BF16, F16 or F32, or as a GGUF file");
  }

  Status CheckActivation() const {
    for (const char* name : {"hidden_act", "hidden_activation"}) {
      FORETOKEN_TRY(const auto activation, fields_.String(name));
      if (activation && *activation != family_.activation)
        return fields_.Unsupported(
            name, fmt::format("{} is not {}", Shown(*activation), family_.activation), kConvert);
    }
    return {};
  }

  Status ReadSizes() {
    const Defaults& defaults = family_.defaults;
    FORETOKEN_TRY(configuration_.blocks, Size("num_hidden_layers", 1024));
    FORETOKEN_TRY(const std::int64_t width, Size("hidden_size", 1 << 20));
    FORETOKEN_TRY(const std::int64_t ff, Size("intermediate_size", 1 << 20));
    FORETOKEN_TRY(const std::int64_t heads, Size("num_attention_heads", 1 << 12, defaults.heads));
    FORETOKEN_TRY(
        const std::int64_t kv_heads,
        Size("num_key_value_heads", 1 << 12, defaults.kv_heads != 0 ? defaults.kv_heads : heads));
    FORETOKEN_TRY(
        configuration_.head_dim,
        Size("head_dim", 1 << 12, defaults.head_dim != 0 ? defaults.head_dim : width / heads));
    FORETOKEN_TRY(const std::int64_t context,
                  Size("max_position_embeddings", 1 << 30, defaults.context));
    FORETOKEN_TRY(configuration_.vocabulary, Size("vocab_size", 1 << 24, defaults.vocabulary));
    FORETOKEN_TRY(const auto epsilon, fields_.Number("rms_norm_eps"));
    FORETOKEN_TRY(const auto tied, fields_.Bool("tie_word_embeddings"));
    configuration_.tied = tied.value_or(defaults.tied);
    Set("block_count", configuration_.blocks);
    Set("context_length", context);
    Set("embedding_length", width);
    Set("feed_forward_length", ff);
    Set("attention.head_count", heads);
    Set("attention.head_count_kv", kv_heads);
    Set("attention.key_length", configuration_.head_dim);
    Set("attention.value_length", configuration_.head_dim);
    Set("attention.layer_norm_rms_epsilon", epsilon.value_or(defaults.rms_epsilon));
    Set("vocab_size", configuration_.vocabulary);
    return {};
  }

  // Gemma's layers have windows as its architecture says. Elsewhere the layers see all positions,
  // which is the same up to the width of the window: the context ends there.
  Status ReadWindow() {
    FORETOKEN_TRY(const auto window, fields_.Int("sliding_window"));
    if (family_.sandwich) {
      Set("attention.sliding_window", window.value_or(family_.defaults.window));
      return ReadPeriod();
    }
    FORETOKEN_TRY(const auto used, fields_.Bool("use_sliding_window"));
    FORETOKEN_TRY(const auto first, fields_.Int("max_window_layers"));
    const bool none = !window || !used.value_or(family_.model_type == "mistral") ||
                      first.value_or(0) >= configuration_.blocks;
    if (none) return {};
    const std::string key = fmt::format("{}.context_length", family_.architecture);
    metadata_.Set(key, std::min(*window, metadata_.Int(key).value_or(*window)));
    return {};
  }

  // Every n-th layer sees all positions. GGUF files say so where n is not the architecture's 6.
  Status ReadPeriod() {
    FORETOKEN_TRY(const auto stated, fields_.Int("sliding_window_pattern"));
    std::int64_t period = stated.value_or(6);
    FORETOKEN_TRY(const Json* layers, fields_.List("layer_types"));
    if (layers != nullptr) {
      const auto is_full = [](const Json& type) { return type == "full_attention"; };
      const auto first = std::find_if(layers->begin(), layers->end(), is_full);
      period = first == layers->end() ? 0 : first - layers->begin() + 1;
      for (std::size_t i = 0; period != 0 && i < layers->size(); ++i)
        if (is_full((*layers)[i]) != ((static_cast<std::int64_t>(i) + 1) % period == 0))
          return fields_.Unsupported("layer_types", "the windows do not come at even distances",
                                     kConvert);
    }
    if (period != 6) Set("attention.sliding_window_pattern", period);
    return {};
  }

  Status ReadExperts() {
    FORETOKEN_TRY(configuration_.experts, Size("num_experts", 1 << 12));
    FORETOKEN_TRY(const std::int64_t used, Size("num_experts_per_tok", configuration_.experts));
    FORETOKEN_TRY(const std::int64_t width, Size("moe_intermediate_size", 1 << 20));
    FORETOKEN_TRY(const auto normalised, fields_.Bool("norm_topk_prob"));
    FORETOKEN_TRY(const auto step, fields_.Int("decoder_sparse_step"));
    FORETOKEN_TRY(const Json* dense, fields_.List("mlp_only_layers"));
    if (!normalised.value_or(false))
      return fields_.Unsupported("norm_topk_prob",
                                 "weights of experts that are not divided by "
                                 "their sum are not supported",
                                 "use another model");
    if (step.value_or(1) != 1 || (dense != nullptr && !dense->empty()))
      return fields_.Unsupported("decoder_sparse_step",
                                 "layers without experts are not supported "
                                 "beside layers with them",
                                 "use another model");
    Set("expert_count", configuration_.experts);
    Set("expert_used_count", used);
    Set("expert_feed_forward_length", width);
    return {};
  }

  // Scores are divided by the square root of the head size, in the largest network (62 layers) of
  // width / heads.
  Status CheckScores() const {
    FORETOKEN_TRY(const auto scale, fields_.Number("query_pre_attn_scalar"));
    const auto of = [&](std::string_view key) {
      return metadata_.Int(fmt::format("{}.{}", family_.architecture, key)).value_or(1);
    };
    const std::int64_t expected = configuration_.blocks == 62
                                      ? of("embedding_length") / of("attention.head_count")
                                      : configuration_.head_dim;
    if (scale.value_or(256) != static_cast<double>(expected))
      return fields_.Unsupported("query_pre_attn_scalar", fmt::format("it is not {}", expected),
                                 kConvert);
    for (const char* name : {"attn_logit_softcapping", "final_logit_softcapping"}) {
      FORETOKEN_TRY(const auto cap, fields_.Number(name));
      if (cap) return fields_.Unsupported(name, "a cap is not supported here", kConvert);
    }
    return {};
  }

  const JsonFields& fields_;
  const Family& family_;
  Metadata& metadata_;
  Configuration configuration_;
};

}  // namespace

std::string KnownModelTypes() {
  std::vector<std::string_view> names;
  for (const Family& family : kFamilies) names.push_back(family.model_type);
  return fmt::format("{}", fmt::join(names, ", "));
}

Result<Configuration> ReadConfiguration(const Json& config, const std::string& path,
                                        Metadata& metadata) {
  const JsonFields fields(config, path);
  FORETOKEN_TRY(const auto type, fields.String("model_type"));
  if (!type) return fields.Bad("model_type", "it is missing");
  for (const Family& family : kFamilies) {
    if (family.model_type != *type) continue;
    // A model of pictures and text has the text's part in a field of its own.
    FORETOKEN_TRY(const Json* text, fields.Object("text_config"));
    const JsonFields part(text == nullptr ? config : *text, path);
    return ConfigurationReader(part, family, metadata).Read();
  }
  return fields.Unsupported(
      "model_type",
      fmt::format("folders of {} cannot be read; known are {}", Shown(*type), KnownModelTypes()),
      kConvert);
}

}  // namespace foretoken::formats::huggingface
