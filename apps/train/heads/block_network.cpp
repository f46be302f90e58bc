// SPDX-License-Identifier: Apache-2.0
#include "train/heads/block_network.h"

#include <cmath>

#include "train/heads/beginnings.h"

namespace foretoken::train {
namespace {

using torch::Tensor;

// Where the blocks of a window lie.
struct BlockPlaces {
  Tensor starts;     // [blocks]
  Tensor positions;  // [blocks * size], by block
};

BlockPlaces PlacesOf(std::int64_t length, std::int64_t size, std::int64_t first) {
  const Tensor starts = torch::arange(1 + first, length - size + 2, size);
  const Tensor positions = (starts.unsqueeze(1) + torch::arange(size)).flatten();
  return {starts, positions};
}

// The rows of one layer, [batch, blocks * size, dim], attend to the features and to their block.
class BlockAttention {
 public:
  BlockAttention(const HeadConfig& head, const Leaves& leaves, const BlockPlaces& places,
                 const Tensor& features)
      : c_(head.block),
        leaves_(leaves),
        features_(features),
        positions_(places.positions.to(features.device())),
        size_(head.block_size),
        rotation_(head.block, features.size(1) + size_, features) {
    // A block sees the features before it, and its rows up to the row itself.
    const auto options = torch::TensorOptions(features.device()).dtype(torch::kLong);
    const Tensor starts = places.starts.to(features.device());
    const Tensor begin = starts.repeat_interleave(size_).unsqueeze(1);
    unseen_ = torch::arange(features.size(1), options).unsqueeze(0).ge(begin);
    later_ = torch::ones({size_, size_}, options.dtype(torch::kBool)).triu(1);
  }

  // h: normed. Gives what the output matrix reads.
  Tensor Run(const std::string& prefix, const Tensor& h) const {
    const std::int64_t batch = h.size(0), rows = h.size(1), kv = c_.n_kv_heads,
                       group = c_.n_heads / kv, dim = c_.head_dim, blocks = rows / size_;
    const double scale = 1 / std::sqrt(static_cast<double>(dim));
    const Tensor q = (rotation_.Turn(Part(prefix + "attn_q", h, c_.n_heads), positions_) * scale)
                         .transpose(1, 2)
                         .reshape({batch * kv, group * rows, dim});
    const Tensor known_k = ByHead(rotation_.Turn(Part(prefix + "attn_k", features_, kv))),
                 known_v = ByHead(Part(prefix + "attn_v", features_, kv));
    const Tensor own_k = ByHead(rotation_.Turn(Part(prefix + "attn_k", h, kv), positions_)),
                 own_v = ByHead(Part(prefix + "attn_v", h, kv));
    const Tensor known = torch::bmm(q, known_k.transpose(1, 2))
                             .view({batch * kv, group, rows, -1})
                             .masked_fill(unseen_, -INFINITY);
    const auto in_blocks = [&](const Tensor& x) {
      return x.view({batch * kv, 1, blocks, size_, dim});
    };
    const Tensor own = torch::matmul(q.view({batch * kv, group, blocks, size_, dim}),
                                     in_blocks(own_k).transpose(-1, -2))
                           .masked_fill(later_, -INFINITY)
                           .view({batch * kv, group, rows, size_});
    const Tensor shares = torch::softmax(torch::cat({known, own}, -1), -1);
    const std::int64_t length = features_.size(1);
    const Tensor from_known =
        torch::bmm(shares.narrow(3, 0, length).reshape({batch * kv, group * rows, length}), known_v)
            .view({batch * kv, group, rows, dim});
    const Tensor from_own =
        torch::matmul(
            shares.narrow(3, length, size_).reshape({batch * kv, group, blocks, size_, size_}),
            in_blocks(own_v))
            .view({batch * kv, group, rows, dim});
    return (from_known + from_own)
        .view({batch, c_.n_heads, rows, dim})
        .transpose(1, 2)
        .reshape({batch, rows, c_.n_heads * dim});
  }

 private:
  // [batch, length, heads, head_dim], with the norm of each head where there is one.
  Tensor Part(const std::string& name, const Tensor& h, std::int64_t heads) const {
    const Tensor y =
        Linear(h, leaves_[name + ".weight"]).view({h.size(0), h.size(1), heads, c_.head_dim});
    return NormedHeads(c_, leaves_, name, y);
  }
  // [batch * heads, length, head_dim]
  static Tensor ByHead(const Tensor& x) {
    return x.transpose(1, 2).reshape({x.size(0) * x.size(2), x.size(1), x.size(3)});
  }

  const NetworkConfig& c_;
  const Leaves& leaves_;
  const Tensor features_, positions_;
  const std::int64_t size_;
  const Rotation rotation_;
  Tensor unseen_;  // [rows, length]
  Tensor later_;   // [size, size]
};

std::string Prefix(int layer) {
  return "blk." + std::to_string(layer) + ".";
}

}  // namespace

Parameters InitBlocks(const HeadConfig& head, const TargetReader& target, std::uint64_t seed) {
  const NetworkConfig& c = head.block;
  const std::int64_t dim = c.dim, layers = static_cast<std::int64_t>(head.layers.size());
  const Beginnings known(target);
  Parameters p;
  const auto ones = [&](const std::string& name) {
    p.Add(name, ParameterKind::kGain, torch::ones({dim}));
  };
  Tensor fc = Normal(seed, "fc.weight", dim, layers * dim, 0.02 / std::sqrt(double(layers)));
  fc.narrow(1, (layers - 1) * dim, dim).add_(torch::eye(dim));
  p.Add("fc.weight", ParameterKind::kMatrix, fc);
  ones("enc.output_norm.weight");
  for (int layer = 0; layer < c.n_layers; ++layer) {
    ones(Prefix(layer) + "attn_norm.weight");
    Parameters fresh;
    InitBlock(c, Prefix(layer), dim, seed, fresh);
    for (const Parameter& q : fresh.all()) {
      const std::string part = q.name.substr(Prefix(layer).size());
      // The last layer's feed-forward part begins as the target's.
      const bool begun = layer == c.n_layers - 1 && part.starts_with("ffn_");
      const auto same = begun ? known.OfBlock(part, q.value) : std::nullopt;
      p.Add(q.name, q.kind, same.value_or(q.value));
    }
  }
  p.Add("output_norm.weight", ParameterKind::kGain, known.OutputNorm());
  return p;
}

Drafts RunBlocks(const HeadConfig& head, const Leaves& leaves, TargetReader& target,
                 const Tensor& tokens, std::int64_t first) {
  const NetworkConfig& c = head.block;
  const torch::Dtype compute = leaves.compute();
  const std::int64_t batch = tokens.size(0), length = tokens.size(1) - 1, size = head.block_size;
  const BlockPlaces places = PlacesOf(length, size, first);
  const std::int64_t blocks = places.starts.size(0);
  TargetReader::States states;
  Tensor x;
  {
    torch::NoGradGuard frozen;
    states = target.Read(tokens.narrow(1, 0, length));
    Tensor ids = torch::full({batch, blocks, size}, std::int64_t{head.mask}, torch::kLong);
    ids.select(2, 0).copy_(tokens.to(torch::kCPU).index_select(1, places.starts));
    x = target.Embedded(ids.flatten(1));
  }
  const auto norm = [&](const Tensor& y, const std::string& name) {
    return RmsNorm(y.to(Wide(y)), leaves[name + ".weight"], c.norm_eps, compute);
  };
  const Tensor master = leaves["output_norm.weight"];
  x = x.to(master.scalar_type());
  const Tensor features =
      norm(Linear(states.features.to(compute), leaves["fc.weight"]), "enc.output_norm");
  const BlockAttention attention(head, leaves, places, features);
  for (int layer = 0; layer < c.n_layers; ++layer) {
    const std::string at = Prefix(layer);
    const Tensor attended = attention.Run(at, norm(x, at + "attn_norm"));
    x = x + Linear(attended, leaves[at + "attn_output.weight"]);
    x = x + FeedForward(leaves, at, norm(x, at + "ffn_norm"));
  }
  const auto by_draft = [&](const Tensor& rows, std::int64_t n) {  // of each block
    return rows.view({batch, blocks, n, c.dim}).permute({2, 0, 1, 3});
  };
  const Tensor hidden = by_draft(norm(x, "output_norm"), size).narrow(0, 1, size - 1);
  // Draft i stands at p + i, and the target's state before it at p + i - 1.
  const Tensor before =
      (places.starts.unsqueeze(1) + torch::arange(size - 1)).flatten().to(states.normed.device());
  return {hidden, by_draft(states.normed.index_select(1, before), size - 1)};
}

Tensor BlockLoss(const Drafts& drafts, const Tensor& head, const Tensor& target_head, double decay,
                 const LogitShape& target_shape) {
  Tensor loss;
  double sum = 0;
  for (std::int64_t i = 0; i < drafts.hidden.size(0); ++i) {
    const double weight = std::pow(decay, i);
    const Tensor part = UnrolledLoss(drafts.hidden[i].unsqueeze(0), head, drafts.normed[i],
                                     target_head, 0, 1, {}, target_shape);
    loss = loss.defined() ? loss + part * weight : part * weight;
    sum += weight;
  }
  return loss / sum;
}

}  // namespace foretoken::train
