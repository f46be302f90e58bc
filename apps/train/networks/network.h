// SPDX-License-Identifier: Apache-2.0
// train/networks/network.h: the networks of foretoken in libtorch: llama and LFM 2 models, and the blocks
// that heads are made of.
//
// Weights carry the names of the GGUF file that they end in and have its shapes, [outputs, inputs].
// Master weights are F32 (F64 in the gradient tests). A pass computes with copies of them, the
// leaves: matrices of blocks in the compute type (BF16, F32 or F64), the others in the master type
// (the gradients of a token's embedding are many and small: BF16 would lose them). The residual
// stream has the master type.
#pragma once

#include <torch/torch.h>

#include <map>
#include <string>
#include <vector>

#include "train/networks/network_config.h"

namespace foretoken::train {

enum class ParameterKind {
  kMatrix,  // of a block
  kTable,   // embedding or output head
  kGain,    // of a norm; biases; taps of convolutions
};

struct Parameter {
  std::string name;
  ParameterKind kind = ParameterKind::kMatrix;
  torch::Tensor value;  // master
};

// Named weights in the order of the file.
class Parameters {
 public:
  void Add(std::string name, ParameterKind kind, torch::Tensor value);
  bool Has(const std::string& name) const { return index_.contains(name); }
  const torch::Tensor& operator[](const std::string& name) const;
  std::vector<Parameter>& all() { return all_; }
  const std::vector<Parameter>& all() const { return all_; }
  std::int64_t n_values() const;

 private:
  std::vector<Parameter> all_;
  std::map<std::string, std::size_t> index_;
};

// The copies that one pass computes with.
class Leaves {
 public:
  // gradients: the leaves collect them.
  Leaves(const Parameters& parameters, torch::Dtype compute, bool gradients);
  const torch::Tensor& operator[](const std::string& name) const;
  bool Has(const std::string& name) const { return leaves_.contains(name); }
  // In the order of parameters.all(), in the master type.
  std::vector<torch::Tensor> Gradients(const Parameters& parameters) const;
  torch::Dtype compute() const { return compute_; }

 private:
  std::map<std::string, torch::Tensor> leaves_;
  torch::Dtype compute_;
};

// Fresh weights of a whole model (token_embd to the output norm; output where it is not tied).
Parameters InitModel(const NetworkConfig& config, bool tied, std::uint64_t seed);
// Fresh weights of one block with attention under `prefix` ("blk.0."), but its first norm; q, k and
// v read `input` values.
void InitBlock(const NetworkConfig& config, const std::string& prefix, std::int64_t input,
               std::uint64_t seed, Parameters& parameters);
// A normal matrix drawn from (seed, name) alone.
torch::Tensor Normal(std::uint64_t seed, const std::string& name, std::int64_t rows,
                     std::int64_t columns, double spread);

// The type of sums: F32, or F64 where the inputs are.
torch::Dtype Wide(const torch::Tensor& x);

// y = x W^T in the compute type; x: [..., inputs].
torch::Tensor Linear(const torch::Tensor& x, const torch::Tensor& weight);
// x / rms(x) * gain, in the compute type. x: [..., dim].
torch::Tensor RmsNorm(const torch::Tensor& x, const torch::Tensor& gain, double eps,
                      torch::Dtype compute);

// The heads y ([..., heads, head_dim]) of matrix `name` ("blk.0.attn_q") in the compute type, after
// the norm of each head where the leaves have one.
torch::Tensor NormedHeads(const NetworkConfig& config, const Leaves& leaves,
                          const std::string& name, const torch::Tensor& y);

// Rotates queries and keys by their positions.
class Rotation {
 public:
  // For positions 0 .. n_positions - 1, in the type and on the device of `like`.
  Rotation(const NetworkConfig& config, std::int64_t n_positions, const torch::Tensor& like);
  // x: [batch, length, heads, head_dim]. Row i is at position first + i, or at positions[i].
  torch::Tensor Turn(const torch::Tensor& x, std::int64_t first = 0) const;
  torch::Tensor Turn(const torch::Tensor& x, const torch::Tensor& positions) const;

 private:
  torch::Tensor turns_;  // complex [positions, 1, n_rot / 2]
  bool interleaved_;
};

// Causal attention of grouped heads over the rows of one window, positions 0, 1, ...
//   h: [batch, length, inputs], normalised; gives [batch, length, dim].
torch::Tensor Attention(const NetworkConfig& config, const Leaves& leaves,
                        const std::string& prefix, const torch::Tensor& h);
// The gated convolution of LFM 2, of shapes as Attention's:
//   b, c, u = in_proj h;  out_proj (c * sum over j of tap j * (b * u of the position taps - 1 - j
//   before))
torch::Tensor Convolution(const Leaves& leaves, const std::string& prefix, const torch::Tensor& h);
torch::Tensor FeedForward(const Leaves& leaves, const std::string& prefix, const torch::Tensor& h,
                          model::GateFunction function = model::GateFunction::kSilu);

// x + mixer(norm x), then + feed-forward(norm): one block, whose mixer is a convolution where the
// leaves have one and attention elsewhere. x: [batch, length, dim].
torch::Tensor Block(const NetworkConfig& config, const Leaves& leaves, const std::string& prefix,
                    const torch::Tensor& x);

// The last block's output after the output norm, in the compute type: [batch, length, dim].
// tokens: int64 [batch, length].
torch::Tensor RunModel(const NetworkConfig& config, const Leaves& leaves,
                       const torch::Tensor& tokens);
// The output head: logits [..., vocabulary] in the compute type.
torch::Tensor Logits(const Leaves& leaves, const torch::Tensor& normed);

// What a network makes of the products of its output head: cap * tanh(scale * product / cap).
struct LogitShape {
  double scale = 1;
  double cap = 0;  // 0: logits are not capped
};
torch::Tensor Shaped(const torch::Tensor& products, const LogitShape& shape);

// Mean over rows of -log softmax(logits)[target] where weight is 1 (rows with target -1 are left
// out).
//   logits: [rows, vocabulary]; targets: int64 [rows].
torch::Tensor CrossEntropy(const torch::Tensor& logits, const torch::Tensor& targets);
// Mean over rows of KL(p || softmax(logits)), for distributions p: [rows, vocabulary]. Rows of
// zeros do not count.
torch::Tensor Divergence(const torch::Tensor& logits, const torch::Tensor& distribution);

}  // namespace foretoken::train
