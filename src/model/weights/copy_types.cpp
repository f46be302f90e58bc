// SPDX-License-Identifier: Apache-2.0
#include "model/weights/copy_types.h"

#include <fmt/format.h>

#include "kernels/repack.h"

namespace foretoken::model {

namespace {

std::string_view TypeName(tensor::DType type) {
  return type == kOwn ? kOwnType : tensor::InfoOf(type).name;
}

}  // namespace

std::string NameOf(const CopyTypes& types) {
  const std::string_view layers = TypeName(types.layers), output = TypeName(types.output);
  return layers == output ? std::string(layers) : fmt::format("{}.{}", layers, output);
}

std::optional<tensor::DType> TypeInCopy(tensor::DType wanted, tensor::TileType own, int k) {
  for (const tensor::DType type : {wanted, tensor::DType::kQ4_0}) {
    const tensor::DTypeInfo& info = tensor::InfoOf(type);
    if (k % info.block_values != 0 || k % tensor::TileValues(info.tile) != 0) continue;
    if (kernels::StripBytes(info.tile, k) < kernels::StripBytes(own, k)) return type;
    return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace foretoken::model
