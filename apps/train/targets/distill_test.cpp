// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "base/failure_testing.h"
#include "base/files/whole_file_testing.h"
#include "fixtures/tiny_model.h"
#include "foretoken/engine.h"
#include "formats/checkpoint.h"
#include "train/targets/distill_task.h"
#include "train/targets/target_reader.h"
#include "train/written_testing.h"

namespace foretoken::train {
namespace {

using torch::Tensor;

// Sentences of a few words.
std::string Text(unsigned seed) {
  return WriteWords("text" + std::to_string(seed),
                    {"the ", "one ", "fox ", "met ", "hen ", "and ", "ran.\n"}, 1500, seed);
}

const std::string& TargetPath() {
  static const std::string path = fixtures::WriteTinyModel(
      TestFolder(), {.seed = 4, .dim = 32, .ff = 48, .context_length = 64});
  return path;
}

struct Distillation {
  DistillOptions distill;
  TrainingOptions training;
  explicit Distillation(const std::string& name) {
    distill.target = TargetPath();
    distill.text = {Text(1)}, distill.held_out = {Text(2)};
    distill.shape = {.layers = 1, .dim = 32, .heads = 4, .kv_heads = 2, .ff = 48, .context = 0};
    training.out = TestFolder() + "/" + name;
    training.steps = 60, training.batch = 4, training.window = 32;
    training.optimizer.rate = 0.02, training.optimizer.table_rate = 0.01;
  }
  std::unique_ptr<Task> Make() const { return Got(MakeDistillTask(distill, training)); }
  Error Refusal() const {
    const auto task = MakeDistillTask(distill, training);
    EXPECT_FALSE(task);
    return task ? Error{} : task.error();
  }
};

// KL, loss, agreement, overlap.
struct Figures {
  double divergence = -1, loss = -1, agree = -1, overlap = -1;
};
Figures Evaluate(Task& task) {
  torch::NoGradGuard no_gradients;
  const std::string text = task.Evaluate(Leaves(task.parameters(), torch::kFloat, false));
  Figures f;
  EXPECT_EQ(std::sscanf(text.c_str(),
                        "held-out KL %lf nats per token, loss %lf; agrees with the target's best "
                        "token %lf; mean overlap of the distributions %lf",
                        &f.divergence, &f.loss, &f.agree, &f.overlap),
            4)
      << text;
  return f;
}

TEST(Distill, LowersTheDivergenceAndRaisesWhatIsAccepted) {
  const Distillation run("lower.gguf");
  const auto task = run.Make();
  const Figures before = Evaluate(*task);
  ASSERT_TRUE(Train(*task, run.training));
  const Figures after = Evaluate(*task);
  EXPECT_LT(after.divergence, 0.6 * before.divergence);
  EXPECT_GT(after.overlap, before.overlap + 0.1);
  EXPECT_GT(after.agree, before.agree);
}

TEST(Distill, GivesTheSameFileForTheSameSeed) {
  std::vector<std::string> files;
  for (const auto& [name, seed] : {std::pair{"a", 5U}, {"b", 5U}, {"c", 6U}}) {
    Distillation run(std::string("seed_") + name);
    run.training.steps = 6, run.training.seed = seed;
    const auto task = run.Make();
    ASSERT_TRUE(Train(*task, run.training));
    files.push_back(WholeFile(run.training.out));
  }
  EXPECT_EQ(files[0], files[1]);
  EXPECT_NE(files[0], files[2]);
}

// The draft has the target's own weights and shape.
TEST(Distill, FindsNothingToLearnInTheTargetItself) {
  Distillation run("same.gguf");
  run.distill.target = fixtures::WriteTinyModel(
      TestFolder(),
      {.seed = 6, .n_layers = 1, .dim = 32, .ff = 48, .tied = true, .context_length = 64});
  const auto task = run.Make();
  EXPECT_GT(Evaluate(*task).divergence, 0.1);
  const auto target = *TargetReader::Open(run.distill.target, run.training);
  for (Parameter& p : task->parameters().all()) p.value = *target->Values(p.name);
  const Figures f = Evaluate(*task);
  // The target's output head is multiplied in the fast type.
  EXPECT_NEAR(f.divergence, 0, 0.01);
  EXPECT_GT(f.agree, 0.9);
  EXPECT_GT(f.overlap, 0.95);
}

TEST(Distill, MixesTheDivergenceWithTheLossOnTheText) {
  Distillation run("mix.gguf");
  double loss[3];
  for (int i = 0; i < 3; ++i) {
    run.distill.mix = 0.5 * i;
    const auto task = run.Make();
    loss[i] = task->Loss(Leaves(task->parameters(), torch::kFloat, false), 0, 4).item<double>();
  }
  EXPECT_NEAR(loss[1], (loss[0] + loss[2]) / 2, 1e-5);
  EXPECT_NEAR(loss[0], std::log(320), 0.3) << "fresh weights know nothing";
  EXPECT_LT(loss[2], loss[0] - 0.1) << "the target gives no token all the probability";
}

TEST(Distill, WritesADraftThatTheEngineTakesForTheTarget) {
  Distillation run("draft.gguf");
  run.training.steps = 5;
  ASSERT_TRUE(Train(*run.Make(), run.training));
  const auto file = Got(formats::OpenCheckpoint(run.training.out));
  const formats::Metadata& metadata = file->metadata();
  EXPECT_EQ(*metadata.String("general.architecture"), "llama");
  EXPECT_EQ(metadata.Int("llama.context_length"), 64) << "the target's";
  EXPECT_TRUE(metadata.String("general.name")->ends_with(" draft"));
  auto engine = Got(Engine::Open({.model = TargetPath(),
                                  .draft_model = run.training.out,
                                  .speculative = {.method = "standalone"},
                                  .threads = 1}));
  Request request;
  request.prompt = "the fox met", request.max_new_tokens = 24, request.ignore_eos = true;
  request.sampling.temperature = 0;
  const auto completion = Got(engine->Generate(request));
  EXPECT_EQ(completion.token_ids.size(), 24);
}

// The engine reads the target, so that any architecture can teach.
TEST(Distill, ImitatesTargetsThatAreNoLlama) {
  for (const char* arch : {"gemma2", "lfm2moe", "falcon-h1"}) {
    Distillation run(std::string(arch) + ".gguf");
    run.distill.target = fixtures::WriteTinyModel(TestFolder(), fixtures::SmallestOf(arch));
    const auto task = run.Make();
    const Figures before = Evaluate(*task);
    ASSERT_TRUE(Train(*task, run.training));
    EXPECT_LT(Evaluate(*task).divergence, 0.8 * before.divergence) << arch;
  }
}

TEST(Distill, ReadsTheTargetsOwnTextBesidesTheGiven) {
  Distillation run("samples.gguf");
  run.distill.samples = 300;
  const std::string samples = run.training.out + ".samples.txt";
  const std::string with = run.Make()->Fingerprint(), text = WholeFile(samples);
  EXPECT_GT(text.size(), 100);
  EXPECT_NE(text.find("\n<|endoftext|>\n"), std::string::npos);
  EXPECT_EQ(run.Make()->Fingerprint(), with);
  EXPECT_EQ(WholeFile(samples), text);
  run.distill.samples_temperature = 0.3;
  EXPECT_NE(run.Make()->Fingerprint(), with);
  EXPECT_NE(WholeFile(samples), text) << "made anew by other settings";
  run.distill.samples = 0;
  EXPECT_NE(run.Make()->Fingerprint(), with);
}

TEST(Distill, RefusesWhatDoesNotFitBeforeAnyWork) {
  const auto refuses = [](const char* words, const std::function<void(Distillation&)>& change) {
    Distillation run("refused.gguf");
    run.distill.samples = 300;
    change(run);
    const Error error = run.Refusal();
    EXPECT_NE(error.message.find(words), std::string::npos) << error.message;
    EXPECT_FALSE(std::filesystem::exists(run.training.out + ".samples.txt")) << words;
    return error.code;
  };
  const auto bad = ErrorCode::kInvalidArgument;
  EXPECT_EQ(refuses("target: none", [](Distillation& s) { s.distill.target.clear(); }), bad);
  EXPECT_EQ(refuses("/no/such", [](Distillation& s) { s.distill.target = "/no/such.gguf"; }),
            ErrorCode::kNotFound);
  EXPECT_EQ(refuses("heads", [](Distillation& s) { s.distill.shape.heads = 3; }), bad);
  EXPECT_EQ(refuses("key heads", [](Distillation& s) { s.distill.shape.kv_heads = 3; }), bad);
  EXPECT_EQ(refuses("multiple of 8", [](Distillation& s) { s.distill.shape.dim = 48; }), bad);
  EXPECT_EQ(refuses("context of 64", [](Distillation& s) { s.training.window = 65; }), bad);
  EXPECT_EQ(refuses("text: none", [](Distillation& s) { s.distill.text.clear(); }), bad);
  EXPECT_EQ(refuses("not text", [](Distillation& s) { s.distill.text = {TargetPath()}; }),
            ErrorCode::kInvalidFile);
  EXPECT_EQ(refuses("not text", [](Distillation& s) { s.distill.held_out = {TargetPath()}; }),
            ErrorCode::kInvalidFile);
  EXPECT_EQ(
      refuses("--out", [](Distillation& s) { s.training.out = TestFolder() + "/none/x.gguf"; }),
      ErrorCode::kIo);
}

}  // namespace
}  // namespace foretoken::train
