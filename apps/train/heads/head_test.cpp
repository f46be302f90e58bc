// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <map>

#include "base/failure_testing.h"
#include "base/files/whole_file_testing.h"
#include "base/machine/thread_pool.h"
#include "fixtures/tiny_model.h"
#include "formats/checkpoint.h"
#include "kernels/dispatch.h"
#include "model/arch/registry.h"
#include "model/local_runner.h"
#include "model/rope_table.h"
#include "train/heads/block_network.h"
#include "train/heads/head_files.h"
#include "train/heads/head_network.h"
#include "train/heads/head_task.h"
#include "train/run/machine.h"
#include "train/verbs.h"
#include "train/written_testing.h"

namespace foretoken::train {
namespace {

using torch::Tensor;

// The tensors are small: threads would only wait for each other.
[[maybe_unused]] const bool kHeadsOnOneThread = (UseThreads(1), true);

struct Case {
  TrainedHead kind;
  std::string arch = "llama";
  int draft_vocabulary = 0;
  std::vector<int> layers = {};  // empty: DefaultLayers
};
void PrintTo(const Case& c, std::ostream* out) {
  constexpr std::array kNames = {"eagle ", "mtp ", "block "};
  *out << kNames[static_cast<std::size_t>(c.kind)] << c.arch << ' ' << c.draft_vocabulary
       << fmt::format(" {}", fmt::join(c.layers, ","));
}

fixtures::TinyModelOptions TinyTarget(const std::string& arch) {
  fixtures::TinyModelOptions o = fixtures::SmallestOf(arch);
  o.seed = 3, o.window = 0;
  if (o.kv_heads_by_layer.empty()) o.n_layers = 3;
  if (arch == "llama" || arch == "qwen2" || arch == "qwen3")
    o.ff = 48, o.head_dim = 0, o.tied = arch == "qwen3";
  return o;
}

std::string HeadTargetPath(const std::string& arch = "llama") {
  return fixtures::WriteTinyModel(TestFolder(), TinyTarget(arch));
}
std::string TextPath() {
  return WriteWords("text.txt", {"the ", "a ", "fox ", "sees ", "hen ", "and ", "runs.\n"}, 3000,
                    1);
}

TrainingOptions Training(const std::string& name, std::int64_t steps) {
  TrainingOptions t;
  t.out = TestFolder() + "/" + name + ".gguf";
  t.steps = steps, t.batch = 4, t.window = 32, t.threads = 1;
  t.restart = true;
  return t;
}

HeadConfig ConfigOf(const Case& c, const TargetReader& target) {
  const TrainedHead kind = c.kind;
  HeadConfig head{.kind = kind};
  const int n_layers = target.config().n_layers();
  if (kind == TrainedHead::kMtp) {
    head.block = *NextBlock(*model::MtpConfigFromMetadata(MetadataWithNextBlock(target)));
    head.prefix = fmt::format("blk.{}.", n_layers);
    return head;
  }
  head.block = BlockLike(target.config(), kind == TrainedHead::kEagle);
  head.layers = c.layers.empty() ? DefaultLayers(n_layers) : c.layers;
  if (kind == TrainedHead::kBlock)
    head.block.n_layers = 2, head.block.qk_norm = true, head.block_size = 5, head.mask = 7;
  return head;
}

// A target, and a head in F64 with disturbed weights, so that none is zero or one.
struct Bench {
  explicit Bench(const Case& c) {
    TrainingOptions training = Training("bench", 1);
    training.window = 90;
    target = *TargetReader::Open(HeadTargetPath(c.arch), training);
    head = ConfigOf(c, *target);
    target->Keep(head.layers);
    weights =
        c.kind == TrainedHead::kBlock ? InitBlocks(head, *target, 5) : InitHead(head, *target, 5);
    for (Parameter& p : weights.all()) {
      const Tensor noise =
          Normal(7, p.name, p.value.size(0), p.value.numel() / p.value.size(0), 0.1);
      p.value = p.value.to(torch::kDouble) + noise.view(p.value.sizes()).to(torch::kDouble);
    }
    const Tensor full = target->OutputRows({}, torch::kDouble);
    target_head = c.draft_vocabulary > 0 ? full.narrow(0, 20, c.draft_vocabulary).clone() : full;
    if (c.draft_vocabulary > 0)
      weights.Add("output.weight", ParameterKind::kTable,
                  target_head + Normal(8, "output", target_head.size(0), target_head.size(1), 0.1)
                                    .to(torch::kDouble));
  }
  Tensor Tokens(int batch, int length) const {
    torch::manual_seed(11);
    return torch::randint(0, target->config().vocabulary, {batch, length + 1}, torch::kLong);
  }
  // A head's, in F64.
  HeadInput Input(const Tensor& tokens) const {
    const HeadInput input = ReadTarget(head, *target, tokens);
    return {input.embedded.to(torch::kDouble), input.features.to(torch::kDouble),
            input.normed.to(torch::kDouble)};
  }
  Tensor Loss(const Leaves& leaves, const Tensor& tokens, const HeadInput& input, int steps) const {
    const LogitShape wanted = target->logit_shape();
    if (head.kind == TrainedHead::kBlock)
      return BlockLoss(RunBlocks(head, leaves, *target, tokens, 1), target_head, target_head, 0.7,
                       wanted);
    return UnrolledLoss(Unroll(head, leaves, input, steps),
                        leaves.Has("output.weight") ? leaves["output.weight"] : target_head,
                        input.normed, target_head, head.Shift(), 0.7,
                        head.kind == TrainedHead::kMtp ? wanted : LogitShape{}, wanted);
  }

  std::unique_ptr<TargetReader> target;
  HeadConfig head;
  Parameters weights;
  Tensor target_head;
};

class HeadTest : public testing::TestWithParam<Case> {};
const std::vector<Case> kHeads = {{TrainedHead::kEagle},
                                  {TrainedHead::kEagle, "llama", 90},
                                  {TrainedHead::kEagle, "qwen3"},
                                  {TrainedHead::kEagle, "llama", 0, {2}},
                                  {TrainedHead::kEagle, "qwen3", 90, {0, 1, 2, 3}},
                                  {TrainedHead::kEagle, "deepseek2"},
                                  {TrainedHead::kEagle, "lfm2moe"},
                                  {TrainedHead::kMtp},
                                  {TrainedHead::kMtp, "qwen2"},
                                  {TrainedHead::kMtp, "qwen3"},
                                  {TrainedHead::kMtp, "qwen35"},
                                  {TrainedHead::kMtp, "gemma3"},
                                  {TrainedHead::kMtp, "granite"},
                                  {TrainedHead::kMtp, "qwen3moe"},
                                  {TrainedHead::kMtp, "qwen35moe"},
                                  {TrainedHead::kMtp, "glm4moe"},
                                  {TrainedHead::kMtp, "deepseek2"}};
INSTANTIATE_TEST_SUITE_P(Kinds, HeadTest, testing::ValuesIn(kHeads));

class AnyHeadTest : public HeadTest {};
std::vector<Case> WithBlocks() {
  std::vector<Case> all = kHeads;
  all.push_back({TrainedHead::kBlock});
  all.push_back({TrainedHead::kBlock, "qwen35moe"});
  return all;
}
INSTANTIATE_TEST_SUITE_P(Kinds, AnyHeadTest, testing::ValuesIn(WithBlocks()));

TEST_P(AnyHeadTest, GradientsAreThoseOfFiniteDifferences) {
  Bench bench(GetParam());
  // A block drafter reads the target's F32 states; the F64 head makes F64 of them.
  const Tensor tokens = bench.Tokens(2, 40);
  const HeadInput input = bench.Input(tokens);
  const Leaves leaves(bench.weights, torch::kDouble, true);
  bench.Loss(leaves, tokens, input, 3).backward();
  const auto gradients = leaves.Gradients(bench.weights);
  torch::NoGradGuard none;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    Parameter& p = bench.weights.all()[i];
    const Tensor value = p.value;
    const Tensor direction = torch::randn_like(value);
    const double h = 1e-5 / direction.norm().item<double>();
    const auto at = [&](double step) {
      p.value = value + step * direction;
      return bench.Loss(Leaves(bench.weights, torch::kDouble, false), tokens, input, 3)
          .item<double>();
    };
    const double measured = (at(h) - at(-h)) / (2 * h),
                 known = (gradients[i] * direction).sum().item<double>();
    p.value = value;
    EXPECT_NEAR(known, measured, 1e-6 + 1e-5 * std::fabs(measured)) << p.name;
    EXPECT_GT(gradients[i].abs().max().item<double>(), 0) << p.name;
  }
}

// The head as it drafts: one row after another, each attending to all rows before it. Written in
// loops, without any code of the trainer.
class SlowHead {
 public:
  SlowHead(const HeadConfig& head, const Parameters& weights) : h_(head), w_(weights) {}

  struct Out {
    Tensor hidden, feature;  // what the output head reads; the feature of the next step
  };
  // own: the feature is the head's, not the target's.
  Out Feed(const Tensor& embedding, const Tensor& feature, int position, bool own = false) {
    const bool eagle = h_.kind == TrainedHead::kEagle;
    const std::string& at = h_.prefix;
    Tensor x, input;
    if (eagle) {
      const Tensor g = own ? feature : w_["fc.weight"].mv(feature);
      x = g;
      input = torch::cat(
          {Norm(embedding, at + "attn_norm.weight"), Norm(g, at + "attn_norm_2.weight")});
    } else {
      x = w_[at + "nextn.eh_proj.weight"].mv(torch::cat(
          {Norm(embedding, at + "nextn.enorm.weight"), Norm(feature, at + "nextn.hnorm.weight")}));
      input = Norm(x, at + "attn_norm.weight");
    }
    const NetworkConfig& c = h_.block;
    const Tensor attended =
        c.latent ? Latent(*c.latent, input, position) : Grouped(input, position);
    const auto join = [&](const Tensor& to, const Tensor& part, const std::string& norm) {
      return to + (norm.empty() ? part : Norm(part, at + norm + ".weight")) * c.residual_scale;
    };
    const Tensor y =
        join(x, w_[at + "attn_output.weight"].mv(attended.flatten()), c.attention_post_norm);
    const Tensor n = Norm(y, at + c.ffn_norm + ".weight");
    const Tensor gate = w_[at + "ffn_gate.weight"].mv(n), up = w_[at + "ffn_up.weight"].mv(n);
    const Tensor inner =
        c.function == model::GateFunction::kGelu
            ? 0.5 * gate *
                  (1 + torch::tanh(0.7978845608028654 * (gate + 0.044715 * gate * gate * gate)))
            : gate * torch::sigmoid(gate);
    const Tensor out = join(y, w_[at + "ffn_down.weight"].mv(inner * up), c.ffn_post_norm);
    const Tensor hidden =
        Norm(out, eagle ? "output_norm.weight" : at + "nextn.shared_head_norm.weight");
    return {hidden, eagle ? out : hidden};
  }

 private:
  Tensor Grouped(const Tensor& input, int position) {
    const NetworkConfig& c = h_.block;
    const int heads = c.n_heads, kv = c.n_kv_heads, dim = c.head_dim;
    const double scale = c.attention_scale != 0 ? c.attention_scale : 1 / std::sqrt(dim);
    const Tensor q = Project("attn_q", input, heads, position);
    keys_.push_back(Project("attn_k", input, kv, position));
    values_.push_back(Project("attn_v", input, kv, -1));
    Tensor attended = Attended(q, heads / kv, scale);
    for (int head = 0; head < heads && c.output_gate; ++head)
      attended[head] *=
          torch::sigmoid(w_[h_.prefix + "attn_q.weight"].mv(input).view({heads, 2, dim})[head][1]);
    return attended;
  }
  // Keys and values of each head are made from the latent vector.
  Tensor Latent(const model::LatentAttentionConfig& c, const Tensor& input, int position) {
    const std::string& at = h_.prefix;
    Tensor q = input;
    if (c.q_rank > 0) q = Norm(w_[at + "attn_q_a.weight"].mv(input), at + "attn_q_a_norm.weight");
    q = w_[at + (c.q_rank > 0 ? "attn_q_b.weight" : "attn_q.weight")].mv(q);
    q = q.view({c.n_heads, c.query_dim()}).clone();
    const Tensor kv = w_[at + "attn_kv_a_mqa.weight"].mv(input);
    const Tensor latent = Norm(kv.narrow(0, 0, c.rank), at + "attn_kv_a_norm.weight");
    Tensor turned = kv.narrow(0, c.rank, c.rope.n_rot).clone();
    Rotate(turned, position);
    std::vector<Tensor> keys, values;
    for (int head = 0; head < c.n_heads; ++head) {
      Tensor part = q[head].narrow(0, c.head_dim, c.rope.n_rot);
      Rotate(part, position);
      keys.push_back(torch::cat({w_[at + "attn_k_b.weight"][head].t().mv(latent), turned}));
      values.push_back(w_[at + "attn_v_b.weight"][head].mv(latent));
    }
    keys_.push_back(torch::stack(keys));
    values_.push_back(torch::stack(values));
    return Attended(q, 1, c.scale);
  }
  Tensor Attended(const Tensor& q, std::int64_t per_group, double scale) const {
    std::vector<Tensor> attended;
    for (std::int64_t head = 0; head < q.size(0); ++head) {
      const std::int64_t group = head / per_group;
      std::vector<Tensor> scores;
      for (const Tensor& k : keys_) scores.push_back(q[head].dot(k[group]) * scale);
      const Tensor distribution = torch::softmax(torch::stack(scores), 0);
      Tensor sum = torch::zeros_like(values_[0][group]);
      for (std::size_t i = 0; i < values_.size(); ++i)
        sum += distribution[static_cast<std::int64_t>(i)] * values_[i][group];
      attended.push_back(sum);
    }
    return torch::stack(attended);
  }
  // x: one head, rotated in place.
  void Rotate(Tensor& x, int position) const {
    const model::RopeConfig& rope = h_.block.rope;
    const model::RopeTable table(rope, 0, {});
    for (int i = 0; i < rope.n_rot / 2; ++i) {
      const int a = rope.interleaved ? 2 * i : i,
                b = rope.interleaved ? 2 * i + 1 : i + rope.n_rot / 2;
      const double angle = position * table.frequencies()[static_cast<std::size_t>(i)];
      const double u = x[a].item<double>() * table.magnitude(),
                   v = x[b].item<double>() * table.magnitude();
      x[a] = u * std::cos(angle) - v * std::sin(angle);
      x[b] = u * std::sin(angle) + v * std::cos(angle);
    }
  }
  Tensor Norm(const Tensor& x, const std::string& gain) const {
    return x / torch::sqrt((x * x).mean() + double{h_.block.norm_eps}) * w_[gain];
  }
  Tensor Project(const std::string& part, const Tensor& input, int heads, int position) const {
    const std::string name = h_.prefix + part;
    Tensor y = w_[name + ".weight"].mv(input);
    if (w_.Has(name + ".bias")) y = y + w_[name + ".bias"];
    y = y.view({heads, -1}).narrow(1, 0, h_.block.head_dim).clone();
    for (int head = 0; head < heads; ++head) {
      Tensor one = y[head];
      if (w_.Has(name + "_norm.weight")) one.copy_(Norm(one, name + "_norm.weight"));
      if (position >= 0) Rotate(one, position);
    }
    return y;
  }

  const HeadConfig& h_;
  const Parameters& w_;
  std::vector<Tensor> keys_, values_;
};

TEST_P(HeadTest, AnUnrolledStepIsWhatDraftingSees) {
  torch::NoGradGuard none;
  const Bench bench(GetParam());
  const HeadInput input = bench.Input(bench.Tokens(2, 85));
  constexpr int kSteps = 3;
  const Tensor unrolled =
      Unroll(bench.head, Leaves(bench.weights, torch::kDouble, false), input, kSteps);
  const int shift = bench.head.Shift();
  for (const int row : {0, 5, 81}) {
    SlowHead slow(bench.head, bench.weights);
    SlowHead::Out out;
    for (int r = 0; r <= row; ++r)
      out = slow.Feed(input.embedded[1][r + shift], input.features[1][r], r);
    for (int step = 0; step < kSteps; ++step) {
      if (step > 0)
        out = slow.Feed(input.embedded[1][row + shift + step], out.feature, row + step, true);
      EXPECT_LT((unrolled[step][1][row] - out.hidden).abs().max().item<double>(), 1e-10)
          << "row " << row << " step " << step;
    }
  }
}

TEST(HeadInputTest, FeaturesAreThoseOfTheRow) {
  torch::NoGradGuard none;
  const Bench eagle(Case{TrainedHead::kEagle}), mtp(Case{TrainedHead::kMtp});
  const Tensor tokens = eagle.Tokens(2, 9);
  const TargetReader::States states = eagle.target->Read(tokens.narrow(1, 0, 9));
  const HeadInput e = ReadTarget(eagle.head, *eagle.target, tokens),
                  m = ReadTarget(mtp.head, *mtp.target, tokens);
  EXPECT_TRUE(e.features.equal(states.features));
  EXPECT_TRUE(m.features.narrow(1, 1, 8).equal(states.normed.narrow(1, 0, 8)));
  EXPECT_EQ(m.features.narrow(1, 0, 1).abs().max().item<double>(), 0);
  EXPECT_TRUE(e.embedded.equal(eagle.target->Embedded(tokens)));
}

// A block is drafted alone, by loops, from the features before it.
TEST(BlockTest, DraftsAreThoseOfABlockThatIsDraftedAlone) {
  torch::NoGradGuard none;
  for (const char* arch : {"llama", "qwen35moe"}) {
    const Bench bench(Case{TrainedHead::kBlock, arch});
    const NetworkConfig& c = bench.head.block;
    const Parameters& w = bench.weights;
    const Tensor tokens = bench.Tokens(2, 40);
    const Drafts drafts =
        RunBlocks(bench.head, Leaves(w, torch::kDouble, false), *bench.target, tokens, 2);
    const auto states = bench.target->Read(tokens.narrow(1, 0, 40));
    const auto norm = [&](const Tensor& x, const std::string& name) {
      return x / torch::sqrt((x * x).mean() + double{c.norm_eps}) * w[name + ".weight"];
    };
    const auto part = [&](const std::string& name, const Tensor& x, int heads, int position) {
      Tensor y = w[name + ".weight"].mv(x).view({heads, c.head_dim}).clone();
      if (position < 0) return y;
      for (int head = 0; head < heads; ++head) {
        y[head] = norm(y[head], name + "_norm");
        for (int i = 0; i < c.rope.n_rot / 2; ++i) {
          const double angle = position * std::pow(c.rope.freq_base, -2.0 * i / c.rope.n_rot);
          const int b = i + c.rope.n_rot / 2;
          const double u = y[head][i].item<double>(), v = y[head][b].item<double>();
          y[head][i] = u * std::cos(angle) - v * std::sin(angle);
          y[head][b] = u * std::sin(angle) + v * std::cos(angle);
        }
      }
      return y;
    };
    constexpr int kBlock = 3, kRow = 1, kSize = 5, kFirst = 3 + kBlock * kSize;
    EXPECT_TRUE(drafts.normed[2][kRow][kBlock].equal(states.normed[kRow][kFirst + 2]));
    std::vector<Tensor> x, g;
    for (int i = 0; i < kSize; ++i)
      x.push_back(bench.target
                      ->Embedded(torch::tensor(i == 0 ? tokens[kRow][kFirst].item<std::int64_t>()
                                                      : std::int64_t{bench.head.mask}))
                      .to(torch::kDouble));
    for (int r = 0; r < kFirst; ++r)
      g.push_back(
          norm(w["fc.weight"].mv(states.features[kRow][r].to(torch::kDouble)), "enc.output_norm"));
    for (int layer = 0; layer < 2; ++layer) {
      const std::string at = fmt::format("blk.{}.", layer);
      std::vector<Tensor> k, v;
      for (int r = 0; r < kFirst; ++r) {
        k.push_back(part(at + "attn_k", g[static_cast<std::size_t>(r)], c.n_kv_heads, r));
        v.push_back(part(at + "attn_v", g[static_cast<std::size_t>(r)], c.n_kv_heads, -1));
      }
      for (int i = 0; i < kSize; ++i) {
        Tensor& row = x[static_cast<std::size_t>(i)];
        const Tensor h = norm(row, at + "attn_norm");
        k.push_back(part(at + "attn_k", h, c.n_kv_heads, kFirst + i));
        v.push_back(part(at + "attn_v", h, c.n_kv_heads, -1));
        const Tensor q = part(at + "attn_q", h, c.n_heads, kFirst + i);
        Tensor attended = torch::zeros({c.n_heads, c.head_dim}, torch::kDouble);
        for (int head = 0; head < c.n_heads; ++head) {
          const int group = head / (c.n_heads / c.n_kv_heads);
          std::vector<Tensor> scores;
          for (const Tensor& key : k)
            scores.push_back(q[head].dot(key[group]) / std::sqrt(c.head_dim));
          const Tensor shares = torch::softmax(torch::stack(scores), 0);
          for (std::size_t n = 0; n < v.size(); ++n)
            attended[head] += shares[static_cast<std::int64_t>(n)] * v[n][group];
        }
        row = row + w[at + "attn_output.weight"].mv(attended.flatten());
        const Tensor n = norm(row, at + "ffn_norm");
        const Tensor gate = w[at + "ffn_gate.weight"].mv(n), up = w[at + "ffn_up.weight"].mv(n);
        row = row + w[at + "ffn_down.weight"].mv(gate * torch::sigmoid(gate) * up);
      }
    }
    for (int i = 1; i < kSize; ++i)
      EXPECT_LT(
          (norm(x[static_cast<std::size_t>(i)], "output_norm") - drafts.hidden[i - 1][kRow][kBlock])
              .abs()
              .max()
              .item<double>(),
          1e-9)
          << arch << " draft " << i;
  }
}

// Compared with the formula on whole tensors, for so many tokens that rows come in several chunks.
TEST(UnrolledLossTest, IsTheFormula) {
  constexpr std::int64_t kSteps = 3, kBatch = 2, kLength = 40, kDim = 4, kTokens = 20000;
  torch::manual_seed(2);
  const auto make = [](std::vector<std::int64_t> sizes) {
    return torch::randn(sizes, torch::kDouble);
  };
  Tensor hidden = make({kSteps, kBatch, kLength, kDim}).requires_grad_(),
         head = make({kTokens, kDim}).requires_grad_();
  const Tensor normed = make({kBatch, kLength, kDim}), target_head = make({kTokens, kDim});
  for (const int shift : {0, 1}) {
    const LogitShape shape = {shift == 0 ? 1 : 0.5, shift == 0 ? 0 : 2.0},
                     target_shape = {shift == 0 ? 1 : 0.8, shift == 0 ? 0 : 3.0};
    Tensor sum = torch::zeros({}, torch::kDouble);
    double weights = 0;
    for (std::int64_t s = 0; s < kSteps; ++s) {
      const std::int64_t rows = kLength - shift - s;
      const Tensor distribution = torch::softmax(
          Shaped(normed.narrow(1, shift + s, rows).matmul(target_head.t()), target_shape), -1);
      const Tensor logs =
          torch::log_softmax(Shaped(hidden[s].narrow(1, 0, rows).matmul(head.t()), shape), -1);
      sum = sum + std::pow(0.7, s) * (distribution * (distribution.log() - logs)).sum(-1).mean();
      weights += std::pow(0.7, s);
    }
    const Tensor expected = sum / weights;
    const auto wanted = torch::autograd::grad({expected}, {hidden, head});
    const Tensor loss =
        UnrolledLoss(hidden, head, normed, target_head, shift, 0.7, shape, target_shape);
    const auto known = torch::autograd::grad({loss}, {hidden, head});
    EXPECT_NEAR(loss.item<double>(), expected.item<double>(), 1e-10);
    EXPECT_LT((known[0] - wanted[0]).abs().max().item<double>(), 1e-12);
    EXPECT_LT((known[1] - wanted[1]).abs().max().item<double>(), 1e-12);
  }
}

HeadOptions Options(const Case& c) {
  HeadOptions o;
  o.kind = c.kind;
  o.target = HeadTargetPath(c.arch);
  o.text = {TextPath()};
  o.held_out = {TextPath()};
  o.unroll = 3;
  o.draft_vocabulary = c.draft_vocabulary;
  o.layers = c.layers;
  o.type = FileType::kF32;
  return o;
}
// The file of a head that has learnt nothing.
std::unique_ptr<formats::Checkpoint> Exported(const HeadOptions& options,
                                              const TrainingOptions& training) {
  const auto task = Got(MakeHeadTask(options, training));
  EXPECT_TRUE(task->Export());
  return *formats::OpenCheckpoint(training.out);
}
using Shapes = std::map<std::string, std::string>;
Shapes ShapesOf(const formats::Checkpoint& file) {
  Shapes shapes;
  for (const formats::TensorView& t : file.tensors())
    shapes[t.name] = t.n_dims == 1
                         ? fmt::format("{} type {}", t.shape[0], t.ggml_type)
                         : fmt::format("{}x{} type {}", t.shape[0], t.shape[1], t.ggml_type);
  return shapes;
}

TEST(HeadFileTest, AnEagleFileHoldsWhatLlamaCppReads) {
  HeadOptions o = Options({TrainedHead::kEagle, "llama", 90});
  o.type = FileType::kQ8_0;
  o.layers = {0, 1, 3}, o.ff = 64;
  const TrainingOptions training = Training("eagle-file", 1);
  const auto file = Exported(o, training);
  // 0: F32, 8: Q8_0, 27: I64
  EXPECT_EQ(ShapesOf(*file), (Shapes{{"fc.weight", "96x32 type 8"},
                                     {"blk.0.attn_norm.weight", "32 type 0"},
                                     {"blk.0.attn_norm_2.weight", "32 type 0"},
                                     {"blk.0.attn_q.weight", "64x32 type 8"},
                                     {"blk.0.attn_k.weight", "64x16 type 8"},
                                     {"blk.0.attn_v.weight", "64x16 type 8"},
                                     {"blk.0.attn_output.weight", "32x32 type 8"},
                                     {"blk.0.ffn_norm.weight", "32 type 0"},
                                     {"blk.0.ffn_gate.weight", "32x64 type 8"},
                                     {"blk.0.ffn_up.weight", "32x64 type 8"},
                                     {"blk.0.ffn_down.weight", "64x32 type 8"},
                                     {"output_norm.weight", "32 type 0"},
                                     {"output.weight", "32x90 type 8"},
                                     {"d2t", "90 type 27"}}));
  const formats::Metadata& m = file->metadata();
  EXPECT_EQ(*m.String("general.architecture"), "eagle3");
  EXPECT_EQ(*m.Ints("eagle3.target_layers"), (std::vector<std::int64_t>{0, 1, 3}));
  EXPECT_EQ(m.Int("eagle3.target_hidden_size"), 32);
  EXPECT_EQ(m.Int("eagle3.block_count"), 1);
  EXPECT_EQ(m.Int("eagle3.feed_forward_length"), 64);
  EXPECT_EQ(m.Bool("eagle3.norm_before_residual"), false);
  EXPECT_EQ(m.Strings("tokenizer.ggml.tokens")->size(), 300U);
  // The words of the text are among the most frequent tokens; ids ascend.
  std::vector<std::int64_t> ids(90);
  std::memcpy(ids.data(), file->Find("d2t")->data.data(), 90 * 8);
  EXPECT_TRUE(std::is_sorted(ids.begin(), ids.end()));
  const auto target = *TargetReader::Open(o.target, training);
  for (const auto token : target->tokenizer().Encode("the fox sees a hen", {.add_special = false}))
    EXPECT_TRUE(std::binary_search(ids.begin(), ids.end(), token)) << token;

  o.draft_vocabulary = 0;
  const auto whole = Exported(o, training);
  EXPECT_EQ(whole->Find("output.weight"), nullptr);
  EXPECT_EQ(whole->Find("d2t"), nullptr);
}

TEST(HeadFileTest, ABlockDraftersFileHoldsWhatLlamaCppReads) {
  HeadOptions o = Options({TrainedHead::kBlock});
  o.blocks = 1, o.block_size = 6, o.layers = {0, 1, 2}, o.ff = 64, o.type = FileType::kQ8_0;
  const TrainingOptions training = Training("block-file", 1);
  const auto file = Exported(o, training);
  EXPECT_EQ(ShapesOf(*file), (Shapes{{"fc.weight", "96x32 type 8"},
                                     {"enc.output_norm.weight", "32 type 0"},
                                     {"blk.0.attn_norm.weight", "32 type 0"},
                                     {"blk.0.attn_q.weight", "32x32 type 8"},
                                     {"blk.0.attn_k.weight", "32x16 type 8"},
                                     {"blk.0.attn_v.weight", "32x16 type 8"},
                                     {"blk.0.attn_output.weight", "32x32 type 8"},
                                     {"blk.0.attn_q_norm.weight", "8 type 0"},
                                     {"blk.0.attn_k_norm.weight", "8 type 0"},
                                     {"blk.0.ffn_norm.weight", "32 type 0"},
                                     {"blk.0.ffn_gate.weight", "32x64 type 8"},
                                     {"blk.0.ffn_up.weight", "32x64 type 8"},
                                     {"blk.0.ffn_down.weight", "64x32 type 8"},
                                     {"output_norm.weight", "32 type 0"}}));
  const formats::Metadata& m = file->metadata();
  EXPECT_EQ(*m.String("general.architecture"), "dflash");
  EXPECT_EQ(*m.Ints("dflash.target_layers"), (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_EQ(m.Int("dflash.block_size"), 6);
  EXPECT_EQ(m.Int("dflash.block_count"), 1);
  EXPECT_EQ(m.Bool("dflash.attention.causal"), true);
  EXPECT_EQ(m.Int("tokenizer.ggml.mask_token_id"), 0) << "the tokenizer's unknown token";
  EXPECT_EQ(m.Strings("tokenizer.ggml.tokens")->size(), 300U);
}

TEST(HeadFileTest, AnMtpFileIsOneBlockMoreOfItsTarget) {
  HeadOptions o = Options({TrainedHead::kMtp});
  const TrainingOptions training = Training("mtp-file", 1);
  o.into = TestFolder() + "/with-mtp.gguf";
  const auto file = Exported(o, training), target = *formats::OpenCheckpoint(o.target),
             joined = *formats::OpenCheckpoint(o.into);
  const Shapes head = {{"blk.3.nextn.eh_proj.weight", "64x32 type 0"},
                       {"blk.3.nextn.enorm.weight", "32 type 0"},
                       {"blk.3.nextn.hnorm.weight", "32 type 0"},
                       {"blk.3.nextn.shared_head_norm.weight", "32 type 0"},
                       {"blk.3.attn_norm.weight", "32 type 0"},
                       {"blk.3.attn_q.weight", "32x32 type 0"},
                       {"blk.3.attn_k.weight", "32x16 type 0"},
                       {"blk.3.attn_v.weight", "32x16 type 0"},
                       {"blk.3.attn_output.weight", "32x32 type 0"},
                       {"blk.3.ffn_norm.weight", "32 type 0"},
                       {"blk.3.ffn_gate.weight", "32x48 type 0"},
                       {"blk.3.ffn_up.weight", "32x48 type 0"},
                       {"blk.3.ffn_down.weight", "48x32 type 0"}};
  EXPECT_EQ(ShapesOf(*file), head);
  Shapes both = ShapesOf(*target);
  both.insert(head.begin(), head.end());
  EXPECT_EQ(ShapesOf(*joined), both);
  for (const formats::TensorView& tensor : joined->tensors()) {
    const auto* from =
        target->Find(tensor.name) != nullptr ? target->Find(tensor.name) : file->Find(tensor.name);
    EXPECT_TRUE(
        std::equal(tensor.data.begin(), tensor.data.end(), from->data.begin(), from->data.end()))
        << tensor.name;
  }
  for (const auto& [key, value] : target->metadata().all())
    if (key != "llama.block_count") {
      ASSERT_NE(joined->metadata().Find(key), nullptr) << key;
      EXPECT_EQ(*joined->metadata().Find(key), value) << key;
    }
  for (const auto* either : {file.get(), joined.get()}) {
    EXPECT_EQ(*either->metadata().String("general.architecture"), "llama");
    EXPECT_EQ(either->metadata().Int("llama.block_count"), 4);
    EXPECT_EQ(either->metadata().Int("llama.nextn_predict_layers"), 1);
    EXPECT_EQ(either->metadata().Strings("tokenizer.ggml.tokens")->size(), 300U);
  }

  o.target = o.into, o.into.clear();
  EXPECT_TRUE(Fails(MakeHeadTask(o, training), ErrorCode::kUnsupported));
}

// A mixture's head has a dense block: its file calls every block dense.
TEST(HeadFileTest, TheHeadOfAMixtureIsDense) {
  const HeadOptions o = Options({TrainedHead::kMtp, "deepseek2"});
  const TrainingOptions training = Training("dense-mtp-file", 1);
  const auto file = Exported(o, training);
  const auto block = [](const char* part) { return std::string("blk.3.") + part + ".weight"; };
  const Shapes shapes = ShapesOf(*file);
  // As wide as the two experts of a token, 32 each, and the shared part of 32.
  EXPECT_EQ(shapes.at(block("ffn_gate")), "32x96 type 0");
  EXPECT_EQ(shapes.at(block("attn_kv_a_mqa")), "32x40 type 0");
  EXPECT_EQ(shapes.count(block("ffn_gate_exps")), 0U);
  EXPECT_EQ(file->Find(block("attn_k_b"))->shape, (std::array<std::int64_t, 4>{16, 32, 4, 1}));
  EXPECT_EQ(file->metadata().Int("deepseek2.leading_dense_block_count"), 4);
  EXPECT_EQ(file->metadata().Int("deepseek2.feed_forward_length"), 96);
  EXPECT_EQ(model::DraftFileOf(*file).Noun(), "an MTP head");
}

// The engine reads the exported file and drafts as the trainer's unrolled steps do.
TEST_P(HeadTest, TheEngineAgrees) {
  torch::NoGradGuard none;
  const HeadOptions o = Options(GetParam());
  const bool eagle = o.kind == TrainedHead::kEagle;
  const TrainingOptions training = Training("agrees", 1);
  const auto task = Got(MakeHeadTask(o, training));
  Parameters& weights = task->parameters();
  for (Parameter& p : weights.all())
    p.value += Normal(7, p.name, p.value.size(0), p.value.numel() / p.value.size(0), 0.05)
                   .view(p.value.sizes());
  ASSERT_TRUE(task->Export());

  const auto target = *TargetReader::Open(o.target, training);
  const auto file = *formats::OpenCheckpoint(training.out);
  const auto head_config = *model::HeadConfigFromFile(*file);
  ThreadPool pool(1);
  const kernels::Kernels& kernels = kernels::KernelsFor(kernels::Isa::kScalar);
  const model::RunnerOptions room{
      .max_rows = 16,
      .max_logit_rows = 1,
      .max_positions = 32,
      .cache = {.k_type = tensor::KvType::kF32, .v_type = tensor::KvType::kF32, .n_blocks = 1},
      .state = {.n_sequences = 1, .rows = 1}};
  const auto engine_target =
      *model::LocalRunner::Load(target->file(), target->config(), room, kernels, pool, {});
  auto loaded =
      Got(model::LocalRunner::LoadHead(*file, head_config, room, kernels, pool, *engine_target));

  const HeadConfig head = ConfigOf(GetParam(), *target);
  target->Keep(head.layers);
  constexpr int kLength = 12, kRow = 7, kSteps = 3;
  torch::manual_seed(4);
  const Tensor tokens = torch::randint(3, 300, {1, kLength + 1}, torch::kLong);
  const HeadInput input = ReadTarget(head, *target, tokens);
  const Tensor hidden = Unroll(head, Leaves(weights, torch::kFloat, false), input, kSteps);
  const Tensor output = weights.Has("output.weight") ? weights["output.weight"]
                                                     : target->OutputRows({}, torch::kFloat);

  // All positions of the only sequence are in block 0.
  const auto forward = [](model::Runner& runner, model::Pass pass, int position) {
    const std::int32_t block = 0;
    const kv::Segment segment{
        .n_rows = pass.n_rows(), .first_position = position, .blocks = {&block, 1}};
    const int logit_row = pass.n_rows() - 1;
    pass.segments = {&segment, 1}, pass.logit_rows = {&logit_row, 1};
    return runner.Run(pass);
  };
  const std::vector<Token> ids(tokens.data_ptr<std::int64_t>(),
                               tokens.data_ptr<std::int64_t>() + kLength + 1);
  const Tensor features = input.features[0].contiguous();
  const std::size_t shift = static_cast<std::size_t>(head.Shift());
  model::PassResult result = forward(
      *loaded,
      {.tokens = std::span(ids).subspan(shift, kRow + 1), .features = features.data_ptr<float>()},
      0);
  for (int step = 0; step < kSteps; ++step) {
    if (step > 0) {
      const std::vector<float> own(result.OwnFeature(0), result.OwnFeature(0) + head_config.dim);
      result = forward(
          *loaded,
          {.tokens = std::span(ids).subspan(kRow + shift + static_cast<std::size_t>(step), 1),
           .features = own.data(),
           .own_features = true},
          kRow + step);
    }
    const Tensor known =
        Shaped(output.mv(hidden[step][0][kRow]), eagle ? LogitShape{} : target->logit_shape());
    const Tensor measured = torch::from_blob(const_cast<float*>(result.Logits(0)), {known.size(0)});
    EXPECT_LT((known - measured).abs().max().item<float>(), 1e-3) << "step " << step;
  }
}

TEST_P(AnyHeadTest, TrainingLowersTheLossAndRepeatsItself) {
  const HeadOptions o = Options(GetParam());
  const auto loss_of = [](Task& task) {
    torch::NoGradGuard none;
    const Leaves leaves(task.parameters(), FastType(task.parameters().all()[0].value), false);
    return task.Loss(leaves, 1000, 8).item<double>();
  };
  std::string files[2];
  for (std::string& file : files) {
    const TrainingOptions training = Training("trained", 25);
    auto task = Got(MakeHeadTask(o, training));
    const double before = loss_of(*task);
    ASSERT_TRUE(Train(*task, training));
    const double after = loss_of(*task);
    EXPECT_LT(after, 0.9 * before);
    file = WholeFile(training.out);
  }
  EXPECT_FALSE(files[0].empty());
  EXPECT_EQ(files[0], files[1]);
}

void ExpectRefused(const HeadOptions& options, ErrorCode code, const std::string& part) {
  EXPECT_TRUE(Fails(MakeHeadTask(options, Training("refused", 1)), code, part));
}

TEST(HeadErrorsTest, WhatDoesNotFitIsRefusedBeforeTheWork) {
  const auto bad = ErrorCode::kInvalidArgument;
  HeadOptions o = Options({TrainedHead::kEagle});
  o.layers = {0, 1, 4};
  ExpectRefused(o, bad, "layers: 4");
  o.layers = {-1, 1, 2};
  ExpectRefused(o, bad, "layers: -1");
  o.layers = {0, 2, 2};
  ExpectRefused(o, bad, "twice");
  o.layers = std::vector<int>(65, 1);
  ExpectRefused(o, bad, "at most 64");
  o.layers = {};
  o.draft_vocabulary = 301;
  ExpectRefused(o, bad, "draft vocabulary: 301");
  o.draft_vocabulary = 0;
  o.heads = 5;
  ExpectRefused(o, bad, "heads");
  o.heads = 0, o.kv_heads = 3;
  ExpectRefused(o, bad, "cannot share");
  o.kv_heads = 0, o.unroll = 16;
  ExpectRefused(o, bad, "window");
  o.unroll = 3, o.text = {};
  ExpectRefused(o, bad, "text");
  o.text = {TextPath()}, o.target = "";
  ExpectRefused(o, bad, "target");
  o.target = TestFolder() + "/missing.gguf";
  ExpectRefused(o, ErrorCode::kNotFound, "missing.gguf");

  HeadOptions block = Options({TrainedHead::kBlock});
  block.mask = 300;
  ExpectRefused(block, bad, "mask");
  block.mask = -1, block.block_size = 20;
  ExpectRefused(block, bad, "window");

  HeadOptions m = Options({TrainedHead::kMtp});
  m.into = m.target;
  ExpectRefused(m, bad, "into");
  m.into = TestFolder() + "/no/such/place.gguf";
  ExpectRefused(m, ErrorCode::kIo, "place.gguf");
  m = Options({TrainedHead::kMtp, "qwen3moe"});
  m.into = TestFolder() + "/dense-beside-experts.gguf";
  ExpectRefused(m, bad, "into: the head of a mixture");
  for (const char* arch : {"olmo2", "gpt-oss", "gemma2"}) {
    m = Options({TrainedHead::kMtp, arch});
    ExpectRefused(m, ErrorCode::kUnsupported, "EAGLE-3");
  }
}

TEST(HeadErrorsTest, TheDefaultLayersAreDistinctAndInside) {
  for (int n = 2; n < 100; ++n) {
    const auto layers = DefaultLayers(n);
    ASSERT_EQ(layers.size(), 3U);
    EXPECT_LE(0, layers[0]);
    EXPECT_LT(layers[0], layers[1]) << n;
    EXPECT_LT(layers[1], layers[2]) << n;
    EXPECT_LE(layers[2], n);
  }
  EXPECT_EQ(DefaultLayers(5), (std::vector{1, 2, 4}));
  EXPECT_EQ(DefaultLayers(32), (std::vector{2, 16, 29}));
}

TEST(HeadVerbsTest, FlagsReachTheTask) {
  const std::string out = TestFolder() + "/verb.gguf";
  const Arguments common = {
      "--target", HeadTargetPath(), "--text", TextPath(), "--out", out,         "--steps",
      "1",        "--window",       "32",     "--unroll", "2",     "--threads", "1"};
  Arguments eagle = common;
  eagle.insert(eagle.end(), {"--layers-read", "0,2,3", "--draft-vocabulary", "64", "--name", "x"});
  EXPECT_EQ(EagleVerb(eagle), 0);
  const auto file = *formats::OpenCheckpoint(out);
  EXPECT_EQ(*file->metadata().Ints("eagle3.target_layers"), (std::vector<std::int64_t>{0, 2, 3}));
  EXPECT_EQ(*file->metadata().String("general.name"), "x");
  Arguments twice = common;
  twice.insert(twice.end(), {"--layers-read", "0,2,2"});
  EXPECT_EQ(EagleVerb(twice), 2);
  Arguments other = common;
  other.insert(other.end(), {"--draft-vocabulary", "64"});
  EXPECT_EQ(MtpVerb(other), 2);  // a flag of EAGLE alone
  Arguments block = {"--target",     HeadTargetPath(),
                     "--text",       TextPath(),
                     "--out",        out,
                     "--steps",      "1",
                     "--window",     "32",
                     "-t",           "1",
                     "--layers",     "1",
                     "--block-size", "4",
                     "--restart"};
  EXPECT_EQ(BlockVerb(block), 0);
  EXPECT_EQ((*formats::OpenCheckpoint(out))->metadata().Int("dflash.block_size"), 4);
}

}  // namespace
}  // namespace foretoken::train
