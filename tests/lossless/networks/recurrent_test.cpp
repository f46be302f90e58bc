// SPDX-License-Identifier: Apache-2.0
// Networks with recurrent layers: the bits of a request do not depend on the cut of its prompt, on
// drafts and how many of them are accepted, on the threads, on its neighbours, on preemption, or on
// the copy of a state that it begins with.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "foretoken/scorer.h"
#include "lossless/same_bits_testing.h"

namespace foretoken {
namespace {

const std::vector<fixtures::NamedOptions>& Networks() {
  static const auto networks = fixtures::TinyTable(R"(
lfm2_f32: lfm2 seed=90 n_layers=4 kv_heads_by_layer=0,0,2,0 context_length=512
lfm2moe_q8_0: lfm2moe Q8_0 seed=91 n_layers=3 kv_heads_by_layer=0,2,0 context_length=512 n_experts=6
    n_used=2 n_dense=1
falcon_h1_q8_0: falcon-h1 Q8_0 seed=95 context_length=512
nemotron_h_moe_q8_0: nemotron_h_moe Q8_0 seed=96 n_layers=4 ff_by_layer=0,32,0,32
    kv_heads_by_layer=0,0,2,0 context_length=512 n_experts=6 n_used=2 shared_ff=32
granitehybrid_f32: granitehybrid seed=94 n_layers=3 kv_heads_by_layer=0,2,0 context_length=512
qwen35_f32: qwen35 seed=92 n_layers=3 head_dim=32 context_length=512 rope_dimensions=8
qwen3next_q8_0: qwen3next Q8_0 seed=93 n_layers=2 head_dim=32 context_length=512 n_experts=6
    n_used=2 shared_ff=32 rope_dimensions=8)");
  return networks;
}

class Recurrent : public testing::TestWithParam<fixtures::NamedOptions> {
 protected:
  // The target and its drafts, by method.
  const std::map<std::string, std::string>& Files() {
    static std::map<std::string, std::map<std::string, std::string>> all;
    auto& files = all[GetParam().name];
    if (!files.empty()) return files;
    const fixtures::TinyModelOptions& options = GetParam().options;
    files = WriteDrafts(
        options, {{"eagle", {.eagle = true, .layers = {0, 1, options.n_layers}}},
                  {"dflash", {.block = true, .window = 20, .layers = {1, options.n_layers}}}});
    return files;
  }

  std::unique_ptr<Engine> Open(const Setting& setting) {
    EngineOptions options = OptionsOf(Files().at("none"), setting);
    if (setting.method != "none" && Files().contains(setting.method))
      options.draft_model = Files().at(setting.method);
    return OpenEngine(options);
  }

  // The texts of plain decoding, one request after the other.
  std::vector<Completion> Alone(const std::vector<Request>& requests) {
    return GeneratedInTurn(*Open({}), requests);
  }
};

TEST_P(Recurrent, HasTheSameBitsForEveryCutThreadsAndDrafter) {
  for (const float temperature : {0.0f, 0.8f}) {
    const Completion plain = Generated(*Open({}), Read(150, 7, 0, temperature));
    for (const Setting& setting :
         {Setting{.prefill_rows = 17}, Setting{.prefill_rows = 256}, Setting{.threads = 3},
          Setting{.kv_cache = false}, Setting{.method = "ngram", .threads = 2},
          Setting{.method = "suffix", .prefill_rows = 31}, Setting{.method = "eagle"},
          Setting{.method = "dflash"}, Setting{.method = "standalone"},
          Setting{.method = "self", .threads = 2}, Setting{.method = "self", .prefill_rows = 17},
          Setting{.method = "standalone", .kv_cache = false}}) {
      const auto engine = Open(setting);
      for (const int drafts : {1, 5, 40}) {
        // Without a cache each pass reads the whole text again, so one length is enough.
        if (!setting.kv_cache && setting.method != "none" && drafts != (temperature == 0 ? 5 : 40))
          continue;
        Request request = Read(150, 7, drafts, temperature);
        request.reuse_prefix = false;  // the whole prompt is read, whatever was before
        const Completion other = Generated(*engine, request);
        ExpectSame(other, plain, fmt::format("{} {}", setting.method, drafts));
        if (setting.method == "standalone" && setting.kv_cache) {
          EXPECT_GT(other.speculation.accepted, 0);
          EXPECT_GT(other.speculation.drafted, other.speculation.accepted);
        }
        if (setting.method == "none") break;  // nothing is drafted
      }
    }
  }
}

TEST_P(Recurrent, HasTheSameBitsInABatch) {
  const auto requests = ReadSeveral(6, 20, 13);
  const auto alone = Alone(requests);
  for (const char* method : {"none", "standalone", "suffix", "dflash", "self"}) {
    const auto engine = Open({.method = method, .threads = 2, .sequences = 4});
    ExpectSame(GeneratedTogether(*engine, requests), alone, method);
  }
}

TEST_P(Recurrent, HasTheSameBitsAfterPreemption) {
  const auto requests = ReadSeveral(5, 40, 9);
  const auto alone = Alone(requests);
  for (const char* method : {"none", "standalone", "eagle", "dflash", "self"})
    for (const int checkpoint_tokens : {0, 32, 8192}) {
      const auto engine = Open({.method = method,
                                .sequences = 4,
                                .cache_tokens = 256,
                                .checkpoint_tokens = checkpoint_tokens});
      ExpectSame(GeneratedTogether(*engine, requests), alone, method);
      EXPECT_GT(engine->load().preemptions, 0) << method;
    }
}

// A second turn: the first text, its answer, and something new.
TEST_P(Recurrent, HasTheSameBitsFromACheckpointAndReadsOnlyWhatIsNew) {
  const auto fresh = Open({.checkpoint_tokens = 0});
  for (const char* method : {"none", "ngram", "suffix", "standalone", "eagle", "self"})
    for (const int drafts : {1, 5, 40}) {
      const std::string where = fmt::format("{} {}", method, drafts);
      const auto engine = Open({.method = method, .threads = 1 + drafts % 2});
      const float temperature = drafts == 5 ? 0 : 0.8f;
      const Request first = Read(150, 7, drafts, temperature);
      const Completion answer = Generated(*engine, first);
      Request second = Read(170, 8, drafts, temperature);
      std::copy(first.prompt_tokens.begin(), first.prompt_tokens.end(),
                second.prompt_tokens.begin());
      second.prompt_tokens.insert(second.prompt_tokens.begin() + 150, answer.token_ids.begin(),
                                  answer.token_ids.end());
      const Completion turn = Generated(*engine, second);
      const int cached = turn.timings.cached_prompt_tokens;
      // 209 positions were read, and the sequence still has their state. A head may need the features of
      // all positions.
      if (method == std::string("none"))
        EXPECT_EQ(cached, 209);
      else if (cached > 0 || method != std::string("eagle"))
        EXPECT_GE(cached, 209) << where;
      Request plain = second;
      plain.speculative.num_speculative_tokens = 0;
      ExpectSame(turn, Generated(*fresh, plain), where);
      if (drafts != 5) continue;
      const Completion again = Generated(*engine, second);  // from the end of its prompt
      EXPECT_EQ(again.timings.cached_prompt_tokens, cached == 0 ? 0 : 229) << where;
      ExpectSame(again, turn, where);
    }
}

// A client sends the answer back in other words, from some token on: that much is read, and no more.
TEST_P(Recurrent, HasTheSameBitsBehindAPromptWhoseAnswerWasSpelledInAnotherWay) {
  for (const char* method : {"none", "ngram", "self"})
    for (const int sequences : {1, 3}) {
      const auto engine = Open({.method = method, .threads = 2, .sequences = sequences}),
                 fresh = Open({.checkpoint_tokens = 0});
      Request turn = Read(150, 7);
      for (const int said : {0, 4, -2, -8, 1}) {
        const int prompt = static_cast<int>(turn.prompt_tokens.size());
        turn.prompt_tokens = WholeText(Generated(*engine, turn));
        turn.prompt_tokens.resize(static_cast<std::size_t>(prompt + said));
        const Request more = Read(30, 40 + static_cast<unsigned>(said + 8));
        turn.prompt_tokens.insert(turn.prompt_tokens.end(), more.prompt_tokens.begin(),
                                  more.prompt_tokens.end());
        const Completion got = Generated(*engine, turn);
        EXPECT_GE(got.timings.cached_prompt_tokens, prompt + std::min(said, 0)) << method << said;
        ExpectSame(got, Generated(*fresh, turn), fmt::format("{} {}", method, said));
      }
    }
}

// Requests with one system message: the second one shows where texts part.
TEST_P(Recurrent, SharesPrefixesWhereTextsPart) {
  for (const int sequences : {1, 3}) {
    const auto engine = Open({.threads = 2, .sequences = sequences}), fresh = Open({});
    for (unsigned i = 0; i < 4; ++i) {
      Request request = Read(140 + 7 * static_cast<int>(i), 20 + i);
      const Request common = Read(100, 1);
      std::copy(common.prompt_tokens.begin(), common.prompt_tokens.end(),
                request.prompt_tokens.begin());
      const Completion got = Generated(*engine, request);
      EXPECT_EQ(got.timings.cached_prompt_tokens, i < 2 ? 0 : 96) << i;
      request.reuse_prefix = false;
      ExpectSame(got, Generated(*fresh, request), std::to_string(i));
    }
  }
}

TEST_P(Recurrent, HasBoundedMemoryForCheckpoints) {
  const auto bytes = [&](const Setting& setting) {
    return Open(setting)->summary().memory.checkpoints;
  };
  const std::int64_t one = bytes({.checkpoint_tokens = 1 << 24}) / 6;
  EXPECT_GT(one, 0);
  EXPECT_EQ(bytes({.checkpoint_tokens = 0}), 0);
  EXPECT_EQ(bytes({.checkpoint_tokens = 128}), (6 + 4) * one) << "a context of 512";
  EXPECT_EQ(bytes({.sequences = 3, .checkpoint_tokens = 128}), (10 + 12) * one);
  EXPECT_EQ(bytes({.checkpoint_tokens = 1}), (6 + 16) * one) << "one for each block";
  const auto none = Open({.checkpoint_tokens = 0})->summary().memory,
             some = Open({.checkpoint_tokens = 128})->summary().memory;
  EXPECT_EQ(some.cache - none.cache, some.checkpoints);
  for (const int tokens : {-1, (1 << 24) + 1}) {
    EXPECT_TRUE(
        Fails(Engine::Open({.model = Files().at("none"), .state_checkpoint_tokens = tokens}),
              "state checkpoints"));
  }
}

// A program's own loop: drafts are scored, and the rejected ones removed.
TEST_P(Recurrent, RemovesTheScoredTokensOfTheLastCall) {
  const auto scorer = Got(Scorer::Create({.model = Files().at("none"), .context_size = 512}));
  const std::vector<int> text = Read(120, 7).prompt_tokens;
  const auto rows_of = [&](Scorer& with, int begin, int end) {
    const auto rows = with.Score(std::span(text).subspan(static_cast<std::size_t>(begin),
                                                         static_cast<std::size_t>(end - begin)));
    EXPECT_TRUE(rows);
    const auto last = rows->Row(rows->rows - 1);
    return std::vector<float>(last.begin(), last.end());
  };
  rows_of(*scorer, 0, 60);
  for (int kept = 60; kept < 100; kept += 7) {
    rows_of(*scorer, kept, kept + 20);
    ASSERT_TRUE(scorer->Truncate(0, kept + 7));
  }
  const auto got = rows_of(*scorer, 102, 120);
  ASSERT_TRUE(scorer->Truncate(0, 0));
  rows_of(*scorer, 0, 90);
  EXPECT_EQ(rows_of(*scorer, 90, 120), got);
  EXPECT_FALSE(scorer->Truncate(0, 60));
  EXPECT_EQ(scorer->length(), 0);
}

// The second request begins like the first.
TEST_P(Recurrent, HasTheSameBitsAfterARequestThatBeganAlike) {
  const auto engine = Open({.method = "standalone"});
  ExpectSameAfterOneThatBeganAlike(*engine, *Open({}));
}

INSTANTIATE_TEST_SUITE_P(Networks, Recurrent, testing::ValuesIn(Networks()),
                         [](const auto& of) { return of.param.name; });

}  // namespace
}  // namespace foretoken
