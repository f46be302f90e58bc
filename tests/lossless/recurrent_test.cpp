// SPDX-License-Identifier: Apache-2.0
// Networks with recurrent layers: the bits of a request do not depend on the cut of its prompt, on
// drafts and how many of them are accepted, on the threads, on its neighbours, or on preemption.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>

#include "fixtures/tiny_model.h"
#include "foretoken/engine.h"

namespace foretoken {
namespace {

struct Network {
  std::string name;
  fixtures::TinyModelOptions options;
};

std::vector<Network> Networks() {
  using tensor::DType;
  return {{"lfm2_f32",
           {.arch = "lfm2",
            .seed = 90,
            .n_layers = 4,
            .kv_heads_by_layer = {0, 0, 2, 0},
            .context_length = 512}},
          {"lfm2moe_q8_0",
           {.arch = "lfm2moe",
            .seed = 91,
            .n_layers = 3,
            .kv_heads_by_layer = {0, 2, 0},
            .context_length = 512,
            .weight_type = DType::kQ8_0,
            .n_experts = 6,
            .n_used = 2,
            .n_dense = 1}},
          {"falcon_h1_q8_0",
           {.arch = "falcon-h1", .seed = 95, .context_length = 512, .weight_type = DType::kQ8_0}},
          {"nemotron_h_moe_q8_0",
           {.arch = "nemotron_h_moe",
            .seed = 96,
            .n_layers = 4,
            .ff_by_layer = {0, 32, 0, 32},
            .kv_heads_by_layer = {0, 0, 2, 0},
            .context_length = 512,
            .weight_type = DType::kQ8_0,
            .n_experts = 6,
            .n_used = 2,
            .shared_ff = 32}},
          {"granitehybrid_f32",
           {.arch = "granitehybrid",
            .seed = 94,
            .n_layers = 3,
            .kv_heads_by_layer = {0, 2, 0},
            .context_length = 512}},
          {"qwen35_f32",
           {.arch = "qwen35",
            .seed = 92,
            .n_layers = 3,
            .head_dim = 32,
            .context_length = 512,
            .rope_dimensions = 8}},
          {"qwen3next_q8_0",
           {.arch = "qwen3next",
            .seed = 93,
            .n_layers = 2,
            .head_dim = 32,
            .context_length = 512,
            .weight_type = DType::kQ8_0,
            .n_experts = 6,
            .n_used = 2,
            .shared_ff = 32,
            .rope_dimensions = 8}}};
}

struct Setting {
  std::string method = "none";
  int threads = 1, prefill_rows = 64, sequences = 1, cache_tokens = 0;
  bool kv_cache = true;
};

class Recurrent : public testing::TestWithParam<Network> {
 protected:
  // The target and its drafts, by method.
  const std::map<std::string, std::string>& Files() {
    static std::map<std::string, std::map<std::string, std::string>> all;
    auto& files = all[GetParam().name];
    if (!files.empty()) return files;
    const std::string folder = fixtures::TemporaryFolder();
    fixtures::TinyModelOptions options = GetParam().options;
    files["none"] = fixtures::WriteTinyModel(folder, options);
    files["eagle"] = fixtures::WriteTinyHead(
        folder, {.target = options, .eagle = true, .layers = {0, 1, options.n_layers}});
    options.noise = 0.15;
    files["standalone"] = fixtures::WriteTinyModel(folder, options);
    return files;
  }

  std::unique_ptr<Engine> Open(const Setting& setting) {
    EngineOptions options{.model = Files().at("none"),
                          .speculative = {.method = setting.method, .lookahead = "fixed"},
                          .context_size = 512,
                          .max_sequences = setting.sequences,
                          .threads = setting.threads,
                          .prefill_rows = setting.prefill_rows};
    options.cache_tokens = setting.cache_tokens;
    options.kv_cache = setting.kv_cache;
    if (setting.method != "none" && Files().contains(setting.method))
      options.draft_model = Files().at(setting.method);
    auto engine = Engine::Open(options);
    EXPECT_TRUE(engine) << engine.error().message;
    return std::move(*engine);
  }
};

Request Read(int n, unsigned seed, int drafts = 5, float temperature = 0) {
  std::mt19937 random(seed);
  Request r;
  for (int i = 0; i < n; ++i) r.prompt_tokens.push_back(3 + static_cast<int>(random() % 300));
  r.max_new_tokens = 60;
  r.sampling.temperature = temperature;
  r.seed = 3;
  r.logprobs = 3;
  r.ignore_eos = true;
  r.speculative.num_speculative_tokens = drafts;
  if (temperature != 0) r.speculative.strategy = VerifyStrategy::kSampleMatch;
  return r;
}

void ExpectSame(const Completion& a, const Completion& b, const std::string& where) {
  ASSERT_EQ(a.token_ids, b.token_ids) << where;
  ASSERT_EQ(a.logprobs.size(), b.logprobs.size()) << where;
  for (std::size_t i = 0; i < a.logprobs.size(); ++i)
    ASSERT_EQ(std::memcmp(&a.logprobs[i].logprob, &b.logprobs[i].logprob, sizeof(float)), 0)
        << where << " token " << i;
}

TEST_P(Recurrent, HasTheSameBitsForEveryCutThreadsAndDrafter) {
  for (const float temperature : {0.0f, 0.8f}) {
    const auto plain = Open({})->Generate(Read(150, 7, 0, temperature));
    ASSERT_TRUE(plain) << plain.error().message;
    for (const Setting& setting :
         {Setting{.prefill_rows = 17}, Setting{.prefill_rows = 256}, Setting{.threads = 3},
          Setting{.kv_cache = false}, Setting{.method = "ngram", .threads = 2},
          Setting{.method = "suffix", .prefill_rows = 31}, Setting{.method = "eagle"},
          Setting{.method = "standalone"}, Setting{.method = "standalone", .kv_cache = false}})
      for (const int drafts : {1, 5, 40}) {
        const auto engine = Open(setting);
        const auto other = engine->Generate(Read(150, 7, drafts, temperature));
        ASSERT_TRUE(other) << other.error().message;
        ASSERT_NO_FATAL_FAILURE(
            ExpectSame(*other, *plain, fmt::format("{} {}", setting.method, drafts)));
        if (setting.method == "standalone" && setting.kv_cache) {
          EXPECT_GT(other->speculation.accepted, 0);
          EXPECT_GT(other->speculation.drafted, other->speculation.accepted);
        }
      }
  }
}

TEST_P(Recurrent, HasTheSameBitsInABatch) {
  std::vector<Request> requests;
  for (unsigned i = 0; i < 6; ++i) requests.push_back(Read(20 + 13 * static_cast<int>(i), i));
  const auto alone = Open({});
  for (const char* method : {"none", "standalone", "suffix"}) {
    const auto batch =
        Open({.method = method, .threads = 2, .sequences = 4})->GenerateBatch(requests);
    ASSERT_TRUE(batch) << batch.error().message;
    for (std::size_t i = 0; i < requests.size(); ++i)
      ASSERT_NO_FATAL_FAILURE(
          ExpectSame((*batch)[i], *alone->Generate(requests[i]), fmt::format("{} {}", method, i)));
  }
}

TEST_P(Recurrent, HasTheSameBitsAfterPreemption) {
  std::vector<Request> requests;
  for (unsigned i = 0; i < 5; ++i) requests.push_back(Read(40 + 9 * static_cast<int>(i), i));
  const auto alone = Open({});
  for (const char* method : {"none", "standalone", "eagle"}) {
    const auto engine = Open({.method = method, .sequences = 4, .cache_tokens = 256});
    const auto batch = engine->GenerateBatch(requests);
    ASSERT_TRUE(batch) << batch.error().message;
    EXPECT_GT(engine->load().preemptions, 0) << method;
    for (std::size_t i = 0; i < requests.size(); ++i)
      ASSERT_NO_FATAL_FAILURE(
          ExpectSame((*batch)[i], *alone->Generate(requests[i]), fmt::format("{} {}", method, i)));
  }
}

// The second request begins like the first.
TEST_P(Recurrent, HasTheSameBitsAfterARequestThatBeganAlike) {
  const auto engine = Open({.method = "standalone"});
  const Request first = Read(150, 7);
  Request second = first;
  second.prompt_tokens.resize(100);
  second.prompt_tokens.push_back(9);
  ASSERT_TRUE(engine->Generate(first));
  const auto after = engine->Generate(second), fresh = Open({})->Generate(second);
  ASSERT_TRUE(after && fresh);
  ASSERT_NO_FATAL_FAILURE(ExpectSame(*after, *fresh, "second"));
}

INSTANTIATE_TEST_SUITE_P(Networks, Recurrent, testing::ValuesIn(Networks()),
                         [](const auto& of) { return of.param.name; });

}  // namespace
}  // namespace foretoken
