// SPDX-License-Identifier: Apache-2.0
#include "foretoken/async_engine.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <new>
#include <thread>

#include "base/failure_testing.h"
#include "fixtures/engines_testing.h"
#include "fixtures/tiny_model.h"

namespace foretoken {
namespace {

using Clock = std::chrono::steady_clock;
using Kind = StreamEvent::Kind;
using std::chrono::milliseconds;
// Ends a test that hangs; a busy machine needs less.
constexpr auto kHang = std::chrono::seconds(900);

EngineOptions Options(int sequences = 2) {
  static const std::string model = fixtures::WriteTinyModel(
      fixtures::TemporaryFolder(), {.seed = 33, .n_layers = 1, .context_length = 512});
  EngineOptions options{.model = model, .max_sequences = sequences, .threads = 1};
  options.speculative.method = "ngram";
  options.speculative.controller = "fixed";
  return options;
}

std::unique_ptr<AsyncEngine> Open(int sequences = 2, const AsyncOptions& async = {}) {
  return Got(AsyncEngine::Open(Options(sequences), async));
}

Request Ask(int i, int n_tokens = 24) {
  Request request;
  request.prompt = "once upon a time there was number " + std::to_string(i % 7);
  request.max_new_tokens = n_tokens;
  request.ignore_eos = true;
  request.sampling.temperature = i % 2 == 0 ? 0.0f : 0.8f;
  request.seed = 5;
  request.id = static_cast<std::uint64_t>(i);
  return request;
}

// What the request gives when it runs alone.
std::string Alone(const Request& request) {
  return Generated(*OpenEngine(Options(1)), request).text;
}

// Holds the engine inside a step: a request whose logits processor waits here.
class Gate {
 public:
  Request Hold(Request request) {
    request.speculative.enabled = false;
    request.sampling.processors.push_back(
        [state = state_](std::span<const std::int32_t>, std::span<float>) {
          std::unique_lock lock(state->mutex);
          state->reached = true;
          state->changed.notify_all();
          state->changed.wait(lock, [&] { return state->open; });
        });
    return request;
  }
  void AwaitReached() {
    std::unique_lock lock(state_->mutex);
    state_->changed.wait(lock, [&] { return state_->reached; });
  }
  void Open() {
    const std::lock_guard lock(state_->mutex);
    state_->open = true;
    state_->changed.notify_all();
  }
  // False: not until then.
  bool AwaitReached(Clock::time_point until) {
    std::unique_lock lock(state_->mutex);
    return state_->changed.wait_until(lock, until, [&] { return state_->reached; });
  }
  ~Gate() { Open(); }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    bool reached = false, open = false;
  };
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

EventStream Submit(AsyncEngine& engine, Request request, SubmitOptions options = {}) {
  return Got(engine.Submit(std::move(request), std::move(options)));
}

// The last event of a stream.
StreamEvent LastOf(EventStream& stream) {
  StreamEvent last;
  while (auto event = stream.Next()) last = *std::move(event);
  return last;
}

FinishReason ReasonOf(const StreamEvent& event) {
  EXPECT_EQ(event.kind, Kind::kEnd);
  return event.end ? event.end->completion.finish_reason : FinishReason::kError;
}

TEST(AsyncEngine, StreamsWhatGenerateGives) {
  const auto engine = Open();
  std::vector<EventStream> streams;
  for (int i = 0; i < 4; ++i) streams.push_back(Submit(*engine, Ask(i)));
  for (int i = 0; i < 4; ++i) {
    EventStream& stream = streams[static_cast<std::size_t>(i)];
    EXPECT_EQ(stream.Next()->kind, Kind::kBegun);
    std::string text;
    std::vector<std::int32_t> ids;
    std::int64_t drafted = 0;
    while (auto event = stream.Next()) {
      if (event->kind == Kind::kRound) {
        EXPECT_FALSE(event->round.tokens.empty());
        text += event->round.text;
        for (const RoundToken& token : event->round.tokens) ids.push_back(token.id);
        drafted += event->round.drafted;
        continue;
      }
      ASSERT_EQ(event->kind, Kind::kEnd);
      const ChoiceEnd& end = *event->end;
      EXPECT_TRUE(stream.ended());
      EXPECT_EQ(end.completion.text.substr(0, text.size()), text);
      EXPECT_EQ(end.completion.text, Alone(Ask(i)));
      EXPECT_EQ(end.completion.token_ids, ids);
      EXPECT_EQ(end.reported.drafted, drafted);
      EXPECT_EQ(end.reported.drafted, end.completion.speculation.drafted);
      EXPECT_EQ(end.reported.accepted, end.completion.speculation.accepted);
      EXPECT_EQ(end.method, "ngram");
      EXPECT_GE(end.first_token_ms, end.queue_ms);
      EXPECT_GE(end.total_ms, end.first_token_ms);
    }
    EXPECT_FALSE(stream.Next());
  }
  EXPECT_TRUE(engine->AwaitIdle(milliseconds(0)));
}

TEST(AsyncEngine, RequestsMayHaveSeveralChoices) {
  const auto engine = Open();
  std::vector<AsyncChoice> choices;
  for (int i = 0; i < 3; ++i) {
    auto prepared = engine->engine().Prepare(Ask(1));
    ASSERT_TRUE(prepared);
    prepared->set_id(static_cast<std::uint64_t>(i));
    choices.push_back({.request = *std::move(prepared), .first_of_prompt = i == 0});
  }
  auto stream = engine->Submit(std::move(choices));
  ASSERT_TRUE(stream);
  const auto completions = Got(stream->Collect());
  ASSERT_EQ(completions.size(), 3u);
  for (int i = 0; i < 3; ++i) {
    Request request = Ask(1);
    request.id = static_cast<std::uint64_t>(i);
    EXPECT_EQ(completions[static_cast<std::size_t>(i)].text, Alone(request));
  }
}

TEST(AsyncEngine, WithoutRoundsOnlyTheEndComes) {
  const auto engine = Open();
  auto stream = Submit(*engine, Ask(0), {.rounds = false});
  EXPECT_EQ(stream.Next()->kind, Kind::kBegun);
  EXPECT_EQ(stream.Next()->kind, Kind::kEnd);
}

TEST(AsyncEngine, ARefusedRequestNeverQueues) {
  const auto engine = Open();
  Request request = Ask(0);
  request.sampling.temperature = -1;
  EXPECT_TRUE(Fails(engine->Submit(request), ErrorCode::kInvalidArgument));
  EXPECT_EQ(engine->Submit(std::vector<AsyncChoice>()).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(AsyncEngine::Open(Options(), {.max_waiting = -1}).error().code,
            ErrorCode::kInvalidArgument);
}

TEST(AsyncEngine, AnotherEnginesRequestEndsWithAnErrorAndOthersContinue) {
  const auto engine = Open(), other = Open();
  std::vector<AsyncChoice> choices;
  choices.push_back({.request = *other->engine().Prepare(Ask(0))});
  choices.push_back({.request = *engine->engine().Prepare(Ask(1))});
  auto stream = engine->Submit(std::move(choices));
  ASSERT_TRUE(stream);
  while (auto event = stream->Next()) {
    if (event->kind != Kind::kEnd) continue;
    EXPECT_EQ(event->end->completion.error.has_value(), event->choice == 0);
    if (event->choice == 1) {
      EXPECT_EQ(event->end->completion.text, Alone(Ask(1)));
    }
  }
  EXPECT_TRUE(stream->ended());
}

TEST(AsyncEngine, ACancelledRequestEndsWithWhatItHasAndOthersContinue) {
  const auto engine = Open();
  Gate gate;
  auto held = Submit(*engine, gate.Hold(Ask(0, 200)));
  gate.AwaitReached();  // inside its first step
  auto beside = Submit(*engine, Ask(1));
  held.Cancel();
  gate.Open();
  const StreamEvent last = LastOf(held);
  EXPECT_EQ(ReasonOf(last), FinishReason::kCancelled);
  EXPECT_LT(last.end->completion.token_ids.size(), 200u);
  EXPECT_EQ(LastOf(beside).end->completion.text, Alone(Ask(1)));
}

TEST(AsyncEngine, AStreamThatGoesAwayCancelsItsRequest) {
  const auto engine = Open(1);
  Gate gate;
  {
    auto held = Submit(*engine, gate.Hold(Ask(0, 400)));
    gate.AwaitReached();
  }
  gate.Open();
  EXPECT_TRUE(engine->AwaitIdle(kHang));
  EXPECT_EQ(engine->snapshot().load.running, 0);
}

TEST(AsyncEngine, AFullQueueRefusesAndTakesAgain) {
  const auto engine = Open(1, {.max_waiting = 1});
  EXPECT_EQ(engine->capacity(), 2);
  Gate gate;
  auto held = Submit(*engine, gate.Hold(Ask(0)));
  gate.AwaitReached();
  auto waits = Submit(*engine, Ask(1));
  EXPECT_EQ(engine->load().running, 1);
  EXPECT_EQ(engine->load().waiting, 1);
  EXPECT_EQ(engine->Submit(Ask(2)).error().code, ErrorCode::kBusy);
  waits.Cancel();
  auto next = Submit(*engine, Ask(2));                           // in its place
  EXPECT_EQ(ReasonOf(*waits.Next()), FinishReason::kCancelled);  // before it began
  EXPECT_FALSE(waits.Next());
  std::vector<AsyncChoice> three;
  for (int i = 0; i < 3; ++i) three.push_back({.request = *engine->engine().Prepare(Ask(i))});
  EXPECT_EQ(engine->Submit(std::move(three)).error().code, ErrorCode::kTooLarge);
  gate.Open();
  EXPECT_EQ(LastOf(next).end->completion.text, Alone(Ask(2)));
}

TEST(AsyncEngine, ARequestFailsAtItsDeadlineWhileItRunsAndWhileItWaits) {
  const auto engine = Open(1);
  Gate gate;
  auto held = Submit(*engine, gate.Hold(Ask(0, 400)));
  gate.AwaitReached();
  const auto soon = Clock::now() + milliseconds(30);
  auto waits = Submit(*engine, Ask(1), {.deadline = soon});
  EXPECT_EQ(waits.deadline(), soon);
  const StreamEvent last = LastOf(waits);  // though the engine does not move
  EXPECT_GE(Clock::now(), soon);
  EXPECT_EQ(last.kind, Kind::kFailed);
  EXPECT_EQ(last.error.code, ErrorCode::kDeadline);
  EXPECT_TRUE(waits.ended());
  gate.Open();
  held.Cancel();
  LastOf(held);
  // Nobody reads this one: the engine ends it all the same.
  for (milliseconds time(50);; time *= 2) {  // it runs before its deadline comes
    Gate late;
    const auto rounds = engine->snapshot().counts.rounds();
    const auto deadline = Clock::now() + time;
    auto unread = Submit(*engine, late.Hold(Ask(0, 400)), {.deadline = deadline});
    const bool runs = late.AwaitReached(deadline);
    std::this_thread::sleep_until(deadline);
    late.Open();
    EXPECT_TRUE(engine->AwaitIdle(kHang));
    EXPECT_EQ(LastOf(unread).error.code, ErrorCode::kDeadline);
    EXPECT_LE(engine->snapshot().counts.rounds(), rounds + 1);
    if (runs) break;
  }
}

TEST(AsyncEngine, ReadersMayWaitForALimitedTime) {
  const auto engine = Open(1);
  Gate gate;
  auto held = Submit(*engine, gate.Hold(Ask(0)));
  gate.AwaitReached();
  EXPECT_EQ(held.TryNext()->kind, Kind::kBegun);
  EXPECT_FALSE(held.TryNext());
  const auto until = Clock::now() + milliseconds(10);
  EXPECT_FALSE(held.NextUntil(until));
  EXPECT_GE(Clock::now(), until);
  EXPECT_FALSE(held.ended());
}

TEST(AsyncEngine, ADrainLetsAcceptedRequestsEnd) {
  const auto engine = Open(1);
  Gate gate;
  auto held = Submit(*engine, gate.Hold(Ask(0)));
  auto waits = Submit(*engine, Ask(1));
  gate.AwaitReached();
  engine->Drain();
  EXPECT_TRUE(engine->draining());
  EXPECT_EQ(engine->Submit(Ask(2)).error().code, ErrorCode::kStopped);
  EXPECT_FALSE(engine->AwaitIdle(milliseconds(5)));
  gate.Open();
  EXPECT_TRUE(engine->AwaitIdle(kHang));
  EXPECT_EQ(ReasonOf(LastOf(held)), FinishReason::kLength);
  EXPECT_EQ(LastOf(waits).end->completion.text, Alone(Ask(1)));
}

TEST(AsyncEngine, AStopFailsEverythingAtOnce) {
  auto engine = Open(1);
  Gate gate;
  auto held = Submit(*engine, gate.Hold(Ask(0, 400)));
  auto waits = Submit(*engine, Ask(1));
  gate.AwaitReached();
  engine->Stop();
  EXPECT_EQ(LastOf(held).error.code, ErrorCode::kStopped);  // the step still runs
  EXPECT_EQ(LastOf(waits).error.code, ErrorCode::kStopped);
  EXPECT_EQ(engine->Submit(Ask(2)).error().code, ErrorCode::kStopped);
  gate.Open();
  EXPECT_TRUE(engine->AwaitIdle(kHang));
  engine.reset();
  EXPECT_FALSE(held.Next());  // streams outlive the engine
}

TEST(AsyncEngine, ItsEndWakesReadersThatWait) {
  auto engine = Open(2);
  auto stream = Submit(*engine, Ask(0, 450));
  std::thread reader([&] {
    const StreamEvent last = LastOf(stream);
    EXPECT_TRUE(last.kind == Kind::kEnd || last.error.code == ErrorCode::kStopped);
  });
  engine.reset();
  reader.join();
}

TEST(AsyncEngine, CloseGivesTheEngineBack) {
  const auto engine = Open(1);
  auto stream = Submit(*engine, Ask(0, 450));
  const std::unique_ptr<Engine> opened = engine->Close();
  LastOf(stream);
  ASSERT_TRUE(opened);
  EXPECT_TRUE(opened->RecordStatus());
  EXPECT_EQ(opened->Generate(Ask(3))->text, Alone(Ask(3)));
}

TEST(AsyncEngine, RunsCallsBetweenStepsWhetherRequestsRunOrNot) {
  const auto engine = Open();
  const auto used_blocks = [&] {
    int used = -1;
    EXPECT_TRUE(engine->Run([&](Engine& mine) { used = mine.load().used_blocks; }));
    return used;
  };
  EXPECT_EQ(used_blocks(), 0);
  const Request request = Ask(0, 400);
  auto stream = engine->Submit(request);
  ASSERT_TRUE(stream);
  while (stream->Next()->kind != Kind::kRound) continue;
  EXPECT_GE(used_blocks(), 0);
  std::string text;
  while (auto event = stream->Next())
    if (event->kind == Kind::kEnd) text = event->end->completion.text;
  EXPECT_EQ(text, Alone(request));
  std::vector<std::thread> threads;
  int n = 0;  // of calls, which run one after the other
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int call = 0; call < 50; ++call) EXPECT_TRUE(engine->Run([&n](Engine&) { ++n; }));
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(n, 200);
  const Status none = engine->Run([](Engine&) { throw std::bad_alloc(); });
  EXPECT_EQ(none.error().code, ErrorCode::kNoMemory);
  engine->Stop();
  EXPECT_EQ(engine->Run([&n](Engine&) { n = 0; }).error().code, ErrorCode::kStopped);
  EXPECT_EQ(n, 200);
}

TEST(AsyncEngine, ManyThreadsSubmitReadAndCancel) {
  const auto engine = Open(3, {.max_waiting = 8});
  constexpr int kThreads = 6, kRequests = 20, kKinds = 14;
  std::vector<std::string> expected;
  for (int i = 0; i < kKinds; ++i) expected.push_back(Alone(Ask(i)));
  std::atomic<int> n_whole = 0, n_cancelled = 0, n_refused = 0;
  std::vector<std::thread> clients;
  for (int t = 0; t < kThreads; ++t)
    clients.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      for (int i = 0; i < kRequests; ++i) {
        const int kind = static_cast<int>(random() % kKinds);
        auto stream = engine->Submit(Ask(kind));
        if (!stream) {
          EXPECT_EQ(stream.error().code, ErrorCode::kBusy);
          ++n_refused;
          continue;
        }
        const auto way = random() % 4;
        if (way == 0) continue;  // hangs up at once
        if (way == 1) {
          for (auto n = random() % 6; n > 0; --n) stream->Next();
          stream->Cancel();
        }
        const StreamEvent last = LastOf(*stream);
        if (ReasonOf(last) == FinishReason::kCancelled) {
          ++n_cancelled;
          continue;
        }
        EXPECT_EQ(last.end->completion.text, expected[static_cast<std::size_t>(kind)]);
        ++n_whole;
      }
    });
  std::atomic<bool> done = false;
  std::thread observer([&] {  // everything that any thread may call
    while (!done) {
      EXPECT_LE(engine->load().running, 3);
      EXPECT_LE(engine->snapshot().load.running, 3);
      engine->PassCosts();
      EXPECT_TRUE(engine->engine().FileStatus());
      engine->engine().Tokenize("once upon a time", true, false);
      std::this_thread::yield();
    }
  });
  for (std::thread& client : clients) client.join();
  EXPECT_TRUE(engine->AwaitIdle(kHang));
  done = true;
  observer.join();
  EXPECT_GT(n_whole, 20);
  const AsyncLoad load = engine->load();
  EXPECT_EQ(load.running + load.waiting, 0);
  EXPECT_EQ(engine->snapshot().load.used_blocks, 0);
}

// Adds up what it is told, and compares it with what the ends say.
class Sums final : public AsyncObserver {
 public:
  void OnRound(const RoundEvent& round, bool prefill, double gap_ms) override {
    n_tokens += static_cast<int>(round.events.size());
    n_first += prefill;
    EXPECT_GE(gap_ms, 0);
  }
  void OnStep(double actual_ms, double plain_ms) override {
    actual += actual_ms, plain += plain_ms;
  }
  void OnEnd(const ChoiceEnd& end) override {
    ++n_ended;
    n_ended_tokens += static_cast<int>(end.completion.token_ids.size());
    ended_actual += end.actual_ms, ended_plain += end.plain_ms;
  }

  std::atomic<int> n_tokens = 0, n_first = 0, n_ended = 0, n_ended_tokens = 0;
  double actual = 0, plain = 0, ended_actual = 0, ended_plain = 0;
};

TEST(AsyncEngine, AnObserverSeesEverythingBeforeTheReadersKnow) {
  Sums sums;
  const auto engine = Open(2, {.measure_plain = true, .observer = &sums});
  EXPECT_GT(engine->snapshot().plain_ms_per_token, 0);
  EXPECT_EQ(sums.n_tokens, 0);
  const std::int64_t before = engine->snapshot().counts.rounds();
  for (int i = 0; i < 3; ++i) {
    auto stream = Submit(*engine, Ask(i));
    const StreamEvent last = LastOf(stream);
    EXPECT_EQ(sums.n_ended, i + 1);
    EXPECT_GT(last.end->actual_ms, 0);
    EXPECT_GT(last.end->plain_ms, 0);
  }
  EXPECT_GT(engine->snapshot().counts.rounds(), before);
  EXPECT_EQ(sums.n_tokens, 3 * 24);
  EXPECT_EQ(sums.n_first, 3);
  EXPECT_EQ(sums.n_ended_tokens, 3 * 24);
  EXPECT_NEAR(sums.actual, sums.ended_actual, 1e-6);
  EXPECT_NEAR(sums.plain, sums.ended_plain, 1e-6);
}

class ThrowingObserver final : public AsyncObserver {
 public:
  void OnRound(const RoundEvent&, bool, double) override { throw std::bad_alloc(); }
  void OnStep(double, double) override { throw std::bad_alloc(); }
  void OnEnd(const ChoiceEnd&) override { throw std::bad_alloc(); }
};

TEST(AsyncEngine, AnObserverWithoutMemoryHarmsNoRequest) {
  ThrowingObserver observer;
  const auto engine = Open(2, {.measure_plain = true, .observer = &observer});
  auto stream = Submit(*engine, Ask(1));
  EXPECT_EQ(LastOf(stream).end->completion.text, Alone(Ask(1)));
}

class EngineCounter final : public ByteCounter {
 public:
  void Add(std::size_t bytes) noexcept override { held += bytes; }
  std::atomic<std::size_t> held = 0;
};

TEST(AsyncEngine, TheBytesOfARequestAndOfItsEventsAreCounted) {
  const auto engine = Open(1);
  const auto counter = std::make_shared<EngineCounter>();
  std::vector<AsyncChoice> choices;
  choices.push_back({.request = *engine->engine().Prepare(Ask(0)), .held = ByteHold(counter, 100)});
  {
    auto stream = engine->Submit(std::move(choices), {.counter = counter});
    ASSERT_TRUE(stream);
    EXPECT_TRUE(engine->AwaitIdle(kHang));
    EXPECT_GT(counter->held, 1000u);  // nobody has read the events
    LastOf(*stream);
  }
  engine->Close();
  EXPECT_EQ(counter->held, 0u);
}

TEST(AsyncEngine, AWatcherIsCalledWhenEventsCome) {
  const auto engine = Open(1);
  Gate gate;
  auto held = Submit(*engine, gate.Hold(Ask(0, 1)));
  gate.AwaitReached();
  std::atomic<int> n = 0;
  held.Watch([&] { ++n; });
  gate.Open();
  EXPECT_TRUE(engine->AwaitIdle(kHang));
  LastOf(held);
  EXPECT_EQ(n, 2);  // a round and the end
  held.Watch(nullptr);
}

}  // namespace
}  // namespace foretoken
