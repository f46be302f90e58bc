// SPDX-License-Identifier: Apache-2.0
#include "train/heads/head_network.h"

#include <cmath>

#include "train/heads/beginnings.h"

namespace foretoken::train {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;
using torch::autograd::Variable;

constexpr std::int64_t kHeadQueryChunk = 128;  // queries that attend together
// Values of distributions that are processed together, so that they stay in the CPU's cache.
constexpr std::int64_t kChunkValues = 1 << 18;

// Attention of row r to rows 0..r of the keys and to row r of each set of own keys.
//   q: [groups, heads_per_group, length, head_dim], scaled; k, v: [groups, length, head_dim];
//   own_k, own_v: [sets, groups, length, head_dim]
class OwnRowsFunction : public torch::autograd::Function<OwnRowsFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& q, const Tensor& k, const Tensor& v,
                        const Tensor& own_k, const Tensor& own_v) {
    const Sizes s(q, own_k);
    Tensor out = torch::empty_like(q);
    tensor_list saved = {q, k, v, own_k, own_v};
    for (std::int64_t begin = 0; begin < s.length; begin += kHeadQueryChunk) {
      const std::int64_t n = std::min(kHeadQueryChunk, s.length - begin), keys = begin + n;
      Tensor scores = torch::bmm(q.narrow(2, begin, n).reshape({s.groups, s.per_group * n, s.dim}),
                                 k.narrow(1, 0, keys).transpose(1, 2))
                          .view({s.groups, s.per_group, n, keys});
      const Tensor later = torch::ones({n, n}, q.options().dtype(torch::kBool)).triu(1);
      scores.narrow(3, begin, n).masked_fill_(later, -INFINITY);
      if (s.sets > 0)
        scores = torch::cat({scores, Dots(q.narrow(2, begin, n), own_k.narrow(2, begin, n))}, -1);
      const Tensor distribution = torch::softmax(scores, -1);
      Tensor y = torch::bmm(Flat(distribution.narrow(3, 0, keys)), v.narrow(1, 0, keys))
                     .view({s.groups, s.per_group, n, s.dim});
      if (s.sets > 0)
        y = Sum(distribution.narrow(3, keys, s.sets), own_v.narrow(2, begin, n)).add_(y);
      out.narrow(2, begin, n).copy_(y);
      saved.push_back(distribution);
    }
    saved.push_back(out);
    context->save_for_backward(saved);
    return out;
  }

  static tensor_list backward(AutogradContext* context, tensor_list gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor &q = saved[0], &k = saved[1], &v = saved[2], &own_k = saved[3], &own_v = saved[4],
                 &out = saved.back(), &dy = gradients[0];
    const Sizes s(q, own_k);
    Tensor dq = torch::empty_like(q), down_k = torch::empty_like(own_k),
           down_v = torch::empty_like(own_v);
    Tensor dk = torch::zeros(k.sizes(), k.options().dtype(Wide(k))), dv = torch::zeros_like(dk);
    const Tensor dot = (dy.to(Wide(dy)) * out).sum(-1, true);
    std::size_t chunk = 5;
    for (std::int64_t begin = 0; begin < s.length; begin += kHeadQueryChunk, ++chunk) {
      const std::int64_t n = std::min(kHeadQueryChunk, s.length - begin), keys = begin + n;
      const Tensor queries = q.narrow(2, begin, n), dout = dy.narrow(2, begin, n),
                   &distribution = saved[chunk];
      const Tensor flat_distribution = Flat(distribution.narrow(3, 0, keys)),
                   flat_dout = Flat(dout);
      dv.narrow(1, 0, keys).add_(torch::bmm(flat_distribution.transpose(1, 2), flat_dout));
      Tensor dscores = torch::bmm(flat_dout, v.narrow(1, 0, keys).transpose(1, 2));
      dscores.sub_(Flat(dot.narrow(2, begin, n))).mul_(flat_distribution);
      Tensor dchunk =
          torch::bmm(dscores, k.narrow(1, 0, keys)).view({s.groups, s.per_group, n, s.dim});
      dk.narrow(1, 0, keys).add_(torch::bmm(dscores.transpose(1, 2), Flat(queries)));
      if (s.sets > 0) {
        const Tensor own_distribution = distribution.narrow(3, keys, s.sets);
        const Tensor down = Dots(dout, own_v.narrow(2, begin, n), true)
                                .sub_(dot.narrow(2, begin, n))
                                .mul_(own_distribution);
        dchunk = Sum(down, own_k.narrow(2, begin, n)).add_(dchunk);
        down_k.narrow(2, begin, n).copy_(Spread(down, queries));
        down_v.narrow(2, begin, n).copy_(Spread(own_distribution, dout));
      }
      dq.narrow(2, begin, n).copy_(dchunk);
    }
    return {dq, dk.to(k.scalar_type()), dv.to(v.scalar_type()), down_k, down_v};
  }

 private:
  struct Sizes {
    Sizes(const Tensor& q, const Tensor& own_k)
        : groups(q.size(0)),
          per_group(q.size(1)),
          length(q.size(2)),
          dim(q.size(3)),
          sets(own_k.size(0)) {}
    std::int64_t groups, per_group, length, dim, sets;
  };
  // [groups, per_group, n, x] -> [groups, per_group * n, x]
  static Tensor Flat(const Tensor& x) {
    return x.reshape({x.size(0), x.size(1) * x.size(2), x.size(3)});
  }
  // a: [groups, per_group, n, dim], rows: [sets, groups, n, dim] -> [groups, per_group, n, sets]
  static Tensor Dots(const Tensor& a, const Tensor& rows, bool wide = false) {
    std::vector<Tensor> dots;
    const Tensor left = a.to(Wide(a));
    for (std::int64_t i = 0; i < rows.size(0); ++i)
      dots.push_back((left * rows[i].unsqueeze(1)).sum(-1));
    const Tensor all = torch::stack(dots, -1);
    return wide ? all : all.to(a.scalar_type());
  }
  // weights: [groups, per_group, n, sets], rows -> [groups, per_group, n, dim], wide
  static Tensor Sum(const Tensor& weights, const Tensor& rows) {
    Tensor sum;
    for (std::int64_t i = 0; i < rows.size(0); ++i) {
      const Tensor weight = weights.select(3, i).unsqueeze(-1).to(Wide(rows)),
                   row = rows[i].unsqueeze(1);
      if (i == 0)
        sum = weight * row;
      else
        sum.addcmul_(weight, row.to(weight.scalar_type()));
    }
    return sum;
  }
  // The gradient of rows: [sets, groups, n, dim].
  static Tensor Spread(const Tensor& weights, const Tensor& a) {
    std::vector<Tensor> rows;
    const Tensor wide = a.to(Wide(a));
    for (std::int64_t i = 0; i < weights.size(3); ++i)
      rows.push_back((wide * weights.select(3, i).unsqueeze(-1)).sum(1));
    return torch::stack(rows);
  }
};

// The forward pass already computes the loss's gradient: softmax(logits) - distribution, times the
// output head.
class UnrolledLossFunction : public torch::autograd::Function<UnrolledLossFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& hidden, const Tensor& head,
                        const Tensor& normed, const Tensor& target_head, std::int64_t shift,
                        double decay, const LogitShape& shape, const LogitShape& target_shape) {
    const std::int64_t steps = hidden.size(0), batch = hidden.size(1), length = hidden.size(2),
                       tokens = head.size(0);
    const bool trains_head = head.requires_grad();
    const Tensor weight = head.to(hidden.scalar_type()),
                 target = target_head.to(hidden.scalar_type());
    Tensor dhidden = torch::zeros_like(hidden),
           dhead = trains_head ? torch::zeros_like(head) : Tensor();
    std::vector<double> share(static_cast<std::size_t>(steps));
    double sum = 0;
    for (std::int64_t s = 0; s < steps; ++s) sum += std::pow(decay, s);
    Tensor loss = torch::zeros({}, hidden.options().dtype(torch::kDouble));
    const std::int64_t rows_at_once = std::max<std::int64_t>(16, kChunkValues / tokens);
    for (std::int64_t b = 0; b < batch; ++b) {
      const Tensor target_logits = torch::mm(normed[b].to(hidden.scalar_type()), target.t());
      Tensor distributions = torch::empty({length, tokens}, hidden.options().dtype(Wide(hidden)));
      Tensor negative_entropy = torch::empty({length}, distributions.options());
      for (std::int64_t begin = 0; begin < length; begin += rows_at_once) {
        const std::int64_t n = std::min(rows_at_once, length - begin);
        const Tensor logs = torch::log_softmax(
            Shaped(target_logits.narrow(0, begin, n).to(Wide(hidden)), target_shape), -1);
        Tensor distribution = distributions.narrow(0, begin, n);
        torch::exp_out(distribution, logs);
        negative_entropy.narrow(0, begin, n).copy_((distribution * logs).sum(-1));
      }
      for (std::int64_t s = 0; s < steps; ++s) {
        const std::int64_t first = shift + s, rows = length - first;
        if (rows <= 0) continue;
        const double part = std::pow(decay, s) / sum / static_cast<double>(rows * batch);
        const Tensor y = hidden[s][b].narrow(0, 0, rows);
        Tensor logits = torch::mm(y, weight.t());
        for (std::int64_t begin = 0; begin < rows; begin += rows_at_once) {
          const std::int64_t n = std::min(rows_at_once, rows - begin);
          Tensor some = logits.narrow(0, begin, n);
          const Tensor distribution = distributions.narrow(0, first + begin, n);
          const Tensor shaped = Shaped(some.to(Wide(hidden)), shape);
          Tensor logs = torch::log_softmax(shaped, -1);
          loss.add_(
              (negative_entropy.narrow(0, first + begin, n).sum() - (distribution * logs).sum())
                  .to(torch::kDouble),
              part);
          Tensor slope = logs.exp_().sub_(distribution);
          if (shape.scale != 1) slope.mul_(shape.scale);
          if (shape.cap != 0) slope.mul_(1 - (shaped / shape.cap).square());
          some.copy_(slope);  // overwrites the logits
        }
        dhidden[s][b].narrow(0, 0, rows).copy_(torch::mm(logits, weight).mul_(part));
        if (trains_head) dhead.add_(torch::mm(logits.t(), y), part);
      }
    }
    context->save_for_backward({dhidden, dhead});
    return loss;
  }
  static tensor_list backward(AutogradContext* context, tensor_list gradients) {
    const auto saved = context->get_saved_variables();
    const double scale = gradients[0].item<double>();
    const auto scaled = [&](const Tensor& x) { return x.defined() ? x * scale : Variable(); };
    return {scaled(saved[0]), scaled(saved[1]), Variable(), Variable(),
            Variable(),       Variable(),       Variable(), Variable()};
  }
};

// [batch, length, heads * head_dim] as rows of its groups: [batch * groups, ..., length, head_dim].
Tensor ByGroup(const Tensor& x, std::int64_t groups) {
  const std::int64_t batch = x.size(0), length = x.size(1), heads = x.size(2), dim = x.size(3);
  const Tensor turned = x.transpose(1, 2);
  return heads == groups ? turned.reshape({batch * groups, length, dim})
                         : turned.reshape({batch * groups, heads / groups, length, dim});
}

// The attention of a head through its steps; it keeps what later steps attend to.
class StepAttention {
 public:
  StepAttention(const HeadConfig& head, const Leaves& leaves, const Tensor& like,
                std::int64_t length, int steps)
      : head_(head),
        leaves_(leaves),
        length_(length),
        rotation_(head.block, length + steps, like) {}

  // h: [batch, length, inputs], normed.
  Tensor Run(const Tensor& h, int step) {
    const Tensor out = head_.block.latent ? RunLatent(*head_.block.latent, h, step)
                                          : RunGrouped(h, step);  // [batch, heads, length, size]
    return Linear(out.transpose(1, 2).reshape({h.size(0), length_, -1}),
                  leaves_[head_.prefix + "attn_output.weight"]);
  }

 private:
  Tensor RunGrouped(const Tensor& h, int step) {
    const NetworkConfig& c = head_.block;
    const std::int64_t kv = c.n_kv_heads;
    const double scale = c.attention_scale != 0 ? c.attention_scale : 1 / std::sqrt(c.head_dim);
    Tensor query = Product(h, "attn_q", c.n_heads), gate;
    if (c.output_gate) {
      gate = query.narrow(-1, c.head_dim, c.head_dim);
      query = query.narrow(-1, 0, c.head_dim);
    }
    const Tensor q = rotation_.Turn(Normed(query, "attn_q"), step) * scale;
    const Tensor k = ByGroup(rotation_.Turn(Normed(Product(h, "attn_k", kv), "attn_k"), step), kv),
                 v = ByGroup(Product(h, "attn_v", kv), kv);
    const Tensor out = Attend(q.transpose(1, 2), k, v, step);
    return gate.defined() ? out * torch::sigmoid(gate.transpose(1, 2)) : out;
  }

  // As the engine runs it (model/blocks/latent_attention.h): all heads attend to the same keys,
  // and the value of a key is the latent vector in it.
  Tensor RunLatent(const model::LatentAttentionConfig& c, const Tensor& h, int step) {
    const std::string& at = head_.prefix;
    const auto with_rotated = [&](const Tensor& rest, const Tensor& turned) {
      return torch::cat({rest, rotation_.Turn(turned, step).transpose(1, 2)}, -1);
    };
    const bool one = c.q_rank == 0;
    const Tensor a = one ? h : Normed(Linear(h, leaves_[at + "attn_q_a.weight"]), "attn_q_a");
    const Tensor q = Linear(a, leaves_[at + (one ? "attn_q.weight" : "attn_q_b.weight")])
                         .view({h.size(0), length_, c.n_heads, c.query_dim()});
    const Tensor in_latents = torch::matmul(q.narrow(-1, 0, c.head_dim).transpose(1, 2),
                                            leaves_[at + "attn_k_b.weight"].transpose(1, 2));
    const Tensor queries = with_rotated(in_latents, q.narrow(-1, c.head_dim, c.rope.n_rot));
    const Tensor kv = Linear(h, leaves_[at + "attn_kv_a_mqa.weight"]).unsqueeze(2);
    const Tensor latent = Normed(kv.narrow(-1, 0, c.rank), "attn_kv_a").transpose(1, 2);
    const Tensor k = with_rotated(latent, kv.narrow(-1, c.rank, c.rope.n_rot)).squeeze(1);
    const Tensor out = Attend(queries * double{c.scale}, k, k, step).narrow(-1, 0, c.rank);
    return torch::matmul(out, leaves_[at + "attn_v_b.weight"].transpose(1, 2));
  }

  // What each head gets: [batch, heads, length, head_dim]. q: the same, scaled; k, v: [batch *
  // key heads, length, head_dim], which later steps attend to.
  Tensor Attend(const Tensor& q, const Tensor& k, const Tensor& v, int step) {
    const std::int64_t kv = head_.block.n_kv_heads, dim = q.size(3);
    if (step == 0) {
      k_ = k, v_ = v;
    } else {
      own_k_.push_back(k), own_v_.push_back(v);
    }
    const auto own = [&](const std::vector<Tensor>& sets) {
      return sets.empty() ? torch::empty({0}, k.options()) : torch::stack(sets);
    };
    const Tensor groups = q.reshape({q.size(0) * kv, q.size(1) / kv, length_, dim});
    return OwnRowsFunction::apply(groups, k_, v_, own(own_k_), own(own_v_)).reshape(q.sizes());
  }

  Tensor Product(const Tensor& h, const std::string& part, std::int64_t heads) const {
    const std::string name = head_.prefix + part;
    Tensor y = Linear(h, leaves_[name + ".weight"]);
    if (leaves_.Has(name + ".bias")) y = (y + leaves_[name + ".bias"]).to(leaves_.compute());
    return y.view({h.size(0), length_, heads, -1});
  }
  // With the norm of that part, where there is one.
  Tensor Normed(const Tensor& y, const std::string& part) const {
    return NormedHeads(head_.block, leaves_, head_.prefix + part, y);
  }

  const HeadConfig& head_;
  const Leaves& leaves_;
  std::int64_t length_;
  Rotation rotation_;
  Tensor k_, v_;
  std::vector<Tensor> own_k_, own_v_;
};

}  // namespace

HeadInput ReadTarget(const HeadConfig& head, TargetReader& target, const Tensor& tokens) {
  torch::NoGradGuard frozen;
  const std::int64_t length = tokens.size(1) - 1;
  const TargetReader::States states = target.Read(tokens.narrow(1, 0, length));
  HeadInput input{.embedded = target.Embedded(tokens), .normed = states.normed};
  if (head.kind == TrainedHead::kEagle) {
    input.features = states.features;
  } else {
    const Tensor none = torch::zeros_like(states.normed.narrow(1, 0, 1));
    input.features = torch::cat({none, states.normed.narrow(1, 0, length - 1)}, 1);
  }
  return input;
}

Parameters InitHead(const HeadConfig& head, const TargetReader& target, std::uint64_t seed) {
  const NetworkConfig& c = head.block;
  const bool eagle = head.kind == TrainedHead::kEagle;
  const std::string& at = head.prefix;
  const std::int64_t dim = c.dim;
  const Beginnings known(target, c.latent.has_value());
  Parameters p;
  const auto gain = [&](const std::string& name, const Tensor& value) {
    p.Add(name, ParameterKind::kGain, value.clone());
  };
  // Small, and the identity at one place, where its input passes through unchanged.
  const auto passage = [&](const std::string& name, std::int64_t places, std::int64_t place) {
    Tensor m = Normal(seed, name, dim, places * dim, 0.02 / std::sqrt(static_cast<double>(places)));
    m.narrow(1, place * dim, dim).add_(torch::eye(dim));
    p.Add(name, ParameterKind::kMatrix, m);
  };
  if (eagle) {
    const auto layers = static_cast<std::int64_t>(head.layers.size());
    passage("fc.weight", layers, layers - 1);
    gain(at + "attn_norm.weight", torch::ones({dim}));
    gain(at + "attn_norm_2.weight", known.Norm("attn_norm.weight"));
  } else {
    passage(at + "nextn.eh_proj.weight", 2, 1);
    gain(at + "nextn.enorm.weight", torch::ones({dim}));
    gain(at + "nextn.hnorm.weight", torch::ones({dim}));
    gain(at + "nextn.shared_head_norm.weight", known.OutputNorm());
    gain(at + "attn_norm.weight", known.Norm("attn_norm.weight"));
  }
  Parameters fresh;
  InitBlock(c, at, eagle ? 2 * dim : dim, seed, fresh);
  for (const Parameter& q : fresh.all()) {
    const std::string part = q.name.substr(at.size());
    const bool query = part == "attn_q.weight" || part == "attn_k.weight";
    const bool pair = eagle && (query || part == "attn_v.weight");
    Tensor value = q.value;
    // The half of a pair that reads the feature.
    Tensor begun = pair ? value.narrow(1, dim, dim) : value;
    if (!eagle || !query || known.SameQueries())
      if (const auto same = known.OfBlock(part, begun)) begun.copy_(*same);
    p.Add(q.name, q.kind, value);
  }
  if (eagle) gain("output_norm.weight", known.OutputNorm());
  return p;
}

Tensor Unroll(const HeadConfig& head, const Leaves& leaves, const HeadInput& input, int steps) {
  const NetworkConfig& c = head.block;
  const bool eagle = head.kind == TrainedHead::kEagle;
  const std::string& at = head.prefix;
  const torch::Dtype compute = leaves.compute();
  const auto norm = [&](const Tensor& x, const std::string& name) {
    return RmsNorm(x.to(Wide(x)), leaves[name], c.norm_eps, compute);
  };
  const auto join = [&](const Tensor& x, const Tensor& part, const std::string& post_norm) {
    const Tensor added = post_norm.empty() ? part : norm(part, at + post_norm + ".weight");
    return c.residual_scale == 1 ? x + added : x + added * c.residual_scale;
  };
  const std::int64_t length = input.features.size(1);
  // Tokens beyond the window repeat its last one; rows that read them do not count.
  const Tensor index =
      torch::arange(length + steps, input.embedded.options().dtype(torch::kLong)).clamp_max(length);
  const Tensor tokens = norm(input.embedded.index_select(1, index),
                             eagle ? at + "attn_norm.weight" : at + "nextn.enorm.weight");
  StepAttention attention(head, leaves, input.embedded, length, steps);
  Tensor feature = input.features;
  if (eagle) feature = Linear(feature.to(compute), leaves["fc.weight"]).to(Wide(feature));
  std::vector<Tensor> outputs;
  for (int step = 0; step < steps; ++step) {
    const Tensor token = tokens.narrow(1, step + head.Shift(), length);
    const Tensor joint = torch::cat(
        {token, norm(feature, eagle ? at + "attn_norm_2.weight" : at + "nextn.hnorm.weight")}, -1);
    Tensor x = feature, h = joint;
    if (!eagle) {
      x = Linear(joint, leaves[at + "nextn.eh_proj.weight"]);
      x = x.to(Wide(x));
      h = norm(x, at + "attn_norm.weight");
    }
    const Tensor y = join(x, attention.Run(h, step), c.attention_post_norm);
    const Tensor inner = FeedForward(leaves, at, norm(y, at + c.ffn_norm + ".weight"), c.function);
    const Tensor out = join(y, inner, c.ffn_post_norm);
    outputs.push_back(
        norm(out, eagle ? "output_norm.weight" : at + "nextn.shared_head_norm.weight"));
    feature = eagle ? out : outputs.back();
  }
  return torch::stack(outputs);
}

Drafts UnrolledDrafts(const HeadConfig& head, const Leaves& leaves, const HeadInput& input,
                      int steps) {
  const Tensor hidden = Unroll(head, leaves, input, steps);
  const std::int64_t n = hidden.size(2) - head.Shift() - steps + 1;
  std::vector<Tensor> normed;
  for (int s = 0; s < steps; ++s) normed.push_back(input.normed.narrow(1, head.Shift() + s, n));
  return {hidden.narrow(2, 0, n), torch::stack(normed)};
}

Tensor UnrolledLoss(const Tensor& hidden, const Tensor& head, const Tensor& normed,
                    const Tensor& target_head, int shift, double decay, const LogitShape& shape,
                    const LogitShape& target_shape) {
  return UnrolledLossFunction::apply(hidden, head, normed, target_head,
                                     static_cast<std::int64_t>(shift), decay, shape, target_shape);
}

}  // namespace foretoken::train
