// SPDX-License-Identifier: Apache-2.0
#include "formats/weight_type.h"

#include <map>

#include "tensor/dtype.h"

namespace foretoken::formats {

std::string WeightType(const Checkpoint& checkpoint) {
  std::map<std::uint32_t, std::int64_t> values;
  for (const auto& t : checkpoint.tensors()) values[t.ggml_type] += t.n_values();
  std::string type;
  std::int64_t most = 0;
  for (const auto& [id, n] : values)
    if (n > most) most = n, type = tensor::GgmlTypeName(id);
  return type;
}

std::int64_t ParameterCount(const Checkpoint& checkpoint) {
  std::int64_t n = 0;
  for (const auto& t : checkpoint.tensors()) n += t.n_values();
  return n;
}

}  // namespace foretoken::formats
