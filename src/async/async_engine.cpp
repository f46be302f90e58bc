// SPDX-License-Identifier: Apache-2.0
#include "foretoken/async_engine.h"

#include <string>
#include <utility>

#include "async/mailbox.h"
#include "async/request_queue.h"
#include "async/worker.h"
#include "foretoken/result.h"

namespace foretoken {

class AsyncEngine::Impl {
 public:
  Impl(std::unique_ptr<Engine> opened, const AsyncOptions& options)
      : engine(std::move(opened)),
        queue(engine->summary().max_sequences, options.max_waiting),
        worker(*engine, queue, options.observer) {
    if (options.measure_plain) worker.MeasurePlain();
    worker.Start();
  }
  ~Impl() { queue.Stop(); }

  std::unique_ptr<Engine> engine;
  async::RequestQueue queue;
  async::Worker worker;
};

AsyncEngine::AsyncEngine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
AsyncEngine::~AsyncEngine() = default;

Result<std::unique_ptr<AsyncEngine>> AsyncEngine::Open(EngineOptions options,
                                                       const AsyncOptions& async) {
  FORETOKEN_TRY(auto engine, Engine::Open(std::move(options)));
  return Start(std::move(engine), async);
}

Result<std::unique_ptr<AsyncEngine>> AsyncEngine::Start(std::unique_ptr<Engine> engine,
                                                        const AsyncOptions& async) {
  return CatchNoMemory("engine", [&]() -> Result<std::unique_ptr<AsyncEngine>> {
    if (async.max_waiting < 0)
      return Fail(ErrorCode::kInvalidArgument, "max_waiting: " + std::to_string(async.max_waiting) +
                                                   " is negative; give 0 or more");
    auto impl = std::make_unique<Impl>(std::move(engine), async);
    return std::unique_ptr<AsyncEngine>(new AsyncEngine(std::move(impl)));
  });
}

Result<EventStream> AsyncEngine::Submit(Request request, SubmitOptions options) {
  return CatchNoMemory("request", [&]() -> Result<EventStream> {
    std::vector<AsyncChoice> choices;
    FORETOKEN_TRY(auto prepared, impl_->engine->Prepare(std::move(request)));
    choices.push_back({.request = std::move(prepared)});
    return Submit(std::move(choices), std::move(options));
  });
}

Result<EventStream> AsyncEngine::Submit(std::vector<AsyncChoice> choices, SubmitOptions options) {
  if (choices.empty())
    return Fail(ErrorCode::kInvalidArgument, "request: it has no choice; submit one at least");
  return CatchNoMemory("request", [&]() -> Result<EventStream> {
    if (choices.size() > static_cast<std::size_t>(capacity()))
      return Fail(ErrorCode::kTooLarge, "request: of its " + std::to_string(choices.size()) +
                                            " choices only " + std::to_string(capacity()) +
                                            " can run and wait together; ask for fewer");
    const auto mailbox =
        std::make_shared<async::Mailbox>(std::move(options.counter), options.deadline);
    const int n = static_cast<int>(choices.size());
    async::RequestQueue::Choices waiting;
    for (int i = 0; i < n; ++i)
      waiting.push_back(std::make_unique<async::Waiting>(
          async::Waiting{.choice = std::move(choices[static_cast<std::size_t>(i)]),
                         .index = i,
                         .mailbox = mailbox,
                         .wants_rounds = options.rounds,
                         .arrived = options.arrived}));
    FORETOKEN_CHECK_OK(impl_->queue.Submit(std::move(waiting), options.goes_on));
    return EventStream(mailbox, n);
  });
}

int AsyncEngine::capacity() const {
  return impl_->queue.capacity();
}

const Engine& AsyncEngine::engine() const {
  return *impl_->engine;
}

AsyncLoad AsyncEngine::load() const {
  return impl_->queue.load();
}

EngineSnapshot AsyncEngine::snapshot() const {
  return impl_->worker.snapshot();
}

std::vector<RowCost> AsyncEngine::PassCosts() const {
  return impl_->worker.PassCosts();
}

Status AsyncEngine::Run(const std::function<void(Engine& engine)>& call) {
  return CatchNoMemory("engine", [&]() -> Status {
    Status status;
    const bool ran = impl_->queue.Run([&] {
      status = CatchNoMemory("engine", [&]() -> Status {
        call(*impl_->engine);
        return {};
      });
      impl_->worker.ShowState();
    });
    if (ran) return status;
    return Fail(ErrorCode::kStopped, "engine: it has stopped; ask another");
  });
}

void AsyncEngine::Drain() {
  impl_->queue.Drain();
}

bool AsyncEngine::draining() const {
  return impl_->queue.draining();
}

bool AsyncEngine::AwaitIdle(std::chrono::milliseconds time) {
  return impl_->queue.AwaitIdle(time);
}

void AsyncEngine::Stop() {
  impl_->queue.Stop();
}

std::unique_ptr<Engine> AsyncEngine::Close() {
  impl_->queue.Stop();
  impl_->worker.Join();
  return std::move(impl_->engine);
}

}  // namespace foretoken
