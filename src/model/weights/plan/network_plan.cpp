// SPDX-License-Identifier: Apache-2.0
#include "model/weights/plan/network_plan.h"

#include <fmt/format.h>

#include <cmath>
#include <variant>

#include "kernels/repack.h"
#include "model/ranks/heads.h"
#include "tensor/dtype.h"

namespace foretoken::model {

using tensor::TileType;

Result<int> EmbeddingRows(const formats::Checkpoint& checkpoint, const std::string& name) {
  const std::int64_t rows = checkpoint.Find(name)->shape[1];
  if (rows >= 1 && rows <= (1 << 24)) return static_cast<int>(rows);
  return Fail(ErrorCode::kInvalidFile,
              fmt::format("tensor {}: {} rows are out of range", name, rows));
}

Status NetworkPlan::Plan(std::span<const std::int32_t> output_tokens,
                         std::span<const std::int32_t> reduced_tokens) {
  FORETOKEN_CHECK_OK(Embedding("token_embd.weight", config_.vocabulary));
  FORETOKEN_CHECK_OK(
      Vector(fmt::format("{}.weight", config_.output_norm), config_.dim, weights_.output_norm));
  const bool tied = checkpoint_.Find("output.weight") == nullptr;
  const std::string output = tied ? "token_embd.weight" : "output.weight";
  FORETOKEN_TRY(weights_.output_tensor_, Find(output, config_.dim, config_.vocabulary));
  if (output_tokens.empty())
    FORETOKEN_CHECK_OK(Divided(output, config_.vocabulary, config_.dim, weights_.output));
  else
    SomeRows(*weights_.output_tensor_, output_tokens, weights_.output, weights_.output_tokens);
  if (!reduced_tokens.empty() && IsConverted(*weights_.output_tensor_))
    SomeRows(*weights_.output_tensor_, reduced_tokens, weights_.reduced_output,
             weights_.reduced_tokens, true);
  FORETOKEN_CHECK_OK(RopeFactors());
  if (config_.layer_input != 0) FORETOKEN_CHECK_OK(LayerInputs());
  return Layers();
}

Status NetworkPlan::Embedding(const std::string& name, int vocabulary) {
  FORETOKEN_TRY(embedding_, Find(name, config_.dim, vocabulary));
  return {};
}

Status NetworkPlan::LayerInputs() {
  const int width = config_.layer_input, all = width * config_.n_layers();
  PerLayerInputsWeights& w = weights_.layer_inputs.emplace();
  FORETOKEN_TRY(second_embedding_, Find(kLayerEmbedding, all, config_.vocabulary));
  FORETOKEN_CHECK_OK(Divided("per_layer_model_proj.weight", all, config_.dim, w.projection));
  return Vector("per_layer_proj_norm.weight", width, w.norm);
}

Status NetworkPlan::LayerInput(const std::string& prefix, PerLayerInputWeights& w) {
  const int width = config_.layer_input, dim = config_.dim;
  FORETOKEN_CHECK_OK(Matrix(prefix + "inp_gate.weight", width, dim, w.gate));
  FORETOKEN_CHECK_OK(Matrix(prefix + "proj.weight", dim, width, w.projection));
  return Vector(prefix + "post_norm.weight", dim, w.post_norm);
}

Status NetworkPlan::Layers() {
  weights_.layers.resize(config_.layers.size());
  for (std::size_t i = 0; i < config_.layers.size(); ++i)
    FORETOKEN_CHECK_OK(Layer(config_.layers[i], weights_.layers[i]));
  return {};
}

Status NetworkPlan::Layer(const LayerConfig& config, LayerWeights& layer) {
  const std::string prefix = fmt::format("blk.{}.", config.block);
  if (config.output_scale)
    FORETOKEN_CHECK_OK(Vector(prefix + "layer_output_scale.weight", 1, layer.output_scale));
  if (config_.layer_input != 0) FORETOKEN_CHECK_OK(LayerInput(prefix, layer.input.emplace()));
  FORETOKEN_CHECK_OK(
      std::visit([&](const auto& part) { return Mixer(prefix, part, layer); }, config.mixer));
  if (config.beside) FORETOKEN_CHECK_OK(Mamba2(prefix, *config.beside, layer.beside.emplace()));
  if (config.convolution) {
    FORETOKEN_CHECK_OK(
        LocalConvolution(prefix + "attn_conv", *config.convolution, layer.around_mixer.emplace()));
    FORETOKEN_CHECK_OK(LocalConvolution(prefix + "ffn_conv", *config.convolution,
                                        layer.around_feed_forward.emplace()));
  }
  if (config.dense_part) {
    FORETOKEN_CHECK_OK(GatedFfn(prefix, *config.dense_part, layer.dense_part.emplace()));
    FORETOKEN_CHECK_OK(Norm(prefix, config.sum_norm, config_.dim, layer.sum_norm));
  }
  return std::visit([&](const auto& part) { return FeedForward(prefix, part, layer); },
                    config.feed_forward);
}

Status NetworkPlan::LocalConvolution(const std::string& name, const LocalConvolutionConfig& config,
                                     LocalConvolutionWeights& w) {
  const int dim = config_.dim;
  FORETOKEN_TRY(const formats::TensorView* base, Find(name + "_base", dim, config.taps, 2));
  w.base = Values(*base, dim, 2 * config.taps);
  return Divided(name + "_proj.weight", config.coefficients(dim), dim, w.coefficients);
}

Status NetworkPlan::Mixer(const std::string& prefix, const AttentionConfig& config,
                          LayerWeights& layer) {
  auto& w = layer.mixer.emplace<AttentionWeights>();
  const int dim = config_.dim, q_dim = config.n_heads * config.head_dim,
            kv_dim = config.n_kv_heads * config.head_dim;
  FORETOKEN_CHECK_OK(Norm(prefix, config.norm, dim, w.norm));
  FORETOKEN_CHECK_OK(QueriesKeysValues(prefix, config, q_dim, kv_dim, w));
  FORETOKEN_CHECK_OK(Divided(prefix + "attn_output.weight", dim, q_dim, w.o));
  FORETOKEN_CHECK_OK(Bias(prefix + "attn_output.bias", dim, config.output_bias, w.o_bias));
  FORETOKEN_CHECK_OK(Norm(prefix, config.post_norm, dim, w.post_norm));
  if (config.sinks)
    FORETOKEN_CHECK_OK(Vector(prefix + "attn_sinks.weight", config.n_heads, w.sinks));
  if (config.v_norm)
    w.v_norm = vectors_.emplace_back(static_cast<std::size_t>(config.head_dim), 1.0f).data();
  if (config.qk_norm == QkNorm::kNone) return {};
  if (config.qk_norm_optional && checkpoint_.Find(prefix + "attn_q_norm.weight") == nullptr)
    return {};
  const bool by_head = config.qk_norm == QkNorm::kHead;
  FORETOKEN_CHECK_OK(
      Vector(prefix + "attn_q_norm.weight", by_head ? config.head_dim : q_dim, w.q_norm));
  if (config.cache_layer >= 0) return {};
  return Vector(prefix + "attn_k_norm.weight", by_head ? config.head_dim : kv_dim, w.k_norm);
}

Status NetworkPlan::Mixer(const std::string& prefix, const LatentAttentionConfig& config,
                          LayerWeights& layer) {
  auto& w = layer.mixer.emplace<LatentAttentionWeights>();
  const int dim = config_.dim, n = config.n_heads;
  FORETOKEN_CHECK_OK(Norm(prefix, config.norm, dim, w.norm));
  FORETOKEN_CHECK_OK(LatentQueries(prefix, config, w));
  FORETOKEN_CHECK_OK(Matrix(prefix + "attn_kv_a_mqa.weight", config.key_dim(), dim, w.kv));
  FORETOKEN_CHECK_OK(Vector(prefix + "attn_kv_a_norm.weight", config.rank, w.latent_norm));
  FORETOKEN_CHECK_OK(Divided(prefix + "attn_output.weight", dim, n * config.value_dim, w.o));
  if (checkpoint_.Find(prefix + "attn_kv_b.weight") != nullptr)
    return LatentMatricesTogether(prefix + "attn_kv_b.weight", config, w);
  const OutputRange heads = OwnHeads(config, division_);
  FORETOKEN_CHECK_OK(Parts({prefix + "attn_k_b.weight", n, config.rank, heads, {0, config.rank}},
                           config.head_dim, w.k));
  return Parts({prefix + "attn_v_b.weight", n, config.value_dim, heads, {0, config.value_dim}},
               config.rank, w.v);
}

Status NetworkPlan::LatentQueries(const std::string& prefix, const LatentAttentionConfig& config,
                                  LatentAttentionWeights& w) {
  const int each = config.query_dim(), dim = config_.dim;
  const OutputRange heads = OwnHeads(config, division_),
                    rows = {heads.begin * each, heads.end * each};
  if (config.q_rank == 0)
    return Rows({prefix + "attn_q.weight", config.n_heads * each}, 0, rows, dim, w.q);
  FORETOKEN_CHECK_OK(Matrix(prefix + "attn_q_a.weight", config.q_rank, dim, w.q_a));
  FORETOKEN_CHECK_OK(Vector(prefix + "attn_q_a_norm.weight", config.q_rank, w.q_a_norm));
  return Rows({prefix + "attn_q_b.weight", config.n_heads * each}, 0, rows, config.q_rank, w.q);
}

Status NetworkPlan::Mixer(const std::string& prefix, const ShortConvConfig& config,
                          LayerWeights& layer) {
  auto& w = layer.mixer.emplace<ShortConvWeights>();
  const int dim = config_.dim;
  FORETOKEN_CHECK_OK(Norm(prefix, config.norm, dim, w.norm));
  const std::string in = prefix + "shortconv.in_proj.weight";
  FORETOKEN_CHECK_OK(Rows({in, 3 * dim}, 0, Own(dim), dim, w.b));
  FORETOKEN_CHECK_OK(Rows({in, 3 * dim}, dim, Own(dim), dim, w.c));
  FORETOKEN_CHECK_OK(Rows({in, 3 * dim}, 2 * dim, Own(dim), dim, w.u));
  FORETOKEN_CHECK_OK(Taps(prefix + "shortconv.conv.weight", config.taps, dim, w.taps));
  return Divided(prefix + "shortconv.out_proj.weight", dim, dim, w.out);
}

Status NetworkPlan::Mixer(const std::string& prefix, const DeltaNetConfig& config,
                          LayerWeights& layer) {
  auto& w = layer.mixer.emplace<DeltaNetWeights>();
  const int dim = config_.dim, n = config.head_dim, heads = config.n_value_heads,
            values = config.value_dim(), columns = config.convolved();
  const OutputRange own = division_.Own(heads, 1);
  const std::string z = prefix + "attn_gate.weight";
  FORETOKEN_CHECK_OK(Norm(prefix, config.norm, dim, w.norm));
  FORETOKEN_CHECK_OK(Divided(prefix + "attn_qkv.weight", columns, dim, w.c));
  FORETOKEN_CHECK_OK(Rows({z, values}, 0, {own.begin * n, own.end * n}, dim, w.z));
  FORETOKEN_CHECK_OK(AlphaBeta(prefix, config, w));
  FORETOKEN_CHECK_OK(Taps(prefix + "ssm_conv1d.weight", config.taps, columns, w.taps));
  FORETOKEN_CHECK_OK(Vector(prefix + "ssm_dt.bias", heads, w.dt));
  FORETOKEN_CHECK_OK(Vector(prefix + "ssm_a", heads, w.a));
  FORETOKEN_CHECK_OK(Vector(prefix + "ssm_norm.weight", n, w.head_norm));
  w.q_scale = Constants(n, 1.0f / static_cast<float>(n));
  w.k_scale = Constants(n, static_cast<float>(std::sqrt(1.0 / n)));
  return Divided(prefix + "ssm_out.weight", dim, values, w.out);
}

Status NetworkPlan::Mixer(const std::string& prefix, const Mamba2Config& config,
                          LayerWeights& layer) {
  return Mamba2(prefix, config, layer.mixer.emplace<Mamba2Weights>());
}

Status NetworkPlan::Mamba2(const std::string& prefix, const Mamba2Config& config,
                           Mamba2Weights& w) {
  const int dim = config_.dim, inner = config.inner(), heads = config.n_heads,
            columns = config.convolved(), all = inner + columns + heads;
  const OutputRange own = division_.Own(heads, 1);
  const OutputRange values = {own.begin * config.head_dim, own.end * config.head_dim};
  const std::string in = prefix + "ssm_in.weight";
  FORETOKEN_CHECK_OK(Norm(prefix, config.norm, dim, w.norm));
  FORETOKEN_CHECK_OK(Rows({in, all}, 0, values, dim, w.z));
  FORETOKEN_CHECK_OK(Rows({in, all}, inner, Own(columns), dim, w.c));
  FORETOKEN_CHECK_OK(Rows({in, all}, inner + columns, {0, heads}, dim, w.dt));
  FORETOKEN_CHECK_OK(Taps(prefix + "ssm_conv1d.weight", config.taps, columns, w.taps));
  FORETOKEN_CHECK_OK(Vector(prefix + "ssm_conv1d.bias", columns, w.tap_bias));
  FORETOKEN_CHECK_OK(Vector(prefix + "ssm_dt.bias", heads, w.dt_bias));
  FORETOKEN_CHECK_OK(Vector(prefix + "ssm_a", 1, w.a, heads));
  FORETOKEN_CHECK_OK(Vector(prefix + "ssm_d", 1, w.d, heads));
  if (checkpoint_.Find(prefix + "ssm_norm.weight") != nullptr)
    FORETOKEN_CHECK_OK(
        Vector(prefix + "ssm_norm.weight", inner / config.n_groups, w.group_norm, config.n_groups));
  return Divided(prefix + "ssm_out.weight", dim, inner, w.out);
}

Status NetworkPlan::AlphaBeta(const std::string& prefix, const DeltaNetConfig& config,
                              DeltaNetWeights& w) {
  const int dim = config_.dim, heads = config.n_value_heads;
  if (!config.grouped) {
    FORETOKEN_CHECK_OK(Matrix(prefix + "ssm_alpha.weight", heads, dim, w.alpha));
    return Matrix(prefix + "ssm_beta.weight", heads, dim, w.beta);
  }
  const std::string both = prefix + "ssm_ba.weight";
  const int group = heads / config.n_key_heads;
  FORETOKEN_CHECK_OK(EverySecond({both, 2 * heads}, group, 0, {0, heads}, dim, w.beta));
  return EverySecond({both, 2 * heads}, group, group, {0, heads}, dim, w.alpha);
}

Status NetworkPlan::Taps(const std::string& name, int taps, int channels, const float*& out) {
  FORETOKEN_CHECK_OK(Vector(name, taps, out, channels));
  const std::vector<float> by_channel = vectors_.back();
  float* to = vectors_.back().data();
  for (int tap = 0; tap < taps; ++tap)
    for (int channel = 0; channel < channels; ++channel)
      *to++ = by_channel[static_cast<std::size_t>(channel * taps + tap)];
  return {};
}

Status NetworkPlan::LatentMatricesTogether(const std::string& name,
                                           const LatentAttentionConfig& config,
                                           LatentAttentionWeights& w) {
  const int part_rows = config.head_dim + config.value_dim;
  const OutputRange heads = OwnHeads(config, division_);
  FORETOKEN_TRY(const formats::TensorView* t, Find(name, config.rank, config.n_heads * part_rows));
  const auto place = [&](ExpertLinear& out, TileType type, int n_out, int k, int first_row,
                         bool columns) {
    out.first.type = type;
    out.first.k = k;
    if (heads.n() == 0) return;
    jobs_.push_back({.tensor = t,
                     .linear = &out.first,
                     .offset = 0,
                     .first_part = heads.begin,
                     .n_parts = heads.n(),
                     .part_rows = part_rows,
                     .first_row = first_row,
                     .columns = columns});
    Place(jobs_.back(), n_out);
    out.expert_bytes = kernels::TiledBytes(out.first.type, n_out, k);
  };
  place(w.k, TileType::kF32, config.rank, config.head_dim, 0, true);
  place(w.v, tensor::FindDType(t->ggml_type)->tile, config.value_dim, config.rank, config.head_dim,
        false);
  return {};
}

Status NetworkPlan::QueriesKeysValues(const std::string& prefix, const AttentionConfig& config,
                                      int q_dim, int kv_dim, AttentionWeights& w) {
  const int width = config.reads_pair ? 2 * config_.dim : config_.dim;
  const HeadRange own = OwnHeads(config, division_);
  const auto columns = [&](OutputRange heads) -> OutputRange {
    return {heads.begin * config.head_dim, heads.end * config.head_dim};
  };
  // One norm for all keys of a row needs them all: they are gathered, so no rank has any twice.
  const OutputRange queries = columns(own.queries), values = columns(own.keys),
                    keys = config.qk_norm == QkNorm::kRow ? Own(kv_dim) : values;
  if (checkpoint_.Find(prefix + "attn_qkv.weight") == nullptr) {
    FORETOKEN_CHECK_OK(Queries(prefix + "attn_q.weight", config, queries, width, w));
    if (config.cache_layer >= 0)
      return Bias(prefix + "attn_q.bias", q_dim, config.qkv_bias, w.q_bias);
    FORETOKEN_CHECK_OK(Rows({prefix + "attn_k.weight", kv_dim}, 0, keys, width, w.k));
    // Without the matrix, w.v has no tiles.
    const bool has_v = checkpoint_.Find(prefix + "attn_v.weight") != nullptr;
    if (has_v || !config.keys_may_be_values)
      FORETOKEN_CHECK_OK(Rows({prefix + "attn_v.weight", kv_dim}, 0, values, width, w.v));
    FORETOKEN_CHECK_OK(Bias(prefix + "attn_q.bias", q_dim, config.qkv_bias, w.q_bias));
    FORETOKEN_CHECK_OK(Bias(prefix + "attn_k.bias", kv_dim, config.qkv_bias, w.k_bias));
    return Bias(prefix + "attn_v.bias", kv_dim, config.qkv_bias, w.v_bias);
  }
  const int all = q_dim + 2 * kv_dim;
  const std::string qkv = prefix + "attn_qkv.weight";
  FORETOKEN_CHECK_OK(Rows({qkv, all}, 0, queries, width, w.q));
  FORETOKEN_CHECK_OK(Rows({qkv, all}, q_dim, keys, width, w.k));
  FORETOKEN_CHECK_OK(Rows({qkv, all}, q_dim + kv_dim, values, width, w.v));
  FORETOKEN_CHECK_OK(Bias(prefix + "attn_qkv.bias", all, config.qkv_bias, w.q_bias));
  if (w.q_bias != nullptr) w.k_bias = w.q_bias + q_dim, w.v_bias = w.k_bias + kv_dim;
  return {};
}

Status NetworkPlan::Queries(const std::string& name, const AttentionConfig& config, OutputRange own,
                            int width, AttentionWeights& w) {
  const int n = config.head_dim, all = config.n_heads * n;
  if (!config.output_gate) return Rows({name, all}, 0, own, width, w.q);
  FORETOKEN_CHECK_OK(EverySecond({name, 2 * all}, n, 0, own, width, w.q));
  return EverySecond({name, 2 * all}, n, n, own, width, w.gate);
}

Status NetworkPlan::FeedForward(const std::string& prefix, const GatedFfnConfig& config,
                                LayerWeights& layer) {
  return GatedFfn(prefix, config, layer.feed_forward.emplace<GatedFfnWeights>());
}

Status NetworkPlan::GatedFfn(const std::string& prefix, const GatedFfnConfig& config,
                             GatedFfnWeights& w) {
  const int dim = config_.dim, width = config.width;
  if (config.bare_norm)
    FORETOKEN_CHECK_OK(Vector(fmt::format("{}{}", prefix, config.norm), dim, w.norm));
  else
    FORETOKEN_CHECK_OK(Norm(prefix, config.norm, dim, w.norm));
  if (!config.gated) {  // w.up has no tiles
    FORETOKEN_CHECK_OK(Divided(prefix + "ffn_up.weight", width, dim, w.gate));
  } else if (config.gate_in_up) {
    const std::string both = prefix + "ffn_up.weight";
    FORETOKEN_CHECK_OK(Rows({both, 2 * width}, 0, Own(width), dim, w.gate));
    FORETOKEN_CHECK_OK(Rows({both, 2 * width}, width, Own(width), dim, w.up));
  } else {
    FORETOKEN_CHECK_OK(Divided(prefix + "ffn_gate.weight", width, dim, w.gate));
    FORETOKEN_CHECK_OK(Divided(prefix + "ffn_up.weight", width, dim, w.up));
  }
  FORETOKEN_CHECK_OK(Divided(prefix + "ffn_down.weight", dim, width, w.down));
  return Norm(prefix, config.post_norm, dim, w.post_norm);
}

Status NetworkPlan::FeedForward(const std::string& prefix, const ExpertsConfig& config,
                                LayerWeights& layer) {
  auto& w = layer.feed_forward.emplace<ExpertsWeights>();
  const int dim = config_.dim, n = config.n_experts, width = config.width;
  FORETOKEN_CHECK_OK(Norm(prefix, config.norm, dim, w.norm));
  FORETOKEN_CHECK_OK(Norm(prefix, config.post_norm, dim, w.post_norm));
  FORETOKEN_CHECK_OK(Matrix(prefix + "ffn_gate_inp.weight", n, dim, w.router));
  if (config.router_norm) FORETOKEN_CHECK_OK(RouterNorm(prefix, w.router_norm));
  if (config.scales) FORETOKEN_CHECK_OK(Vector(prefix + "ffn_down_exps.scale", n, w.scales));
  if (config.selection_bias)
    FORETOKEN_CHECK_OK(Bias(prefix + "exp_probs_b.bias", n, false, w.selection_bias));
  const std::string fused = prefix + "ffn_gate_up_exps.weight";
  if (!config.gated) {  // w.up has no tiles
    FORETOKEN_CHECK_OK(Experts(prefix + "ffn_up_exps.weight", n, {width, dim}, w.gate, width));
  } else if (checkpoint_.Find(fused) != nullptr) {  // the rows of gate come first
    FORETOKEN_CHECK_OK(Experts(fused, n, {width, dim}, w.gate, 2 * width, 0));
    FORETOKEN_CHECK_OK(Experts(fused, n, {width, dim}, w.up, 2 * width, width));
  } else {
    FORETOKEN_CHECK_OK(Experts(prefix + "ffn_gate_exps.weight", n, {width, dim}, w.gate, width));
    FORETOKEN_CHECK_OK(Experts(prefix + "ffn_up_exps.weight", n, {width, dim}, w.up, width));
  }
  FORETOKEN_CHECK_OK(Experts(prefix + "ffn_down_exps.weight", n, {dim, width}, w.down, dim));
  if (config.biases) {
    FORETOKEN_CHECK_OK(Vector(prefix + "ffn_gate_inp.bias", n, w.router_bias));
    FORETOKEN_CHECK_OK(Vector(prefix + "ffn_gate_exps.bias", width, w.gate_bias, n));
    FORETOKEN_CHECK_OK(Vector(prefix + "ffn_up_exps.bias", width, w.up_bias, n));
    FORETOKEN_CHECK_OK(Vector(prefix + "ffn_down_exps.bias", dim, w.down_bias, n));
  }
  if (config.shared_width == 0) return {};
  const int shared = config.shared_width;
  if (config.shared_gate)
    FORETOKEN_CHECK_OK(Matrix(prefix + "ffn_gate_inp_shexp.weight", 1, dim, w.shared_router));
  if (config.gated) {
    FORETOKEN_CHECK_OK(Divided(prefix + "ffn_gate_shexp.weight", shared, dim, w.shared.gate));
    FORETOKEN_CHECK_OK(Divided(prefix + "ffn_up_shexp.weight", shared, dim, w.shared.up));
  } else {
    FORETOKEN_CHECK_OK(Divided(prefix + "ffn_up_shexp.weight", shared, dim, w.shared.gate));
  }
  return Divided(prefix + "ffn_down_shexp.weight", dim, shared, w.shared.down);
}

Status NetworkPlan::RouterNorm(const std::string& prefix, const float*& out) {
  FORETOKEN_CHECK_OK(Vector(prefix + "ffn_gate_inp.scale", config_.dim, out));
  for (float& x : vectors_.back()) x *= static_cast<float>(std::sqrt(1.0 / config_.dim));
  return {};
}

Status NetworkPlan::RopeFactors() {
  for (const LayerConfig& layer : config_.layers) {
    const RopeConfig* rope = layer.rope();
    if (rope == nullptr) continue;
    for (const std::string_view name : {rope->factors, rope->long_factors})
      FORETOKEN_CHECK_OK(RopeFactorsNamed(name, rope->n_rot / 2));
  }
  return {};
}

Status NetworkPlan::RopeFactorsNamed(std::string_view name, int n) {
  const std::string tensor = fmt::format("{}.weight", name);
  if (name.empty() || checkpoint_.Find(tensor) == nullptr) return {};
  for (const auto& known : weights_.rope_factors_) {
    if (known.name != name) continue;
    if (known.values.size() == static_cast<std::size_t>(n)) return {};
    return Fail(ErrorCode::kUnsupported,
                fmt::format("tensor {}: layers rotate different numbers of dimensions, which is "
                            "not supported yet",
                            tensor));
  }
  const float* factors = nullptr;
  FORETOKEN_CHECK_OK(Vector(tensor, n, factors));
  for (int i = 0; i < n; ++i)
    if (!(factors[i] > 0))
      return Fail(ErrorCode::kInvalidFile,
                  fmt::format("tensor {}: {} is not positive", tensor, factors[i]));
  weights_.rope_factors_.push_back({std::string(name), {factors, static_cast<std::size_t>(n)}});
  return {};
}

}  // namespace foretoken::model
