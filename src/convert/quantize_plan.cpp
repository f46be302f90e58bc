// SPDX-License-Identifier: Apache-2.0
#include "convert/quantize_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <string>

namespace foretoken::convert {
namespace {

using formats::TensorView;
using tensor::DType;

constexpr std::array<QuantizeRecipe, 20> kRecipes = {{
    {"F32", DType::kF32, Mix::kNone, 0, ""},
    {"F16", DType::kF16, Mix::kNone, 1, ""},
    {"BF16", DType::kBF16, Mix::kNone, 32, ""},
    {"Q8_0", DType::kQ8_0, Mix::kNone, 7, ""},
    {"Q6_K", DType::kQ6_K, Mix::kNone, 18, ""},
    {"Q5_K_M", DType::kQ5_K, Mix::kMedium, 17, "Q5_K"},
    {"Q5_K_S", DType::kQ5_K, Mix::kSmall, 16, ""},
    {"Q5_1", DType::kQ5_1, Mix::kNone, 9, ""},
    {"Q5_0", DType::kQ5_0, Mix::kNone, 8, ""},
    {"Q4_K_M", DType::kQ4_K, Mix::kMedium, 15, "Q4_K"},
    {"Q4_K_S", DType::kQ4_K, Mix::kSmall, 14, ""},
    {"Q4_1", DType::kQ4_1, Mix::kNone, 3, ""},
    {"Q4_0", DType::kQ4_0, Mix::kNone, 2, ""},
    {"IQ4_NL", DType::kIQ4_NL, Mix::kSmall, 25, ""},
    {"IQ4_XS", DType::kIQ4_XS, Mix::kSmall, 30, ""},
    {"MXFP4_MOE", DType::kMXFP4, Mix::kExperts, 38, ""},
    {"Q3_K_L", DType::kQ3_K, Mix::kLarge, 13, ""},
    {"Q3_K_M", DType::kQ3_K, Mix::kMedium, 12, "Q3_K"},
    {"Q3_K_S", DType::kQ3_K, Mix::kNone, 11, ""},
    {"Q2_K", DType::kQ2_K, Mix::kSmall, 10, ""},
}};

std::string InCapitals(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

std::string Join(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

Result<const QuantizeRecipe*> FindRecipe(const std::string& type) {
  const std::string name = InCapitals(type);
  for (const QuantizeRecipe& recipe : kRecipes)
    if (!name.empty() && (recipe.name == name || recipe.alias == name)) return &recipe;
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("type {}: no type that foretoken writes; use one of {}",
                          type.empty() ? "''" : Shown(type), Join(QuantizeTypes())));
}

// The type that the user asks for by name; nullopt for "".
Result<std::optional<DType>> FindType(const std::string& type, const char* of_what) {
  if (type.empty()) return std::optional<DType>();
  const std::string name = InCapitals(type);
  std::vector<std::string> known;
  for (const tensor::DTypeInfo& info : tensor::AllDTypes()) {
    if (info.widened) continue;  // read, not written
    if (info.name == name) return std::optional(info.type);
    known.emplace_back(info.name);
  }
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("type {} of the {}: not known; use one of {}", Shown(type), of_what,
                          Join(known)));
}

bool IsFloat(DType type) {
  return tensor::InfoOf(type).block_values == 1;
}

bool Fits(DType type, const TensorView& t) {
  return t.shape[0] % tensor::InfoOf(type).block_values == 0;
}

bool Contains(const TensorView& t, std::string_view part) {
  return t.name.find(part) != std::string::npos;
}

// A matrix that products or rows are taken from. Routers of experts, tables of positions and what
// makes the inputs of layers decide much with few numbers, and stay.
bool IsConverted(const TensorView& t) {
  const bool matrix = t.n_values() > t.shape[0];
  return matrix && t.name.ends_with("weight") && !Contains(t, "_norm.weight") &&
         !Contains(t, "ffn_gate_inp.weight") && t.name != "per_layer_model_proj.weight" &&
         t.name != "position_embd.weight" && t.name != "token_types.weight";
}

// N of "blk.N.attn_v.weight"; -1 for tensors outside of blocks.
int BlockOf(const TensorView& t) {
  constexpr std::string_view kPrefix = "blk.";
  if (!t.name.starts_with(kPrefix)) return -1;
  int block = -1;
  std::from_chars(t.name.data() + kPrefix.size(), t.name.data() + t.name.size(), block);
  return block;
}

constexpr std::int64_t kMostLayers = 1 << 16;

// The first and the last eighth of the layers, and every third of the others.
bool UsesMoreBits(int layer, int n_layers) {
  return layer < n_layers / 8 || layer >= 7 * n_layers / 8 || (layer - n_layers / 8) % 3 == 2;
}

// The simple type of about the same size, for rows that are no multiple of 256.
DType SimpleTypeFor(DType type) {
  switch (type) {
    case DType::kQ2_K:
    case DType::kQ3_K:
      return DType::kQ4_0;
    case DType::kIQ4_XS:
      return DType::kIQ4_NL;
    case DType::kQ4_K:
      return DType::kQ5_0;
    case DType::kQ5_K:
      return DType::kQ5_1;
    case DType::kQ6_K:
      return DType::kQ8_0;
    default:
      return DType::kF16;
  }
}

// The rules for one file.
class Chooser {
 public:
  static Result<Chooser> Create(const formats::Checkpoint& checkpoint,
                                const QuantizeOptions& options) {
    Chooser chooser;
    FORETOKEN_TRY(chooser.recipe_, FindRecipe(options.type));
    FORETOKEN_TRY(chooser.head_type_, FindType(options.output_tensor_type, "output head"));
    FORETOKEN_TRY(chooser.embedding_type_,
                  FindType(options.token_embedding_type, "token embedding"));
    chooser.by_rules_ = !options.pure && !IsFloat(chooser.recipe_->type);
    chooser.has_head_ = checkpoint.Find("output.weight") != nullptr;
    const std::string* arch = checkpoint.metadata().String("general.architecture");
    const std::string prefix = arch != nullptr ? *arch : "";
    const std::int64_t n_layers = checkpoint.metadata().Int(prefix + ".block_count").value_or(0);
    if (n_layers < 0 || n_layers > kMostLayers)
      return Fail(ErrorCode::kInvalidFile,
                  fmt::format("{}: key {}.block_count: {} is not in [0, {}]; the file is damaged, "
                              "fetch it again",
                              checkpoint.path(), Shown(prefix), n_layers, kMostLayers));
    chooser.n_layers_ = static_cast<int>(n_layers);
    const std::int64_t heads =
        checkpoint.metadata().Int(prefix + ".attention.head_count").value_or(1);
    const std::int64_t kv_heads =
        checkpoint.metadata().Int(prefix + ".attention.head_count_kv").value_or(heads);
    chooser.four_heads_share_ = kv_heads > 0 && heads / kv_heads >= 4;
    chooser.shares_values_widely_ =
        chooser.n_layers_ == 80 && (prefix == "llama" || prefix == "qwen2");
    for (const TensorView& t : checkpoint.tensors())
      if (Contains(t, "attn_v.weight")) chooser.value_blocks_.push_back(BlockOf(t));
    return chooser;
  }

  const QuantizeRecipe& recipe() const { return *recipe_; }

  // Before the rows are looked at.
  DType TypeOf(const TensorView& t) const {
    const bool embedding = t.name == "token_embd.weight" || t.name == "per_layer_token_embd.weight";
    const bool head = t.name == "output.weight" || (embedding && !has_head_);
    if (embedding && embedding_type_) return *embedding_type_;
    if (head && head_type_) return *head_type_;
    if (!by_rules_) return recipe_->type;
    if (recipe_->mix == Mix::kExperts) return t.shape[2] > 1 ? recipe_->type : DType::kQ8_0;
    if (head) return HeadType(t);
    if (Contains(t, "attn_v.weight")) return ValueType(BlockOf(t));
    if (Contains(t, "ffn_down")) return DownType(BlockOf(t));
    if (Contains(t, "attn_output.weight")) return AttentionOutputType();
    if (Contains(t, "attn_qkv.weight")) return FusedType();
    return recipe_->type;
  }

 private:
  bool Is(DType type, Mix mix) const { return recipe_->type == type && recipe_->mix == mix; }
  bool IsIq4() const { return recipe_->type == DType::kIQ4_NL || recipe_->type == DType::kIQ4_XS; }

  DType AttentionOutputType() const {
    if (recipe_->type == DType::kQ2_K) return DType::kQ3_K;
    if (Is(DType::kQ3_K, Mix::kMedium)) return DType::kQ4_K;
    return Is(DType::kQ3_K, Mix::kLarge) ? DType::kQ5_K : recipe_->type;
  }

  DType FusedType() const {
    if (recipe_->type == DType::kQ3_K && recipe_->mix != Mix::kNone) return DType::kQ4_K;
    if (recipe_->mix != Mix::kMedium) return recipe_->type;
    return recipe_->type == DType::kQ4_K ? DType::kQ5_K : DType::kQ6_K;
  }

  // An error in the head is an error in every logit.
  DType HeadType(const TensorView& t) const {
    if (recipe_->type == DType::kQ8_0 || !Fits(recipe_->type, t)) return DType::kQ8_0;
    return DType::kQ6_K;
  }

  DType ValueType(int block) const {
    const auto before = [block](int other) { return other < block; };
    const auto layer =
        static_cast<int>(std::count_if(value_blocks_.begin(), value_blocks_.end(), before));
    const auto n_layers = static_cast<int>(value_blocks_.size());
    const DType type = ValueTypeOfLayer(layer, n_layers);
    // Eight heads share these values: the tensor is small.
    const bool few_bits = type == DType::kQ4_K || type == DType::kQ3_K;
    return shares_values_widely_ && few_bits ? DType::kQ5_K : type;
  }

  DType ValueTypeOfLayer(int layer, int n_layers) const {
    const DType type = recipe_->type;
    if (type == DType::kQ2_K) return four_heads_share_ ? DType::kQ4_K : DType::kQ3_K;
    if (IsIq4()) return four_heads_share_ ? DType::kQ5_K : type;
    if (Is(DType::kQ3_K, Mix::kLarge)) return DType::kQ5_K;
    if (Is(DType::kQ3_K, Mix::kMedium)) return layer < 2 ? DType::kQ5_K : DType::kQ4_K;
    if (Is(DType::kQ4_K, Mix::kSmall) && layer < 4) return DType::kQ5_K;
    return recipe_->mix == Mix::kMedium && UsesMoreBits(layer, n_layers) ? DType::kQ6_K : type;
  }

  DType DownType(int block) const {
    const DType type = recipe_->type;
    const bool early = block < n_layers_ / 8;
    if (type == DType::kQ2_K) return DType::kQ3_K;
    if (IsIq4() || Is(DType::kQ4_K, Mix::kSmall)) return early ? DType::kQ5_K : type;
    if (Is(DType::kQ3_K, Mix::kLarge)) return DType::kQ5_K;
    if (Is(DType::kQ3_K, Mix::kMedium)) return block < n_layers_ / 16 ? DType::kQ5_K : DType::kQ4_K;
    return recipe_->mix == Mix::kMedium && UsesMoreBits(block, n_layers_) ? DType::kQ6_K : type;
  }

  const QuantizeRecipe* recipe_ = nullptr;
  std::optional<DType> head_type_, embedding_type_;
  bool by_rules_ = true, has_head_ = false, shares_values_widely_ = false;
  bool four_heads_share_ = false;  // whether at least four heads share keys and values
  int n_layers_ = 0;
  std::vector<int> value_blocks_;  // of the attn_v tensors
};

// What may not be read from, and why.
Status CheckSource(const TensorView& t, DType to, const QuantizeOptions& options) {
  const tensor::DTypeInfo* from = tensor::FindDType(t.ggml_type);
  const std::string_view name = tensor::GgmlTypeName(t.ggml_type);
  if (from == nullptr)
    return Fail(ErrorCode::kUnsupported,
                fmt::format("tensor {}: type {} cannot be read by foretoken; start from an F16, "
                            "BF16 or F32 file of the model",
                            Shown(t.name), name));
  if (IsFloat(from->type) || IsFloat(to) || options.allow_requantize) return {};
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("tensor {}: is quantised already ({}) and loses more when quantised "
                          "again; start from an F16 file, or set QuantizeOptions::allow_requantize",
                          Shown(t.name), name));
}

Result<PlannedTensor> PlanTensor(const TensorView& t, const Chooser& chooser,
                                 const QuantizeOptions& options) {
  if (!IsConverted(t)) return PlannedTensor{&t, t.ggml_type, false, false};
  DType type = chooser.TypeOf(t);
  const bool fallback = !Fits(type, t);
  if (fallback) type = SimpleTypeFor(type);
  if (!Fits(type, t)) type = DType::kF16;
  const auto ggml_type = static_cast<std::uint32_t>(type);
  if (ggml_type == t.ggml_type) return PlannedTensor{&t, ggml_type, false, fallback};
  FORETOKEN_CHECK_OK(CheckSource(t, type, options));
  return PlannedTensor{&t, ggml_type, true, fallback};
}

}  // namespace

std::span<const QuantizeRecipe> QuantizeRecipes() {
  return kRecipes;
}

Result<QuantizePlan> PlanQuantization(const formats::Checkpoint& checkpoint,
                                      const QuantizeOptions& options) {
  FORETOKEN_TRY(const Chooser chooser, Chooser::Create(checkpoint, options));
  QuantizePlan plan{&chooser.recipe(), {}};
  for (const TensorView& t : checkpoint.tensors()) {
    auto planned = PlanTensor(t, chooser, options);
    if (!planned) return Fail(std::move(planned).error().In(checkpoint.path()));
    plan.tensors.push_back(*planned);
  }
  return plan;
}

}  // namespace foretoken::convert

namespace foretoken {

std::vector<std::string> QuantizeTypes() {
  std::vector<std::string> names;
  for (const convert::QuantizeRecipe& recipe : convert::QuantizeRecipes()) {
    names.emplace_back(recipe.name);
    if (!recipe.alias.empty()) names.emplace_back(recipe.alias);
  }
  return names;
}

}  // namespace foretoken
