// SPDX-License-Identifier: Apache-2.0
#include "formats/huggingface/tensor_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "tensor/dtype.h"

namespace foretoken::formats::huggingface {

namespace {

using tensor::DType;

struct Name {
  std::string_view from, to;
};

constexpr Name kOutside[] = {{"embed_tokens.weight", "token_embd.weight"},
                             {"norm.weight", "output_norm.weight"},
                             {"lm_head.weight", "output.weight"}};

// Behind "layers.N.".
constexpr Name kAttention[] = {{"self_attn.q_proj.weight", "attn_q.weight"},
                               {"self_attn.k_proj.weight", "attn_k.weight"},
                               {"self_attn.v_proj.weight", "attn_v.weight"},
                               {"self_attn.q_proj.bias", "attn_q.bias"},
                               {"self_attn.k_proj.bias", "attn_k.bias"},
                               {"self_attn.v_proj.bias", "attn_v.bias"},
                               {"self_attn.o_proj.weight", "attn_output.weight"},
                               {"self_attn.q_norm.weight", "attn_q_norm.weight"},
                               {"self_attn.k_norm.weight", "attn_k_norm.weight"},
                               {"input_layernorm.weight", "attn_norm.weight"},
                               {"mlp.gate_proj.weight", "ffn_gate.weight"},
                               {"mlp.up_proj.weight", "ffn_up.weight"},
                               {"mlp.down_proj.weight", "ffn_down.weight"},
                               {"mlp.gate.weight", "ffn_gate_inp.weight"}};
constexpr Name kNorms[] = {{"post_attention_layernorm.weight", "ffn_norm.weight"}};
constexpr Name kSandwich[] = {{"post_attention_layernorm.weight", "post_attention_norm.weight"},
                              {"pre_feedforward_layernorm.weight", "ffn_norm.weight"},
                              {"post_feedforward_layernorm.weight", "post_ffw_norm.weight"}};
// Behind "layers.N.mlp.experts.E.".
constexpr Name kExperts[] = {{"gate_proj.weight", "ffn_gate_exps.weight"},
                             {"up_proj.weight", "ffn_up_exps.weight"},
                             {"down_proj.weight", "ffn_down_exps.weight"}};

// Parts of a model that text does not need.
constexpr std::string_view kOtherParts[] = {"vision_tower.", "multi_modal_projector.", "visual.",
                                            "vision_model.", "audio_tower."};

std::optional<std::string_view> Renamed(std::span<const Name> names, std::string_view from) {
  const auto at =
      std::find_if(names.begin(), names.end(), [&](const Name& row) { return row.from == from; });
  return at == names.end() ? std::nullopt : std::optional(at->to);
}

bool Skip(std::string_view prefix, std::string_view& text) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// Reads "12." from the beginning of the text.
std::optional<std::int64_t> SkipNumber(std::string_view& text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return Skip(".", text) ? std::optional(number) : std::nullopt;
}

}  // namespace

tl::unexpected<Error> TensorMap::Bad(const SafeTensor& tensor, std::string_view why) const {
  return Fail(ErrorCode::kInvalidFile,
              fmt::format("{}: tensor {}: {}; the files do not belong together, fetch the folder "
                          "again",
                          folder_, Shown(tensor.name), why));
}

Status TensorMap::Add(const SafeTensor& tensor) {
  std::string_view name = tensor.name;
  while (Skip("model.", name) || Skip("language_model.", name)) {
  }
  for (const std::string_view part : kOtherParts)
    if (name.starts_with(part)) return {};
  if (name.ends_with("rotary_emb.inv_freq")) return {};  // follows from the configuration
  if (const auto to = Renamed(kOutside, name)) {
    if (*to == "output.weight" && configuration_.tied) return {};  // the embedding's copy
    return tensor.shape.size() == 1 ? AddVector(tensor, std::string(*to))
                                    : AddMatrix(tensor, std::string(*to));
  }
  const auto unknown = [&] {
    return Fail(ErrorCode::kUnsupported,
                fmt::format("{}: tensor {}: networks of the kind {} are not known to have it; "
                            "convert the folder to GGUF with llama.cpp's convert_hf_to_gguf.py",
                            folder_, Shown(tensor.name), configuration_.family->model_type));
  };
  if (!Skip("layers.", name)) return unknown();
  const auto block = SkipNumber(name);
  if (!block || *block >= configuration_.blocks) return unknown();
  const auto in_block = [&](std::string_view to) { return fmt::format("blk.{}.{}", *block, to); };
  if (Skip("mlp.experts.", name)) {
    const auto expert = SkipNumber(name);
    const auto to = Renamed(kExperts, name);
    if (!expert || !to || *expert >= configuration_.experts) return unknown();
    return AddExpert(tensor, in_block(*to), *expert);
  }
  auto to = Renamed(kAttention, name);
  if (!to && configuration_.family->sandwich) to = Renamed(kSandwich, name);
  if (!to && !configuration_.family->sandwich) to = Renamed(kNorms, name);
  if (!to) return unknown();
  return tensor.shape.size() == 1 ? AddVector(tensor, in_block(*to))
                                  : AddMatrix(tensor, in_block(*to));
}

Result<std::uint32_t> TensorMap::TypeOf(const SafeTensor& tensor) const {
  if (tensor.dtype == "F32") return static_cast<std::uint32_t>(DType::kF32);
  if (tensor.dtype == "F16") return static_cast<std::uint32_t>(DType::kF16);
  if (tensor.dtype == "BF16") return static_cast<std::uint32_t>(DType::kBF16);
  return Fail(ErrorCode::kUnsupported,
              fmt::format("{}: tensor {}: numbers of type {} are not supported; fetch the model in "
                          "BF16, F16 or F32",
                          folder_, Shown(tensor.name), tensor.dtype));
}

Status TensorMap::AddVector(const SafeTensor& tensor, std::string name) {
  FORETOKEN_TRY(const std::uint32_t type, TypeOf(tensor));
  const std::int64_t n = tensor.shape[0];
  if (n < 1) return Bad(tensor, "it is empty");
  std::vector<float> values(static_cast<std::size_t>(n));
  tensor::Dequantize(static_cast<DType>(type), tensor.data.data(), n, values.data());
  if (configuration_.family->norm_offset != 0 && name.find("norm") != std::string::npos)
    for (float& value : values) value += configuration_.family->norm_offset;
  const bool rotated = name.ends_with("attn_q.bias") || name.ends_with("attn_k.bias");
  if (rotated && configuration_.family->alternates) {
    const std::int64_t head = configuration_.head_dim;
    if (n % head != 0) return Bad(tensor, fmt::format("{} values for heads of {}", n, head));
    const std::vector<float> halves = values;
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t in_head = i % head;
      values[static_cast<std::size_t>(i)] =
          halves[static_cast<std::size_t>(i - in_head + in_head / 2 + in_head % 2 * (head / 2))];
    }
  }
  AddOwn(std::move(name), std::move(values));
  return {};
}

void TensorMap::AddOwn(std::string name, std::vector<float> values) {
  views_.vectors.push_back(std::move(values));
  const std::vector<float>& own = views_.vectors.back();
  TensorView view{.name = std::move(name),
                  .ggml_type = static_cast<std::uint32_t>(DType::kF32),
                  .n_dims = 1,
                  .shape = {static_cast<std::int64_t>(own.size()), 1, 1, 1},
                  .data = std::as_bytes(std::span(own))};
  views_.tensors.push_back(std::move(view));
}

Status TensorMap::AddMatrix(const SafeTensor& tensor, std::string name) {
  if (tensor.shape.size() != 2 || tensor.n_values() < 1)
    return Bad(tensor, fmt::format("{} dimensions where a matrix is needed", tensor.shape.size()));
  TensorView view{.name = std::move(name), .n_dims = 2, .shape = {}, .data = tensor.data};
  FORETOKEN_TRY(view.ggml_type, TypeOf(tensor));
  view.shape = {tensor.shape[1], tensor.shape[0], 1, 1};
  const bool rotated = view.name.ends_with("attn_q.weight") || view.name.ends_with("attn_k.weight");
  if (rotated && configuration_.family->alternates) {
    view.head_rows = configuration_.head_dim;
    if (view.n_rows() % view.head_rows != 0 || view.head_rows % 2 != 0)
      return Bad(tensor, fmt::format("{} rows for heads of {}", view.n_rows(), view.head_rows));
    view.pieces = {view.data};
    view.data = {};
  }
  views_.tensors.push_back(std::move(view));
  return {};
}

// The experts' matrices of a layer become one tensor of three dimensions.
Status TensorMap::AddExpert(const SafeTensor& tensor, const std::string& name,
                            std::int64_t expert) {
  FORETOKEN_TRY(const std::uint32_t type, TypeOf(tensor));
  if (tensor.shape.size() != 2 || tensor.n_values() < 1)
    return Bad(tensor, fmt::format("{} dimensions where a matrix is needed", tensor.shape.size()));
  const auto [at, is_new] = experts_.try_emplace(name, Expert{.index = views_.tensors.size()});
  if (is_new) {
    TensorView view{.name = name, .ggml_type = type, .n_dims = 3, .shape = {}, .data = {}};
    view.shape = {tensor.shape[1], tensor.shape[0], configuration_.experts, 1};
    view.pieces.resize(static_cast<std::size_t>(configuration_.experts));
    views_.tensors.push_back(std::move(view));
  }
  TensorView& view = views_.tensors[at->second.index];
  if (view.ggml_type != type || view.shape[0] != tensor.shape[1] ||
      view.shape[1] != tensor.shape[0])
    return Bad(tensor, "its shape or type is not that of the other experts");
  auto& piece = view.pieces[static_cast<std::size_t>(expert)];
  if (!piece.empty()) return Bad(tensor, "it is there twice");
  piece = tensor.data;
  ++at->second.count;
  return {};
}

Result<TensorMap::Views> TensorMap::Take() {
  for (const auto& [name, expert] : experts_)
    if (expert.count != configuration_.experts)
      return Fail(ErrorCode::kInvalidFile,
                  fmt::format("{}: tensor {}: {} of {} experts are there; fetch the folder again",
                              folder_, name, expert.count, configuration_.experts));
  if (!configuration_.rope_factors.empty())
    AddOwn("rope_freqs.weight", configuration_.rope_factors);
  return std::move(views_);
}

}  // namespace foretoken::formats::huggingface
