// SPDX-License-Identifier: Apache-2.0
#include "oracle/oracle.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "oracle/arithmetic.h"
#include "oracle/quantised_dot.h"

namespace foretoken::oracle {

Oracle::Oracle(const formats::Checkpoint& checkpoint, const model::ModelConfig& config,
               bool half_cache)
    : checkpoint_(checkpoint), config_(config), half_cache_(half_cache) {}

Oracle::Row Oracle::Multiply(const std::string& name, const Row& x, int part) const {
  const formats::TensorView& t = *checkpoint_.Find(name);
  const auto& info = *tensor::FindDType(t.ggml_type);
  const auto n_out = static_cast<std::size_t>(t.shape[1]);
  const std::size_t row_bytes = t.data.size() / n_out / static_cast<std::size_t>(t.shape[2]);
  Row y(n_out), w(x.size());
  const bool integers = tensor::IsQuantised(info.tile);
  const Quantised quantised(integers ? x : Row{});
  for (std::size_t o = 0; o < n_out; ++o) {
    const std::byte* row = t.data.data() + (static_cast<std::size_t>(part) * n_out + o) * row_bytes;
    if (integers) {
      y[o] = QuantisedDot(info.type, row, quantised);
      continue;
    }
    tensor::Dequantize(info.type, row, static_cast<std::int64_t>(x.size()), w.data());
    float acc = 0;
    for (std::size_t k = 0; k < x.size(); ++k) acc = std::fma(w[k], x[k], acc);
    y[o] = acc;
  }
  return y;
}

Oracle::Row Oracle::Vector(const std::string& name) const {
  const formats::TensorView* t = checkpoint_.Find(name);
  if (t == nullptr) return {};
  Row row(static_cast<std::size_t>(t->shape[0] * t->shape[1]));
  tensor::Dequantize(tensor::FindDType(t->ggml_type)->type, t->data.data(),
                     t->shape[0] * t->shape[1], row.data());
  return row;
}

Oracle::Row Oracle::Norm(const Row& x, const std::string& weight) const {
  const Row w = Vector(weight);
  return w.empty() ? x : Norm(x, w);
}

Oracle::Row Oracle::Norm(const Row& x, const Row& w) const {
  std::array<float, 16> lanes{};
  for (std::size_t i = 0; i < x.size(); ++i) lanes[i % 16] = std::fma(x[i], x[i], lanes[i % 16]);
  const float scale =
      1.0f / std::sqrt(Fold(lanes) / static_cast<float>(x.size()) + config_.norm_eps);
  Row y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = (x[i] * scale) * w[i];
  return y;
}

std::string Oracle::NameOf(const model::LayerConfig& layer, std::string_view part) {
  return fmt::format("blk.{}.{}", layer.block, part);
}

// The row of a token in a table.
Oracle::Row Oracle::EmbeddingOf(const std::string& table, Token token) const {
  const formats::TensorView& t = *checkpoint_.Find(table);
  const std::size_t row_bytes = t.data.size() / static_cast<std::size_t>(t.shape[1]);
  Row row(static_cast<std::size_t>(t.shape[0]));
  tensor::Dequantize(tensor::FindDType(t.ggml_type)->type,
                     t.data.data() + static_cast<std::size_t>(token) * row_bytes, t.shape[0],
                     row.data());
  return row;
}

// What all layers get of a token; x: its embedding.
Oracle::Row Oracle::LayerInputs(Token token, const Row& x) const {
  const auto root = [](double value) { return static_cast<float>(std::sqrt(value)); };
  const int width = config_.layer_input;
  const Row projected = Multiply("per_layer_model_proj.weight", x),
            embedding = EmbeddingOf("per_layer_token_embd.weight", token);
  Row all;
  for (int at = 0; at < width * config_.n_layers(); at += width) {
    Row part = Part(projected, at, width);
    for (float& f : part) f *= root(1.0 / config_.dim);
    part = Norm(part, "per_layer_proj_norm.weight");
    for (std::size_t i = 0; i < part.size(); ++i)
      all.push_back((part[i] + embedding[static_cast<std::size_t>(at) + i] * root(width)) *
                    root(0.5));
  }
  return all;
}

// What layer `index` adds with its part of them.
Oracle::Row Oracle::LayerInput(const model::LayerConfig& layer, const Row& x, const Row& inputs,
                               int index) const {
  const int width = config_.layer_input;
  const Row input = Part(inputs, index * width, width);
  Row gate = Multiply(NameOf(layer, "inp_gate.weight"), x);
  for (std::size_t i = 0; i < gate.size(); ++i)
    gate[i] = (gate[i] / (1.0f + Exp(-GeluArgument(gate[i])))) * input[i];
  return Norm(Multiply(NameOf(layer, "proj.weight"), gate), NameOf(layer, "post_norm.weight"));
}

void Oracle::RunLayer(const model::LayerConfig& layer, Text& text) const {
  const auto add = [&](Row& x, Row y) {
    if (layer.residual_scale != 1)
      for (float& f : y) f *= layer.residual_scale;
    Add(x, y);
  };
  const auto* attention = std::get_if<model::AttentionConfig>(&layer.mixer);
  const int source = attention == nullptr ? -1 : attention->cache_layer;
  const int index = static_cast<int>(text.caches.size());
  Text::Cache &cache = text.caches.emplace_back(), &beside = text.besides.emplace_back();
  for (std::size_t i = 0; i < text.stream.size(); ++i) {
    Row& x = text.stream[i];
    if (source >= 0) {
      const Text::Cache& read = text.caches[static_cast<std::size_t>(source)];
      cache.keys.push_back(read.keys[i]), cache.values.push_back(read.values[i]);
    }
    const auto mixed = [&](const auto& mixer) {
      const Row h =
          mixer.norm.empty() ? x : Norm(x, NameOf(layer, fmt::format("{}.weight", mixer.norm)));
      return Mix(layer, mixer, h, static_cast<int>(i), cache);
    };
    const Row before = x;
    add(x, std::visit(mixed, layer.mixer));
    if (layer.beside)
      add(x, Mix(layer, *layer.beside, Norm(before, NameOf(layer, "attn_norm.weight")),
                 static_cast<int>(i), beside));
    add(x, FeedForward(layer, x));
    if (config_.layer_input != 0) add(x, LayerInput(layer, x, text.inputs[i], index));
    if (layer.output_scale)
      for (float& f : x) f *= Vector(NameOf(layer, "layer_output_scale.weight"))[0];
  }
}

std::vector<float> Oracle::Logits(const std::vector<Token>& tokens) const {
  Text text;
  for (const Token token : tokens) {
    Row& x = text.stream.emplace_back(EmbeddingOf("token_embd.weight", token));
    if (config_.embedding_scale != 1)
      for (float& f : x) f *= config_.embedding_scale;
    if (config_.layer_input != 0) text.inputs.push_back(LayerInputs(token, x));
  }
  for (const model::LayerConfig& layer : config_.layers) RunLayer(layer, text);
  const bool tied = checkpoint_.Find("output.weight") == nullptr;
  Row logits = Multiply(tied ? "token_embd.weight" : "output.weight",
                        Norm(text.stream.back(), fmt::format("{}.weight", config_.output_norm)));
  if (config_.logit_scale != 1)
    for (float& f : logits) f *= config_.logit_scale;
  if (config_.logit_soft_cap != 0)
    for (float& f : logits) f = Capped(f, config_.logit_soft_cap);
  return logits;
}

std::vector<Token> Oracle::Decode(std::vector<Token> tokens, int n) const {
  std::vector<Token> out;
  for (int i = 0; i < n; ++i) {
    const auto logits = Logits(tokens);
    const auto best =
        static_cast<Token>(std::max_element(logits.begin(), logits.end()) - logits.begin());
    out.push_back(best);
    tokens.push_back(best);
  }
  return out;
}

}  // namespace foretoken::oracle
