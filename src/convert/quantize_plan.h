// SPDX-License-Identifier: Apache-2.0
// convert/quantize_plan.h: the number type of each tensor of a quantised file.
//
// The rules are those of llama.cpp's llama-quantize for dense models without an importance matrix,
// so that a type's name means the same for every program.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "foretoken/result.h"
#include "foretoken/tools/model_file.h"
#include "formats/checkpoint.h"
#include "tensor/dtype.h"

namespace foretoken::convert {

// Which tensors of a K-quant file get larger types.
enum class Mix { kNone, kSmall, kMedium, kLarge, kExperts };

struct QuantizeRecipe {
  std::string_view name;  // "Q4_K_M"
  tensor::DType type;     // of most tensors
  Mix mix;
  std::uint32_t file_type;  // general.file_type: llama.cpp's number of the mix
  std::string_view alias;   // another name, or ""
};

std::span<const QuantizeRecipe> QuantizeRecipes();

struct PlannedTensor {
  const formats::TensorView* tensor;
  std::uint32_t ggml_type;  // as before where it is copied
  bool converted;
  bool fallback;  // the rows do not fit the blocks of the type that the rules name
};

struct QuantizePlan {
  const QuantizeRecipe* recipe;
  std::vector<PlannedTensor> tensors;  // in the order of the file
};

// Errors: an unknown type; a matrix that cannot be read; a quantised one without allow_requantize.
[[nodiscard]] Result<QuantizePlan> PlanQuantization(const formats::Checkpoint& checkpoint,
                                                    const QuantizeOptions& options);

}  // namespace foretoken::convert
