// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <random>
#include <sstream>

#include "base/machine/thread_pool.h"
#include "fixtures/tiny_model.h"
#include "formats/checkpoint.h"
#include "kernels/dispatch.h"
#include "model/arch/registry.h"
#include "model/local_runner.h"
#include "train/head_network.h"
#include "train/head_task.h"
#include "train/machine.h"
#include "train/verbs.h"

namespace foretoken::train {
namespace {

using torch::Tensor;

// The tensors are small: threads would only wait for each other.
[[maybe_unused]] const bool kOneThread = (UseThreads(1), true);

struct Case {
  HeadKind kind;
  std::string arch = "llama";
  int draft_vocabulary = 0;
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << (c.kind == HeadKind::kEagle ? "eagle " : "mtp ") << c.arch << ' ' << c.draft_vocabulary;
}

fixtures::TinyModelOptions TinyTarget(const std::string& arch) {
  return {.arch = arch,
          .seed = 3,
          .n_layers = 3,
          .dim = 32,
          .ff = 48,
          .n_heads = 4,
          .n_kv_heads = 2,
          .vocab = 300,
          .tied = arch == "qwen3"};
}

const std::string& Folder() {
  static const std::string folder = fixtures::TemporaryFolder();
  return folder;
}
std::string TargetPath(const std::string& arch = "llama") {
  return fixtures::WriteTinyModel(Folder(), TinyTarget(arch));
}
std::string TextPath() {
  const std::string path = Folder() + "/text.txt";
  std::ofstream out(path);
  std::mt19937 random(1);
  for (int i = 0; i < 3000; ++i)
    out << std::array{"the ", "a ", "fox ", "sees ", "hen ", "and ", "runs.\n"}[random() % 7];
  return path;
}
std::string Content(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return std::move(text).str();
}

// A target in F64, and a head with disturbed weights, so that none is zero or one.
struct Bench {
  explicit Bench(const Case& c) : target(*OpenTarget(TargetPath(c.arch))) {
    for (Parameter& p : target.parameters.all()) p.value = p.value.to(torch::kDouble);
    head.kind = c.kind;
    head.block = target.config;
    if (c.kind == HeadKind::kEagle) {
      head.layers = {0, 2, 3};
      head.block.qkv_bias = head.block.qk_norm = false;
      head.block.rope.interleaved = true;
    } else {
      head.prefix = "blk.3.";
    }
    weights = InitHead(head, target.config, target.parameters, 5);
    for (Parameter& p : weights.all()) {
      const Tensor noise =
          Normal(7, p.name, p.value.size(0), p.value.numel() / p.value.size(0), 0.1);
      p.value = p.value.to(torch::kDouble) + noise.view(p.value.sizes()).to(torch::kDouble);
    }
    const Tensor& full =
        target.parameters[target.parameters.Has("output.weight") ? "output.weight"
                                                                 : "token_embd.weight"];
    target_head = c.draft_vocabulary > 0 ? full.narrow(0, 20, c.draft_vocabulary).clone() : full;
    if (c.draft_vocabulary > 0)
      weights.Add("output.weight", ParameterKind::kTable,
                  target_head + Normal(8, "output", target_head.size(0), target_head.size(1), 0.1)
                                    .to(torch::kDouble));
  }
  Tensor Tokens(int batch, int length) const {
    torch::manual_seed(11);
    return torch::randint(0, target.config.vocabulary, {batch, length + 1}, torch::kLong);
  }
  HeadInput Input(const Tensor& tokens) const {
    return RunTarget(head, target.config, Leaves(target.parameters, torch::kDouble, false), tokens);
  }
  Tensor Loss(const Leaves& leaves, const HeadInput& input, int steps) const {
    return UnrolledLoss(Unroll(head, leaves, input, steps),
                        leaves.Has("output.weight") ? leaves["output.weight"] : target_head,
                        input.normed, target_head, head.Shift(), 0.7);
  }

  Target target;
  HeadConfig head;
  Parameters weights;
  Tensor target_head;
};

class HeadTest : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Kinds, HeadTest,
                         testing::Values(Case{HeadKind::kEagle},
                                         Case{HeadKind::kEagle, "llama", 90},
                                         Case{HeadKind::kEagle, "qwen3"}, Case{HeadKind::kMtp},
                                         Case{HeadKind::kMtp, "qwen2"},
                                         Case{HeadKind::kMtp, "qwen3"}));

TEST_P(HeadTest, GradientsAreThoseOfFiniteDifferences) {
  Bench bench(GetParam());
  // More rows than one chunk of queries.
  const HeadInput input = bench.Input(bench.Tokens(2, 130));
  const Leaves leaves(bench.weights, torch::kDouble, true);
  bench.Loss(leaves, input, 3).backward();
  const auto gradients = leaves.Gradients(bench.weights);
  torch::NoGradGuard none;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    Parameter& p = bench.weights.all()[i];
    const Tensor value = p.value;
    const Tensor direction = torch::randn_like(value);
    const double h = 1e-5 / direction.norm().item<double>();
    const auto at = [&](double step) {
      p.value = value + step * direction;
      return bench.Loss(Leaves(bench.weights, torch::kDouble, false), input, 3).item<double>();
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
  Out Feed(const Tensor& embedding, const Tensor& feature, int position) {
    const bool eagle = h_.kind == HeadKind::kEagle;
    const std::string& at = h_.prefix;
    Tensor x, input;
    if (eagle) {
      const Tensor g = feature.size(0) == h_.block.dim ? feature : w_["fc.weight"].mv(feature);
      x = g;
      input = torch::cat(
          {Norm(embedding, at + "attn_norm.weight"), Norm(g, at + "attn_norm_2.weight")});
    } else {
      x = w_[at + "nextn.eh_proj.weight"].mv(torch::cat(
          {Norm(embedding, at + "nextn.enorm.weight"), Norm(feature, at + "nextn.hnorm.weight")}));
      input = Norm(x, at + "attn_norm.weight");
    }
    const int heads = h_.block.n_heads, kv = h_.block.n_kv_heads, dim = h_.block.head_dim;
    const Tensor q = Project("attn_q", input, heads, position);
    keys_.push_back(Project("attn_k", input, kv, position));
    values_.push_back(Project("attn_v", input, kv, -1));
    Tensor attended = torch::zeros({heads, dim}, torch::kDouble);
    for (int head = 0; head < heads; ++head) {
      const int group = head / (heads / kv);
      std::vector<Tensor> scores;
      for (const Tensor& k : keys_) scores.push_back(q[head].dot(k[group]) / std::sqrt(dim));
      const Tensor law = torch::softmax(torch::stack(scores), 0);
      for (std::size_t i = 0; i < values_.size(); ++i)
        attended[head] += law[static_cast<std::int64_t>(i)] * values_[i][group];
    }
    const Tensor y = x + w_[at + "attn_output.weight"].mv(attended.flatten());
    const Tensor n = Norm(y, at + "ffn_norm.weight");
    const Tensor gate = w_[at + "ffn_gate.weight"].mv(n), up = w_[at + "ffn_up.weight"].mv(n);
    const Tensor out = y + w_[at + "ffn_down.weight"].mv(gate * torch::sigmoid(gate) * up);
    const Tensor hidden =
        Norm(out, eagle ? "output_norm.weight" : at + "nextn.shared_head_norm.weight");
    return {hidden, eagle ? out : hidden};
  }

 private:
  Tensor Norm(const Tensor& x, const std::string& gain) const {
    return x / torch::sqrt((x * x).mean() + double{h_.block.norm_eps}) * w_[gain];
  }
  Tensor Project(const std::string& part, const Tensor& input, int heads, int position) const {
    const std::string name = h_.prefix + part;
    Tensor y = w_[name + ".weight"].mv(input);
    if (w_.Has(name + ".bias")) y = y + w_[name + ".bias"];
    y = y.view({heads, h_.block.head_dim}).clone();
    const model::RopeConfig& rope = h_.block.rope;
    for (int head = 0; head < heads; ++head) {
      if (w_.Has(name + "_norm.weight")) y[head] = Norm(y[head], name + "_norm.weight");
      for (int i = 0; position >= 0 && i < rope.n_rot / 2; ++i) {
        const int a = rope.interleaved ? 2 * i : i,
                  b = rope.interleaved ? 2 * i + 1 : i + rope.n_rot / 2;
        const double angle = position * std::pow(rope.freq_base, -2.0 * i / rope.n_rot);
        const double u = y[head][a].item<double>(), v = y[head][b].item<double>();
        y[head][a] = u * std::cos(angle) - v * std::sin(angle);
        y[head][b] = u * std::sin(angle) + v * std::cos(angle);
      }
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
  const HeadInput input = bench.Input(bench.Tokens(2, 135));
  constexpr int kSteps = 3;
  const Tensor unrolled =
      Unroll(bench.head, Leaves(bench.weights, torch::kDouble, false), input, kSteps);
  const int shift = bench.head.Shift();
  for (const int row : {0, 5, 131}) {
    SlowHead slow(bench.head, bench.weights);
    SlowHead::Out out;
    for (int r = 0; r <= row; ++r)
      out = slow.Feed(input.embedded[1][r + shift], input.features[1][r], r);
    for (int step = 0; step < kSteps; ++step) {
      if (step > 0) out = slow.Feed(input.embedded[1][row + shift + step], out.feature, row + step);
      EXPECT_LT((unrolled[step][1][row] - out.hidden).abs().max().item<double>(), 1e-10)
          << "row " << row << " step " << step;
    }
  }
}

TEST(HeadInputTest, FeaturesAreThoseOfTheRow) {
  torch::NoGradGuard none;
  const Bench eagle(Case{HeadKind::kEagle}), mtp(Case{HeadKind::kMtp});
  const Tensor tokens = eagle.Tokens(2, 9);
  const LlamaPass pass =
      RunLlama(eagle.target.config, Leaves(eagle.target.parameters, torch::kDouble, false),
               tokens.narrow(1, 0, 9), true);
  const HeadInput e = eagle.Input(tokens), m = mtp.Input(tokens);
  EXPECT_TRUE(e.features.equal(torch::cat({pass.inputs[0], pass.inputs[2], pass.hidden}, -1)));
  EXPECT_TRUE(m.features.narrow(1, 1, 8).equal(pass.normed.narrow(1, 0, 8)));
  EXPECT_EQ(m.features.narrow(1, 0, 1).abs().max().item<double>(), 0);
  EXPECT_TRUE(e.embedded.narrow(1, 0, 9).equal(pass.inputs[0]));
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
    Tensor sum = torch::zeros({}, torch::kDouble);
    double weights = 0;
    for (std::int64_t s = 0; s < kSteps; ++s) {
      const std::int64_t rows = kLength - shift - s;
      const Tensor law =
          torch::softmax(normed.narrow(1, shift + s, rows).matmul(target_head.t()), -1);
      const Tensor logs = torch::log_softmax(hidden[s].narrow(1, 0, rows).matmul(head.t()), -1);
      sum = sum + std::pow(0.7, s) * (law * (law.log() - logs)).sum(-1).mean();
      weights += std::pow(0.7, s);
    }
    const Tensor expected = sum / weights;
    const auto wanted = torch::autograd::grad({expected}, {hidden, head});
    const Tensor loss = UnrolledLoss(hidden, head, normed, target_head, shift, 0.7);
    const auto known = torch::autograd::grad({loss}, {hidden, head});
    EXPECT_NEAR(loss.item<double>(), expected.item<double>(), 1e-10);
    EXPECT_LT((known[0] - wanted[0]).abs().max().item<double>(), 1e-12);
    EXPECT_LT((known[1] - wanted[1]).abs().max().item<double>(), 1e-12);
  }
}

HeadOptions Options(const Case& c) {
  HeadOptions o;
  o.kind = c.kind;
  o.target = TargetPath(c.arch);
  o.text = {TextPath()};
  o.held_out = {TextPath()};
  o.unroll = 3;
  o.draft_vocabulary = c.draft_vocabulary;
  o.type = FileType::kF32;
  return o;
}
TrainingOptions Training(const std::string& name, std::int64_t steps) {
  TrainingOptions t;
  t.out = Folder() + "/" + name + ".gguf";
  t.steps = steps, t.batch = 4, t.window = 32;
  t.restart = true;
  return t;
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
  HeadOptions o = Options({HeadKind::kEagle, "llama", 90});
  o.type = FileType::kQ8_0;
  o.layers = {0, 1, 3}, o.ff = 64;
  const TrainingOptions training = Training("eagle-file", 1);
  auto task = MakeHeadTask(o, training);
  ASSERT_TRUE(task) << task.error().message;
  ASSERT_TRUE((*task)->Export());
  const auto file = *formats::OpenCheckpoint(training.out);
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
  const auto target = *OpenTarget(o.target);
  for (const auto token : target.tokenizer->Encode("the fox sees a hen", {.add_special = false}))
    EXPECT_TRUE(std::binary_search(ids.begin(), ids.end(), token)) << token;

  o.draft_vocabulary = 0;
  task = MakeHeadTask(o, training);
  ASSERT_TRUE((*task)->Export());
  const auto whole = *formats::OpenCheckpoint(training.out);
  EXPECT_EQ(whole->Find("output.weight"), nullptr);
  EXPECT_EQ(whole->Find("d2t"), nullptr);
}

TEST(HeadFileTest, AnMtpFileIsOneBlockMoreOfItsTarget) {
  HeadOptions o = Options({HeadKind::kMtp});
  const TrainingOptions training = Training("mtp-file", 1);
  o.into = Folder() + "/with-mtp.gguf";
  const auto task = MakeHeadTask(o, training);
  ASSERT_TRUE(task) << task.error().message;
  ASSERT_TRUE((*task)->Export());
  const auto target = *formats::OpenCheckpoint(o.target),
             file = *formats::OpenCheckpoint(training.out),
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
  const auto again = MakeHeadTask(o, training);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::kUnsupported);
}

// The engine reads the exported file and drafts as the trainer's unrolled steps do.
TEST_P(HeadTest, TheEngineAgrees) {
  torch::NoGradGuard none;
  const HeadOptions o = Options(GetParam());
  const bool eagle = o.kind == HeadKind::kEagle;
  const TrainingOptions training = Training("agrees", 1);
  const auto task = MakeHeadTask(o, training);
  ASSERT_TRUE(task) << task.error().message;
  Parameters& weights = (*task)->parameters();
  for (Parameter& p : weights.all())
    p.value += Normal(7, p.name, p.value.size(0), p.value.numel() / p.value.size(0), 0.05)
                   .view(p.value.sizes());
  ASSERT_TRUE((*task)->Export());

  const Target target = *OpenTarget(o.target);
  const auto file = *formats::OpenCheckpoint(training.out);
  const auto head_config = *model::HeadConfigFromFile(*file);
  ThreadPool pool(1);
  const kernels::Kernels& kernels = kernels::KernelsFor(kernels::Isa::kScalar);
  const model::RunnerOptions room{
      .max_rows = 16,
      .max_logit_rows = 1,
      .max_positions = 32,
      .cache = {.k_type = tensor::KvType::kF32, .v_type = tensor::KvType::kF32, .n_blocks = 1}};
  auto target_config = *model::ConfigFromMetadata(target.file->metadata());
  target_config.vocabulary = target.config.vocabulary;
  const auto engine_target =
      *model::LocalRunner::Load(*target.file, target_config, room, kernels, pool, {});
  auto loaded =
      model::LocalRunner::LoadHead(*file, head_config, room, kernels, pool, *engine_target);
  ASSERT_TRUE(loaded) << loaded.error().message;

  HeadConfig head;
  head.kind = o.kind, head.block = target.config;
  if (eagle) {
    head.layers = DefaultLayers(3);
    head.block.qk_norm = head.block.qkv_bias = false, head.block.rope.interleaved = true;
  } else {
    head.prefix = "blk.3.";
  }
  constexpr int kLength = 12, kRow = 7, kSteps = 3;
  torch::manual_seed(4);
  const Tensor tokens = torch::randint(3, 300, {1, kLength + 1}, torch::kLong);
  const HeadInput input =
      RunTarget(head, target.config, Leaves(target.parameters, torch::kFloat, false), tokens);
  const Tensor hidden = Unroll(head, Leaves(weights, torch::kFloat, false), input, kSteps);
  const Tensor output = weights.Has("output.weight") ? weights["output.weight"]
                        : target.parameters.Has("output.weight")
                            ? target.parameters["output.weight"]
                            : target.parameters["token_embd.weight"];

  // All positions of the only sequence are in block 0.
  const auto forward = [](model::Runner& runner, model::Pass pass, int position) {
    const std::int32_t block = 0;
    const kv::Segment segment{
        .n_rows = pass.n_rows(), .first_position = position, .blocks = {&block, 1}};
    const int logit_row = pass.n_rows() - 1;
    pass.segments = {&segment, 1}, pass.logit_rows = {&logit_row, 1};
    return runner.Run(pass);
  };
  std::vector<Token> ids(tokens.data_ptr<std::int64_t>(),
                         tokens.data_ptr<std::int64_t>() + kLength + 1);
  model::FeatureRequest request;
  if (eagle)
    request.layers = head_config.head->feature_layers;
  else
    request.normed = true;
  engine_target->KeepFeatures(request);
  const model::PassResult of_target =
      forward(*engine_target, {.tokens = std::span(ids).first(kRow + 1)}, 0);
  const auto width = static_cast<std::size_t>(of_target.features_width);
  std::vector<float> features(eagle ? 0 : width);
  features.insert(features.end(), of_target.Features(0),
                  of_target.Features(0) + (kRow + 1) * width);
  const std::size_t shift = static_cast<std::size_t>(head.Shift());
  model::PassResult result =
      forward(**loaded,
              {.tokens = std::span(ids).subspan(shift, kRow + 1), .features = features.data()}, 0);
  for (int step = 0; step < kSteps; ++step) {
    if (step > 0) {
      const std::vector<float> own(result.OwnFeature(0), result.OwnFeature(0) + head_config.dim);
      result = forward(
          **loaded,
          {.tokens = std::span(ids).subspan(kRow + shift + static_cast<std::size_t>(step), 1),
           .features = own.data(),
           .own_features = true},
          kRow + step);
    }
    const Tensor known = output.mv(hidden[step][0][kRow]);
    const Tensor measured = torch::from_blob(const_cast<float*>(result.Logits(0)), {known.size(0)});
    EXPECT_LT((known - measured).abs().max().item<float>(), 1e-3) << "step " << step;
  }
}

TEST_P(HeadTest, TrainingLowersTheLossAndRepeatsItself) {
  const HeadOptions o = Options(GetParam());
  const auto loss_of = [](Task& task) {
    torch::NoGradGuard none;
    const Leaves leaves(task.parameters(), FastType(task.parameters().all()[0].value), false);
    return task.Loss(leaves, 1000, 8).item<double>();
  };
  std::string files[2];
  for (std::string& file : files) {
    const TrainingOptions training = Training("trained", 25);
    auto task = MakeHeadTask(o, training);
    ASSERT_TRUE(task) << task.error().message;
    const double before = loss_of(**task);
    ASSERT_TRUE(Train(**task, training));
    const double after = loss_of(**task);
    EXPECT_LT(after, 0.7 * before);
    file = Content(training.out);
  }
  EXPECT_FALSE(files[0].empty());
  EXPECT_EQ(files[0], files[1]);
}

void ExpectRefused(const HeadOptions& options, ErrorCode code, const std::string& part) {
  const auto task = MakeHeadTask(options, Training("refused", 1));
  ASSERT_FALSE(task) << part;
  EXPECT_EQ(task.error().code, code) << task.error().message;
  EXPECT_NE(task.error().message.find(part), std::string::npos) << task.error().message;
}

TEST(HeadErrorsTest, WhatDoesNotFitIsRefusedBeforeTheWork) {
  const auto bad = ErrorCode::kInvalidArgument;
  HeadOptions o = Options({HeadKind::kEagle});
  o.layers = {0, 1, 4};
  ExpectRefused(o, bad, "layers: 4");
  o.layers = {-1, 1, 2};
  ExpectRefused(o, bad, "layers: -1");
  o.layers = {0, 2, 2};
  ExpectRefused(o, bad, "twice");
  o.layers = {1, 2};
  ExpectRefused(o, bad, "reads three");
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
  o.target = Folder() + "/missing.gguf";
  ExpectRefused(o, ErrorCode::kNotFound, "missing.gguf");
  auto scaled = TinyTarget("llama");
  scaled.rope_freqs = true;
  o.target = fixtures::WriteTinyModel(Folder(), scaled);
  ExpectRefused(o, ErrorCode::kUnsupported, "scaled");

  HeadOptions m = Options({HeadKind::kMtp});
  m.into = m.target;
  ExpectRefused(m, bad, "into");
  m.into = Folder() + "/no/such/place.gguf";
  ExpectRefused(m, ErrorCode::kIo, "place.gguf");
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
  const std::string out = Folder() + "/verb.gguf";
  const Arguments common = {"--target", TargetPath(), "--text",    TextPath(), "--out",
                            out,        "--steps",    "1",         "--window", "32",
                            "--unroll", "2",          "--threads", "1"};
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
}

}  // namespace
}  // namespace foretoken::train
