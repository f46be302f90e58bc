// SPDX-License-Identifier: Apache-2.0
// The feed-forward parts, dense and of experts.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "oracle/arithmetic.h"
#include "oracle/oracle.h"

namespace foretoken::oracle {

namespace {

// The experts, the best first; of equal ones the lowest.
std::vector<std::size_t> Ranking(const std::vector<float>& scores) {
  std::vector<std::size_t> ids(scores.size());
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = i;
  std::stable_sort(ids.begin(), ids.end(),
                   [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  return ids;
}

}  // namespace

// One expert's function(Wgate h) * (Wup h), then Wdown, with biases.
Oracle::Row Oracle::ExpertOf(const model::ExpertsConfig& config, const std::string& prefix,
                             const std::string& suffix, const Row& h, int part) const {
  const auto name = [&](const char* matrix) {
    return fmt::format("{}ffn_{}{}.weight", prefix, matrix, suffix);
  };
  const auto product = [&](const char* matrix, const Row& x) {
    Row y = Multiply(name(matrix), x, part);
    if (config.biases) {
      const Row biases = Vector(fmt::format("{}ffn_{}{}.bias", prefix, matrix, suffix));
      Add(y, Part(biases, part * static_cast<int>(y.size()), static_cast<int>(y.size())));
    }
    return y;
  };
  Row gate, up;
  if (!config.gated) {
    gate = up = product("up", h);
  } else if (checkpoint_.Find(name("gate_up")) != nullptr) {
    const Row both = product("gate_up", h);
    gate = Part(both, 0, config.width), up = Part(both, config.width, config.width);
  } else {
    gate = product("gate", h), up = product("up", h);
  }
  for (std::size_t j = 0; j < gate.size(); ++j) {
    float t = config.function == model::GateFunction::kGelu ? GeluArgument(gate[j]) : gate[j];
    if (config.function == model::GateFunction::kLimitedSwiglu) {
      gate[j] = std::min(gate[j], 7.0f);
      up[j] = std::clamp(up[j], -7.0f, 7.0f) + 1.0f;
      t = gate[j] * 1.702f;
    }
    if (config.function == model::GateFunction::kReluSquared)
      gate[j] = std::max(gate[j], 0.0f) * std::max(gate[j], 0.0f);
    else
      gate[j] = (gate[j] / (1.0f + Exp(-t))) * up[j];
  }
  return product("down", gate);
}

// The weight of each expert, and 0 for those that are not chosen.
std::vector<float> Oracle::ExpertWeights(const model::ExpertsConfig& config, Row p,
                                         const Row& bias) const {
  using model::ExpertGating;
  if (config.gating == ExpertGating::kSoftmax) Softmax(p);
  if (config.gating == ExpertGating::kSigmoid)
    for (float& x : p) x = 1.0f / (1.0f + Exp(-x));
  Row scores = p;
  for (std::size_t i = 0; i < bias.size(); ++i) scores[i] += bias[i];
  const std::size_t n = p.size() / static_cast<std::size_t>(config.n_groups);
  Row groups;
  for (std::size_t at = 0; at < p.size() && config.n_groups > 1; at += n) {
    Row group(scores.begin() + static_cast<std::ptrdiff_t>(at),
              scores.begin() + static_cast<std::ptrdiff_t>(at + n));
    std::sort(group.rbegin(), group.rend());
    groups.push_back(n == 1 ? group[0] : group[0] + group[1]);
  }
  const std::vector<std::size_t> best_groups = Ranking(groups);
  for (std::size_t i = static_cast<std::size_t>(config.n_used_groups); i < best_groups.size(); ++i)
    std::fill_n(scores.begin() + static_cast<std::ptrdiff_t>(best_groups[i] * n), n, -INFINITY);
  std::vector<std::size_t> chosen = Ranking(scores);
  chosen.resize(static_cast<std::size_t>(config.n_used));
  Row weights;
  for (const std::size_t e : chosen) weights.push_back(p[e]);
  if (config.gating == ExpertGating::kChosenSoftmax) Softmax(weights);
  float sum = 0;
  for (const float w : weights) sum += w;
  sum = std::max(sum, 0x1p-14f);
  std::vector<float> all(p.size(), 0.0f);
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (config.normalised) weights[i] /= sum;
    all[chosen[i]] = weights[i] * config.weights_scale;
  }
  return all;
}

Oracle::Row Oracle::Experts(const model::ExpertsConfig& config, const std::string& prefix,
                            const Row& x) const {
  const Row h = Norm(x, fmt::format("{}{}.weight", prefix, config.norm));
  Row router = h;
  if (config.router_norm) {
    Row weights = Vector(prefix + "ffn_gate_inp.scale");
    for (float& w : weights) w *= static_cast<float>(std::sqrt(1.0 / config_.dim));
    router = Norm(x, weights);
  }
  Row logits = Multiply(prefix + "ffn_gate_inp.weight", router);
  if (config.biases) Add(logits, Vector(prefix + "ffn_gate_inp.bias"));
  std::vector<float> weights = ExpertWeights(
      config, logits, config.selection_bias ? Vector(prefix + "exp_probs_b.bias") : Row{});
  const Row scales = config.scales ? Vector(prefix + "ffn_down_exps.scale") : Row{};
  for (std::size_t e = 0; e < scales.size(); ++e) weights[e] *= scales[e];
  Row y(h.size(), 0.0f);
  const auto add = [&](float weight, const Row& of) {
    for (std::size_t i = 0; i < y.size(); ++i) y[i] += weight * of[i];
  };
  for (std::size_t e = 0; e < weights.size(); ++e)
    if (weights[e] != 0) add(weights[e], ExpertOf(config, prefix, "_exps", h, static_cast<int>(e)));
  if (config.shared_width == 0) return y;
  float gate = 1;
  if (config.shared_gate)
    gate = 1.0f / (1.0f + Exp(-Multiply(prefix + "ffn_gate_inp_shexp.weight", h)[0]));
  add(gate, ExpertOf(config, prefix, "_shexp", h, 0));
  return y;
}

Oracle::Row Oracle::GatedFfn(const model::LayerConfig& layer, const model::GatedFfnConfig& config,
                             const Row& x) const {
  const auto weight = [&](std::string_view part) {
    return part.empty() ? std::string() : NameOf(layer, fmt::format("{}.weight", part));
  };
  const Row h = Norm(x, config.bare_norm ? NameOf(layer, config.norm) : weight(config.norm));
  Row up = Multiply(weight("ffn_up"), h), gate;
  if (!config.gated) {
    gate = up;
  } else if (config.gate_in_up) {
    gate = Part(up, 0, config.width);
    up = Part(up, config.width, config.width);
  } else {
    gate = Multiply(weight("ffn_gate"), h);
  }
  for (std::size_t j = 0; j < gate.size(); ++j) {
    const float g = gate[j];
    const float t = config.function == model::GateFunction::kSilu ? g : GeluArgument(g);
    gate[j] = (g / (1.0f + Exp(-t))) * up[j];
    if (config.function == model::GateFunction::kReluSquared)
      gate[j] = std::max(g, 0.0f) * std::max(g, 0.0f);
  }
  return Norm(Multiply(weight("ffn_down"), gate), weight(config.post_norm));
}

// What the feed-forward part, or both of them, add to the residual stream.
Oracle::Row Oracle::FeedForward(const model::LayerConfig& layer, const Row& x) const {
  const model::ExpertsConfig* experts = layer.experts();
  if (std::holds_alternative<model::NoPart>(layer.feed_forward)) return Row(x.size(), 0.0f);
  if (experts == nullptr) return GatedFfn(layer, layer.ffn(), x);
  const auto norm = [&](const Row& y, std::string_view name) {
    return name.empty() ? y : Norm(y, NameOf(layer, fmt::format("{}.weight", name)));
  };
  const Row y = norm(Experts(*experts, NameOf(layer, ""), x), experts->post_norm);
  if (!layer.dense_part) return y;
  Row sum = GatedFfn(layer, *layer.dense_part, x);
  Add(sum, y);
  return norm(sum, layer.sum_norm);
}

}  // namespace foretoken::oracle
