// SPDX-License-Identifier: Apache-2.0
// Networks whose layers see a window of positions: a cache that drops what no row sees gives the bits
// of a cache that keeps everything.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "lossless/same_bits_testing.h"

namespace foretoken {
namespace {

using Tokens = std::vector<std::int32_t>;

constexpr int kWindow = 12;
constexpr int kLong = 2048;  // a context in which blocks are dropped
constexpr int kText = 420;   // tokens of the longest text; a context of it drops nothing

// A target and its drafts, by method.
using Files = std::map<std::string, std::string>;

Files Made(fixtures::TinyModelOptions options) {
  options.context_length = kLong, options.window = kWindow;
  std::map<std::string, fixtures::TinyHeadOptions> heads = {
      {"eagle", {.eagle = true, .layers = {0, 1, options.n_layers}}},
      {"dflash", {.block = true, .window = kWindow, .layers = {0, options.n_layers}}}};
  if (options.arch != "gemma4") heads["mtp"] = {};
  return WriteDrafts(options, heads);
}

// One layer with a window, and one without.
const Files& TwoLayers() {
  static const Files files = Made(fixtures::TinyOptions("gemma2 seed=83 n_layers=2"));
  return files;
}

// Its last three layers read the caches of two before them, one of which has a window.
const Files& SharingLayers() {
  static const Files files =
      Made(fixtures::TinyOptions("gemma4 seed=85 n_layers=6 dim=32 ff=32 n_heads=2 n_kv_heads=1 "
                                 "head_dim=16 shared_caches=3 layer_input=8"));
  return files;
}

std::unique_ptr<Engine> Open(const std::string& method, int context, int sequences = 1,
                             int cache_tokens = 0, const Files& files = TwoLayers()) {
  EngineOptions options{.model = files.at("none"),
                        .speculative = {.method = method, .controller = "fixed"},
                        .context_size = context,
                        .max_sequences = sequences,
                        .cache_tokens = cache_tokens,
                        .prefix_cache = context == kLong,
                        .threads = 1,
                        .prefill_rows = 64};
  if (method != "none" && files.contains(method)) options.draft_model = files.at(method);
  return OpenEngine(options);
}

Request ReadOf(Tokens prompt, int n) {
  Request r = Read(0, 0, 5, 0.7f);
  r.speculative.strategy.reset();
  r.prompt_tokens = std::move(prompt);
  r.max_new_tokens = n;
  return r;
}

TEST(Windows, TakeMemoryForWhatIsSeenAlone) {
  // Both layers of the short context keep everything.
  const auto bytes_of_a_layer = Open("none", 256)->summary().target.cache_bytes / 2 / 256;
  const auto positions =
      Open("none", kLong)->summary().target.cache_bytes / bytes_of_a_layer - kLong;
  EXPECT_GT(positions, kWindow + 64);
  EXPECT_LT(positions, kLong / 4);
}

TEST(Windows, GiveTheBitsOfACacheThatKeepsEverything) {
  for (const char* method :
       {"none", "ngram", "suffix", "standalone", "eagle", "mtp", "dflash", "self"})
    for (const int n : {5, 100, 300}) {
      const Request request = ReadOf(TokensOf(n, 9), kText - n);
      const Completion kept = Generated(*Open(method, kText), request),
                       dropped = Generated(*Open(method, kLong), request);
      ExpectSame(dropped, kept, fmt::format("{} {}", method, n));
      EXPECT_EQ(dropped.speculation.accepted, kept.speculation.accepted);
    }
}

TEST(Windows, GiveTheSameBitsWhereLayersShareCaches) {
  for (const char* method : {"none", "standalone", "eagle"}) {
    const Request request = ReadOf(TokensOf(100, 9), kText - 100);
    ExpectSame(Generated(*Open(method, kLong, 1, 0, SharingLayers()), request),
               Generated(*Open(method, kText, 1, 0, SharingLayers()), request), method);
  }
}

// Texts with shared prefixes in one engine, whose cache holds about two of them.
void ExpectBitsOfRequestsThatShare(const Files& files) {
  for (const char* method : {"none", "standalone", "eagle", "dflash"}) {
    const auto alone = Open(method, kText, 1, 0, files);
    const auto engine = Open(method, kLong, 3, 928, files);
    std::mt19937 random(17);
    std::vector<Request> requests;
    for (int i = 0; i < 16; ++i) {
      Tokens prompt = TokensOf(40 + static_cast<int>(random() % 150), random() % 2);
      if (random() % 2 == 0) prompt[random() % prompt.size()] = 7;
      requests.push_back(ReadOf(std::move(prompt), 180 + static_cast<int>(random() % 50)));
    }
    ExpectSame(GeneratedTogether(*engine, requests), GeneratedInTurn(*alone, requests), method);
    EXPECT_GT(engine->load().preemptions, 0) << method;
    const std::string_view name = method;  // heads share nothing
    if (name != "eagle" && name != "dflash") EXPECT_GT(engine->load().cached_prompt_tokens, 100);
    EXPECT_EQ(engine->load().used_blocks, 0);
  }
}

TEST(Windows, KeepTheBitsOfRequestsThatShareAndGiveTheirBlocksBack) {
  ExpectBitsOfRequestsThatShare(TwoLayers());
}

TEST(Windows, KeepTheBitsOfRequestsWhoseLayersShareCaches) {
  ExpectBitsOfRequestsThatShare(SharingLayers());
}

TEST(Windows, SayTruthfullyWhatOfAPrefixCanBeUsed) {
  const auto engine = Open("none", kLong);
  Tokens text = TokensOf(1000, 5);
  const auto first = *engine->Generate(ReadOf(text, 20));
  // A text that goes on: all of it.
  text.insert(text.end(), first.token_ids.begin(), first.token_ids.end());
  const auto second = *engine->Generate(ReadOf(text, 10));
  EXPECT_EQ(second.timings.cached_prompt_tokens, 1019);
  // A text that parts early: the window before that place was dropped.
  Tokens other = TokensOf(1000, 5);
  other.resize(300);
  const auto third = *engine->Generate(ReadOf(other, 10));
  EXPECT_EQ(third.timings.cached_prompt_tokens, 0);
  ExpectSame(third, *Open("none", kText)->Generate(ReadOf(other, 10)), "third");
}

// As the files of Gemma 4 ask for.
TEST(Suppressed, TokensAreNeverDrawn) {
  const std::string folder = fixtures::TemporaryFolder();
  auto options = fixtures::TinyOptions("gemma4 seed=84 n_layers=3 head_dim=16 window=12");
  for (const float temperature : {0.0f, 1.0f}) {
    Request request = ReadOf(TokensOf(10, 1), 60);
    request.sampling.temperature = temperature;
    const auto generate = [&] {
      const auto engine = OpenEngine({.model = fixtures::WriteTinyModel(folder, options),
                                      .speculative = {.method = "ngram", .controller = "fixed"}});
      return Generated(*engine, request).token_ids;
    };
    options.suppressed = {};
    const Tokens free = generate();
    ASSERT_GT(free.size(), 10u);
    options.suppressed = {free[0], free[5]};
    const Tokens bound = generate();
    for (const std::int64_t token : options.suppressed)
      EXPECT_EQ(std::count(bound.begin(), bound.end(), token), 0) << token;
  }
}

}  // namespace
}  // namespace foretoken
