// SPDX-License-Identifier: Apache-2.0
// model/weights/rerank_head.h: the head of a model that scores pairs of texts, a query and a document.
//
// As llama.cpp writes it: `cls.output.weight` [dim, labels], `cls.output.bias` [labels] where there is
// one, and `pooling_type` 4. It reads the state that leaves the output norm at the last token. The
// families qwen3 and qwen3moe turn the labels into probabilities; elsewhere they stay as they are.
// The first label is the score.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "foretoken/result.h"
#include "formats/checkpoint.h"

namespace foretoken::model {

class RerankHead {
 public:
  // Null where the file has none. Errors: kInvalidFile (another shape, numbers that are not finite),
  // kUnsupported (a type that cannot be computed with).
  [[nodiscard]] static Result<std::unique_ptr<RerankHead>> Load(const formats::Checkpoint& file,
                                                                std::string_view architecture,
                                                                int dim);
  int labels() const noexcept { return static_cast<int>(bias_.size()); }
  // state [dim]; scores [labels]. Sums in double precision, dimension by dimension, so that the same
  // state has the same scores everywhere.
  void Score(std::span<const float> state, std::span<float> scores) const noexcept;

 private:
  std::vector<float> weight_;  // [labels, dim]
  std::vector<float> bias_;
  bool probabilities_ = false;
};

}  // namespace foretoken::model
