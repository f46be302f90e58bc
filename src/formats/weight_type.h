// SPDX-License-Identifier: Apache-2.0
// formats/weight_type.h: a model file in two numbers: what most of its weights are, and how many
// there are.
#pragma once

#include <cstdint>
#include <string>

#include "formats/checkpoint.h"

namespace foretoken::formats {

// The type that holds the most values among the matrices: "Q4_0"; "" for a file without tensors.
std::string WeightType(const Checkpoint& checkpoint);
std::int64_t ParameterCount(const Checkpoint& checkpoint);

}  // namespace foretoken::formats
