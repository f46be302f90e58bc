// SPDX-License-Identifier: Apache-2.0
#include "train/networks/gguf.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstring>

namespace foretoken::train {
namespace {

using torch::Tensor;

std::uint16_t HalfBits(float value) {
  const c10::Half half(value);
  return half.x;
}

// Blocks of 32 values: an F16 scale and 32 signed bytes.
void PutQ8(const float* row, std::int64_t n, std::byte* out) {
  for (std::int64_t b = 0; b < n / 32; ++b, row += 32) {
    float most = 0;
    for (int i = 0; i < 32; ++i) most = std::max(most, std::fabs(row[i]));
    const float scale = most / 127, inverse = scale > 0 ? 1 / scale : 0;
    const std::uint16_t bits = HalfBits(scale);
    std::memcpy(out, &bits, 2), out += 2;
    for (int i = 0; i < 32; ++i)
      *out++ = static_cast<std::byte>(static_cast<std::int8_t>(std::lround(row[i] * inverse)));
  }
}

constexpr std::uint32_t kF32 = 0, kF16 = 1, kQ8_0 = 8, kI64 = 27;  // ggml's type numbers

}  // namespace

Result<std::unique_ptr<text::Tokenizer>> OpenVocabulary(
    const std::string& path, std::unique_ptr<formats::Checkpoint>& file) {
  FORETOKEN_TRY(file, formats::OpenCheckpoint(path));
  auto tokenizer = text::Tokenizer::Load(file->metadata());
  if (!tokenizer) return Fail(std::move(tokenizer).error().In(path));
  return tokenizer;
}

Result<FileType> ParseFileType(const std::string& name) {
  if (name == "f32") return FileType::kF32;
  if (name == "f16") return FileType::kF16;
  if (name == "q8_0") return FileType::kQ8_0;
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("type: '{}' is not known; use f32, f16 or q8_0", Shown(name)));
}

std::int64_t TensorStore::file_type() const {
  return type_ == FileType::kF32 ? 0 : type_ == FileType::kF16 ? 1 : 7;
}

void TensorStore::Add(formats::GgufWriter& writer, const Parameter& parameter) {
  const Tensor values = parameter.value.detach().to(torch::kCPU).to(torch::kFloat).contiguous();
  const std::int64_t n = values.numel(), row = values.size(-1);
  std::vector<std::int64_t> shape(values.sizes().rbegin(), values.sizes().rend());
  const float* in = values.data_ptr<float>();
  const bool plain = parameter.kind == ParameterKind::kGain || type_ == FileType::kF32 ||
                     (type_ == FileType::kQ8_0 && row % 32 != 0);
  std::vector<std::byte> out;
  std::uint32_t type = kF32;
  if (plain) {
    out.resize(static_cast<std::size_t>(n) * 4);
    std::memcpy(out.data(), in, out.size());
  } else if (type_ == FileType::kF16) {
    type = kF16;
    out.resize(static_cast<std::size_t>(n) * 2);
    for (std::int64_t i = 0; i < n; ++i) {
      const std::uint16_t bits = HalfBits(in[i]);
      std::memcpy(out.data() + 2 * i, &bits, 2);
    }
  } else {
    type = kQ8_0;
    out.resize(static_cast<std::size_t>(n / 32 * 34));
    PutQ8(in, n, out.data());
  }
  bytes_.push_back(std::move(out));
  writer.AddTensor(parameter.name, type, shape, bytes_.back());
}

void TensorStore::AddInt64(formats::GgufWriter& writer, const std::string& name,
                           const std::vector<std::int64_t>& values) {
  std::vector<std::byte> out(values.size() * 8);
  std::memcpy(out.data(), values.data(), out.size());
  bytes_.push_back(std::move(out));
  writer.AddTensor(name, kI64, std::array{static_cast<std::int64_t>(values.size())}, bytes_.back());
}

void TensorStore::Copy(formats::GgufWriter& writer, const formats::TensorView& tensor) {
  writer.AddTensor(tensor.name, tensor.ggml_type,
                   std::span(tensor.shape).first(static_cast<std::size_t>(tensor.n_dims)),
                   [&tensor](const formats::ByteSink& sink) -> Status {
                     const std::int64_t step = tensor.n_together();
                     const std::size_t bytes = static_cast<std::size_t>(step) * tensor.row_bytes();
                     for (std::int64_t row = 0; row < tensor.n_rows(); row += step)
                       FORETOKEN_CHECK_OK(sink({tensor.Row(row), bytes}));
                     return {};
                   });
}

void CopyVocabulary(const formats::Metadata& from, formats::GgufWriter& to) {
  for (const auto& [key, value] : from.all())
    if (key.starts_with("tokenizer.") || key.starts_with("foretoken.tokenizer."))
      to.Set(key, value);
}

void DescribeModel(const NetworkConfig& config, const std::string& name, const std::string& license,
                   formats::GgufWriter& writer) {
  const std::string& arch = config.architecture;
  const auto set = [&](const char* key, std::int64_t value) {
    writer.Set(arch + "." + key, value);
  };
  writer.Set("general.architecture", arch);
  writer.Set("general.type", std::string("model"));
  writer.Set("general.name", name);
  if (!license.empty()) writer.Set("general.license", license);
  set("block_count", config.n_layers);
  set("context_length", config.context_length);
  set("embedding_length", config.dim);
  set("feed_forward_length", config.ff);
  set("attention.head_count", config.n_heads);
  if (config.convolutions.empty()) {
    set("attention.head_count_kv", config.n_kv_heads);
  } else {
    std::vector<std::int64_t> heads;
    for (int i = 0; i < config.n_layers; ++i)
      heads.push_back(config.Convolves(i) ? 0 : config.n_kv_heads);
    writer.Set(arch + ".attention.head_count_kv", std::move(heads));
    set("shortconv.l_cache", config.taps);
  }
  set("attention.key_length", config.head_dim);
  set("attention.value_length", config.head_dim);
  set("rope.dimension_count", config.rope.n_rot);
  set("vocab_size", config.vocabulary);
  writer.Set(arch + ".attention.layer_norm_rms_epsilon", double{config.norm_eps});
  writer.Set(arch + ".rope.freq_base", config.rope.freq_base);
}

}  // namespace foretoken::train
