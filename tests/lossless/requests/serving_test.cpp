// SPDX-License-Identifier: Apache-2.0
// Requests that come and go, share prefixes, run out of cache blocks and wait for each other: each
// gets exactly the bits that it gets alone.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "kernels/dispatch.h"
#include "lossless/same_bits_testing.h"

namespace foretoken {
namespace {

using Tokens = std::vector<std::int32_t>;

constexpr int kContext = 256;

// By method.
const std::map<std::string, std::string>& Files() {
  static const auto files =
      WriteDrafts({.seed = 81, .n_layers = 1, .head_dim = 32, .context_length = kContext},
                  {{"eagle", {.eagle = true, .layers = {0, 0, 1}}},
                   {"mtp", {}},
                   {"dflash", {.block = true, .window = 12, .layers = {0, 1}}}});
  return files;
}

EngineOptions Options(const std::string& method) {
  EngineOptions options{.model = Files().at("none"),
                        .speculative = {.method = method, .controller = "fixed"},
                        .threads = 1};
  if (method != "none" && Files().contains(method)) options.draft_model = Files().at(method);
  return options;
}

struct Arrival {
  int step = 0;
  Request request;
};

// Prompts have shared prefixes of any length, also ending inside blocks; some begin with the
// outputs of others.
std::vector<Arrival> Arrivals(unsigned seed, int n, int most_tokens) {
  std::mt19937 random(seed);
  std::vector<Arrival> arrivals;
  for (int i = 0; i < n; ++i) {
    Request r;
    const int length = 1 + static_cast<int>(random() % static_cast<unsigned>(most_tokens - 40));
    r.prompt_tokens = TokensOf(length, seed + random() % 2);
    if (random() % 2 == 0)
      r.prompt_tokens[random() % r.prompt_tokens.size()] = 3 + static_cast<int>(random() % 300);
    r.max_new_tokens = 1 + static_cast<int>(random() % 40);
    r.sampling.temperature = random() % 2 == 0 ? 0.0f : 0.8f;
    r.seed = seed;
    r.id = static_cast<std::uint64_t>(i);
    r.logprobs = 4;
    r.ignore_eos = true;
    r.speculative.num_speculative_tokens = 1 + static_cast<int>(random() % 6);
    arrivals.push_back({static_cast<int>(random() % static_cast<unsigned>(6 * n)), std::move(r)});
  }
  std::stable_sort(arrivals.begin(), arrivals.end(),
                   [](const Arrival& a, const Arrival& b) { return a.step < b.step; });
  return arrivals;
}

// Requests that have not ended.
int InHand(const Engine& engine) {
  const EngineLoad load = engine.load();
  return load.running + load.preempted + load.waiting;
}

// Begins each request before its step; all have ended afterwards.
std::vector<Completion> Serve(Engine& engine, const std::vector<Arrival>& arrivals) {
  std::vector<Ticket> tickets;
  std::size_t next = 0;
  for (int step = 0; next < arrivals.size() || InHand(engine) > 0; ++step) {
    for (; next < arrivals.size() && arrivals[next].step <= step; ++next)
      tickets.push_back(Got(engine.Begin(arrivals[next].request)));
    engine.Step();
    if (step > 20'000) {
      ADD_FAILURE() << "the requests never end";
      break;
    }
  }
  std::vector<Completion> completions;
  for (const Ticket ticket : tickets)
    completions.push_back(engine.Take(ticket).value_or(Completion()));
  return completions;
}

std::vector<Completion> ServeAlone(EngineOptions options, const std::vector<Arrival>& arrivals) {
  options.max_sequences = 1;
  options.cache_tokens = 0;
  options.prefix_cache = false;
  const auto engine = OpenEngine(options);
  std::vector<Completion> completions;
  for (const Arrival& arrival : arrivals) completions.push_back(*engine->Generate(arrival.request));
  EXPECT_EQ(engine->load().cached_prompt_tokens, 0);
  EXPECT_EQ(engine->load().idle_blocks, 0);
  return completions;
}

// The requests served with these options against each one alone; the engine that served them.
struct Served {
  std::unique_ptr<Engine> engine;
  std::vector<Completion> alone, together;
};
Served ExpectSameAsAlone(const EngineOptions& options, const std::vector<Arrival>& arrivals,
                         const std::string& where) {
  Served served{OpenEngine(options), ServeAlone(options, arrivals), {}};
  served.together = Serve(*served.engine, arrivals);
  ExpectSame(served.together, served.alone, where);
  return served;
}

// The drafts, too, do not depend on other requests, where their length does not.
void ExpectSameRounds(const Completion& a, const Completion& b, const std::string& where) {
  EXPECT_EQ(a.speculation.rounds, b.speculation.rounds) << where;
  EXPECT_EQ(a.speculation.drafted, b.speculation.drafted) << where;
  EXPECT_EQ(a.speculation.accepted, b.speculation.accepted) << where;
}

void ExpectCountsFit(const std::vector<Completion>& completions, const EngineLoad& load) {
  std::int64_t cached = 0, preemptions = 0;
  for (const Completion& c : completions) {
    EXPECT_EQ(c.timings.prompt_tokens + c.timings.cached_prompt_tokens,
              static_cast<int>(c.prompt_token_ids.size()));
    EXPECT_EQ(c.timings.decoded_tokens, static_cast<int>(c.token_ids.size()) - 1);
    cached += c.timings.cached_prompt_tokens;
    preemptions += c.timings.preemptions;
  }
  EXPECT_EQ(load.cached_prompt_tokens, cached);
  EXPECT_EQ(load.preemptions, preemptions);
  EXPECT_EQ(load.used_blocks, 0);
}

class Serving : public testing::TestWithParam<const char*> {};

TEST_P(Serving, RequestsThatComeAndGoGetTheBitsTheyGetAlone) {
  std::int64_t cached = 0;
  const std::string method = GetParam();
  // Their drafts differ with what others have left: known outputs, or a prefix without features.
  const bool remembers = method == "suffix" || method == "eagle" || method == "mtp";
  for (unsigned seed = 0; seed < 3; ++seed) {
    const auto arrivals = Arrivals(100 + seed, 14, 200);
    EngineOptions options = Options(method);
    options.max_sequences = 5;
    const std::string where = fmt::format("{} seed {}", method, seed);
    const auto [engine, alone, served] = ExpectSameAsAlone(options, arrivals, where);
    for (std::size_t i = 0; i < arrivals.size() && !remembers; ++i)
      ExpectSameRounds(served[i], alone[i], where);
    ExpectCountsFit(served, engine->load());
    EXPECT_EQ(engine->load().preemptions, 0);
    cached += engine->load().cached_prompt_tokens;
  }
  if (method == "dflash")
    EXPECT_EQ(cached, 0);
  else
    EXPECT_GT(cached, 500);
}

TEST_P(Serving, RequestsThatGiveTheirBlocksBackGoOnAsIfNothingHadHappened) {
  std::int64_t preemptions = 0;
  for (const bool prefix_cache : {true, false})
    for (unsigned seed = 0; seed < 6; ++seed) {
      const auto arrivals = Arrivals(200 + seed, 14, 180);
      EngineOptions options = Options(GetParam());
      options.max_sequences = 5;
      options.cache_tokens = 256;
      options.prefix_cache = prefix_cache;
      const auto [engine, alone, served] =
          ExpectSameAsAlone(options, arrivals, fmt::format("{} seed {}", GetParam(), seed));
      ExpectCountsFit(served, engine->load());
      EXPECT_LE(engine->load().free_blocks + engine->load().idle_blocks, 8);
      preemptions += engine->load().preemptions;
    }
  EXPECT_GT(preemptions, 5) << "nothing was tested";
}

INSTANTIATE_TEST_SUITE_P(Methods, Serving,
                         testing::Values("none", "ngram", "suffix", "standalone", "eagle", "mtp",
                                         "dflash", "self"),
                         [](const auto& of) { return std::string(of.param); });

// Under a rule whose text depends on the draft's length, a lack of blocks must not shorten a draft.
TEST(Serving, UnderResidualTheDraftsAreNotShortenedWhereBlocksRunOut) {
  std::int64_t preemptions = 0;
  for (unsigned seed = 0; seed < 4; ++seed) {
    const auto arrivals = Arrivals(300 + seed, 10, 180);
    EngineOptions options = Options("standalone");
    options.speculative.strategy = VerifyStrategy::kResidual;
    options.max_sequences = 4;
    options.cache_tokens = 224;
    const auto [engine, alone, served] = ExpectSameAsAlone(options, arrivals, "");
    for (std::size_t i = 0; i < arrivals.size(); ++i)
      if (!arrivals[i].request.sampling.greedy())
        ExpectSameRounds(served[i], alone[i], fmt::format("request {}", i));
    preemptions += engine->load().preemptions;
  }
  EXPECT_GT(preemptions, 5);
}

TEST(Serving, EveryCacheTypeAndInstructionSetSharesAndGivesBackExactly) {
  const auto arrivals = Arrivals(7, 8, 180);
  for (const kernels::Isa isa : kernels::AvailableIsas())
    for (const CacheType type :
         {CacheType::kF32, CacheType::kF16, CacheType::kBF16, CacheType::kQ8_0, CacheType::kQ4_0}) {
      EngineOptions options = Options("standalone");
      options.isa = kernels::Name(isa);
      options.cache_type_k = options.cache_type_v = type;
      options.max_sequences = 4;
      options.cache_tokens = 256;
      const Served served = ExpectSameAsAlone(options, arrivals, options.isa);
      EXPECT_GT(served.engine->load().cached_prompt_tokens, 0);
    }
}

// With the default controller draft lengths follow the clock, but texts must not.
TEST(Serving, UnderTheCostModelTextsAreThoseOfARequestAlone) {
  const auto arrivals = Arrivals(9, 12, 180);
  EngineOptions options = Options("portfolio");
  options.speculative.controller = "cost-model";
  options.draft_model = Files().at("standalone");
  options.max_sequences = 5;
  options.cache_tokens = 256;
  EXPECT_GT(ExpectSameAsAlone(options, arrivals, "").engine->load().preemptions, 0);
}

Request ReadOf(const Tokens& prompt, int n) {
  Request r;
  r.prompt_tokens = prompt;
  r.max_new_tokens = n;
  r.sampling.temperature = 0;
  r.ignore_eos = true;
  return r;
}

TEST(PrefixCache, ServesAPromptsFullBlocksButNeverAllOfIt) {
  const auto engine = OpenEngine(Options("none"));
  for (const int n : {31, 32, 33, 64, 65, 96, 100}) {
    const Tokens prompt = TokensOf(n, static_cast<unsigned>(1000 + n));
    const auto first = *engine->Generate(ReadOf(prompt, 4)),
               second = *engine->Generate(ReadOf(prompt, 4));
    EXPECT_EQ(first.timings.cached_prompt_tokens, 0) << n;
    EXPECT_EQ(second.timings.cached_prompt_tokens, (n - 1) / 32 * 32) << n;
    EXPECT_EQ(second.timings.prompt_tokens, n - (n - 1) / 32 * 32) << n;
    EXPECT_EQ(second.token_ids, first.token_ids) << n;
  }
}

TEST(PrefixCache, HoldsGeneratedTextToo) {
  const auto engine = OpenEngine(Options("none"));
  Tokens text = TokensOf(20, 5);
  const auto first = *engine->Generate(ReadOf(text, 80));
  text.insert(text.end(), first.token_ids.begin(), first.token_ids.end());
  // The last token was never computed.
  EXPECT_EQ(engine->Generate(ReadOf(text, 1))->timings.cached_prompt_tokens, 99);
}

// A conversation, turn by turn: nothing that was computed is computed again, whatever drafts.
TEST(PrefixCache, LetsEachTurnReadOnlyWhatIsNew) {
  for (const char* method : {"none", "standalone", "ngram", "self"}) {
    const auto engine = OpenEngine(Options(method)), fresh = OpenEngine(Options("none"));
    Tokens text = TokensOf(37, 9);
    int known = 0;
    for (unsigned turn = 0; turn < 8; ++turn) {
      const auto answer = *engine->Generate(ReadOf(text, 11));
      EXPECT_GE(answer.timings.cached_prompt_tokens, known) << method << " " << turn;
      Request alone = ReadOf(text, 11);
      alone.reuse_prefix = false;
      EXPECT_EQ(answer.token_ids, fresh->Generate(alone)->token_ids) << method << " " << turn;
      text.insert(text.end(), answer.token_ids.begin(), answer.token_ids.end());
      known = static_cast<int>(text.size()) - 1;  // the newest token was never computed
      const Tokens more = TokensOf(7, 50 + turn);
      text.insert(text.end(), more.begin(), more.end());
    }
  }
}

TEST(PrefixCache, OfARequestThatStillRunsIsServedWhileItsPromptIsRead) {
  EngineOptions options = Options("none");
  options.max_sequences = 2;
  const auto engine = OpenEngine(options);
  const Tokens prompt = TokensOf(200, 6);
  const auto a = *engine->Begin(ReadOf(prompt, 3)), b = *engine->Begin(ReadOf(prompt, 3));
  while (engine->Step()) {
  }
  const auto first = *engine->Take(a), second = *engine->Take(b);
  EXPECT_EQ(first.token_ids, second.token_ids);
  EXPECT_EQ(first.timings.cached_prompt_tokens, 0);
  EXPECT_GT(second.timings.cached_prompt_tokens, 100);
}

TEST(PrefixCache, IsOffWhereItIsSwitchedOff) {
  EngineOptions options = Options("none");
  options.prefix_cache = false;
  const auto engine = OpenEngine(options);
  const Tokens prompt = TokensOf(100, 7);
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(engine->Generate(ReadOf(prompt, 4))->timings.cached_prompt_tokens, 0);
  EXPECT_EQ(engine->load().idle_blocks, 0);
}

TEST(PrefixCache, ScoringAndMeasuringTakeItsBlocksAndHarmNoText) {
  const auto engine = OpenEngine(Options("none"));
  const Tokens prompt = TokensOf(100, 8);
  const auto before = *engine->Generate(ReadOf(prompt, 20));
  ASSERT_TRUE(engine->Measure({.rows = {1, 4}, .contexts = {0, 100}, .repeats = 1}));
  ASSERT_TRUE(engine->Score(TokensOf(250, 9)));
  EXPECT_EQ(engine->Generate(ReadOf(prompt, 20))->token_ids, before.token_ids);
}

TEST(CacheTokens, ThatARequestDoesNotFitAreNamedWhenItBegins) {
  EngineOptions options = Options("none");
  options.cache_tokens = 128;
  const auto engine = OpenEngine(options);
  EXPECT_TRUE(engine->Generate(ReadOf(TokensOf(100, 1), 28)));
  EXPECT_TRUE(Fails(engine->Begin(ReadOf(TokensOf(100, 1), 29)), ErrorCode::kTooLarge,
                    "EngineOptions::cache_tokens"));
  EXPECT_FALSE(engine->Score(TokensOf(140, 1)));
  options.cache_tokens = 100;
  EXPECT_FALSE(Engine::Open(options));
}

TEST(CacheTokens, BoundTheMemoryThatIsReserved) {
  EngineOptions options = Options("none");
  options.max_sequences = 8;
  const auto all = OpenEngine(options)->summary().target.cache_bytes;
  options.cache_tokens = 512;
  EXPECT_EQ(OpenEngine(options)->summary().target.cache_bytes * 4, all);
}

// A request that is cancelled while it waits for blocks or rows ends too.
TEST(Serving, CancelledRequestsEndAtOnceWhereverTheyAre) {
  EngineOptions options = Options("none");
  options.max_sequences = 3;
  options.cache_tokens = 160;
  const auto engine = OpenEngine(options);
  std::vector<Ticket> tickets;
  for (unsigned i = 0; i < 5; ++i) tickets.push_back(*engine->Begin(ReadOf(TokensOf(30, i), 100)));
  for (int i = 0; i < 60; ++i) engine->Step();
  EXPECT_GT(engine->load().preempted + engine->load().waiting, 0);
  for (const Ticket ticket : tickets) engine->Cancel(ticket);
  EXPECT_FALSE(engine->Step());
  for (const Ticket ticket : tickets)
    EXPECT_EQ(engine->Take(ticket)->finish_reason, FinishReason::kCancelled);
  EXPECT_EQ(engine->load().used_blocks, 0);
}

// Passes from a request's beginning to its first token, while `others` continue.
int PassesToFirstToken(Engine& engine, const Tokens& prompt) {
  bool first = false;
  const auto ticket = *engine.Begin(ReadOf(prompt, 1), [&first](const RoundEvent& round) {
    first |= !round.events.empty();
    return true;
  });
  int passes = 0;
  for (; !first; ++passes) engine.Step();
  engine.Step();
  EXPECT_TRUE(engine.Take(ticket));
  return passes;
}

class LongPrompts : public testing::Test {
 protected:
  LongPrompts() {
    const std::string folder = fixtures::TemporaryFolder();
    EngineOptions options{.model = fixtures::WriteTinyModel(
                              folder, {.seed = 82, .n_layers = 1, .context_length = 2304}),
                          .speculative = {.method = "none"},
                          .max_sequences = 4,
                          .threads = 1};
    engine_ = OpenEngine(options);
  }
  std::unique_ptr<Engine> engine_;
};

TEST_F(LongPrompts, LetShortOnesGoFirst) {
  const auto long_one = *engine_->Begin(ReadOf(TokensOf(2000, 1), 1));
  engine_->Step();
  int served = 0;
  for (unsigned i = 0; !engine_->Take(long_one); ++i, ++served)
    ASSERT_LE(PassesToFirstToken(*engine_, TokensOf(12, 100 + i)), 2);
  EXPECT_GT(served, 3) << "the long prompt left no pass to others";
}

TEST_F(LongPrompts, AreNotStarvedByShortOnesThatKeepComing) {
  const auto long_one = *engine_->Begin(ReadOf(TokensOf(2000, 1), 1));
  std::optional<Completion> done;
  unsigned n = 0;
  int passes = 0;
  for (; !done && passes < 2000; ++passes) {
    while (InHand(*engine_) < 12) ASSERT_TRUE(engine_->Begin(ReadOf(TokensOf(200, 100 + n++), 1)));
    engine_->Step();
    done = engine_->Take(long_one);
  }
  EXPECT_TRUE(done) << "after " << passes << " passes";
  EXPECT_GT(n, 12u);
}

TEST_F(LongPrompts, DoNotHoldUpThoseThatDecode) {
  std::int64_t tokens = 0;
  (void)*engine_->Begin(ReadOf(TokensOf(10, 3), 400), [&tokens](const RoundEvent& round) {
    tokens += static_cast<std::int64_t>(round.events.size());
    return true;
  });
  engine_->Step();
  const auto long_one = *engine_->Begin(ReadOf(TokensOf(2000, 1), 1));
  const std::int64_t before = tokens;
  int passes = 0;
  std::optional<Completion> done;
  for (; !done; ++passes) engine_->Step(), done = engine_->Take(long_one);
  EXPECT_EQ(tokens - before, passes) << "a token for each pass";
  EXPECT_GE(passes, 2000 / 256);
}

}  // namespace
}  // namespace foretoken
