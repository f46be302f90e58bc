// SPDX-License-Identifier: Apache-2.0
// The bundled hybrid model, whose convolutions keep states, and the bundled draft: real text, with
// drafts that are accepted and drafts that are rolled back.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>

#include "fixtures/engines_testing.h"
#include "foretoken/engine.h"

namespace foretoken {
namespace {

std::string Bundled(const char* name) {
  return std::string(FORETOKEN_SOURCE_DIR) + "/models/tales-" + name + ".gguf";
}

std::unique_ptr<Engine> Open(const std::string& method, int threads, int checkpoint_tokens = 8192) {
  EngineOptions options{.model = Bundled("3m-hybrid-q8_0"),
                        .speculative = {.method = method, .controller = "fixed"},
                        .context_size = 512,
                        .max_sequences = 4,
                        .threads = threads};
  if (method == "standalone") options.draft_model = Bundled("1m-draft-q8_0");
  options.state_checkpoint_tokens = checkpoint_tokens;
  return OpenEngine(options);
}

// The beginnings of tales, told at temperature 0 or drawn.
std::vector<Request> Tales(int drafts, float temperature) {
  std::vector<Request> requests;
  for (const char* beginning :
       {"Once upon a time, there was a little girl named Lily. She loved to play with her",
        "One day, a small dog ran into the forest. It was dark, and he",
        "\"Where is my red ball?\" asked Tom. His mother looked at him and",
        "The old king had three daughters, and the youngest of them was so beautiful that",
        "Far out at sea, where the water is as blue as", "The rabbit was sad because"}) {
    Request& r = requests.emplace_back();
    r.prompt = beginning;
    r.max_new_tokens = 120;
    r.sampling.temperature = temperature;
    r.seed = 40 + requests.size();
    r.logprobs = 2;
    r.ignore_eos = true;
    r.speculative.num_speculative_tokens = drafts;
    if (temperature != 0) r.speculative.strategy = VerifyStrategy::kSampleMatch;
  }
  return requests;
}

class HybridPair : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(Bundled("3m-hybrid-q8_0"))) GTEST_SKIP() << "no bundled models";
  }
};

TEST_F(HybridPair, WritesThePlainTextWhateverIsDrafted) {
  for (const float temperature : {0.0f, 0.8f}) {
    const auto plain = Open("none", 1)->GenerateBatch(Tales(0, temperature));
    ASSERT_TRUE(plain) << plain.error().message;
    for (const char* method : {"standalone", "ngram"})
      for (const int drafts : {1, 4, 9}) {
        const auto texts = Open(method, 1 + drafts % 2)->GenerateBatch(Tales(drafts, temperature));
        ASSERT_TRUE(texts) << texts.error().message;
        std::int64_t drafted = 0, accepted = 0;
        for (std::size_t i = 0; i < texts->size(); ++i) {
          ASSERT_NO_FATAL_FAILURE(
              ExpectSame((*texts)[i], (*plain)[i], fmt::format("{} {} {}", method, drafts, i)));
          drafted += (*texts)[i].speculation.drafted;
          accepted += (*texts)[i].speculation.accepted;
        }
        std::printf("  %-10s T %.1f K %d: %lld of %lld drafts accepted\n", method,
                    static_cast<double>(temperature), drafts, static_cast<long long>(accepted),
                    static_cast<long long>(drafted));
        EXPECT_GT(accepted, 0);
        EXPECT_GT(drafted, accepted) << "some are rolled back";
      }
  }
}

TEST_F(HybridPair, ReadsOnlyWhatIsNewInASecondTurn) {
  const auto fresh = Open("none", 1, 0);
  for (const char* method : {"none", "standalone"}) {
    const auto engine = Open(method, 1);
    Request first = Tales(4, 0)[0];
    const auto answer = engine->Generate(first);
    ASSERT_TRUE(answer) << answer.error().message;
    Request second = first;
    second.prompt += answer->text + " The next day, Lily went";
    const auto turn = engine->Generate(second);
    ASSERT_TRUE(turn) << turn.error().message;
    EXPECT_GE(turn->timings.cached_prompt_tokens, 96) << method;
    second.speculative.num_speculative_tokens = 0;
    ASSERT_NO_FATAL_FAILURE(ExpectSame(*turn, *fresh->Generate(second), method));
  }
}

}  // namespace
}  // namespace foretoken
