// SPDX-License-Identifier: Apache-2.0
// Several draft models and heads in one engine: each drafts as it does alone, the text stays the
// target's, and names tell the drafters apart.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "foretoken/speculative_config.h"
#include "lossless/parts_testing.h"

namespace foretoken {
namespace {

struct Files {
  std::string target, near, far, eagle, mtp;
};
const Files& Made() {
  static const Files files = [] {
    const std::string folder = fixtures::TemporaryFolder();
    fixtures::TinyModelOptions options = kPairTarget;
    Files made;
    made.target = fixtures::WriteTinyModel(folder, options);
    made.eagle = fixtures::WriteTinyHead(
        folder, {.target = options, .eagle = true, .file_name = "eagle.gguf"});
    made.mtp = fixtures::WriteTinyHead(
        folder, {.target = options, .eagle = false, .file_name = "mtp.gguf"});
    options.noise = 0.05, options.file_name = "near.gguf";
    made.near = fixtures::WriteTinyModel(folder, options);
    options.noise = 0.3, options.file_name = "far.gguf";
    made.far = fixtures::WriteTinyModel(folder, options);
    return made;
  }();
  return files;
}

EngineOptions With(std::vector<std::string> files, int max_sequences = 1) {
  EngineOptions options;
  options.model = Made().target;
  options.speculative.draft_models = std::move(files);
  options.speculative.controller = "fixed";
  options.speculative.num_speculative_tokens = 4;
  options.max_sequences = max_sequences;
  options.threads = 1;
  return options;
}
EngineOptions All(int max_sequences = 1) {
  EngineOptions options = With({Made().far, Made().near, Made().eagle, Made().mtp}, max_sequences);
  options.draft_model = std::exchange(options.speculative.draft_models.front(), {});
  options.speculative.draft_models.erase(options.speculative.draft_models.begin());
  return options;
}

// Adds the names of the drafters that the drafts come from.
Completion GeneratedBy(Engine& engine, const Request& request, std::set<std::string>& drafters) {
  return Got(engine.Generate(request, [&](const RoundEvent& round) {
    if (!round.drafter.empty()) drafters.emplace(round.drafter);
    return true;
  }));
}

TEST(Portfolio, NamesTellFilesOfOneMethodApart) {
  const auto engine = OpenEngine(All());
  const EngineSummary& summary = engine->summary();
  EXPECT_EQ(summary.method, "standalone,eagle,mtp");
  ASSERT_EQ(summary.drafters.size(), 4u);
  const std::vector<std::string> names = {"standalone:far", "standalone:near", "eagle", "mtp"};
  for (std::size_t i = 0; i < names.size(); ++i) EXPECT_EQ(summary.drafters[i].name, names[i]);
  EXPECT_EQ(summary.drafters[1].method, "standalone");
  EXPECT_EQ(summary.drafters[1].model.path, Made().near);
  for (const DrafterSummary& draft : summary.drafters) {
    EXPECT_GT(draft.model.weight_bytes, 0) << draft.name;
    EXPECT_GT(draft.model.cache_bytes, 0) << draft.name;
  }
  EXPECT_EQ(summary.draft_model->path, Made().far);
  // A method with one file needs no name, but accepts it.
  const auto one = OpenEngine(With({Made().near}));
  EXPECT_EQ(one->summary().drafters[0].name, "standalone");
  Request request = Ask(8);
  request.speculative.method = "standalone:near";
  EXPECT_GT(Generated(*one, request).speculation.drafted, 0);
  request.speculative.method = "standalone:far";
  EXPECT_TRUE(Fails(one->Generate(request), "'standalone:far' is not one of this engine's"));
}

TEST(Portfolio, FilesOfOneNameGetNumbers) {
  const auto folder = std::filesystem::path(fixtures::TemporaryFolder());
  std::filesystem::copy_file(Made().far, folder / "near.gguf");
  const auto engine = OpenEngine(With({Made().near, (folder / "near.gguf").string()}));
  EXPECT_EQ(engine->summary().drafters[0].name, "standalone:near");
  EXPECT_EQ(engine->summary().drafters[1].name, "standalone:near-2");
}

// The drafts of each do not depend on the others: a head gets its own features, and each cache
// contains its own text.
TEST(Portfolio, EachDraftsAsItDoesAlone) {
  const auto together = OpenEngine(All());
  for (const auto& [name, file] :
       {std::pair("standalone:far", Made().far), std::pair("standalone:near", Made().near),
        std::pair("eagle", Made().eagle), std::pair("mtp", Made().mtp)}) {
    const auto alone = OpenEngine(With({file}));
    for (const VerifyStrategy strategy : {VerifyStrategy::kResidual, VerifyStrategy::kSampleMatch})
      for (const float temperature : {0.0f, 0.8f}) {
        Request request = Ask(60, temperature, 9);
        request.speculative.strategy = strategy;
        const auto want = Generated(*alone, request);
        request.speculative.method = name;
        std::set<std::string> drafters;
        const Completion got = GeneratedBy(*together, request, drafters);
        EXPECT_EQ(got.token_ids, want.token_ids) << name;
        EXPECT_EQ(got.speculation.drafted, want.speculation.drafted) << name;
        EXPECT_EQ(got.speculation.accepted, want.speculation.accepted) << name;
        EXPECT_EQ(got.speculation.draft_forwards, want.speculation.draft_forwards) << name;
        EXPECT_GT(got.speculation.drafted, 20) << name;
        EXPECT_EQ(drafters, std::set<std::string>{name});
      }
  }
}

// Tokens and log-probabilities are plain decoding's, bit for bit, with every drafter, alone and in
// a batch; above temperature 0 the text is the same too.
TEST(Portfolio, LeavesTheTextAsItIs) {
  const auto plain = OpenEngine(With({}));
  const std::vector<std::string> methods = {"portfolio", "eagle,mtp", "standalone",
                                            "standalone:far,mtp,ngram"};
  for (const char* controller : {"fixed", "cost-model"})
    for (const int max_sequences : {1, 3}) {
      EngineOptions options = All(max_sequences);
      options.speculative.controller = controller;
      const auto engine = OpenEngine(options);
      std::vector<Request> requests;
      for (int i = 0; i < 8; ++i) {
        Request request = Ask(45, i % 2 == 0 ? 0.0f : 0.8f, static_cast<std::uint64_t>(i), 1 + i);
        request.speculative.strategy =
            i % 2 == 0 ? VerifyStrategy::kAuto : VerifyStrategy::kSampleMatch;
        request.speculative.method = methods[static_cast<std::size_t>(i / 2)];
        request.logprobs = 3;
        requests.push_back(request);
      }
      const auto got = GeneratedTogether(*engine, requests);
      for (Request& request : requests) request.speculative.method = "none";
      ExpectSame(got, GeneratedInTurn(*plain, requests), controller);
    }
}

// The cost model chooses by what it has learned about each (CostModel tests); under fixed rules the
// first file drafts.
TEST(Portfolio, UnderFixedLengthsTheFirstFileDrafts) {
  for (const bool near_first : {true, false}) {
    std::vector<std::string> files = {Made().near, Made().far};
    if (!near_first) std::swap(files[0], files[1]);
    const auto engine = OpenEngine(With(files));
    std::set<std::string> drafters;
    GeneratedBy(*engine, Ask(60, 0.8f, 3), drafters);
    EXPECT_EQ(drafters, std::set<std::string>{near_first ? "standalone:near" : "standalone:far"});
  }
}

TEST(Portfolio, KeepsTheTargetsDistribution) {
  constexpr int kSeeds = 3000;
  const auto want = SecondTokens(*OpenEngine(With({})), 0, kSeeds, "none");
  int freedom = 0;
  const auto chi = [&](VerifyStrategy strategy, const std::string& method,
                       std::shared_ptr<Verifier> verifier = nullptr) {
    EngineOptions options = All();
    options.speculative.strategy = strategy;
    options.verifier = std::move(verifier);
    const auto engine = OpenEngine(options);
    const double x = Difference(want, SecondTokens(*engine, kSeeds, kSeeds, method), freedom);
    std::printf("  chi-square %7.2f, %d degrees of freedom: %s, %s\n", x, freedom, method.c_str(),
                engine->summary().strategy.c_str());
    return x;
  };
  for (const char* method : {"standalone", "eagle,mtp", "standalone,eagle,mtp"}) {
    EXPECT_LT(chi(VerifyStrategy::kResidual, method), 35);
    EXPECT_LT(chi(VerifyStrategy::kSampleMatch, method), 35);
    EXPECT_GE(freedom, 3);
  }
  EXPECT_GT(chi(VerifyStrategy::kAuto, "standalone:far", std::make_shared<AcceptsAll>()), 70);
}

TEST(Portfolio, ErrorsNameTheFile) {
  const std::string folder = fixtures::TemporaryFolder();
  const std::string broken = folder + "/broken.gguf", absent = folder + "/absent.gguf";
  std::ofstream(broken) << "no model";
  const std::string other =
      fixtures::WriteTinyHead(folder, {.target = {.seed = 51, .dim = 96, .n_heads = 6}});
  for (const std::string& wrong : {broken, absent, other}) {
    const std::string error = MessageOf(Engine::Open(With({Made().near, wrong})));
    EXPECT_TRUE(Says(error, wrong));
    EXPECT_EQ(error.find(Made().near), std::string::npos) << error;
  }
  EngineOptions options = With({Made().near, Made().far, Made().near});
  EXPECT_EQ(MessageOf(Engine::Open(options)),
            "draft models: " + Made().near + " is given twice; leave one out");
  options = With({Made().near, Made().eagle});
  options.speculative.method = "standalone";
  EXPECT_EQ(MessageOf(Engine::Open(options)),
            Made().eagle +
                ": this is an EAGLE-3 head, and 'standalone' was asked for; give "
                "another file, or leave SpeculativeOptions::method out");
  options = With({Made().eagle});
  options.speculative.method = "standalone,eagle";
  EXPECT_EQ(MessageOf(Engine::Open(options)),
            "speculative_method: 'standalone,eagle' needs a draft model; name one with "
            "EngineOptions::draft_model, or use ngram");
  options.speculative.method = "eagle,mtp";  // and the target's file has none
  EXPECT_TRUE(Says(MessageOf(Engine::Open(options)), "the model has no MTP head"));
}

TEST(Portfolio, SettingsFilesListTheFiles) {
  const std::string path = fixtures::TemporaryFolder() + "/settings.yaml";
  std::ofstream(path) << "speculative_config:\n  speculative_method: [standalone, eagle]\n"
                      << "  draft_models:\n    - " << Made().near << "\n    - " << Made().eagle
                      << "\n";
  EngineOptions options = With({});
  ASSERT_TRUE(ReadSpeculativeFile(path, kSpeculativeSection, options.speculative));
  const auto engine = OpenEngine(options);
  ASSERT_EQ(engine->summary().drafters.size(), 2u);
  EXPECT_EQ(engine->summary().drafters[1].model.path, Made().eagle);
}

}  // namespace
}  // namespace foretoken
