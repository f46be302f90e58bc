// SPDX-License-Identifier: Apache-2.0
// Drafters that see a window of the text: no text depends on it.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fixtures/engines_testing.h"
#include "fixtures/tiny_model.h"

namespace foretoken {
namespace {

struct WindowedDraft {
  std::string name, method, draft, self_draft;
  std::string target;
  int best_blocks = 0;
};

// A target for each drafter with a network, and its file where it reads one.
std::vector<WindowedDraft> WindowedDrafts() {
  const std::string folder = fixtures::TemporaryFolder();
  const fixtures::TinyModelOptions target{.seed = 81, .dim = 256, .ff = 256};
  const std::string path = fixtures::WriteTinyModel(folder, target);
  fixtures::TinyModelOptions small = target;
  small.noise = 0.05;
  const fixtures::TinyModelOptions gemma{
      .arch = "gemma4", .seed = 82, .n_layers = 3, .head_dim = 64, .window = 40};
  const auto head = [&folder](fixtures::TinyHeadOptions options) {
    return fixtures::WriteTinyHead(folder, options);
  };
  return {
      {"model", "standalone", fixtures::WriteTinyModel(folder, small), "", path},
      {"eagle", "eagle", head({.target = target, .eagle = true}), "", path},
      {"mtp", "mtp", head({.target = target}), "", path},
      {"dflash", "dflash", head({.target = target, .block = true, .layers = {0, 1, 2}}), "", path},
      {"assistant", "mtp", head({.target = gemma, .assistant = true, .n_blocks = 2, .dim = 32}), "",
       fixtures::WriteTinyModel(folder, gemma)},
      {"copy", "self", "", "Q3_K", path},
      {"blocks for a copy", "self", "", "Q3_K", path, 1},
      {"blocks in a gemma", "self", "", "own", fixtures::WriteTinyModel(folder, gemma), 2},
      {"blocks in a hybrid", "self", "", "own",
       fixtures::WriteTinyModel(folder,
                                {.arch = "qwen35", .seed = 83, .n_layers = 4, .head_dim = 32}),
       1},
      {"blocks", "self", "", "own", path, 1},
      {"self", "self", "", "own", path},
  };
}

EngineOptions OptionsOf(const WindowedDraft& draft, int window) {
  EngineOptions options{.model = draft.target,
                        .draft_model = draft.draft,
                        .speculative = {.method = draft.method,
                                        .num_speculative_tokens = 5,
                                        .controller = "fixed",
                                        .draft_window = window,
                                        .draft_best_blocks = window > 0 ? draft.best_blocks : 0,
                                        .self_draft = draft.self_draft},
                        .max_sequences = 3,
                        .threads = 1};
  options.repack_cache = "off";
  return options;
}

// Prompts that are longer than the windows.
std::vector<Request> LongRequests() {
  return ColdAndWarm(4, 100, 9);
}

// Every drafter, window, draft length and type of the cache, alone and in batches, at temperature 0 and above.
TEST(DraftWindow, NoTextDependsOnIt) {
  for (const WindowedDraft& draft : WindowedDrafts()) {
    std::int64_t accepted = 0;
    for (const CacheType type :
         {CacheType::kF32, CacheType::kF16, CacheType::kBF16, CacheType::kQ8_0, CacheType::kQ4_0}) {
      EngineOptions options = OptionsOf(draft, 0);
      options.cache_type_k = options.cache_type_v = type;
      options.speculative.method = "none", options.draft_model.clear();
      options.speculative.self_draft.clear();
      auto requests = LongRequests();
      const auto plain = *OpenEngine(options)->GenerateBatch(requests);
      for (const int window : {1, 40, 1000}) {
        options = OptionsOf(draft, window);
        options.cache_type_k = options.cache_type_v = type;
        options.speculative.strategy = VerifyStrategy::kSampleMatch;
        const auto engine = OpenEngine(options);
        for (const int k : {1, 5}) {
          for (Request& r : requests) r.speculative.num_speculative_tokens = k;
          const auto drafted = *engine->GenerateBatch(requests);
          ExpectSame(drafted, plain,
                     draft.name + " window " + std::to_string(window) + " K " + std::to_string(k));
          for (const Completion& text : drafted) {
            EXPECT_GT(text.speculation.drafted, 0) << draft.name;
            accepted += text.speculation.accepted;
          }
        }
      }
    }
    EXPECT_GT(accepted, 0) << draft.name;
  }
}

// Where the text follows the drafts, a seed gives one text whatever runs beside it.
TEST(DraftWindow, DraftsDependOnTheirOwnTextAlone) {
  for (const WindowedDraft& draft : WindowedDrafts()) {
    EngineOptions options = OptionsOf(draft, 20);
    options.speculative.strategy = VerifyStrategy::kResidual;
    auto requests = LongRequests();
    for (Request& r : requests) r.sampling.temperature = 0.9f, r.logprobs = 0;
    const auto beside = GeneratedBesideOthers(*OpenEngine(options), requests, 5);
    ExpectSame(GeneratedInTurn(*OpenEngine(options), requests), beside, draft.name);
  }
}

// With the model's own weights a window that holds the text rejects no draft, and a small one does.
TEST(DraftWindow, TheModelDraftsWithItsOwnWeights) {
  WindowedDraft self = WindowedDrafts().back();
  ASSERT_EQ(self.self_draft, "own");
  const auto share = [&self](int window, int best_blocks = 0) {
    self.best_blocks = best_blocks;
    const auto engine = OpenEngine(OptionsOf(self, window));
    EXPECT_EQ(engine->summary().drafters[0].model.weight_bytes, 0);
    EXPECT_EQ(engine->summary().drafters[0].model.type, "own");
    Request request = LongRequests().front();
    request.logprobs = 0, request.max_new_tokens = 60;
    const SpeculationStats s = Generated(*engine, request).speculation;
    EXPECT_EQ(s.draft_forwards, s.drafted);
    return static_cast<double>(s.accepted) / static_cast<double>(s.drafted);
  };
  EXPECT_EQ(share(1000), 1);
  EXPECT_LT(share(1), 1);
  EXPECT_LT(share(1, 1), 1);
  EXPECT_EQ(share(1, 100), 1) << "with all blocks";
}

// Nobody asked for a window, and texts may be long: the copy offers drafts with one behind 4,096 positions.
TEST(DraftWindow, ACopyMaySeeOneOfALongText) {
  const std::string model =
      fixtures::WriteTinyModel(fixtures::TemporaryFolder(), {.seed = 84, .context_length = 8192});
  EngineOptions options{.model = model, .context_size = 4400, .max_sequences = 2, .threads = 1};
  options.repack_cache = "off";
  options.speculative.method = "none";
  auto requests = ColdAndWarm(2, 4090, 60);  // one begins before, one behind
  const auto plain = *OpenEngine(options)->GenerateBatch(requests);
  options.speculative.method = "self:window";
  options.speculative.num_speculative_tokens = 3;
  options.speculative.controller = "fixed";
  options.speculative.strategy = VerifyStrategy::kSampleMatch;
  options.speculative.self_draft = "Q4_0";
  const auto engine = OpenEngine(options);
  const auto drafted = *engine->GenerateBatch(requests);
  ExpectSame(drafted, plain, "long texts");
  for (const Completion& text : drafted) EXPECT_GT(text.speculation.accepted, 0);
  EXPECT_LT(drafted[0].speculation.drafted, drafted[1].speculation.drafted);
  Request small = ColdAndWarm(1, 100, 0)[0];
  EXPECT_EQ(Generated(*engine, small).speculation.drafted, 0);
  for (const bool asked : {false, true}) {
    options.context_size = asked ? 4400 : 4096;
    options.speculative.draft_window = asked ? 512 : 0;
    EXPECT_NE(MessageOf(Engine::Open(options)).find("self:window"), std::string::npos);
  }
}

// A draft model reads a text of which it lacks more than 4,096 tokens from its last 1,024.
TEST(DraftWindow, ADraftModelReadsALongTextFromItsEnd) {
  const std::string folder = fixtures::TemporaryFolder();
  fixtures::TinyModelOptions shape{.seed = 85, .context_length = 8192};
  EngineOptions options{.model = fixtures::WriteTinyModel(folder, shape),
                        .context_size = 4400,
                        .max_sequences = 2,
                        .threads = 1};
  options.repack_cache = "off";
  options.speculative.method = "none";
  auto requests = ColdAndWarm(4, 4080, 40);  // two begin before, two behind
  const auto plain = *OpenEngine(options)->GenerateBatch(requests);
  shape.noise = 0.05;
  options.draft_model = fixtures::WriteTinyModel(folder, shape);
  options.speculative.method = "standalone";
  options.speculative.num_speculative_tokens = 3;
  options.speculative.controller = "fixed";
  const auto passes_of_reading = [](const Completion& text) {
    return text.speculation.draft_forwards - text.speculation.drafted;
  };
  for (const VerifyStrategy strategy : {VerifyStrategy::kSampleMatch, VerifyStrategy::kResidual}) {
    options.speculative.strategy = strategy;
    const bool follows =
        strategy == VerifyStrategy::kResidual;  // the text its drafts, above temperature 0
    options.max_sequences = 1;
    const auto drafted = *OpenEngine(options)->GenerateBatch(requests);
    for (std::size_t i = 0; i < drafted.size(); ++i) {
      const bool warm = requests[i].sampling.temperature > 0,
                 behind = requests[i].prompt_tokens.size() > 4097;
      if (!follows || !warm) ExpectSame(drafted[i], plain[i], "text " + std::to_string(i));
      EXPECT_GT(drafted[i].speculation.accepted, 0) << i;
      EXPECT_EQ(passes_of_reading(drafted[i]) < 8, behind && !(follows && warm))
          << i << ": " << passes_of_reading(drafted[i]);
    }
  }
}

TEST(DraftWindow, SaysWhatIsWrongWithItsSettings) {
  WindowedDraft self = WindowedDrafts().back();
  const auto why = [&self](int window) { return MessageOf(Engine::Open(OptionsOf(self, window))); };
  EXPECT_EQ(why(20), "");
  EXPECT_TRUE(Begins(why(0), "self_draft: own: "));
  EXPECT_TRUE(Says(why(-1), "draft_window"));
  self.self_draft = "own,Q4_0";
  EXPECT_EQ(why(0), "");
  EngineOptions options = OptionsOf(self, 0);
  options.speculative.draft_best_blocks = 4;
  options.speculative.self_draft = "Q4_0";
  EXPECT_EQ(MessageOf(Engine::Open(options)), "") << "without a window it has no effect";
  self.best_blocks = 1025;
  EXPECT_TRUE(Says(why(20), "draft_best_blocks: 1025"));
}

}  // namespace
}  // namespace foretoken
