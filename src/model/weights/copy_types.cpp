// SPDX-License-Identifier: Apache-2.0
#include "model/weights/copy_types.h"

#include <fmt/format.h>

#include <charconv>

#include "kernels/repack.h"

namespace foretoken::model {

namespace {

constexpr std::string_view kBlock = "blk.";

std::string_view TypeName(tensor::DType type) {
  return type == kOwn ? kOwnType : tensor::InfoOf(type).name;
}

}  // namespace

bool CopyTypes::are_own() const {
  return layers == kOwn && output == kOwn && attention.value_or(kOwn) == kOwn &&
         experts.value_or(kOwn) == kOwn && ends.value_or(kOwn) == kOwn;
}

tensor::DType CopyTypes::TypeOf(std::string_view tensor, int last_layer) const {
  if (!tensor.starts_with(kBlock)) return output;
  int layer = 0;
  const auto [end, error] =
      std::from_chars(tensor.data() + kBlock.size(), tensor.data() + tensor.size(), layer);
  if (ends && error == std::errc() && (layer == 0 || layer == last_layer)) return *ends;
  const std::string_view name = tensor.substr(static_cast<std::size_t>(end - tensor.data()));
  const auto begins = [&](std::string_view with) { return name.starts_with(with); };
  if (begins(".attn_") || begins(".ssm_") || begins(".shortconv."))
    return attention.value_or(layers);
  return name.find("_exps.") == std::string_view::npos ? layers : experts.value_or(layers);
}

std::string NameOf(const CopyTypes& types) {
  std::string name(TypeName(types.layers));
  if (types.output != types.layers) name += fmt::format(",{}", TypeName(types.output));
  const auto add = [&](std::string_view part, const std::optional<tensor::DType>& type) {
    if (type) name += fmt::format(",{}={}", part, TypeName(*type));
  };
  add("attention", types.attention);
  add("experts", types.experts);
  add("ends", types.ends);
  return name;
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
