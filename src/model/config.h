// SPDX-License-Identifier: Apache-2.0
// model/config.h: a network as data: a list of layers, what stands before them, and what stands
// behind them. Networks differ in these fields and in the names of their tensors, not in code.
//
// A layer is a mixer, which lets positions see each other, and a feed-forward part. Layers may
// differ from each other in every number.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace foretoken::model {

constexpr int kMostTaps = 64;  // of a convolution: what a file may ask for

struct RopeConfig {
  bool interleaved = true;  // rotates pairs (2i, 2i + 1); else (i, i + n_rot / 2), the NeoX layout
  int n_rot = 0;            // rotated dimensions of a head, even
  double freq_base = 10000;
  double freq_scale = 1;  // linear and yarn scaling: 1 / factor
  bool yarn = false;      // Peng et al. 2023, "YaRN": interpolates slow dimensions, keeps fast ones
  int original_context = 0;  // yarn: the length the model was trained for
  double yarn_beta_fast = 32, yarn_beta_slow = 1;
  double yarn_ext_factor = 1;
  double yarn_log_multiplier = 0;  // yarn: cos and sin are divided by 1 + 0.1 * this * ln(factor)
  double attention_factor = 1;
  // Tensors whose values divide the frequencies, if the file has them. Where `long_factors` is not
  // empty, it serves in place of `factors` if a sequence may be longer than original_context.
  std::string_view factors = "rope_freqs", long_factors = "";

  bool operator==(const RopeConfig&) const = default;
};

// RMS norms of queries and keys before the rotation: none, one of each head, or one of all heads of
// a row together.
enum class QkNorm { kNone, kHead, kRow };

// Grouped-query attention.
struct AttentionConfig {
  int n_heads = 0, n_kv_heads = 0, head_dim = 0;
  std::optional<RopeConfig> rope;  // none: the layer does not encode positions
  int window = 0;                  // positions that a row sees, its own included; 0: all
  // A row sees the positions up to its own. Otherwise it also sees the later rows of its sequence in
  // the same pass, whatever the window.
  bool causal = true;
  // The file must have biases of q, k and v, or of the output. It may have them in any case.
  bool qkv_bias = false, output_bias = false;
  QkNorm qk_norm = QkNorm::kNone;
  bool v_norm = false;  // values are normed by head, without weights
  // A file without the matrix of the values: they are the keys before their norm and rotation.
  bool keys_may_be_values = false;
  bool qk_norm_optional = false;  // the file may lack the norms of queries and keys
  float scale = 0;                // of the scores; 0: 1 / sqrt(head_dim)
  float soft_cap = 0;  // scores are soft_cap * tanh(score / soft_cap); 0: they are not capped
  // Each head's result is multiplied by the sigmoid of a product. The tensor of the queries holds the
  // rows of a head's query, then those of its gate.
  bool output_gate = false;
  bool sinks = false;  // the softmax of each head has one more logit, which stands for no position
  // Queries are multiplied by 1 + temperature_scale * ln(1 + floor(position / temperature_length)).
  double temperature_scale = 0;
  int temperature_length = 0;
  std::string_view norm = "attn_norm";  // name of the norm before it; empty: none
  std::string_view post_norm = "";      // of the norm of what it adds; empty: none
  bool reads_pair = false;  // of a head: its input is what the entry has prepared, 2 dim wide
  // The layer whose keys and values it reads: one before it, or of an assistant's target. Then it
  // has none of its own, nor their matrices. Negative: it reads its own.
  int cache_layer = -1;

  bool operator==(const AttentionConfig&) const = default;
};

// Multi-head latent attention (DeepSeek-AI 2024, "DeepSeek-V2"). A position has one latent vector and
// one rotated key, which all heads share; the cache keeps these two and nothing else. A matrix of
// each head takes its queries into the space of the latents, and another one takes what the head
// has attended to out of it. So the heads are queries of one key-value head whose values are the
// latents in the keys.
struct LatentAttentionConfig {
  int n_heads = 0;
  int q_rank = 0;     // the queries' matrix is the product of two, with so many numbers between
                      // them, which are normed; 0: it is one matrix
  int rank = 0;       // numbers of a latent vector
  int head_dim = 0;   // of a query, without its rotated part
  int value_dim = 0;  // of a head's result
  RopeConfig rope;    // of the rotated part, which is n_rot wide
  float scale = 0;    // of the scores
  std::string_view norm = "attn_norm";  // name of the norm before it

  int query_dim() const { return head_dim + rope.n_rot; }
  int key_dim() const { return rank + rope.n_rot; }

  bool operator==(const LatentAttentionConfig&) const = default;
};

// A gated convolution over the newest positions, as wide as the residual stream
// (blocks/recurrent/short_conv.h).
struct ShortConvConfig {
  int taps = 0;                         // positions that a row sees, its own included
  std::string_view norm = "attn_norm";  // name of the norm before it

  bool operator==(const ShortConvConfig&) const = default;
};

// The gated delta net (blocks/recurrent/delta_net.h). Value heads share key heads; all heads are equally
// wide.
struct DeltaNetConfig {
  int n_key_heads = 0, n_value_heads = 0, head_dim = 0;
  int taps = 0;  // positions that the convolution of a row sees, its own included
  // Neighbouring value heads share a key head, and alpha and beta have one tensor. Otherwise value head
  // i has key head i modulo n_key_heads.
  bool grouped = false;
  std::string_view norm = "attn_norm";  // name of the norm before it

  int value_dim() const { return n_value_heads * head_dim; }
  // Columns that are convolved: queries, keys and values.
  int convolved() const { return 2 * n_key_heads * head_dim + value_dim(); }
  // What is kept of a position: these columns, then alpha and beta, each from a whole tile on.
  int alpha_column() const { return convolved(); }
  int beta_column() const { return alpha_column() + (n_value_heads + 15) / 16 * 16; }
  int kept() const { return beta_column() + (n_value_heads + 15) / 16 * 16; }

  bool operator==(const DeltaNetConfig&) const = default;
};

// Mamba-2 (blocks/recurrent/mamba2.h).
struct Mamba2Config {
  int n_heads = 0, head_dim = 0;
  int n_groups = 0;    // of heads that share B and C
  int state_size = 0;  // numbers of B and of C
  int taps = 0;        // positions that the convolution of a row sees, its own included
  std::string_view norm = "attn_norm";  // name of the norm before it

  int inner() const { return n_heads * head_dim; }
  // Columns that are convolved: the input of the heads, B and C of each group.
  int convolved() const { return inner() + 2 * n_groups * state_size; }
  // What is kept of a position: these columns, then the time steps of the heads from a whole tile on.
  int dt_column() const { return convolved(); }
  int kept() const { return dt_column() + (n_heads + 15) / 16 * 16; }

  bool operator==(const Mamba2Config&) const = default;
};

// See kernels/kernels.h. kReluSquared is max(x, 0)^2, and needs no second matrix.
enum class GateFunction { kSilu, kGelu, kLimitedSwiglu, kReluSquared };

// function(Wgate h) * (Wup h), then Wdown.
struct GatedFfnConfig {
  int width = 0;
  GateFunction function = GateFunction::kSilu;
  bool gated = true;                   // false: there is no Wgate, but function(Wup h)
  bool gate_in_up = false;             // the tensor ffn_up holds the rows of Wgate, then Wup's
  std::string_view norm = "ffn_norm";  // name of the norm before it; empty: none
  bool bare_norm = false;              // the name of its tensor ends there, without ".weight"
  std::string_view post_norm = "";     // of the norm of what it adds; empty: none

  bool operator==(const GatedFfnConfig&) const = default;
};

// How the logits of a router become the probabilities of the experts.
enum class ExpertGating {
  kSoftmax,        // softmax over all experts
  kSigmoid,        // each expert by itself
  kChosenSoftmax,  // experts are chosen by their logits, then softmax over the chosen ones
};

inline constexpr int kMostExpertGroups = 256;

// A mixture of experts: a router chooses n_used of n_experts gated parts for each row, and the
// weighted sum of their results is the row's result. A shared part may serve all rows beside them.
struct ExpertsConfig {
  int n_experts = 0, n_used = 0;
  int width = 0;         // of each expert
  int shared_width = 0;  // of the shared part; 0: there is none
  ExpertGating gating = ExpertGating::kSoftmax;
  bool normalised = false;      // the weights of a row are divided by their sum
  float weights_scale = 1;      // and multiplied by this
  bool selection_bias = false;  // the file may have a bias that counts for the choice alone
  GateFunction function = GateFunction::kSilu;
  bool gated = true;         // false: as in GatedFfnConfig
  bool biases = false;       // of the router and of all matrices of the experts
  bool shared_gate = false;  // the shared part is multiplied by the sigmoid of a product
  // Only the experts of the n_used_groups best groups can be chosen; the value of a group is the
  // sum of its two best experts.
  int n_groups = 1, n_used_groups = 1;
  bool router_norm = false;  // the router reads norm(x) / sqrt(dim) with weights of its own
  bool scales = false;       // the weight of each expert is multiplied by its own number
  std::string_view norm = "ffn_norm";  // name of the norm before it
  std::string_view post_norm = "";     // of the norm of what it adds; empty: none

  bool operator==(const ExpertsConfig&) const = default;
};

// A layer may lack its mixer or its feed-forward part.
struct NoPart {
  std::string_view norm = "";

  bool operator==(const NoPart&) const = default;
};

using MixerConfig = std::variant<AttentionConfig, LatentAttentionConfig, ShortConvConfig,
                                 DeltaNetConfig, Mamba2Config, NoPart>;
using FeedForwardConfig = std::variant<GatedFfnConfig, ExpertsConfig, NoPart>;

// A convolution over the rows of a block, before and behind each part of a layer
// (blocks/heads/local_convolution.h).
struct LocalConvolutionConfig {
  int taps = 0;   // rows that a row sees, itself included
  int group = 0;  // neighbouring columns that share what a row adds to the weights

  int groups(int dim) const { return dim / group; }
  int coefficients(int dim) const { return 2 * taps * groups(dim); }  // of a row

  bool operator==(const LocalConvolutionConfig&) const = default;
};

struct LayerConfig {
  int block = 0;  // its tensors' names begin with "blk.<block>."
  MixerConfig mixer;
  std::optional<Mamba2Config> beside;  // a second mixer, which reads what the first has normed
  FeedForwardConfig feed_forward;
  // A dense part that reads the same residual stream as the experts. The sum of what both give is
  // normed before it joins the stream.
  std::optional<GatedFfnConfig> dense_part;
  std::string_view sum_norm = "";                     // name of that norm
  std::optional<LocalConvolutionConfig> convolution;  // around both parts
  bool output_scale = false;  // the residual stream that leaves it is multiplied by a number
  float residual_scale = 1;   // what both parts add to the residual stream is multiplied by this

  // Null where it has none.
  const RopeConfig* rope() const {
    if (const auto* latent = std::get_if<LatentAttentionConfig>(&mixer)) return &latent->rope;
    const auto* grouped = std::get_if<AttentionConfig>(&mixer);
    return grouped != nullptr && grouped->rope ? &*grouped->rope : nullptr;
  }
  // It keeps a state of each sequence in place of keys and values.
  bool recurrent() const {
    return beside || std::holds_alternative<ShortConvConfig>(mixer) ||
           std::holds_alternative<DeltaNetConfig>(mixer) ||
           std::holds_alternative<Mamba2Config>(mixer);
  }
  // Its rows see all positions of a text.
  bool sees_all() const {
    return std::holds_alternative<LatentAttentionConfig>(mixer) ||
           (std::holds_alternative<AttentionConfig>(mixer) && window() == 0);
  }
  // 0: it sees all positions.
  int window() const {
    const auto* grouped = std::get_if<AttentionConfig>(&mixer);
    return grouped == nullptr ? 0 : grouped->window;
  }

  // REQUIRES: the part is of this kind.
  AttentionConfig& attention() { return std::get<AttentionConfig>(mixer); }
  const AttentionConfig& attention() const { return std::get<AttentionConfig>(mixer); }
  GatedFfnConfig& ffn() { return std::get<GatedFfnConfig>(feed_forward); }
  const GatedFfnConfig& ffn() const { return std::get<GatedFfnConfig>(feed_forward); }
  // Null where the feed-forward part is no mixture.
  const ExpertsConfig* experts() const { return std::get_if<ExpertsConfig>(&feed_forward); }
};

struct HeadKind;  // model/arch/heads/head_kind.h

// A drafter of few layers that reads its target's hidden states (its features).
//   EAGLE-3 (Li et al. 2025): the residual stream before some of the target's layers, mixed by `fc`,
//     stands beside the token's embedding in the input of the first layer's attention.
//   Next-n prediction, MTP (DeepSeek-AI 2024, "DeepSeek-V3"): `eh_proj` mixes the target's normed last
//     state with the embedding, and an ordinary layer follows.
//   Gemma 4's assistants: `nextn.pre_projection` mixes the target's normed last state with the target's
//     embedding; layers with queries alone read the target's cache, up to the position before the
//     row's; `nextn.post_projection` gives the feature of the next row.
//   DFlash (Chen et al. 2026): the features, those of EAGLE-3, are mixed by `fc` and normed, and every
//     layer makes its keys and values of that position from them. The tokens of a pass, a block,
//     see these, and each other (blocks/heads/injection.h).
struct HeadConfig {
  const HeadKind* kind = nullptr;
  int target_dim = 0;     // width of the target's residual stream
  int target_layers = 0;  // layers of the target; 0: the file does not say
  // The layers of the target whose input is read; the number of layers stands for the last one's
  // output. Empty: the normed last state is read.
  std::vector<int> feature_layers = {};
  bool reads_cache = false;          // of the target; it has none of its own
  bool begins_with_zeros = false;    // a text's first row has its first token, and no feature
  bool feature_is_residual = false;  // its own feature is the residual stream, not the normed state
  // EAGLE-3: the residual stream begins with the normed feature; the features are normed before they are mixed.
  bool norm_before_residual = false, norm_before_fc = false;
  // DFlash, for which this is not 0: rows of a block: the newest token, then the tokens to be drafted.
  int block_size = 0;
  int mask = 0;  // DFlash: the token that stands for one to be drafted
  // DFlash: the token before a draft adds to its logits (blocks/heads/transition.h): the numbers
  // that are kept of a token; 0: it adds nothing.
  int transition_rank = 0;
  bool drafts_first_row = false;  // DFlash: the newest token's row gives the first draft
  // DFlash: a selector weighs so many candidates of each row by the token before them
  // (blocks/heads/selector.h), with so many numbers of each token; 0: there is none.
  int n_candidates = 0, selector_rank = 0;

  bool drafts_blocks() const { return block_size != 0; }
  // Numbers of the target that a row reads.
  int features_width() const {
    return (feature_layers.empty() ? 1 : static_cast<int>(feature_layers.size())) * target_dim;
  }
};

struct ModelConfig {
  std::string architecture;
  std::vector<LayerConfig> layers;  // without those of an MTP head
  int n_next_layers = 0;            // the layers of an MTP head behind them
  int dim = 0;                      // width of the residual stream
  int vocabulary = 0;               // rows of the embedding and of the output head
  int context_length = 0;
  float norm_eps = 1e-5f;
  float embedding_scale = 1;  // embeddings are multiplied by this
  float logit_scale = 1;      // logits are multiplied by this
  float logit_soft_cap = 0;   // then logits are cap * tanh(logit / cap); 0: they are not capped
  int layer_input = 0;        // values of a token that each layer gets beside the residual stream
                              // (blocks/per_layer_input.h); 0: none
  std::string_view output_norm = "output_norm";  // name of the norm before the output head
  std::optional<HeadConfig> head;                // this is not a whole model but a head

  int n_layers() const { return static_cast<int>(layers.size()); }
  // Numbers of each row's features in a pass (model/pass.h); 0 where this is no head.
  int features_width(bool own_features) const {
    if (!head) return 0;
    return own_features && !head->reads_cache ? dim : head->features_width();
  }
};

}  // namespace foretoken::model
