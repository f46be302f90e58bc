// SPDX-License-Identifier: Apache-2.0
// The decoding loop allocates nothing: a longer text needs no more allocations, except for the
// growth of what is returned. This is a program of its own, because it counts every allocation.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "fixtures/engines_testing.h"
#include "fixtures/tiny_model.h"
#include "foretoken/async_engine.h"
#include "foretoken/catalogue.h"
#include "foretoken/drafter.h"
#include "foretoken/speculative_decoder.h"
#include "foretoken/verifier.h"

namespace {
std::atomic<std::size_t> n_allocations = 0;
}  // namespace

[[gnu::noinline]] void* operator new(std::size_t size) {
  ++n_allocations;
  if (void* p = std::malloc(size == 0 ? 1 : size)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++n_allocations;
  return std::malloc(size == 0 ? 1 : size);
}
[[gnu::noinline]] void operator delete(void* p) noexcept {
  std::free(p);
}
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept {
  std::free(p);
}

namespace foretoken {
namespace {

// Drafters of a program's own that allocate nothing themselves.
class EvenDrafter final : public Drafter {
 public:
  std::string_view name() const override { return "own"; }
  bool ReportsDistributions() const override { return true; }
  void Begin(const DrafterText& request) override {
    const auto n = static_cast<std::size_t>(request.vocabulary_size);
    distribution_.assign(n, 1.0f / static_cast<float>(n));
  }
  void Propose(int, DraftProposal& proposal) override {
    while (proposal.left() > 0) proposal.Draw(distribution_);
  }

 private:
  std::vector<float> distribution_;
};
class FirstDraftVerifier final : public Verifier {
 public:
  std::string_view name() const override { return "first"; }
  bool lossless() const override { return false; }
  Verdict Verify(DraftsToVerify& draft) override {
    const int kept = draft.length() > 0 && draft.TargetDistribution(0)[0] < 0.5f ? 1 : 0;
    return {kept, draft.Sample(kept)};
  }
};

Request Asking(int n) {
  Request request;
  request.prompt = "once upon a time";
  request.max_new_tokens = n;
  request.ignore_eos = true;
  return request;
}

// The target and its noisy copy, which drafts.
EngineOptions PairOptions() {
  const std::string folder = fixtures::TemporaryFolder();
  fixtures::TinyModelOptions model{.seed = 71, .context_length = 1024};
  EngineOptions options{.speculative = {.controller = "fixed"}, .threads = 1};
  options.model = fixtures::WriteTinyModel(folder, model);
  model.noise = 0.1;
  options.draft_model = fixtures::WriteTinyModel(folder, model);
  return options;
}

// count(n): the allocations of a text of n tokens. Token ids and text double three or four times more
// often in the longer one. The first text of a kind makes room.
void ExpectNoGrowth(const auto& count, int few = 100, int many = 900) {
  count(many);
  const std::size_t fewer = count(few), more = count(many);
  EXPECT_LE(more, fewer + 12);
}

class Allocations : public testing::TestWithParam<std::string> {
 protected:
  static std::unique_ptr<Engine> Open(const std::string& method, bool usual = true) {
    return OpenEngine(Options(method, usual));
  }
  // usual: first_target and kv_cache are on.
  static EngineOptions Options(const std::string& method, bool usual) {
    const std::string folder = fixtures::TemporaryFolder();
    fixtures::TinyModelOptions model{.seed = 71, .context_length = 1024};
    EngineOptions options{.speculative = {.method = method}, .threads = 1};
    options.speculative.draft_window = 20;
    if (method == "self") options.speculative.draft_best_blocks = 2;
    options.speculative.first_target = options.kv_cache = usual;
    if (method != "portfolio") options.speculative.controller = "fixed";  // drafts in every round
    if (method == "standalone")                                           // both are mixtures
      model.arch = "qwen3moe", model.n_experts = 6;
    if (method == "assistant") {  // it reads a cache, and its method is mtp
      model.arch = "gemma4", model.n_layers = 3, model.window = 12;
      options.speculative.method = "mtp";
      options.kv_cache = true;
    }
    if (method == "self") options.kv_cache = true;  // it reads the cache, too
    options.model = fixtures::WriteTinyModel(folder, model);
    model.noise = 0.1;
    if (method == "standalone" || method == "portfolio")
      options.draft_model = fixtures::WriteTinyModel(folder, model);
    if (method == "own") {
      options.drafter = std::make_shared<EvenDrafter>();
      options.verifier = std::make_shared<FirstDraftVerifier>();
    }
    if (method == "reduced")
      options.speculative.method = "mtp:subset", options.speculative.draft_vocabulary = 60;
    if (method == "mtp" || method == "reduced" || method == "eagle" || method == "assistant" ||
        method == "dflash") {
      fixtures::TinyHeadOptions head{.eagle = method == "eagle", .block = method == "dflash"};
      head.target = model;
      head.target.noise = 0;
      if (method == "assistant") head.assistant = true, head.n_blocks = 2, head.dim = 32;
      options.draft_model = fixtures::WriteTinyHead(folder, head);
    }
    return options;
  }
  // Allocations of a request of n tokens.
  static std::size_t Count(Engine& engine, int n, float temperature) {
    Request request = Asking(n);
    request.sampling.temperature = temperature;
    request.sampling.repetition_penalty = 1.1f;
    request.prediction = "once upon a time there was a girl";
    const std::size_t before = n_allocations;
    EXPECT_EQ(Generated(engine, request).token_ids.size(), static_cast<std::size_t>(n));
    return n_allocations - before;
  }
};

TEST_P(Allocations, DoNotGrowWithTheText) {
  const auto engine = Open(GetParam());
  for (const float temperature : {0.0f, 0.8f})
    ExpectNoGrowth([&](int n) { return Count(*engine, n, temperature); });
}

// Allocations grow neither if the first token may be drafted nor without a cache.
TEST_P(Allocations, DoNotGrowInUnusualRounds) {
  const auto engine = Open(GetParam(), false);
  ExpectNoGrowth([&](int n) { return Count(*engine, n, 0.8f); }, 50, 200);
}

// The engine's thread, its queue and its mailboxes add nothing to the tokens of a request that only
// wants its end.
TEST_P(Allocations, DoNotGrowWithTheTextOfAnAsyncEngine) {
  const auto engine = Got(AsyncEngine::Start(Open(GetParam())));
  const auto count = [&](int n) {
    Request request = Asking(n);
    request.sampling.temperature = 0;
    const std::size_t before = n_allocations;
    auto stream = engine->Submit(request, {.rounds = false});
    EXPECT_TRUE(stream);
    const auto completions = stream->Collect();
    EXPECT_EQ(completions->front().token_ids.size(), static_cast<std::size_t>(n));
    return n_allocations - before;
  };
  ExpectNoGrowth(count);
}

// Looking at what rounds were made of costs nothing once there is room for the drafter's logits.
TEST(DecoderAllocations, AreTheSameWithALookAtDistributionsAndLogits) {
  const auto decoder = Got(SpeculativeDecoder::Create(PairOptions()));
  const auto count = [&](const DraftOptions& looks) {
    const Request request = Asking(400);
    const std::size_t before = n_allocations;
    EXPECT_TRUE(decoder->Begin(request));
    while (!decoder->done()) {
      EXPECT_TRUE(decoder->Draft(looks));
      EXPECT_TRUE(decoder->Verify());
    }
    return n_allocations - before;
  };
  const DraftOptions all{.num_steps = {}, .distributions = true, .logits = true};
  count(all);
  EXPECT_EQ(count(all), count({}));
}

// A part that thinks, whose drafts relaxed acceptance verifies, begins and ends within drafts.
TEST(ThinkingAllocations, DoNotGrowWithTheText) {
  EngineOptions options = PairOptions();
  options.speculative.use_relaxed_acceptance_for_thinking = true;
  options.speculative.thinking_begin = "a";
  options.speculative.thinking_end = "b";
  const auto engine = OpenEngine(options);
  const auto count = [&](int n) {
    Request request = Asking(n);
    request.prompt = "a";
    for (const std::int32_t id : engine->Tokenize("a b c d", false, false))
      request.sampling.logit_bias[id] = 30;
    const std::size_t before = n_allocations;
    const SpeculationStats stats = Generated(*engine, request).speculation;
    EXPECT_GT(stats.accepted_relaxed, 0);
    EXPECT_GT(stats.accepted, stats.accepted_relaxed);
    return n_allocations - before;
  };
  ExpectNoGrowth(count);
}

std::vector<std::string> Methods() {
  std::vector<std::string> methods = {"none", "portfolio", "own", "assistant", "reduced"};
  for (const std::string_view name : NamesOf(AllDrafters()))
    if (name != "grammar") methods.emplace_back(name);  // no request here has one
  return methods;
}
INSTANTIATE_TEST_SUITE_P(Methods, Allocations, testing::ValuesIn(Methods()),
                         [](const auto& of) { return of.param; });

}  // namespace
}  // namespace foretoken
