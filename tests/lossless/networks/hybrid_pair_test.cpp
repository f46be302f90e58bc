// SPDX-License-Identifier: Apache-2.0
// The bundled hybrid model, whose convolutions keep states, and the bundled draft: real text, with
// drafts that are accepted and drafts that are rolled back.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "fixtures/engines_testing.h"
#include "lossless/bundled_testing.h"

namespace foretoken {
namespace {

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

using HybridPair = WithBundledModels<>;

TEST_F(HybridPair, WritesThePlainTextWhateverIsDrafted) {
  for (const float temperature : {0.0f, 0.8f}) {
    const auto plain = GeneratedTogether(*Open("none", 1), Tales(0, temperature));
    for (const char* method : {"standalone", "ngram"})
      for (const int drafts : {1, 4, 9}) {
        const auto engine = Open(method, 1 + drafts % 2);
        const auto texts = GeneratedTogether(*engine, Tales(drafts, temperature));
        ExpectSame(texts, plain, fmt::format("{} {}", method, drafts));
        std::int64_t drafted = 0, accepted = 0;
        for (const Completion& text : texts)
          drafted += text.speculation.drafted, accepted += text.speculation.accepted;
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
    Request request = Tales(4, 0)[0];
    request.prompt += Generated(*engine, request).text + " The next day, Lily went";
    const Completion turn = Generated(*engine, request);
    EXPECT_GE(turn.timings.cached_prompt_tokens, 96) << method;
    request.speculative.num_speculative_tokens = 0;
    ExpectSame(turn, Generated(*fresh, request), method);
  }
}

}  // namespace
}  // namespace foretoken
