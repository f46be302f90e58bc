// SPDX-License-Identifier: Apache-2.0
// Engines with a file beside their cache: how many tokens a later engine, or one whose memory is too
// small, reads again; and that no bit of a text is another.

#include <algorithm>

#include "fixtures/kept_texts_testing.h"

namespace foretoken {
namespace {

constexpr int kAgents = 10;

class CacheFile : public KeptTexts {
 protected:
  CacheFile() : KeptTexts(23) {}

  EngineOptions Options(bool with_file) const {
    EngineOptions options = PlainOptions();
    if (with_file) options.cache_file = folder + "/blocks", options.cache_file_mb = 64;
    return options;
  }
  // The words of a conversation: an agent's own, and as many turns as have been.
  static Request Turn(int agent, int n_tokens, const std::string& salt = "") {
    return LongRequest(n_tokens, salt, [&](int i) {
      return 3 + (i * 7 + i / 11 + (i < 8 ? 0 : agent * 29)) % 250;
    });
  }
};

TEST_P(CacheFile, ALaterEngineReadsTheLastBlockAlone) {
  const Completion wanted = Generated(*OpenEngine(Options(false)), Turn(1, 300));
  ExpectSame(Generated(*OpenEngine(Options(true)), Turn(1, 300)), wanted);
  const auto engine = OpenEngine(Options(true));
  const Completion again = Generated(*engine, Turn(1, 300));
  ExpectSame(again, wanted);
  EXPECT_EQ(again.timings.prompt_tokens, 300 - Known(300));
  EXPECT_EQ(again.timings.cached_prompt_tokens, Known(300));
}

TEST_P(CacheFile, CountsWhatGoesThereAndComesBack) {
  {
    const auto engine = OpenEngine(Options(true));
    Generated(*engine, Turn(1, 300));
    EXPECT_EQ(engine->load().cache_file.blocks, 0);
    ASSERT_TRUE(engine->KeepCache());
    const CacheFileCounts counts = engine->load().cache_file;
    EXPECT_EQ(counts.blocks, 10);  // 311 tokens
    EXPECT_EQ(counts.blocks_written, 10);
    EXPECT_GT(counts.bytes, counts.bytes_written);  // heads
    EXPECT_EQ(counts.tokens_read + counts.blocks_read + counts.refused, 0);
    EXPECT_FALSE(counts.failed);
    EXPECT_TRUE(engine->CacheFileStatus());
  }
  const auto engine = OpenEngine(Options(true));
  const Completion again = Generated(*engine, Turn(1, 300));
  const CacheFileCounts counts = engine->load().cache_file;
  EXPECT_GE(counts.tokens_read, again.timings.cached_prompt_tokens);
  EXPECT_LE(counts.tokens_read, 311);
  EXPECT_EQ(counts.blocks_read, (counts.tokens_read + 31) / 32);
  EXPECT_EQ(counts.blocks_written, 0);
  EXPECT_EQ(OpenEngine(Options(false))->load().cache_file.bytes, 0);
}

TEST_P(CacheFile, ALaterTurnReadsWhatIsNew) {
  Generated(*OpenEngine(Options(true)), Turn(1, 300));
  const Completion wanted = Generated(*OpenEngine(Options(false)), Turn(1, 340));
  const Completion next = Generated(*OpenEngine(Options(true)), Turn(1, 340));
  ExpectSame(next, wanted);
  EXPECT_EQ(next.timings.prompt_tokens, 40);
}

TEST_P(CacheFile, ServesTheSameSaltOnly) {
  Generated(*OpenEngine(Options(true)), Turn(1, 300, "one client"));
  const auto engine = OpenEngine(Options(true));
  EXPECT_EQ(Generated(*engine, Turn(1, 300, "another")).timings.cached_prompt_tokens, 0);
  EXPECT_EQ(Generated(*engine, Turn(1, 300)).timings.cached_prompt_tokens, 0);
  EXPECT_EQ(Generated(*engine, Turn(1, 300, "one client")).timings.cached_prompt_tokens,
            Known(300));
}

TEST_P(CacheFile, LetsTenAgentsTakeTurnsInAMemoryForThree) {
  EngineOptions options = Options(true), plain = Options(false);
  options.cache_tokens = 3 * 512, plain.cache_tokens = options.cache_tokens;
  const auto engine = OpenEngine(options), without = OpenEngine(plain);
  int n_known = 0, n_read = 0, n_read_without = 0;
  for (int turn = 0; turn < 4; ++turn)
    for (int agent = 0; agent < kAgents; ++agent) {
      const Request request = Turn(agent, 400 + 25 * turn);
      const Completion completion = Generated(*engine, request),
                       wanted = Generated(*without, request);
      ExpectSame(completion, wanted);
      if (turn == 0) continue;
      n_known += 400 + 25 * (turn - 1);
      n_read += completion.timings.prompt_tokens - 25;
      n_read_without += wanted.timings.prompt_tokens - 25;
    }
  EXPECT_LE(n_read, n_known / 10);
  EXPECT_GE(n_read_without, n_known * 9 / 10);  // the memory is too small
}

TEST_P(CacheFile, OfAnotherModelOrOtherSettingsIsLeftAlone) {
  Generated(*OpenEngine(Options(true)), Turn(1, 300));
  EngineOptions other = Options(true);
  other.cache_type_k = CacheType::kF32;
  {
    const auto engine = OpenEngine(other);
    const auto& notices = engine->summary().notices;
    EXPECT_TRUE(std::any_of(notices.begin(), notices.end(), [](const std::string& notice) {
      return notice.find("of another model, or of other settings") != std::string::npos;
    }));
    EXPECT_EQ(Generated(*engine, Turn(1, 300)).timings.cached_prompt_tokens, 0);
  }
  EXPECT_EQ(Generated(*OpenEngine(Options(true)), Turn(1, 300)).timings.cached_prompt_tokens,
            Known(300));
}

TEST(CacheFileTypes, ComeBackAndAreNotTakenForEachOther) {
  const std::string folder = fixtures::TemporaryFolder();
  fixtures::TinyModelOptions tiny = fixtures::SmallestOf("llama");
  tiny.head_dim = 32, tiny.context_length = 1024;
  EngineOptions options{.model = fixtures::WriteTinyModel(folder, tiny), .repack_cache = "off"};
  options.threads = 1;
  options.speculative.method = "none";
  Request request;
  for (int i = 0; i < 300; ++i) request.prompt_tokens.push_back(3 + (i * 7 + i / 11) % 250);
  request.max_new_tokens = 12;
  request.ignore_eos = true;
  request.logprobs = 2;
  request.sampling.temperature = 0;
  for (const CacheType type : {CacheType::kQ8_0, CacheType::kQ4_0}) {
    options.cache_type_k = options.cache_type_v = type;
    options.cache_file = folder + "/blocks" + std::to_string(static_cast<int>(type));
    const Completion wanted = Generated(*OpenEngine(options), request);
    const Completion again = Generated(*OpenEngine(options), request);
    ExpectSame(again, wanted);
    EXPECT_EQ(again.timings.cached_prompt_tokens, 288);
    options.cache_type_v = CacheType::kF16;
    EXPECT_EQ(Generated(*OpenEngine(options), request).timings.cached_prompt_tokens, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, CacheFile, KeptNetworks(), KeptNetworkName);

}  // namespace
}  // namespace foretoken
