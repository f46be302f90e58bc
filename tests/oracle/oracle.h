// SPDX-License-Identifier: Apache-2.0
// tests/oracle/oracle.h: the slow, simple decoder that the engine must agree with, bit for bit.
//
// Recomputes the whole prefix for every token: no cache, no batch, no tiles, no threads, plain
// loops over the file's own layout. It shares with the engine only the file reader and the
// canonical arithmetic as kernels/kernels.h states it in words. Keys and values are rounded as the
// cache would round them (F32 or F16).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "formats/checkpoint.h"
#include "model/config.h"

namespace foretoken::oracle {

class Oracle {
 public:
  // half_cache: keys and values pass through F16. The checkpoint must outlive the oracle.
  Oracle(const formats::Checkpoint& checkpoint, const model::ModelConfig& config, bool half_cache);

  // Logits after the last of the tokens: [vocabulary].
  std::vector<float> Logits(const std::vector<Token>& tokens) const;

  // Greedy continuation: n tokens.
  std::vector<Token> Decode(std::vector<Token> tokens, int n) const;

 private:
  using Row = std::vector<float>;
  static std::string NameOf(const model::LayerConfig& layer, std::string_view part);
  // `part`: of the matrices that the tensor holds.
  Row Multiply(const std::string& tensor, const Row& x, int part = 0) const;
  Row Vector(const std::string& tensor) const;
  Row Norm(const Row& x, const std::string& weight) const;
  Row Norm(const Row& x, const Row& weights) const;
  std::vector<double> Frequencies(const model::RopeConfig& rope) const;
  void Rotate(Row& heads, const model::RopeConfig& rope, int head_dim, int position) const;
  void NormAndRotate(Row& heads, const model::AttentionConfig& config, int position,
                     const std::string& norm) const;
  static Row Attend(const model::AttentionConfig& config, const Row& queries,
                    const std::vector<Row>& keys, const std::vector<Row>& values, const Row& sinks);
  // What a text has become before a layer, by position.
  struct Text {
    std::vector<Row> stream, inputs;  // the residual stream; what the layers get of each token
    struct Cache {
      std::vector<Row> keys, values;
    };
    std::vector<Cache> caches;   // of the layers so far
    std::vector<Cache> besides;  // of their second mixers
  };
  // Without the matrices of k and v, these are empty.
  struct Projections {
    Row q, k, v;
  };
  Projections Project(const model::LayerConfig& layer, const Row& x) const;
  // What the mixer adds to a row. h: the row, normed. Its key and value join those before it, where the
  // layer has its own.
  Row Mix(const model::LayerConfig& layer, const model::AttentionConfig& config, const Row& h,
          int position, Text::Cache& cache) const;
  Row Mix(const model::LayerConfig& layer, const model::LatentAttentionConfig& config, const Row& h,
          int position, Text::Cache& cache) const;
  Row Mix(const model::LayerConfig& layer, const model::ShortConvConfig& config, const Row& h,
          int position, Text::Cache& cache) const;
  Row Mix(const model::LayerConfig& layer, const model::DeltaNetConfig& config, const Row& h,
          int position, Text::Cache& cache) const;
  Row Mix(const model::LayerConfig& layer, const model::Mamba2Config& config, const Row& h,
          int position, Text::Cache& cache) const;
  static Row Mix(const model::LayerConfig&, const model::NoPart&, const Row& h, int, Text::Cache&) {
    return Row(h.size(), 0.0f);
  }
  // Column i of the convolution of the newest of these inputs, with SiLU behind it. weights: [columns,
  // taps].
  static float Convolved(const std::vector<Row>& inputs, const Row& weights, std::size_t taps,
                         std::size_t i, float bias);
  void RoundForCache(Row& x) const;
  Row GatedFfn(const model::LayerConfig& layer, const model::GatedFfnConfig& config,
               const Row& x) const;
  Row FeedForward(const model::LayerConfig& layer, const Row& x) const;
  Row EmbeddingOf(const std::string& table, Token token) const;
  Row LayerInputs(Token token, const Row& x) const;
  Row LayerInput(const model::LayerConfig& layer, const Row& x, const Row& inputs, int index) const;
  Row ExpertOf(const model::ExpertsConfig& config, const std::string& prefix,
               const std::string& suffix, const Row& h, int part) const;
  std::vector<float> ExpertWeights(const model::ExpertsConfig& config, Row logits,
                                   const Row& bias) const;
  // x: before the norm.
  Row Experts(const model::ExpertsConfig& config, const std::string& prefix, const Row& x) const;
  void RunLayer(const model::LayerConfig& layer, Text& text) const;

  const formats::Checkpoint& checkpoint_;
  model::ModelConfig config_;
  bool half_cache_;
};

}  // namespace foretoken::oracle
