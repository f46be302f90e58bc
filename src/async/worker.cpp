// SPDX-License-Identifier: Apache-2.0
#include "async/worker.h"

#include <algorithm>
#include <string>
#include <utility>

#include "foretoken/result.h"

namespace foretoken::async {
namespace {

// The requests that measure plain decoding.
constexpr int kPlainTokens = 6, kPlainRuns = 8;
constexpr double kPlainMs = 250;  // after this no more runs begin

double Milliseconds(std::chrono::steady_clock::time_point from,
                    std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

RoundRecord RecordOf(const RoundEvent& round) {
  RoundRecord record{
      .rejected = {round.rejected.begin(), round.rejected.end()},
      .drafted = round.drafted,
      .drafter = std::string(round.drafter),
      .prompt_logprobs = {round.prompt_logprobs.begin(), round.prompt_logprobs.end()}};
  record.tokens.reserve(round.events.size());
  for (const TokenEvent& event : round.events) {
    record.text += event.text;
    RoundToken& token = record.tokens.emplace_back();
    token.id = event.id;
    token.origin = event.origin;
    if (event.logprobs != nullptr) token.logprobs = *event.logprobs;
  }
  return record;
}

void Add(const RoundEvent& round, ChoiceEnd& end) {
  RoundCounts& counts = end.reported;
  std::int64_t accepted = 0, recovered = 0;
  for (const TokenEvent& event : round.events) {
    accepted += event.origin == TokenOrigin::kAccepted;
    recovered += event.origin == TokenOrigin::kRecovered;
    counts.bonus += event.origin == TokenOrigin::kBonus;
    counts.plain += event.origin == TokenOrigin::kPlain;
  }
  counts.recovered += recovered;
  if (round.drafted == 0) return;
  ++counts.draft_rounds;
  counts.drafted += round.drafted;
  counts.verified += accepted + recovered;
  counts.accepted += accepted;
  auto found = end.drafters.find(round.drafter);
  if (found == end.drafters.end())
    found = end.drafters.emplace(std::string(round.drafter), DrafterCount()).first;
  ++found->second.rounds;
  found->second.drafted += round.drafted;
  found->second.accepted += round.drafted - static_cast<int>(round.rejected.size());
}

// If there is no memory for what is shown to others, no request is affected.
template <typename Call>
void Show(Call&& call) {
  static_cast<void>(CatchNoMemory("metrics", [&]() -> Status {
    call();
    return {};
  }));
}

}  // namespace

// A choice that the engine has accepted.
struct Worker::Running {
  std::unique_ptr<Waiting> origin;
  Ticket ticket = 0;
  Clock::time_point last_emission;
  ChoiceEnd end;
  int n_tokens = 0;
  // In the present step.
  bool took_part = false, prefill = false;
  int n_committed = 0;
};

Worker::Worker(Engine& engine, RequestQueue& queue, AsyncObserver* observer)
    : engine_(engine), queue_(queue), observer_(observer) {
  // So that a choice that began is in it.
  running_.reserve(static_cast<std::size_t>(engine.summary().max_sequences));
}

Worker::~Worker() {
  Join();
}

void Worker::Start() {
  ShowState();
  ShowCosts();
  thread_ = std::thread([this] { Work(); });
}

void Worker::Join() {
  if (thread_.joinable()) thread_.join();
}

// For one request, and for as many as may run together.
void Worker::MeasurePlain() {
  if (engine_.PlainStepUs(1) > 0) return;  // the cost model has measured that already
  Request request;
  request.prompt = "a";
  request.max_new_tokens = kPlainTokens;
  request.ignore_eos = true;
  request.sampling.temperature = 0;
  request.speculative.enabled = false;
  for (const int n : {1, engine_.summary().max_sequences}) {
    const std::vector<Request> requests(static_cast<std::size_t>(n), request);
    const auto begin = Clock::now();
    for (int run = 0; run < kPlainRuns; ++run) {
      if (!engine_.GenerateBatch(requests)) return;
      if (run > 0 && Milliseconds(begin, Clock::now()) > kPlainMs) break;
    }
  }
}

EngineSnapshot Worker::snapshot() const {
  const std::lock_guard lock(mutex_);
  return snapshot_;
}

std::vector<RowCost> Worker::PassCosts() const {
  const std::lock_guard lock(mutex_);
  return pass_costs_;
}

void Worker::Work() noexcept {
  while (going_) {
    TakeIn(running_.empty());
    queue_.RunCalls();
    if (!running_.empty()) StepOnce();
  }
  for (auto& running : running_) engine_.Cancel(running->ticket);
  while (!running_.empty()) StepOnce();
}

void Worker::TakeIn(bool wait) {
  while (auto waiting = queue_.Next(wait, going_)) {
    wait = false;
    const std::shared_ptr<Mailbox> mailbox = waiting->mailbox;
    const Status begun = CatchNoMemory("request", [&]() -> Status {
      Begin(std::move(waiting));
      return {};
    });
    if (begun) continue;
    queue_.Done(*mailbox);
    mailbox->Fail(Failure::kNoMemory);
  }
}

void Worker::Begin(std::unique_ptr<Waiting> waiting) {
  auto running = std::make_unique<Running>();
  Running& r = *running;
  r.origin = std::move(waiting);
  PreparedRequest& request = r.origin->choice.request;
  r.last_emission = r.origin->arrived;
  r.end.method = request.request().speculative.method.value_or(engine_.summary().method);
  r.end.first_of_prompt = r.origin->choice.first_of_prompt;
  r.end.queue_ms = Milliseconds(r.origin->arrived, Clock::now());
  auto ticket = engine_.Begin(std::move(request),
                              [this, &r](const RoundEvent& round) { return Record(r, round); });
  Mailbox& mailbox = *r.origin->mailbox;
  if (ticket) {
    r.ticket = *ticket;
    mailbox.Push({.kind = StreamEvent::Kind::kBegun, .choice = r.origin->index});
    running_.push_back(std::move(running));
    return;
  }
  r.end.completion.finish_reason = FinishReason::kError;
  r.end.completion.error = std::move(ticket).error();
  queue_.Done(mailbox);
  mailbox.Push(
      {.kind = StreamEvent::Kind::kEnd, .choice = r.origin->index, .end = std::move(r.end)});
}

// False: nobody wants more of it.
bool Worker::Record(Running& r, const RoundEvent& round) {
  Mailbox& mailbox = *r.origin->mailbox;
  r.took_part = true;
  r.n_committed = static_cast<int>(round.events.size());
  r.prefill = r.n_tokens == 0;
  r.n_tokens += r.n_committed;
  if (round.events.empty()) return !mailbox.cancelled();
  const auto now = Clock::now();
  if (r.prefill) r.end.first_token_ms = Milliseconds(r.origin->arrived, now);
  if (observer_ != nullptr && r.origin->choice.observed)
    Show([&] { observer_->OnRound(round, r.prefill, Milliseconds(r.last_emission, now)); });
  r.last_emission = now;
  Add(round, r.end);
  if (r.origin->wants_rounds)
    mailbox.Push(
        {.kind = StreamEvent::Kind::kRound, .choice = r.origin->index, .round = RecordOf(round)});
  return !mailbox.cancelled();
}

void Worker::StepOnce() {
  const auto begin = Clock::now();
  for (auto& r : running_) {
    r->took_part = false;
    if (!r->origin->mailbox->Wanted(begin)) engine_.Cancel(r->ticket);
  }
  engine_.Step();
  ObserveTime(Milliseconds(begin, Clock::now()));
  TakeOut();
}

// In a step with n decoding choices, choice i gets c_i tokens. Plain decoding would need a step for
// each of them: c_i times a plain step. Prompt rows would cost the same then.
void Worker::ObserveTime(double step_ms) {
  int n = 0;
  bool prompts = false;
  for (const auto& r : running_) {
    if (!r->took_part) continue;
    prompts |= r->prefill;
    n += !r->prefill;
  }
  const double would_ms = engine_.PlainStepUs(n) / 1000;
  if (n == 0 || would_ms == 0) return;
  // A plain step has fewer rows and no drafts, so it would not have taken longer than this one.
  const double plain_ms = std::min(would_ms, step_ms);
  const double besides = prompts ? step_ms - plain_ms : 0;
  double all_plain = 0;
  for (auto& r : running_) {
    if (!r->took_part || r->prefill) continue;
    const double would = r->n_committed * plain_ms + besides;
    r->end.actual_ms += step_ms;
    r->end.plain_ms += would;
    all_plain += would;
  }
  if (observer_ != nullptr) Show([&] { observer_->OnStep(n * step_ms, all_plain); });
}

void Worker::TakeOut() {
  ShowState();  // before a reader knows that its request has ended
  bool ended = false;
  for (auto& r : running_) {
    auto completion = engine_.Take(r->ticket);
    if (!completion) continue;
    if (!std::exchange(ended, true)) Show([this] { ShowCosts(); });
    End(*r, *std::move(completion));
    r.reset();
  }
  std::erase(running_, nullptr);
}

void Worker::End(Running& r, Completion completion) {
  Mailbox& mailbox = *r.origin->mailbox;
  r.end.total_ms = Milliseconds(r.origin->arrived, Clock::now());
  r.end.completion = std::move(completion);
  if (observer_ != nullptr && r.origin->choice.observed) Show([&] { observer_->OnEnd(r.end); });
  queue_.Done(mailbox);  // before the reader knows: it may submit the next one at once
  mailbox.Push(
      {.kind = StreamEvent::Kind::kEnd, .choice = r.origin->index, .end = std::move(r.end)});
}

void Worker::ShowState() {
  TellCacheFile();
  const EngineLoad load = engine_.load();
  const double plain_ms = engine_.PlainStepUs(1) / 1000;
  const std::lock_guard lock(mutex_);
  snapshot_.counts = engine_.counts();
  snapshot_.load = load;
  if (plain_ms > 0) snapshot_.plain_ms_per_token = plain_ms;
}

void Worker::TellCacheFile() {
  if (cache_file_told_ || observer_ == nullptr) return;
  const Status status = engine_.CacheFileStatus();
  if (status) return;
  cache_file_told_ = true;
  Show([&] { observer_->OnCacheFileError(status.error()); });
}

void Worker::ShowCosts() {
  std::vector<RowCost> costs = engine_.PassCosts();
  const std::lock_guard lock(mutex_);
  pass_costs_ = std::move(costs);
}

}  // namespace foretoken::async
