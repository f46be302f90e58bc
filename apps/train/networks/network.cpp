// SPDX-License-Identifier: Apache-2.0
#include "train/networks/network.h"

#include <cmath>

#include "base/check.h"
#include "base/rng.h"
#include "model/rope_table.h"

namespace foretoken::train {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;
using torch::autograd::Variable;

// Queries that attend together: they skip the keys after them.
constexpr std::int64_t kQueryChunk = 128;

class RmsNormFunction : public torch::autograd::Function<RmsNormFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& gain, double eps,
                        torch::Dtype compute) {
    const Tensor inverse = x.square().mean(-1, true).add_(eps).rsqrt_();
    context->save_for_backward({x, gain, inverse});
    return (x * inverse).mul_(gain).to(compute);
  }
  static tensor_list backward(AutogradContext* context, tensor_list gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor &x = saved[0], &gain = saved[1], &inverse = saved[2];
    const Tensor dy = gradients[0].to(x.scalar_type());
    const Tensor unit = x * inverse;
    Tensor dx = dy * gain;
    const Tensor dgain = (dy * unit).flatten(0, -2).sum(0);
    dx = dx.sub_(unit.mul_((dx * unit).mean(-1, true))).mul_(inverse);
    return {dx, dgain, Variable(), Variable()};
  }
};

class SwigluFunction : public torch::autograd::Function<SwigluFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& gate, const Tensor& up) {
    context->save_for_backward({gate, up});
    return torch::silu(gate).mul_(up);
  }
  static tensor_list backward(AutogradContext* context, tensor_list gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor &gate = saved[0], &up = saved[1], &dy = gradients[0];
    const Tensor s = torch::sigmoid(gate);
    const Tensor silu = gate * s;
    // d silu = s + silu (1 - s)
    const Tensor dgate = torch::addcmul(silu, silu, s, -1).add_(s).mul_(up).mul_(dy);
    return {dgate, dy * silu};
  }
};

// Rotates the pairs of each head, as complex numbers: a rotation's transpose is the rotation back.
class RotateFunction : public torch::autograd::Function<RotateFunction> {
 public:
  // x: [batch, length, heads, head_dim]; turns: complex [length, 1, n_rot / 2]
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& turns,
                        bool interleaved) {
    context->save_for_backward({turns});
    context->saved_data["interleaved"] = interleaved;
    return Turn(x, turns, interleaved);
  }
  static tensor_list backward(AutogradContext* context, tensor_list gradients) {
    const Tensor turns = context->get_saved_variables()[0];
    return {Turn(gradients[0], turns.conj().resolve_conj(),
                 context->saved_data["interleaved"].toBool()),
            Variable(), Variable()};
  }

 private:
  static Tensor Turn(const Tensor& x, const Tensor& turns, bool interleaved) {
    const std::int64_t half = turns.size(-1), rest = x.size(-1) - 2 * half;
    std::vector<std::int64_t> sizes = x.sizes().vec();
    sizes.back() = interleaved ? half : 2;
    sizes.push_back(interleaved ? 2 : half);
    Tensor pairs = x.narrow(-1, 0, 2 * half).to(Wide(x)).reshape(sizes);
    if (!interleaved) pairs = pairs.transpose(-1, -2);
    Tensor out = torch::view_as_real(torch::view_as_complex(pairs.contiguous()) * turns);
    if (!interleaved) out = out.transpose(-1, -2);
    out = out.flatten(-2).to(x.scalar_type());
    return rest == 0 ? out : torch::cat({out, x.narrow(-1, 2 * half, rest)}, -1);
  }
};

// Causal attention of grouped heads: all query heads of a key head are rows of one product.
//   q: [groups, heads_per_group, length, head_dim], scaled; k, v: [groups, length, head_dim]
class CausalFunction : public torch::autograd::Function<CausalFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& q, const Tensor& k,
                        const Tensor& v) {
    const std::int64_t groups = q.size(0), per_group = q.size(1), length = q.size(2),
                       dim = q.size(3);
    Tensor out = torch::empty_like(q);
    tensor_list saved = {q, k, v};
    for (std::int64_t begin = 0; begin < length; begin += kQueryChunk) {
      const std::int64_t n = std::min(kQueryChunk, length - begin), keys = begin + n;
      const Tensor queries = q.narrow(2, begin, n).reshape({groups, per_group * n, dim});
      Tensor scores = torch::bmm(queries, k.narrow(1, 0, keys).transpose(1, 2));
      const Tensor later = torch::ones({n, n}, q.options().dtype(torch::kBool)).triu(1);
      scores.view({groups, per_group, n, keys}).narrow(3, begin, n).masked_fill_(later, -INFINITY);
      const Tensor distribution = torch::softmax(scores, -1);
      out.narrow(2, begin, n)
          .copy_(torch::bmm(distribution, v.narrow(1, 0, keys)).view({groups, per_group, n, dim}));
      saved.push_back(distribution);
    }
    saved.push_back(out);
    context->save_for_backward(saved);
    return out;
  }
  static tensor_list backward(AutogradContext* context, tensor_list gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor &q = saved[0], &k = saved[1], &v = saved[2], &out = saved.back();
    const std::int64_t groups = q.size(0), per_group = q.size(1), length = q.size(2),
                       dim = q.size(3);
    const Tensor dy = gradients[0];
    Tensor dq = torch::empty_like(q);
    Tensor dk = torch::zeros(k.sizes(), k.options().dtype(Wide(k))), dv = torch::zeros_like(dk);
    const Tensor dot = (dy.to(Wide(dy)) * out).sum(-1, true);  // [groups, per_group, length, 1]
    std::size_t chunk = 3;
    for (std::int64_t begin = 0; begin < length; begin += kQueryChunk, ++chunk) {
      const std::int64_t n = std::min(kQueryChunk, length - begin), keys = begin + n,
                         rows = per_group * n;
      const auto flat = [&](const Tensor& x) {
        return x.narrow(2, begin, n).reshape({groups, rows, -1});
      };
      const Tensor queries = flat(q), dout = flat(dy), &distribution = saved[chunk];
      dv.narrow(1, 0, keys).add_(torch::bmm(distribution.transpose(1, 2), dout));
      Tensor dscores = torch::bmm(dout, v.narrow(1, 0, keys).transpose(1, 2));
      dscores = dscores.sub_(flat(dot)).mul_(distribution);
      dq.narrow(2, begin, n)
          .copy_(torch::bmm(dscores, k.narrow(1, 0, keys)).view({groups, per_group, n, dim}));
      dk.narrow(1, 0, keys).add_(torch::bmm(dscores.transpose(1, 2), queries));
    }
    return {dq, dk.to(k.scalar_type()), dv.to(v.scalar_type())};
  }
};

// The forward pass of both losses already computes their gradient: softmax(logits) - distribution,
// over the number of rows.
class LossFunction : public torch::autograd::Function<LossFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& logits, const Tensor& target,
                        bool distributions) {
    constexpr std::int64_t kRows = 512;  // at a time, so that they stay in the processor's cache
    Tensor gradient = torch::empty_like(logits),
           loss = torch::zeros({}, logits.options().dtype(torch::kDouble));
    double counted = 0;
    for (std::int64_t begin = 0; begin < logits.size(0); begin += kRows) {
      const std::int64_t n = std::min(kRows, logits.size(0) - begin);
      const Tensor rows = torch::log_softmax(logits.narrow(0, begin, n).to(Wide(logits)), -1);
      const Tensor wanted = target.narrow(0, begin, n);
      const Tensor counts = distributions ? wanted.sum(-1, true).gt(0).to(rows.scalar_type())
                                          : wanted.ge(0).to(rows.scalar_type()).unsqueeze(1);
      counted += counts.sum().item<double>();
      Tensor slope = rows.exp().mul_(counts);
      if (distributions) {
        const Tensor p = wanted.to(rows.scalar_type());
        loss += (p * (p.clamp_min(1e-30).log() - rows)).sum().to(torch::kDouble);
        slope.sub_(p);
      } else {
        const Tensor index = wanted.clamp_min(0).unsqueeze(1);
        loss -= (rows.gather(1, index) * counts).sum().to(torch::kDouble);
        slope.scatter_add_(1, index, -counts);
      }
      gradient.narrow(0, begin, n).copy_(slope);
    }
    counted = std::max(counted, 1.0);
    context->save_for_backward({gradient});
    context->saved_data["rows"] = counted;
    return loss / counted;
  }
  static tensor_list backward(AutogradContext* context, tensor_list gradients) {
    const Tensor gradient = context->get_saved_variables()[0];
    const double scale = gradients[0].item<double>() / context->saved_data["rows"].toDouble();
    return {gradient * scale, Variable(), Variable()};
  }
};

// Adds fresh weights of one block's parts.
class FreshBlock {
 public:
  FreshBlock(const NetworkConfig& config, const std::string& prefix, std::uint64_t seed,
             Parameters& parameters)
      : c_(config), prefix_(prefix), seed_(seed), parameters_(parameters) {}

  void AddAttention(std::int64_t input) const {
    if (c_.latent) return AddLatentAttention(*c_.latent, input);
    const std::int64_t heads = c_.n_heads * c_.head_dim, kv = c_.n_kv_heads * c_.head_dim;
    Matrix("attn_q.weight", c_.output_gate ? 2 * heads : heads, input, kSpread);
    Matrix("attn_k.weight", kv, input, kSpread);
    Matrix("attn_v.weight", kv, input, kSpread);
    Matrix("attn_output.weight", c_.dim, heads, OutputSpread());
    if (c_.qkv_bias)
      for (const char* name : {"attn_q", "attn_k", "attn_v"})
        Gain(std::string(name) + ".bias",
             torch::zeros({parameters_[prefix_ + name + ".weight"].size(0)}));
    if (c_.qk_norm)
      for (const char* name : {"attn_q_norm.weight", "attn_k_norm.weight"})
        Gain(name, torch::ones({c_.head_dim}));
  }

  void AddLatentAttention(const model::LatentAttentionConfig& latent, std::int64_t input) const {
    const std::int64_t heads = latent.n_heads, queries = heads * latent.query_dim();
    if (latent.q_rank == 0) {
      Matrix("attn_q.weight", queries, input, kSpread);
    } else {
      Matrix("attn_q_a.weight", latent.q_rank, input, kSpread);
      Gain("attn_q_a_norm.weight", torch::ones({latent.q_rank}));
      Matrix("attn_q_b.weight", queries, latent.q_rank, kSpread);
    }
    Matrix("attn_kv_a_mqa.weight", latent.key_dim(), input, kSpread);
    Gain("attn_kv_a_norm.weight", torch::ones({latent.rank}));
    MatrixOfHeads("attn_k_b.weight", heads, latent.rank, latent.head_dim);
    MatrixOfHeads("attn_v_b.weight", heads, latent.value_dim, latent.rank);
    Matrix("attn_output.weight", c_.dim, heads * latent.value_dim, OutputSpread());
  }

  void AddConvolution() const {
    const std::string taps = "shortconv.conv.weight";
    Matrix("shortconv.in_proj.weight", 3 * c_.dim, c_.dim, kSpread);
    Gain(taps, Normal(seed_, prefix_ + taps, c_.dim, c_.taps, 1 / std::sqrt(1.0 * c_.taps)));
    Matrix("shortconv.out_proj.weight", c_.dim, c_.dim, OutputSpread());
  }

  void AddFeedForward() const {
    Gain(c_.ffn_norm + ".weight", torch::ones({c_.dim}));
    Matrix("ffn_gate.weight", c_.ff, c_.dim, kSpread);
    Matrix("ffn_up.weight", c_.ff, c_.dim, kSpread);
    Matrix("ffn_down.weight", c_.dim, c_.ff, OutputSpread());
    for (const std::string& name : {c_.attention_post_norm, c_.ffn_post_norm})
      if (!name.empty()) Gain(name + ".weight", torch::ones({c_.dim}));
  }

 private:
  static constexpr double kSpread = 0.02;
  double OutputSpread() const { return kSpread / std::sqrt(2.0 * c_.n_layers); }

  void Matrix(const std::string& name, std::int64_t rows, std::int64_t columns,
              double spread) const {
    parameters_.Add(prefix_ + name, ParameterKind::kMatrix,
                    Normal(seed_, prefix_ + name, rows, columns, spread));
  }
  void MatrixOfHeads(const std::string& name, std::int64_t heads, std::int64_t rows,
                     std::int64_t columns) const {
    parameters_.Add(
        prefix_ + name, ParameterKind::kMatrix,
        Normal(seed_, prefix_ + name, heads * rows, columns, kSpread).view({heads, rows, columns}));
  }
  void Gain(const std::string& name, const Tensor& value) const {
    parameters_.Add(prefix_ + name, ParameterKind::kGain, value);
  }

  const NetworkConfig& c_;
  const std::string& prefix_;
  const std::uint64_t seed_;
  Parameters& parameters_;
};

}  // namespace

torch::Dtype Wide(const Tensor& x) {
  return x.scalar_type() == torch::kDouble ? torch::kDouble : torch::kFloat;
}

void Parameters::Add(std::string name, ParameterKind kind, Tensor value) {
  index_[name] = all_.size();
  all_.push_back({std::move(name), kind, std::move(value)});
}

const Tensor& Parameters::operator[](const std::string& name) const {
  const auto found = index_.find(name);
  FORETOKEN_CHECK(found != index_.end());
  return all_[found->second].value;
}

std::int64_t Parameters::n_values() const {
  std::int64_t n = 0;
  for (const Parameter& p : all_) n += p.value.numel();
  return n;
}

Leaves::Leaves(const Parameters& parameters, torch::Dtype compute, bool gradients)
    : compute_(compute) {
  for (const Parameter& p : parameters.all()) {
    Tensor leaf = p.value.detach();
    if (p.kind == ParameterKind::kMatrix) leaf = leaf.to(compute);
    leaves_[p.name] = leaf.requires_grad_(gradients);
  }
}

const Tensor& Leaves::operator[](const std::string& name) const {
  const auto found = leaves_.find(name);
  FORETOKEN_CHECK(found != leaves_.end());
  return found->second;
}

std::vector<Tensor> Leaves::Gradients(const Parameters& parameters) const {
  std::vector<Tensor> gradients;
  for (const Parameter& p : parameters.all()) {
    const Tensor& gradient = (*this)[p.name].grad();
    gradients.push_back(gradient.defined() ? gradient.to(p.value.scalar_type())
                                           : torch::zeros_like(p.value));
  }
  return gradients;
}

Tensor Normal(std::uint64_t seed, const std::string& name, std::int64_t rows, std::int64_t columns,
              double spread) {
  std::uint64_t key = seed * 0x9E3779B97F4A7C15ULL + 1469598103934665603ULL;
  for (const char c : name) key = (key ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  auto generator = at::detail::createCPUGenerator(key);
  return torch::empty({rows, columns}).normal_(0, spread, generator);
}

void InitBlock(const NetworkConfig& config, const std::string& prefix, std::int64_t input,
               std::uint64_t seed, Parameters& parameters) {
  const FreshBlock block(config, prefix, seed, parameters);
  block.AddAttention(input);
  block.AddFeedForward();
}

Parameters InitModel(const NetworkConfig& config, bool tied, std::uint64_t seed) {
  Parameters parameters;
  parameters.Add("token_embd.weight", ParameterKind::kTable,
                 Normal(seed, "token_embd.weight", config.vocabulary, config.dim, 0.02));
  for (int layer = 0; layer < config.n_layers; ++layer) {
    const std::string prefix = "blk." + std::to_string(layer) + ".";
    parameters.Add(prefix + "attn_norm.weight", ParameterKind::kGain, torch::ones({config.dim}));
    const FreshBlock block(config, prefix, seed, parameters);
    config.Convolves(layer) ? block.AddConvolution() : block.AddAttention(config.dim);
    block.AddFeedForward();
  }
  parameters.Add(config.output_norm + ".weight", ParameterKind::kGain, torch::ones({config.dim}));
  if (!tied)
    parameters.Add("output.weight", ParameterKind::kTable,
                   Normal(seed, "output.weight", config.vocabulary, config.dim, 0.02));
  return parameters;
}

Tensor Linear(const Tensor& x, const Tensor& weight) {
  std::vector<std::int64_t> sizes = x.sizes().vec();
  sizes.back() = weight.size(0);
  return torch::mm(x.reshape({-1, x.size(-1)}), weight.t()).view(sizes);
}

Tensor RmsNorm(const Tensor& x, const Tensor& gain, double eps, torch::Dtype compute) {
  return RmsNormFunction::apply(x, gain, eps, compute);
}

Rotation::Rotation(const NetworkConfig& config, std::int64_t n_positions, const Tensor& like)
    : interleaved_(config.rope.interleaved) {
  const auto options = torch::TensorOptions().dtype(torch::kDouble);
  const model::RopeTable table(config.rope, 0, config.rope_factors);
  const Tensor frequency = torch::tensor(table.frequencies(), options);
  const Tensor angle = (torch::arange(n_positions, options).unsqueeze(1) * frequency).unsqueeze(1);
  const auto part = [&](const Tensor& x) { return (x * table.magnitude()).to(Wide(like)); };
  turns_ = torch::complex(part(angle.cos()), part(angle.sin())).to(like.device());
}

Tensor Rotation::Turn(const Tensor& x, std::int64_t first) const {
  return RotateFunction::apply(x, turns_.narrow(0, first, x.size(1)), interleaved_);
}

Tensor Rotation::Turn(const Tensor& x, const Tensor& positions) const {
  return RotateFunction::apply(x, turns_.index_select(0, positions), interleaved_);
}

Tensor NormedHeads(const NetworkConfig& config, const Leaves& leaves, const std::string& name,
                   const Tensor& y) {
  const std::string norm = name + "_norm.weight";
  return leaves.Has(norm) ? RmsNorm(y.to(Wide(y)), leaves[norm], config.norm_eps, leaves.compute())
                          : y;
}

Tensor Attention(const NetworkConfig& config, const Leaves& leaves, const std::string& prefix,
                 const Tensor& h) {
  const std::int64_t batch = h.size(0), length = h.size(1), kv = config.n_kv_heads,
                     dim = config.head_dim, per_group = config.n_heads / kv;
  const auto project = [&](const char* part, std::int64_t heads) {
    const std::string name = prefix + part;
    return NormedHeads(config, leaves, name,
                       Linear(h, leaves[name + ".weight"]).view({batch, length, heads, dim}));
  };
  const Rotation rotation(config, length, h);
  const Tensor q = rotation.Turn(project("attn_q", config.n_heads)) *
                   (1.0 / std::sqrt(static_cast<double>(dim)));
  const Tensor k = rotation.Turn(project("attn_k", kv)), v = project("attn_v", kv);
  const Tensor out =
      CausalFunction::apply(q.transpose(1, 2).reshape({batch * kv, per_group, length, dim}),
                            k.transpose(1, 2).reshape({batch * kv, length, dim}),
                            v.transpose(1, 2).reshape({batch * kv, length, dim}));
  const Tensor merged = out.view({batch, config.n_heads, length, dim}).transpose(1, 2);
  return Linear(merged.reshape({batch, length, config.n_heads * dim}),
                leaves[prefix + "attn_output.weight"]);
}

Tensor Convolution(const Leaves& leaves, const std::string& prefix, const Tensor& h) {
  const std::string at = prefix + "shortconv.";
  const std::vector<Tensor> parts = Linear(h, leaves[at + "in_proj.weight"]).chunk(3, -1);
  const Tensor taps = leaves[at + "conv.weight"];  // [dim, taps], the oldest position's first
  const std::int64_t n = taps.size(1);
  const Tensor gated = torch::constant_pad_nd(parts[0] * parts[2], {0, 0, n - 1, 0});
  Tensor sum;
  for (std::int64_t j = 0; j < n; ++j) {
    const Tensor part = gated.narrow(1, j, h.size(1)) * taps.select(1, j);
    sum = j == 0 ? part : sum + part;
  }
  return Linear((parts[1] * sum).to(leaves.compute()), leaves[at + "out_proj.weight"]);
}

Tensor FeedForward(const Leaves& leaves, const std::string& prefix, const Tensor& h,
                   model::GateFunction function) {
  const Tensor gate = Linear(h, leaves[prefix + "ffn_gate.weight"]),
               up = Linear(h, leaves[prefix + "ffn_up.weight"]);
  const Tensor inner = function == model::GateFunction::kSilu ? SwigluFunction::apply(gate, up)
                                                              : torch::gelu(gate, "tanh") * up;
  return Linear(inner, leaves[prefix + "ffn_down.weight"]);
}

Tensor Block(const NetworkConfig& config, const Leaves& leaves, const std::string& prefix,
             const Tensor& x) {
  const auto norm = [&](const Tensor& y, const char* name) {
    return RmsNorm(y, leaves[prefix + name], config.norm_eps, leaves.compute());
  };
  const Tensor h = norm(x, "attn_norm.weight");
  const Tensor y =
      x + (leaves.Has(prefix + "shortconv.conv.weight") ? Convolution(leaves, prefix, h)
                                                        : Attention(config, leaves, prefix, h));
  return y + FeedForward(leaves, prefix, norm(y, "ffn_norm.weight"));
}

Tensor RunModel(const NetworkConfig& config, const Leaves& leaves, const Tensor& tokens) {
  Tensor x = torch::embedding(leaves["token_embd.weight"], tokens);
  x = x.to(Wide(x));
  for (int layer = 0; layer < config.n_layers; ++layer)
    x = Block(config, leaves, "blk." + std::to_string(layer) + ".", x);
  return RmsNorm(x, leaves[config.output_norm + ".weight"], config.norm_eps, leaves.compute());
}

Tensor Logits(const Leaves& leaves, const Tensor& normed) {
  return Linear(normed,
                leaves[leaves.Has("output.weight") ? "output.weight" : "token_embd.weight"].to(
                    leaves.compute()));
}

Tensor Shaped(const Tensor& products, const LogitShape& shape) {
  const Tensor scaled = shape.scale == 1 ? products : products * shape.scale;
  return shape.cap == 0 ? scaled : torch::tanh(scaled / shape.cap) * shape.cap;
}

Tensor CrossEntropy(const Tensor& logits, const Tensor& targets) {
  return LossFunction::apply(logits, targets, false);
}
Tensor Divergence(const Tensor& logits, const Tensor& distribution) {
  return LossFunction::apply(logits, distribution, true);
}

}  // namespace foretoken::train
