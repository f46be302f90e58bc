// SPDX-License-Identifier: Apache-2.0
// Makes every allocation of a scenario fail in turn, once and from then on. The request gets an
// error that says so, nothing else is affected, and no memory is kept. The tests named Slow visit
// every allocation, the others every n-th.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>

#include "fixtures/engines_testing.h"
#include "fixtures/tiny_model.h"
#include "foretoken/async_engine.h"
#include "foretoken/built_in_drafters.h"
#include "foretoken/draft_session.h"
#include "foretoken/scorer.h"
#include "foretoken/speculative_decoder.h"
#include "foretoken/speculative_pipeline.h"
#include "foretoken/verification.h"
#include "memory/failing_memory.h"

namespace foretoken {
namespace {

using tests::BytesHeld;
using tests::FailAllocation;
using tests::Resume;
using tests::StopFailing;

// The result of a scenario: for each part a text, or that memory is short.
struct Outcome {
  std::vector<std::string> texts;
  std::vector<Error> errors;

  // The error of this part, or its text; `text` makes it of what the part gave.
  template <typename T>
  void Add(Result<T> result, const auto& text) {
    if (result)
      texts.push_back(text(*result));
    else
      errors.push_back(std::move(result).error());
  }
  void Add(Status status, const std::string& text) {
    if (status)
      texts.push_back(text);
    else
      errors.push_back(std::move(status).error());
  }
};

void ExpectSaysSo(const Error& error, const std::string& where) {
  // A file that cannot be mapped gives the system's message.
  const bool mapping = error.message.find("Cannot allocate memory") != std::string::npos;
  EXPECT_TRUE(error.code == ErrorCode::kNoMemory || mapping) << where << ": " << error.message;
  EXPECT_NE(error.message.find("memory"), std::string::npos) << where << ": " << error.message;
  EXPECT_EQ(error.message.find('\n'), std::string::npos) << where;
}

constexpr int kAllSites = 1;
// malloc may give a few bytes more than requested, and not always the same.
constexpr std::int64_t kRounding = 64;

// Each part gave its undisturbed result, or an error.
void CheckOutcome(const Outcome& outcome, const Outcome& undisturbed, const std::string& where) {
  for (const Error& error : outcome.errors) ExpectSaysSo(error, where);
  for (std::size_t i = 0; i < outcome.texts.size(); ++i) {
    const std::string& text = outcome.texts[i];
    EXPECT_TRUE(text.empty() || text == undisturbed.texts[i]) << text;
  }
  EXPECT_TRUE(!outcome.errors.empty() || outcome.texts == undisturbed.texts);
}

// Runs it undisturbed, then with each stride-th allocation failing. `check` tests other conditions
// after each run. REQUIRES: `run` keeps no memory.
void Sweep(int stride, const std::function<Outcome()>& run,
           const std::function<void()>& check = {}) {
  run();  // memory that is taken only once
  run();
  FailAllocation(0, false);
  const Outcome undisturbed = run();
  const std::int64_t n = StopFailing();
  ASSERT_TRUE(undisturbed.errors.empty()) << undisturbed.errors.front().message;
  ASSERT_GT(n, 20);
  // Buffers that are kept for the next request may grow during the first sweep, because errors
  // change who uses which; in the second sweep they do not.
  std::int64_t n_failed = 0, n_sites = 0, most_held = 0;
  for (const bool grown : {false, true})
    for (const bool from_then_on : {false, true})
      for (std::int64_t at = 1; at <= n; at += stride, ++n_sites) {
        const std::string where = (from_then_on ? "from allocation " : "allocation ") +
                                  std::to_string(at) + " of " + std::to_string(n);
        SCOPED_TRACE(where);
        {
          FailAllocation(at, from_then_on);
          const Outcome outcome = run();
          StopFailing();
          n_failed += !outcome.errors.empty();
          CheckOutcome(outcome, undisturbed, where);
        }
        if (check) check();
        if (!grown) most_held = std::max(most_held, BytesHeld());
        EXPECT_LE(BytesHeld(), most_held + kRounding);
        if (testing::Test::HasFailure()) return;
      }
  EXPECT_GT(n_failed, n_sites / 2);  // the sweep does cause failures
  std::printf("[ sites    ] %ld of %ld, %ld runs ended with an error\n", static_cast<long>(n_sites),
              static_cast<long>(4 * n), static_cast<long>(n_failed));
}

std::string TextOf(const Completion& completion) {
  std::string text = completion.text;
  for (const std::int32_t id : completion.token_ids) text += " " + std::to_string(id);
  return text;
}

class MemoryShort : public testing::TestWithParam<int> {
 protected:
  int stride(int quick) const { return GetParam() == kAllSites ? kAllSites : quick; }

  static EngineOptions Options(const std::string& method) {
    static const std::string folder = fixtures::TemporaryFolder();
    fixtures::TinyModelOptions model{.seed = 71, .n_layers = 1, .context_length = 256};
    EngineOptions options{.max_sequences = 3, .threads = 1};
    options.speculative.method = method;
    options.speculative.controller = "fixed";
    options.model = fixtures::WriteTinyModel(folder, model);
    options.repack_cache.clear();
    if (method == "standalone" || method == "portfolio") {
      model.noise = 0.1;
      options.draft_model = fixtures::WriteTinyModel(folder, model);
    }
    if (method == "mtp" || method == "eagle" || method == "dflash") {
      fixtures::TinyHeadOptions head{.eagle = method == "eagle", .block = method == "dflash"};
      head.target = model;
      options.draft_model = fixtures::WriteTinyHead(folder, head);
    }
    return options;
  }

  static Request Asking(int i) {
    Request request;
    request.id = static_cast<std::uint64_t>(i);
    request.prompt = i == 1 ? "a longer prompt that shares nothing with the others, all in all"
                            : "once upon a time";
    request.max_new_tokens = 24;
    request.ignore_eos = true;
    request.seed = 5;
    request.sampling.temperature = i == 0 ? 0.0f : 0.8f;
    if (i == 1) {
      request.sampling.repetition_penalty = 1.1f;
      request.sampling.top_p = 0.9f;
      request.logprobs = 3;
      request.prompt_logprobs = 2;
    }
    if (i == 2) {
      request.prediction = "once upon a time there was a girl";
      request.stop = {"never to be seen"};
      request.sampling.dry.multiplier = 0.5f;
      request.sampling.logit_bias = {{3, -1.0f}};
    }
    return request;
  }

  // Three requests side by side; each may fail alone.
  static Outcome RunThree(Engine& engine) {
    Outcome outcome;
    std::vector<Ticket> tickets;
    std::array<Request, 3> requests = {Asking(0), Asking(1), Asking(2)};
    outcome.texts.resize(3), tickets.resize(3), outcome.errors.reserve(3);
    Resume();
    for (std::size_t i = 0; i < 3; ++i) {
      auto ticket = engine.Begin(std::move(requests[i]));
      if (ticket)
        tickets[i] = *ticket;
      else
        outcome.errors.push_back(std::move(ticket).error());
    }
    while (engine.Step()) continue;
    StopFailing();
    for (std::size_t i = 0; i < 3; ++i) {
      if (tickets[i] == 0) continue;
      auto completion = engine.Take(tickets[i]);
      EXPECT_TRUE(completion);
      if (!completion) continue;
      EXPECT_EQ(completion->finish_reason == FinishReason::kError, completion->error.has_value());
      if (completion->error)
        outcome.errors.push_back(*std::move(completion->error));
      else
        outcome.texts[i] = TextOf(*completion);
    }
    engine.Forget();
    return outcome;
  }
};

class MemoryShortByMethod : public MemoryShort {
 protected:
  void SweepRequests(const std::string& method, int quick) {
    const auto engine = OpenEngine(Options(method));
    const std::string alone = TextOf(Generated(*engine, Asking(1)));
    Sweep(
        stride(quick), [&] { return RunThree(*engine); },
        [&] {
          const EngineLoad load = engine->load();
          EXPECT_EQ(load.used_blocks, 0);
          EXPECT_EQ(load.running + load.waiting + load.preempted, 0);
          EXPECT_EQ(TextOf(Generated(*engine, Asking(1))), alone);
          engine->Forget();
        });
  }
};

TEST_P(MemoryShortByMethod, RequestsWithoutDrafts) {
  SweepRequests("none", 11);
}
TEST_P(MemoryShortByMethod, RequestsWithNgrams) {
  SweepRequests("ngram", 13);
}
TEST_P(MemoryShortByMethod, RequestsWithSuffixes) {
  SweepRequests("suffix", 17);
}
TEST_P(MemoryShortByMethod, RequestsWithACopyOfTheModel) {
  SweepRequests("self", 31);
}
TEST_P(MemoryShortByMethod, RequestsWithADraftModel) {
  SweepRequests("standalone", 19);
}
TEST_P(MemoryShortByMethod, RequestsWithAnMtpHead) {
  SweepRequests("mtp", 23);
}
TEST_P(MemoryShortByMethod, RequestsWithAnEagleHead) {
  SweepRequests("eagle", 23);
}
TEST_P(MemoryShortByMethod, RequestsWithADflashDrafter) {
  SweepRequests("dflash", 23);
}
TEST_P(MemoryShortByMethod, RequestsWithAllDrafters) {
  SweepRequests("portfolio", 29);
}

// Each run's grammar is another text, so that each compiles one.
TEST_P(MemoryShort, ARequestWithAGrammar) {
  const auto engine = OpenEngine(Options("ngram"));
  int n_runs = 1'000'000;
  const auto run = [&] {
    Outcome outcome;
    Request request = Asking(0);
    request.sampling.grammar =
        "root ::= word (\" \" word){0,9} # " + std::to_string(++n_runs) + "\nword ::= [a-m]{1,4}";
    Resume();
    auto completion = engine->Generate(request);
    StopFailing();
    outcome.Add(std::move(completion), TextOf);
    return outcome;
  };
  for (int i = 0; i < 24; ++i) run();  // as many grammars as are kept
  Sweep(stride(23), run);
}

TEST_P(MemoryShort, ADraftSession) {
  const auto session = Got(DraftSession::Create(Got(MakeNgramDrafter()), 320));
  Sweep(stride(1), [&] {
    Outcome outcome;
    Status failed;
    std::vector<std::int32_t> drafts;
    SessionText request{.prompt = {5, 6, 7, 8, 5, 6, 7, 8, 5, 6}, .max_new_tokens = 32};
    drafts.reserve(32);
    Resume();
    failed = session->Begin(request);
    for (int round = 0; failed && round < 8; ++round) {
      auto proposed = session->Propose(4, {.distributions = true});
      if (!proposed) failed = Fail(std::move(proposed).error());
      if (!failed) break;
      drafts.insert(drafts.end(), proposed->tokens.begin(), proposed->tokens.end());
      failed = session->Observe(std::array{7, 8, 5, 6});
    }
    StopFailing();
    session->End();
    outcome.Add(std::move(failed), testing::PrintToString(drafts));
    return outcome;
  });
}

TEST_P(MemoryShort, APipeline) {
  EngineOptions options = Options("standalone");
  const auto pipeline = Got(StandaloneSpeculativeDecodingPipeline::Create(options));
  const auto run = [&] {
    Outcome outcome;
    Status failed;
    std::string text;
    const std::vector<TextGenerationBatch> replicas = {{{"a", Asking(0)}, {"b", Asking(1)}}};
    text.reserve(4096);
    bool done = false;
    Resume();
    while (failed && !done) {
      auto outputs = pipeline->Execute(replicas);
      if (!outputs) {
        failed = Fail(std::move(outputs).error());
        break;
      }
      done = true;
      for (const auto& [id, output] : *outputs) {
        for (const std::int32_t token : output.tokens) text += id + std::to_string(token) + " ";
        done &= output.done;
      }
    }
    StopFailing();
    for (const char* id : {"a", "b"}) {
      auto completion = pipeline->Release(id);
      if (!failed) continue;
      if (!completion)
        failed = Fail(std::move(completion).error());
      else if (completion->error)
        failed = Fail(*std::move(completion->error));
    }
    outcome.Add(std::move(failed), text);
    return outcome;
  };
  Sweep(stride(31), run);
}

// An engine for each run, so that its thread has ended when the memory is counted.
TEST_P(MemoryShort, AnAsyncEngine) {
  const EngineOptions options = Options("ngram");
  const auto run = [&] {
    Outcome outcome;
    auto opened = Engine::Open(options);
    EXPECT_TRUE(opened);
    std::array<Request, 2> requests = {Asking(0), Asking(1)};
    std::array<std::optional<EventStream>, 2> streams;
    outcome.errors.reserve(3), outcome.texts.resize(2);
    Resume();
    auto engine = AsyncEngine::Start(*std::move(opened));
    for (std::size_t i = 0; i < 2 && engine; ++i) {
      auto stream = (*engine)->Submit(std::move(requests[i]));
      if (stream)
        streams[i] = *std::move(stream);
      else
        outcome.errors.push_back(std::move(stream).error());
    }
    std::array<std::optional<Result<std::vector<Completion>>>, 2> results;
    for (std::size_t i = 0; i < 2; ++i)
      if (streams[i]) results[i] = streams[i]->Collect();
    StopFailing();
    if (!engine) outcome.errors.push_back(std::move(engine).error());
    for (std::size_t i = 0; i < 2; ++i) {
      if (!results[i]) continue;
      if (*results[i])
        outcome.texts[i] = TextOf((*results[i])->front());
      else
        outcome.errors.push_back(std::move(*results[i]).error());
    }
    return outcome;
  };
  Sweep(stride(29), run);
}

Outcome OpenAndAsk(const EngineOptions& options) {
  Outcome outcome;
  EngineOptions own = options;
  Resume();
  auto engine = Engine::Open(std::move(own));
  StopFailing();
  Request request;
  request.prompt = "once upon a time";
  request.max_new_tokens = 4;
  outcome.Add(std::move(engine), [&](const std::unique_ptr<Engine>& opened) {
    return TextOf(Generated(*opened, request));
  });
  return outcome;
}

TEST_P(MemoryShort, OpeningAnEngine) {
  const EngineOptions options = Options("standalone");
  Sweep(stride(397), [&] { return OpenAndAsk(options); });
}

TEST_P(MemoryShort, OpeningAnEngineWithThreadsAndAHead) {
  EngineOptions options = Options("eagle");
  options.threads = 3;
  Sweep(stride(401), [&] { return OpenAndAsk(options); });
}

TEST_P(MemoryShort, OpeningAnEngineWithAReducedHeadAndARecord) {
  EngineOptions options = Options("standalone");
  options.speculative.draft_vocabulary = 300;
  options.record = fixtures::TemporaryFolder() + "/trace";
  Sweep(stride(409), [&] { return OpenAndAsk(options); });
}

TEST_P(MemoryShort, ADecoder) {
  EngineOptions options = Options("standalone");
  options.max_sequences = 1;
  const auto decoder = Got(SpeculativeDecoder::Create(options));
  const auto run = [&] {
    Outcome outcome;
    Status failed;
    Request request = Asking(1);
    Resume();
    {
      auto begun = decoder->Begin(std::move(request));
      if (!begun) failed = Fail(std::move(begun).error());
    }
    while (failed && !decoder->done()) {
      auto drafted = decoder->Draft({.num_steps = {}, .distributions = true, .logits = true});
      if (!drafted) failed = Fail(std::move(drafted).error());
      if (!failed) break;
      auto verified = decoder->Verify();
      if (!verified) failed = Fail(std::move(verified).error());
    }
    StopFailing();
    decoder->Cancel();
    outcome.Add(std::move(failed), TextOf(decoder->completion()));
    return outcome;
  };
  // A decoder keeps its last completion until the next one replaces it.
  Sweep(stride(7), run, [&] { EXPECT_TRUE(run().errors.empty()); });
}

TEST_P(MemoryShort, VerificationOfGivenLogits) {
  const std::vector<float> logits(3 * 50, 0.5f), q(2 * 50, 0.02f);
  const std::vector<std::int32_t> drafts = {4, 7}, text = {1, 2, 3};
  Sweep(stride(1), [&] {
    Outcome outcome;
    VerificationOptions options{.vocabulary_size = 50};
    options.sampling.top_p = 0.9f;
    Resume();
    auto verified = Verify(std::move(options), {.text = text,
                                                .drafts = drafts,
                                                .draft_probabilities = {q, 50},
                                                .target_logits = {logits, 50},
                                                .logprobs = 2});
    StopFailing();
    outcome.Add(std::move(verified), [](const VerifiedDrafts& v) {
      return std::to_string(v.accepted) + std::to_string(v.next);
    });
    return outcome;
  });
}

TEST_P(MemoryShort, AScorer) {
  const auto scorer = Got(Scorer::Create(Options("none")));
  const std::vector<std::int32_t> tokens = {1, 300, 301, 302, 303};
  Sweep(stride(1), [&] {
    Outcome outcome;
    std::vector<Result<TokenRows>> all;
    all.reserve(12);
    Resume();
    for (int i = 0; i < 12; ++i) {
      all.push_back(scorer->Score(tokens, 0));
      EXPECT_EQ(scorer->length(0), all.back() ? 5 : 0);
      EXPECT_TRUE(scorer->Truncate(0, 0));
    }
    StopFailing();
    for (auto& rows : all)
      outcome.Add(std::move(rows),
                  [](const TokenRows& scores) { return std::to_string(scores.Row(4)[7]); });
    return outcome;
  });
}

constexpr int kSampled = 0;
INSTANTIATE_TEST_SUITE_P(Sampled, MemoryShort, testing::Values(kSampled));
INSTANTIATE_TEST_SUITE_P(SlowAll, MemoryShort, testing::Values(kAllSites));
INSTANTIATE_TEST_SUITE_P(Sampled, MemoryShortByMethod, testing::Values(kSampled));
INSTANTIATE_TEST_SUITE_P(SlowAll, MemoryShortByMethod, testing::Values(kAllSites));

}  // namespace
}  // namespace foretoken
