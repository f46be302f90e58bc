// SPDX-License-Identifier: Apache-2.0
// Engines with a file beside their cache: how many tokens a later engine, or one whose memory is too
// small, reads again; and that no bit of a text is another.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "fixtures/tiny_model.h"
#include "foretoken/engine.h"

namespace foretoken {
namespace {

constexpr int kAgents = 10;

class CacheFile : public testing::TestWithParam<const char*> {
 protected:
  std::string folder = fixtures::TemporaryFolder();
  std::string model = [this] {
    fixtures::TinyModelOptions tiny = fixtures::SmallestOf(GetParam());
    tiny.seed = 23, tiny.context_length = 1024;
    return fixtures::WriteTinyModel(folder, tiny);
  }();

  EngineOptions Options(bool with_file) const {
    EngineOptions options{.model = model, .repack_cache = "off"};
    options.threads = 1;
    options.find_drafters = false;
    options.speculative.method = "ngram";
    options.state_checkpoint_tokens = 128;
    if (with_file) options.cache_file = folder + "/blocks", options.cache_file_mb = 64;
    return options;
  }
  static std::unique_ptr<Engine> Open(EngineOptions options) {
    auto engine = Engine::Open(std::move(options));
    EXPECT_TRUE(engine) << engine.error().message;
    return *std::move(engine);
  }
  // The words of a conversation: an agent's own, and as many turns as have been.
  static Request Turn(int agent, int n_tokens, const std::string& salt = "") {
    Request request;
    for (int i = 0; i < n_tokens; ++i)
      request.prompt_tokens.push_back(3 + (i * 7 + i / 11 + (i < 8 ? 0 : agent * 29)) % 250);
    request.max_new_tokens = 12;
    request.ignore_eos = true;
    request.sampling.temperature = 0;
    request.logprobs = 2;
    request.cache_salt = salt;
    return request;
  }
  // What comes back of a text that was read before: all full blocks, or all but the last token where a copy of a
  // recurrent state reaches it.
  static int Known(int n_tokens) {
    const bool recurrent =
        std::string_view(GetParam()) == "qwen35" || std::string_view(GetParam()) == "falcon-h1";
    return recurrent ? n_tokens - 1 : n_tokens / 32 * 32;
  }
  static Completion Ask(Engine& engine, const Request& request) {
    auto completion = engine.Generate(request);
    EXPECT_TRUE(completion) << completion.error().message;
    return *std::move(completion);
  }
  static void ExpectSame(const Completion& a, const Completion& b) {
    EXPECT_EQ(a.token_ids, b.token_ids);
    ASSERT_EQ(a.logprobs.size(), b.logprobs.size());
    for (std::size_t i = 0; i < a.logprobs.size(); ++i)
      EXPECT_EQ(a.logprobs[i].logprob, b.logprobs[i].logprob) << i;
  }
};

TEST_P(CacheFile, ALaterEngineReadsTheLastBlockAlone) {
  const Completion wanted = Ask(*Open(Options(false)), Turn(1, 300));
  ExpectSame(Ask(*Open(Options(true)), Turn(1, 300)), wanted);
  const auto engine = Open(Options(true));
  const Completion again = Ask(*engine, Turn(1, 300));
  ExpectSame(again, wanted);
  EXPECT_EQ(again.timings.prompt_tokens, 300 - Known(300));
  EXPECT_EQ(again.timings.cached_prompt_tokens, Known(300));
}

TEST_P(CacheFile, CountsWhatGoesThereAndComesBack) {
  {
    const auto engine = Open(Options(true));
    Ask(*engine, Turn(1, 300));
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
  const auto engine = Open(Options(true));
  const Completion again = Ask(*engine, Turn(1, 300));
  const CacheFileCounts counts = engine->load().cache_file;
  EXPECT_GE(counts.tokens_read, again.timings.cached_prompt_tokens);
  EXPECT_LE(counts.tokens_read, 311);
  EXPECT_EQ(counts.blocks_read, (counts.tokens_read + 31) / 32);
  EXPECT_EQ(counts.blocks_written, 0);
  EXPECT_EQ(Open(Options(false))->load().cache_file.bytes, 0);
}

TEST_P(CacheFile, ALaterTurnReadsWhatIsNew) {
  Ask(*Open(Options(true)), Turn(1, 300));
  const Completion wanted = Ask(*Open(Options(false)), Turn(1, 340));
  const Completion next = Ask(*Open(Options(true)), Turn(1, 340));
  ExpectSame(next, wanted);
  EXPECT_EQ(next.timings.prompt_tokens, 40);
}

TEST_P(CacheFile, ServesTheSameSaltOnly) {
  Ask(*Open(Options(true)), Turn(1, 300, "one client"));
  const auto engine = Open(Options(true));
  EXPECT_EQ(Ask(*engine, Turn(1, 300, "another")).timings.cached_prompt_tokens, 0);
  EXPECT_EQ(Ask(*engine, Turn(1, 300)).timings.cached_prompt_tokens, 0);
  EXPECT_EQ(Ask(*engine, Turn(1, 300, "one client")).timings.cached_prompt_tokens, Known(300));
}

TEST_P(CacheFile, LetsTenAgentsTakeTurnsInAMemoryForThree) {
  EngineOptions options = Options(true), plain = Options(false);
  options.cache_tokens = 3 * 512, plain.cache_tokens = options.cache_tokens;
  const auto engine = Open(options), without = Open(plain);
  int n_known = 0, n_read = 0, n_read_without = 0;
  for (int turn = 0; turn < 4; ++turn)
    for (int agent = 0; agent < kAgents; ++agent) {
      const Request request = Turn(agent, 400 + 25 * turn);
      const Completion completion = Ask(*engine, request), wanted = Ask(*without, request);
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
  Ask(*Open(Options(true)), Turn(1, 300));
  EngineOptions other = Options(true);
  other.cache_type_k = CacheType::kF32;
  {
    const auto engine = Open(other);
    const auto& notices = engine->summary().notices;
    EXPECT_TRUE(std::any_of(notices.begin(), notices.end(), [](const std::string& notice) {
      return notice.find("of another model, or of other settings") != std::string::npos;
    }));
    EXPECT_EQ(Ask(*engine, Turn(1, 300)).timings.cached_prompt_tokens, 0);
  }
  EXPECT_EQ(Ask(*Open(Options(true)), Turn(1, 300)).timings.cached_prompt_tokens, Known(300));
}

INSTANTIATE_TEST_SUITE_P(Networks, CacheFile,
                         testing::Values("llama", "gemma3", "qwen35", "falcon-h1", "deepseek2"),
                         [](const auto& network) {
                           std::string name = network.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace foretoken
