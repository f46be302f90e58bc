// SPDX-License-Identifier: Apache-2.0
// The model drafts for itself, with a copy of its weights in fewer bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <regex>
#include <sstream>

#include "fixtures/engines_testing.h"
#include "fixtures/tiny_model.h"
#include "lossless/bundled_testing.h"

namespace foretoken {
namespace {

EngineOptions SelfOptions(const std::string& model, const std::string& types = "Q4_0") {
  return {.model = model,
          .speculative = {.method = "self",
                          .num_speculative_tokens = 4,
                          .controller = "fixed",
                          .self_draft = types},
          .threads = 1};
}

Request OnceUponATime() {
  Request request;
  request.prompt = "once upon a time there was";
  request.max_new_tokens = 60;
  request.ignore_eos = true;
  return request;
}

std::string TextOf(const std::string& path) {
  std::ostringstream all;
  all << std::ifstream(path).rdbuf();
  return all.str();
}

std::string WhyNotOpened(const EngineOptions& options) {
  return MessageOf(Engine::Open(options));
}

TEST(SelfDraft, ReadsNoPromptAndRunsOnePassForEachDraft) {
  if (!std::filesystem::exists(Bundled("9m-q8_0"))) GTEST_SKIP() << "no bundled models";
  const auto engine = OpenEngine(SelfOptions(Bundled("9m-q8_0")));
  Request request;
  request.prompt = "Once upon a time, there was a little girl named Lily. She had a";
  request.max_new_tokens = 120;
  request.sampling.temperature = 0;
  const SpeculationStats s = Generated(*engine, request).speculation;
  EXPECT_EQ(s.draft_forwards, s.drafted);
  EXPECT_EQ(s.draft_prompt_ms, 0);
  EXPECT_GT(s.accepted, s.drafted * 3 / 4);
  // No cache of its own: the engine has the target's alone.
  const EngineSummary& summary = engine->summary();
  EXPECT_EQ(summary.memory.cache, summary.target.cache_bytes);
  ASSERT_EQ(summary.drafters.size(), 1u);
  EXPECT_EQ(summary.drafters[0].model.type, "Q4_0");
  EXPECT_EQ(engine->copy().state, CopyProgress::State::kReady);  // it was made before
  EXPECT_EQ(summary.drafters[0].model.cache_bytes, 0);
  EXPECT_LT(summary.drafters[0].model.weight_bytes, summary.target.weight_bytes * 2 / 3);
}

// Nobody asks for the copy, and nothing better is beside the model: it is made while the engine works, and
// drafts from then on. The text stays what it is. reduced: the tokens of its reduced output.
void ExpectALateCopyChangesNoText(std::optional<int> reduced) {
  const std::string model = fixtures::WriteTinyModel(fixtures::TemporaryFolder(), {.seed = 96});
  EngineOptions options = SelfOptions(model);
  options.repack_cache = "off";
  options.speculative.method = "none";
  Request request = OnceUponATime();
  request.seed = 4;
  request.logprobs = 3;
  const auto plain = *(*Engine::Open(options))->Generate(request);

  options.speculative.method.clear();
  options.speculative.draft_vocabulary = reduced;
  const auto engine = *Engine::Open(options);
  EXPECT_NE(engine->copy().state, CopyProgress::State::kNone);
  EXPECT_EQ(engine->copy().types, "Q4_0");
  EXPECT_EQ(engine->summary().method, "self,ngram");
  const auto& methods = engine->summary().methods;
  EXPECT_EQ(std::count(methods.begin(), methods.end(), "self:subset"), reduced ? 1 : 0);
  EXPECT_EQ(engine->summary().memory.cache, engine->summary().target.cache_bytes);
  bool drafted = false;
  for (int behind = 0; behind < 3; behind += drafted) {  // three texts with the copy
    const auto text = *engine->Generate(request);
    EXPECT_EQ(text.token_ids, plain.token_ids);
    for (std::size_t i = 0; i < plain.logprobs.size(); ++i)
      EXPECT_EQ(text.logprobs[i].top, plain.logprobs[i].top) << i;
    EXPECT_EQ(text.strategy, "sample-match");
    drafted = text.speculation.draft_forwards > 0;  // lookups have no passes
  }
  const CopyProgress copy = engine->copy();
  EXPECT_EQ(copy.state, CopyProgress::State::kReady);
  EXPECT_EQ(copy.made_bytes, copy.bytes);
  EXPECT_GT(copy.bytes, 0);
}

TEST(SelfDraft, OfAModelWithoutADrafterBeginsWhenTheCopyIsMade) {
  ExpectALateCopyChangesNoText(std::nullopt);
}

TEST(SelfDraft, OfALateCopyMayHaveAReducedOutput) {
  ExpectALateCopyChangesNoText(60);
}

// A file of figures like this one, which has one copy's: two bits that are rarely right, and three that are.
std::string WithOtherFigures(const std::string& text) {
  const auto copy = text.substr(text.find('{', 1), text.find('}') + 1 - text.find('{', 1));
  const auto with = [&copy](const char* agreed, const char* types) {
    std::string other = copy;
    for (const auto& [field, value] :
         {std::pair("\"agreed\"", agreed), {"\"positions\"", "96"}, {"\"cost\"", "0.5"}})
      other = std::regex_replace(other, std::regex(std::string(field) + R"(:[^,}]+)"),
                                 std::string(field) + ":" + value);
    return std::regex_replace(other, std::regex("Q2_K"), types);
  };
  return R"({"foretoken_copies":1,"copies":[)" + with("8", "Q2_K") + "," + with("95", "Q3_K") +
         "]}";
}

// The types of the copy are those that promise most by what an earlier engine has measured.
TEST(SelfDraft, ChoosesItsTypesByWhatWasMeasured) {
  const std::string folder = fixtures::TemporaryFolder(),
                    model = fixtures::WriteTinyModel(
                        folder,
                        {.seed = 97, .dim = 256, .ff = 256, .weight_type = tensor::DType::kQ8_0}),
                    file = folder + "/kept/copies.json";
  EngineOptions options = SelfOptions(model, "");
  options.repack_cache = folder + "/kept";
  const auto types = [&] { return (*Engine::Open(options))->summary().drafters[0].model.type; };
  EXPECT_EQ(types(), "Q2_K");
  const std::string measured = TextOf(file);
  EXPECT_TRUE(std::regex_search(
      measured, std::regex(R"("types":"Q2_K","agreed":\d+,"positions":\d+,"cost":\d)")))
      << measured;
  EXPECT_EQ(types(), "Q2_K");
  EXPECT_EQ(TextOf(file), measured);  // it is measured once
  std::ofstream(file, std::ios::trunc) << WithOtherFigures(measured);
  EXPECT_EQ(types(), "Q3_K");
  options.speculative.self_draft = "Q4_K";
  EXPECT_EQ(types(), "Q4_K");
  options.speculative.self_draft.clear();
  options.repack_cache = "off";
  EXPECT_EQ(types(), "Q2_K");
}

// Its types are the model's own.
TEST(SelfDraft, ACopyOfNoBytesIsNotMeasured) {
  const std::string folder = fixtures::TemporaryFolder(),
                    model = fixtures::WriteTinyModel(
                        folder, {.seed = 99, .weight_type = tensor::DType::kQ8_0});
  EngineOptions options = SelfOptions(model, "Q8_0");
  options.repack_cache = folder + "/kept";
  EXPECT_EQ((*Engine::Open(options))->copy().bytes, 0);
  EXPECT_FALSE(std::filesystem::exists(folder + "/kept/copies.json"));
  options.speculative.self_draft = "Q4_0";
  EXPECT_GT((*Engine::Open(options))->copy().bytes, 0);
  EXPECT_TRUE(std::filesystem::exists(folder + "/kept/copies.json"));
}

// A copy that is made while the engine works is measured by the rounds of temperature 0.
TEST(SelfDraft, KeepsWhatRoundsHaveShownOfALateCopy) {
  const std::string folder = fixtures::TemporaryFolder(),
                    model = fixtures::WriteTinyModel(folder, {.seed = 98});
  EngineOptions options = SelfOptions(model);
  options.repack_cache = folder + "/kept";
  options.speculative.method.clear();
  Request request = OnceUponATime();
  auto engine = *Engine::Open(options);
  const auto run = [&](float temperature) {
    request.sampling.temperature = temperature;
    std::int64_t rounds = 0;
    request.seed = 7;
    EXPECT_TRUE(engine->Generate(request, [&](const RoundEvent& round) {
      rounds += round.drafter == "self";
      return true;
    }));
    return rounds;
  };
  while (run(1) == 0) {
  }
  for (std::int64_t rounds = 0; rounds <= 96;) rounds += run(1);
  engine.reset();
  const std::string file = folder + "/kept/copies.json";
  EXPECT_FALSE(std::filesystem::exists(file));
  engine = *Engine::Open(options);
  std::int64_t rounds = 0;
  while (rounds <= 96) rounds += run(0);
  engine.reset();
  const std::string text = TextOf(file);
  EXPECT_TRUE(std::regex_search(text, std::regex(R"("types":"Q4_0","agreed":\d+,"positions":)" +
                                                 std::to_string(rounds) + ",")))
      << text;
}

// Plain texts for every type of the cache, at every length, alone and in batches, at temperature 0 and above.
TEST(SelfDraft, NoTextDependsOnTheCacheTypeOrTheLength) {
  std::int64_t accepted = 0;
  for (const char* arch : {"llama", "qwen3moe", "lfm2", "gemma3"}) {
    fixtures::TinyModelOptions tiny{.arch = arch, .seed = 100, .dim = 256, .ff = 256};
    if (std::string_view(arch) == "qwen3moe") tiny.n_experts = 6, tiny.expert_ff = 256;
    if (std::string_view(arch) == "gemma3") tiny.head_dim = 32, tiny.window = 12;
    const std::string path = fixtures::WriteTinyModel(fixtures::TemporaryFolder(), tiny);
    for (const CacheType type :
         {CacheType::kF32, CacheType::kF16, CacheType::kBF16, CacheType::kQ8_0, CacheType::kQ4_0}) {
      EngineOptions options{.model = path,
                            .speculative = {.method = "none", .controller = "fixed"},
                            .max_sequences = 3,
                            .threads = 1,
                            .cache_type_k = type,
                            .cache_type_v = type};
      auto requests = ColdAndWarm(6, 9, 1);
      const auto plain = *OpenEngine(options)->GenerateBatch(requests);
      options.speculative.method = "self";
      options.speculative.self_draft = "Q3_K,head=Q4_K,attention=Q4_0,experts=Q5_0,ends=Q4_1";
      options.speculative.strategy = VerifyStrategy::kSampleMatch;
      const auto engine = OpenEngine(options);
      for (const int k : {1, 5, 16}) {
        for (Request& r : requests) r.speculative.num_speculative_tokens = k;
        const auto drafted = *engine->GenerateBatch(requests);
        ExpectSame(drafted, plain, std::string(arch) + " K " + std::to_string(k));
        for (const Completion& text : drafted) accepted += text.speculation.accepted;
      }
    }
  }
  EXPECT_GT(accepted, 500);
}

TEST(SelfDraft, SaysWhatIsWrongWithItsSettings) {
  const std::string folder = fixtures::TemporaryFolder(),
                    model = fixtures::WriteTinyModel(folder, {.seed = 95});
  EXPECT_EQ(WhyNotOpened(SelfOptions(model)), "");
  for (const char* types : {"Q9", "Q4_0,", "IQ2_XS", "2", "Q4_0,ffn=Q4_K", "head=Q4_0"})
    EXPECT_TRUE(WhyNotOpened(SelfOptions(model, types)).starts_with("self_draft: '")) << types;
  EXPECT_TRUE(WhyNotOpened(SelfOptions(model, "Q4_0,experts=Q9"))
                  .starts_with("self_draft: experts: 'Q9' is no number type"));
  EXPECT_TRUE(Says(WhyNotOpened(SelfOptions(model, "Q4_0,Q4_0,Q4_0")), "are 3 types"));
  EXPECT_TRUE(Says(WhyNotOpened(SelfOptions(model, "off")), "drop one of them"));
  EngineOptions uncached = SelfOptions(model);
  uncached.kv_cache = false;
  EXPECT_TRUE(Says(WhyNotOpened(uncached), "leave the cache on"));
}

}  // namespace
}  // namespace foretoken
