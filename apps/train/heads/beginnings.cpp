// SPDX-License-Identifier: Apache-2.0
#include "train/heads/beginnings.h"

namespace foretoken::train {

using torch::Tensor;

Beginnings::Beginnings(const TargetReader& target, bool latent) : target_(target) {
  const model::ModelConfig& c = target.config();
  const auto last = latent ? c.n_layers() - 1 : LastAttention(c);
  if (!last) return;
  layer_ = &c.layers[static_cast<std::size_t>(*last)];
  prefix_ = "blk." + std::to_string(layer_->block) + ".";
}

std::optional<Tensor> Beginnings::OfBlock(const std::string& part, const Tensor& like) const {
  if (layer_ == nullptr) return {};
  auto known = target_.Values(prefix_ + part);
  if (!known || known->sizes() != like.sizes()) return {};
  return known;
}

Tensor Beginnings::Norm(const std::string& part) const {
  const Tensor ones = torch::ones({target_.config().dim});
  return OfBlock(part, ones).value_or(ones);
}

Tensor Beginnings::OutputNorm() const {
  const model::ModelConfig& c = target_.config();
  return target_.Values(std::string(c.output_norm) + ".weight").value_or(torch::ones({c.dim}));
}

bool Beginnings::SameQueries() const {
  if (layer_ == nullptr || !std::holds_alternative<model::AttentionConfig>(layer_->mixer))
    return false;
  const model::AttentionConfig& a = layer_->attention();
  return a.rope && a.rope->interleaved && a.qk_norm == model::QkNorm::kNone && !a.output_gate;
}

}  // namespace foretoken::train
