// SPDX-License-Identifier: Apache-2.0
// engine/weight_type.h: a model file in two numbers: what most of its weights are, and how many
// there are.
#pragma once

#include <cstdint>
#include <string>

#include "formats/checkpoint.h"

namespace foretoken::engine {

// The type that holds the most values among the matrices: "Q4_0"; "" for a file without tensors.
std::string WeightType(const formats::Checkpoint& checkpoint);
std::int64_t ParameterCount(const formats::Checkpoint& checkpoint);

}  // namespace foretoken::engine
