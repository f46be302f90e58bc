// SPDX-License-Identifier: Apache-2.0
#include "server/engine_thread.h"

#include <algorithm>
#include <utility>

#include "foretoken/no_memory.h"

namespace foretoken::server {
namespace {

// For the runs that measure plain decoding with one number of requests.
constexpr int kPlainTokens = 6, kPlainRuns = 8;
constexpr double kPlainMs = 250;  // no more runs begin after two of this length

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

// If there is no memory, counters are not updated; no answer is lost.
template <typename Call>
void Count(Call&& call) {
  static_cast<void>(CatchNoMemory("metrics", [&]() -> Status {
    call();
    return {};
  }));
}

}  // namespace

// A job that the engine has accepted.
struct EngineThread::Running {
  std::unique_ptr<Job> job;
  Ticket ticket = 0;
  std::string method;  // of its drafts
  Clock::time_point begun, last_emission;
  ChoiceEnd end;
  Counted counted;
  int n_tokens = 0;
  // In the present step.
  bool took_part = false, prefill = false;
  int n_committed = 0;
};

EngineThread::EngineThread(Engine& engine, JobQueue& queue, Metrics& metrics, Totals& totals,
                           const EngineOptions& options)
    : engine_(engine),
      queue_(queue),
      metrics_(metrics),
      totals_(totals),
      parallel_(options.max_sequences) {
  if (options.record.empty()) MeasurePlain();
  plain_ms_ = engine_.PlainStepUs(1) / 1000;
  metrics_.SeeEngine(engine_.counts(), engine_.load());
  ShowCosts();
  running_.reserve(static_cast<std::size_t>(parallel_));  // so that a job that began is in it
  thread_ = std::thread([this] { Work(); });
}

EngineThread::~EngineThread() {
  thread_.join();
}

// Lets the engine learn what plain decoding costs before it drafts: for one request, and for as
// many as may run together. The cost model has measured that already.
void EngineThread::MeasurePlain() {
  if (engine_.PlainStepUs(1) > 0) return;
  Request request;
  request.prompt = "a";
  request.max_new_tokens = kPlainTokens;
  request.ignore_eos = true;
  request.sampling.temperature = 0;
  request.speculative.enabled = false;
  for (const int n : {1, parallel_}) {
    const std::vector<Request> requests(static_cast<std::size_t>(n), request);
    const auto begin = Clock::now();
    for (int run = 0; run < kPlainRuns; ++run) {
      if (!engine_.GenerateBatch(requests)) return;
      if (run > 0 && Milliseconds(begin, Clock::now()) > kPlainMs) break;
    }
  }
}

void EngineThread::Work() {
  while (going_) {
    TakeIn(running_.empty());
    if (!running_.empty()) StepOnce();
  }
  for (auto& running : running_) engine_.Cancel(running->ticket);
  while (!running_.empty()) StepOnce();
}

void EngineThread::TakeIn(bool wait) {
  while (auto job = queue_.Next(wait, going_)) {
    wait = false;
    const std::shared_ptr<Mailbox> mailbox = job->mailbox;
    const Status begun = CatchNoMemory("request", [&]() -> Status {
      Begin(std::move(job));
      return {};
    });
    if (begun) continue;
    queue_.Done();
    mailbox->FailForMemory();
  }
}

void EngineThread::Begin(std::unique_ptr<Job> job) {
  auto running = std::make_unique<Running>();
  Running& r = *running;
  r.job = std::move(job);
  r.begun = Clock::now();
  r.last_emission = r.job->arrived;
  r.method = r.job->request.request().speculative.method.value_or(engine_.summary().method);
  r.end.queue_ms = Milliseconds(r.job->arrived, r.begun);
  auto ticket = engine_.Begin(std::move(r.job->request),
                              [this, &r](const RoundEvent& round) { return Record(r, round); });
  if (!ticket) return EndWithError(r, std::move(ticket).error());
  r.ticket = *ticket;
  r.job->mailbox->Push({.kind = Event::Kind::kBegun, .choice = r.job->choice});
  running_.push_back(std::move(running));
}

// False: nobody wants more of it.
bool EngineThread::Record(Running& r, const RoundEvent& round) {
  r.took_part = true;
  r.n_committed = static_cast<int>(round.events.size());
  r.prefill = r.n_tokens == 0;
  r.n_tokens += r.n_committed;
  if (round.events.empty()) return !r.job->mailbox->cancelled();
  const auto now = Clock::now();
  if (r.prefill) r.end.first_token_ms = Milliseconds(r.job->arrived, now);
  metrics_.AddRound(round, r.prefill, Milliseconds(r.last_emission, now), r.counted);
  r.last_emission = now;
  if (round.drafted > 0) {
    auto found = r.end.drafters.find(round.drafter);
    if (found == r.end.drafters.end())
      found = r.end.drafters.emplace(std::string(round.drafter), DrafterCount()).first;
    ++found->second.rounds;
    found->second.drafted += round.drafted;
    found->second.accepted += round.drafted - static_cast<int>(round.rejected.size());
  }
  if (r.job->wants_rounds)
    r.job->mailbox->Push(
        {.kind = Event::Kind::kRound, .choice = r.job->choice, .round = RecordOf(round)});
  return !r.job->mailbox->cancelled();
}

void EngineThread::StepOnce() {
  for (auto& r : running_) {
    r->took_part = false;
    if (r->job->mailbox->cancelled()) engine_.Cancel(r->ticket);
  }
  const auto begin = Clock::now();
  engine_.Step();
  Account(Milliseconds(begin, Clock::now()));
  TakeOut();
}

// In a step with n decoding requests, request i gets c_i tokens. Plain decoding would need a step
// for each of them: c_i times a plain step. Prompt rows would cost the same then.
void EngineThread::Account(double step_ms) {
  int n = 0;
  bool prompts = false;
  for (const auto& r : running_) {
    if (!r->took_part) continue;
    prompts |= r->prefill;
    n += !r->prefill;
  }
  const double would_ms = engine_.PlainStepUs(n) / 1000;
  if (n == 0 || would_ms == 0) return;
  plain_ms_ = engine_.PlainStepUs(1) / 1000;
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
  metrics_.AddTime(n * step_ms, all_plain);
  totals_.AddTime(n * step_ms, all_plain);
}

void EngineThread::TakeOut() {
  const EngineLoad load = engine_.load();
  // Before a client knows that its request has ended.
  Count([&] { metrics_.SeeEngine(engine_.counts(), load); });
  bool ended = false;
  for (auto& r : running_) {
    auto completion = engine_.Take(r->ticket);
    if (!completion) continue;
    if (!std::exchange(ended, true)) Count([this] { ShowCosts(); });
    if (completion->error)
      EndWithError(*r, *std::move(completion->error));
    else
      End(*r, *std::move(completion));
    r.reset();
  }
  std::erase(running_, nullptr);
  const int blocks = load.free_blocks + load.used_blocks + load.idle_blocks;
  cache_usage_ = blocks > 0 ? static_cast<double>(load.used_blocks) / blocks : 0;
}

void EngineThread::ShowCosts() {
  std::vector<RowCost> costs = engine_.PassCosts();
  const std::lock_guard lock(costs_mutex_);
  pass_costs_ = std::move(costs);
}

void EngineThread::EndWithError(Running& r, Error error) {
  queue_.Done();
  r.job->mailbox->Push(
      {.kind = Event::Kind::kError, .choice = r.job->choice, .error = std::move(error)});
}

void EngineThread::End(Running& r, Completion completion) {
  r.end.total_ms = Milliseconds(r.job->arrived, Clock::now());
  r.end.completion = std::move(completion);
  const bool first_of_prompt = r.job->first_of_prompt;
  Count([&] {
    metrics_.AddEnd(
        r.end, r.counted, r.method,
        first_of_prompt ? static_cast<int>(r.end.completion.prompt_token_ids.size()) : 0);
    totals_.Add(r.end);
  });
  queue_.Done();  // before the client knows: it may send the next one at once
  r.job->mailbox->Push(
      {.kind = Event::Kind::kEnd, .choice = r.job->choice, .end = std::move(r.end)});
}

}  // namespace foretoken::server
