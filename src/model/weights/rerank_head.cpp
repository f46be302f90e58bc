// SPDX-License-Identifier: Apache-2.0
#include "model/weights/rerank_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tensor/dtype.h"

namespace foretoken::model {
namespace {

constexpr std::int64_t kMostLabels = 1024;
constexpr const char *kWeight = "cls.output.weight", *kBias = "cls.output.bias";

Error FaultOf(const formats::Checkpoint& file, const formats::TensorView& tensor,
              std::string_view why) {
  return {ErrorCode::kInvalidFile, fmt::format("{}: tensor {}: {}; convert the model again",
                                               file.PathOf(tensor), tensor.name, why)};
}

Result<std::vector<float>> NumbersOf(const formats::Checkpoint& file,
                                     const formats::TensorView& tensor) {
  if (tensor::FindDType(tensor.ggml_type) == nullptr)
    return Fail(ErrorCode::kUnsupported,
                fmt::format("{}: tensor {}: its type {} is not known; convert the model again, "
                            "with F32 for this tensor",
                            file.PathOf(tensor), tensor.name, tensor.ggml_type));
  std::vector<float> numbers(static_cast<std::size_t>(tensor.n_values()));
  for (std::int64_t row = 0; row < tensor.n_rows(); ++row)
    tensor::Dequantize(static_cast<tensor::DType>(tensor.ggml_type), tensor.Row(row),
                       tensor.shape[0], numbers.data() + row * tensor.shape[0]);
  if (!std::all_of(numbers.begin(), numbers.end(), [](float x) { return std::isfinite(x); }))
    return Fail(FaultOf(file, tensor, "some of its numbers are not finite"));
  return numbers;
}

void MakeProbabilities(std::span<float> scores) {
  const double most = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (const float score : scores) sum += std::exp(score - most);
  for (float& score : scores) score = static_cast<float>(std::exp(score - most) / sum);
}

}  // namespace

Result<std::unique_ptr<RerankHead>> RerankHead::Load(const formats::Checkpoint& file,
                                                     std::string_view architecture, int dim) {
  const formats::TensorView* const weight = file.Find(kWeight);
  if (weight == nullptr) return std::unique_ptr<RerankHead>();
  if (weight->shape[0] != dim || weight->shape[2] * weight->shape[3] != 1 ||
      weight->shape[1] > kMostLabels)
    return Fail(FaultOf(file, *weight,
                        fmt::format("{} by {} numbers, wanted {} by at most {}", weight->shape[0],
                                    weight->n_rows(), dim, kMostLabels)));
  auto head = std::make_unique<RerankHead>();
  FORETOKEN_TRY(head->weight_, NumbersOf(file, *weight));
  head->bias_.resize(static_cast<std::size_t>(weight->shape[1]));
  if (const formats::TensorView* const bias = file.Find(kBias); bias != nullptr) {
    if (bias->n_values() != weight->shape[1])
      return Fail(
          FaultOf(file, *bias,
                  fmt::format("{} numbers for {} labels", bias->n_values(), weight->shape[1])));
    FORETOKEN_TRY(head->bias_, NumbersOf(file, *bias));
  }
  head->probabilities_ = architecture == "qwen3" || architecture == "qwen3moe";
  return head;
}

void RerankHead::Score(std::span<const float> state, std::span<float> scores) const noexcept {
  const float* row = weight_.data();
  for (std::size_t label = 0; label < bias_.size(); ++label, row += state.size()) {
    double sum = bias_[label];
    for (std::size_t d = 0; d < state.size(); ++d) sum += double{row[d]} * state[d];
    scores[label] = static_cast<float>(sum);
  }
  if (probabilities_) MakeProbabilities(scores);
}

}  // namespace foretoken::model
