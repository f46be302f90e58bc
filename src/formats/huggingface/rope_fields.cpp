// SPDX-License-Identifier: Apache-2.0
#include "formats/huggingface/rope_fields.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

namespace foretoken::formats::huggingface {

namespace {

class RopeReader {
 public:
  RopeReader(const JsonFields& fields, const Family& family, std::int64_t head_dim,
             Metadata& metadata, std::vector<float>& factors)
      : fields_(fields),
        family_(family),
        head_dim_(head_dim),
        metadata_(metadata),
        factors_(factors) {}

  Status Read() {
    Set("dimension_count", head_dim_);
    FORETOKEN_TRY(auto base, fields_.Number("rope_theta"));
    FORETOKEN_TRY(auto window_base, fields_.Number("rope_local_base_freq"));
    // Newer folders have all of it in one object, and in one for each kind of layer.
    FORETOKEN_TRY(const Json* scaling, fields_.Object("rope_parameters"));
    if (scaling == nullptr) {
      FORETOKEN_TRY(scaling, fields_.Object("rope_scaling"));
    }
    const Json none = Json::object();
    if (scaling == nullptr) scaling = &none;
    if (const auto window = scaling->find("sliding_attention"); window != scaling->end()) {
      FORETOKEN_TRY(window_base, Fields(*window).Number("rope_theta"));
      const auto full = scaling->find("full_attention");
      scaling = full == scaling->end() ? &none : &*full;
    }
    const JsonFields own = Fields(*scaling);
    FORETOKEN_TRY(const auto own_base, own.Number("rope_theta"));
    if (!base) base = own_base;
    base_ = base.value_or(family_.defaults.rope_base);
    if (!(base_ > 0)) return fields_.Bad("rope_theta", "it is not positive");
    Set("freq_base", base_);
    if (family_.sandwich) Set("freq_base_swa", window_base.value_or(10000));
    return ReadScaling(own);
  }

 private:
  void Set(std::string_view key, MetadataValue value) {
    metadata_.Set(fmt::format("{}.rope.{}", family_.architecture, key), std::move(value));
  }
  JsonFields Fields(const Json& object) const {
    return {object, fmt::format("{}: rope_scaling", fields_.place())};
  }

  Status ReadScaling(const JsonFields& own) {
    FORETOKEN_TRY(auto type, own.String("rope_type"));
    if (!type) {
      FORETOKEN_TRY(type, own.String("type"));
    }
    if (!type || *type == "default") return {};
    if (*type != "linear" && *type != "yarn" && *type != "llama3")
      return own.Unsupported("rope_type",
                             fmt::format("{} is not supported; known are default, linear, yarn, "
                                         "llama3",
                                         Shown(*type)),
                             "convert the folder to GGUF with llama.cpp's convert_hf_to_gguf.py");
    FORETOKEN_TRY(const double factor, Positive(own, "factor", 0));
    if (*type == "llama3") return ReadFactors(own, factor);
    Set("scaling.type", *type);
    Set("scaling.factor", factor);
    return *type == "yarn" ? ReadYarn(own, factor) : Status();
  }

  // fallback: 0: the field must be there.
  static Result<double> Positive(const JsonFields& own, std::string_view name, double fallback) {
    FORETOKEN_TRY(const auto value, own.Number(name));
    const double number = value.value_or(fallback);
    if (!value && fallback == 0) return own.Bad(name, "it is missing");
    if (!(number > 0 && number < 1e12)) return own.Bad(name, "it is not positive");
    return number;
  }

  Status ReadYarn(const JsonFields& own, double factor) {
    for (const char* name : {"mscale", "mscale_all_dim"})
      if (own.Find(name) != nullptr)
        return own.Unsupported(name, "it is not supported", "use a GGUF file of the model");
    FORETOKEN_TRY(const auto stated, own.Int("original_max_position_embeddings"));
    const std::string context = fmt::format("{}.context_length", family_.architecture);
    Set("scaling.original_context_length",
        stated ? *stated : metadata_.Int(context).value_or(family_.defaults.context));
    // Readers of GGUF multiply the stated factor by the usual one.
    const double usual = factor > 1 ? 0.1 * std::log(factor) + 1 : 1;
    FORETOKEN_TRY(const double attention, Positive(own, "attention_factor", usual));
    if (attention != usual) Set("scaling.attn_factor", attention / usual);
    FORETOKEN_TRY(const double fast, Positive(own, "beta_fast", 32));
    FORETOKEN_TRY(const double slow, Positive(own, "beta_slow", 1));
    if (fast != 32) Set("scaling.yarn_beta_fast", fast);
    if (slow != 1) Set("scaling.yarn_beta_slow", slow);
    return {};
  }

  // Frequencies of long waves are divided by the factor, those of short ones stay, and between the
  // two the change is smooth in the number of waves that fit into the original context.
  Status ReadFactors(const JsonFields& own, double factor) {
    FORETOKEN_TRY(const double low, Positive(own, "low_freq_factor", 1));
    FORETOKEN_TRY(const double high, Positive(own, "high_freq_factor", 4));
    FORETOKEN_TRY(const double context, Positive(own, "original_max_position_embeddings", 8192));
    if (!(low < high)) return own.Bad("high_freq_factor", "it is not above low_freq_factor");
    for (std::int64_t i = 0; i < head_dim_; i += 2) {
      const auto power = static_cast<double>(i) / static_cast<double>(head_dim_);
      const double waves = context / (2 * std::numbers::pi * std::pow(base_, power));
      const double share = (waves - low) / (high - low);
      const double divisor = waves > high  ? 1
                             : waves < low ? factor
                                           : 1 / ((1 - share) / factor + share);
      factors_.push_back(static_cast<float>(divisor));
    }
    return {};
  }

  const JsonFields& fields_;
  const Family& family_;
  const std::int64_t head_dim_;
  Metadata& metadata_;
  std::vector<float>& factors_;
  double base_ = 0;
};

}  // namespace

Status ReadRope(const JsonFields& fields, const Family& family, std::int64_t head_dim,
                Metadata& metadata, std::vector<float>& factors) {
  return RopeReader(fields, family, head_dim, metadata, factors).Read();
}

}  // namespace foretoken::formats::huggingface
