// SPDX-License-Identifier: Apache-2.0
// One step of the engine: prefill, plain decoding and speculation of all running requests in one
// pass of the target.
#include <algorithm>
#include <chrono>

#include "base/stopwatch.h"
#include "engine/impl.h"
#include "kv/transaction.h"

namespace foretoken {

Engine::Impl::StepValues::StepValues(int sequences, int max_rows, engine::Commits room)
    : pass(sequences, max_rows), commits(std::move(room)) {
  const auto n = static_cast<std::size_t>(sequences);
  plan.entries.reserve(n), drafts.entries.reserve(n);
  verdicts.entries.reserve(n), verdicts.kept.reserve(n);
}

bool Engine::Impl::Step() noexcept {
  if (!Draft({})) return false;
  Verify();
  return true;
}

void Engine::Impl::Plan() noexcept {
  if (step_->drafted) return;
  const engine::Sequences& sequences = admission_->sequences();
  const bool ended = admission_->AdmitWaiting(
      [&](const engine::Job& job) { return scheduler_->MayJoin(job, sequences); });
  if (ended) PublishRecord();
  step_->plan.us = Microseconds([&] { scheduler_->Plan(sequences, step_->plan); });
}

bool Engine::Impl::Draft(const engine::DraftWants& wants) noexcept {
  if (step_->drafted) return true;
  Plan();
  if (step_->plan.empty()) return false;
  const double us = Microseconds(
      [&] { drafting_->Propose(step_->plan, admission_->sequences(), wants, step_->drafts); });
  step_->times.draft_ms = us / 1000;
  step_->drafted = true;
  return true;
}

void Engine::Impl::Verify() noexcept {
  auto& [drafted, plan, drafts, pass, verdicts, commits, times, result] = *step_;
  const engine::Sequences& sequences = admission_->sequences();
  drafted = false;
  Laps laps;
  engine::Flatten(plan, drafts, sequences, *opened_.cache, pass);
  kv::Transaction pending(*opened_.cache, pass.segments);
  result = &opened_.target->Run(pass.View());
  times.verify_ms = laps.Next() / 1000;
  if (!CanGoOn()) {
    verdicts.kept.assign(plan.size(), 0);  // commits nothing of this pass
    pending.Commit(verdicts.kept);
    return EndAll();
  }
  recorder_->ReadDistributions(plan, drafts, pass, *result, sequences);
  times.passed = std::chrono::steady_clock::now();
  laps.Next();
  EngineCounts::Overhead& overhead = accounting_->counts().overhead;
  verification_->Verify(plan, drafts, pass, *result, sequences, verdicts);
  laps.AddTo(overhead.sample_us);
  pending.Commit(verdicts.kept);
  laps.AddTo(overhead.rollback_us);
  commit_->Apply(plan, drafts, pass, verdicts, *result, sequences, commits);
  laps.AddTo(overhead.sample_us);
  const engine::PassRecord record{plan, drafts, pass, verdicts, commits, *result, sequences};
  accounting_->Observe(record, times);
  laps.AddTo(overhead.control_us);
  recorder_->Add(record, times);
  laps.Next();
  drafting_->Observe(record);
  laps.AddTo(overhead.rollback_us);
  FinishEnded();
  PublishRecord();
  NoteCacheFile();
}

bool Engine::Impl::CanGoOn() noexcept {
  return (ranks_ == nullptr || ranks_->why().empty()) && files_.Check();
}

Status Engine::Impl::WhyNot() const {
  if (ranks_ != nullptr)
    if (const std::string lost = ranks_->lost(); !lost.empty())
      return Fail(ErrorCode::kRankLost, lost);
  return files_.status();
}

void Engine::Impl::FinishEnded() noexcept {
  for (std::size_t i = 0; i < step_->plan.size(); ++i) {
    const engine::PlannedSequence& planned = step_->plan.entries[i];
    const std::optional<FinishReason> ended = step_->commits.entries[i].ended;
    if (!opened_.options.kv_cache && planned.decodes) opened_.cache->Truncate(planned.seq, 0);
    if (ended) admission_->Finish(*admission_->sequences().At(planned.seq).job, *ended);
  }
  preparation_->BoundGrammars();
}

// Ends all requests, because no result can be trusted: a model file has changed, or a rank is lost.
void Engine::Impl::EndAll() noexcept {
  step_->plan.entries.clear();
  admission_->ForEachUnended([this](engine::Job& job) {
    Status status = CatchNoMemory("model files", [&] { return WhyNot(); });
    if (!status) job.Blame(std::move(status).error());
    End(job.ticket);
  });
}

void Engine::Impl::End(Ticket ticket) noexcept {
  const SeqId seq = admission_->End(ticket);
  if (seq < 0) return;
  auto& plan = step_->plan.entries;
  auto& drafts = step_->drafts.entries;
  for (std::size_t i = plan.size(); i-- > 0;) {
    if (plan[i].seq != seq) continue;
    plan.erase(plan.begin() + static_cast<std::ptrdiff_t>(i));
    if (step_->drafted) drafts.erase(drafts.begin() + static_cast<std::ptrdiff_t>(i));
  }
  step_->drafted = step_->drafted && !plan.empty();
  PublishRecord();
}

// Publishes the trace when nothing runs. A failure is a notice, because the requests are whole.
void Engine::Impl::PublishRecord() noexcept {
  if (!admission_->idle()) return;
  if (const Status status = recorder_->Publish(); !status) Notice(status.error().message);
}

// Says once that nothing is written to the cache file any more. What it has is still read.
void Engine::Impl::NoteCacheFile() noexcept {
  if (cache_file_fails_ || !opened_.store || opened_.store->file().status()) return;
  cache_file_fails_ = true;
  Notice(opened_.store->file().status().error().message);
}

void Engine::Impl::Notice(std::string_view text) noexcept {
  static_cast<void>(CatchNoMemory("notice", [&]() -> Status {
    opened_.summary.notices.emplace_back(text);
    return {};
  }));
}

CopyProgress Engine::Impl::copy() const {
  using State = CopyProgress::State;
  CopyProgress copy = copy_.progress;
  if (copy_.late == nullptr) return copy;
  const auto& making = copy_.late->making();
  copy.made_bytes = static_cast<std::int64_t>(making.done_bytes);
  if (copy_.late->made() != nullptr)
    copy.state = State::kReady, copy.made_bytes = copy.bytes;
  else if (const std::string* const why = copy_.late->why_none())
    copy.state = State::kRefused, copy.why = *why;
  else if (making.total_bytes > 0)
    copy.state = State::kMaking;
  return copy;
}

EngineLoad Engine::Impl::load() const noexcept {
  const kv::BlockTables& cache = *opened_.cache;
  EngineLoad load;
  for (const auto& s : admission_->sequences())
    if (s != nullptr) ++(s->preempted ? load.preempted : load.running);
  load.waiting = admission_->n_waiting();
  load.free_blocks = cache.n_free_blocks();
  load.idle_blocks = cache.n_idle_blocks();
  load.used_blocks = cache.n_blocks() - load.free_blocks - load.idle_blocks;
  load.cached_prompt_tokens = scheduler_->cached_prompt_tokens();
  load.preemptions = scheduler_->preemptions();
  if (opened_.store && !opened_.options.cache_file.empty())
    load.cache_file = opened_.store->counts();
  return load;
}

}  // namespace foretoken
