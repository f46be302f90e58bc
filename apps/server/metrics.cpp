// SPDX-License-Identifier: Apache-2.0
#include "server/metrics.h"

#include <fmt/format.h>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <sstream>
#include <vector>

namespace foretoken::server {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;

constexpr std::array kCopyStates = {CopyProgress::State::kNone, CopyProgress::State::kRefused,
                                    CopyProgress::State::kWaiting, CopyProgress::State::kMaking,
                                    CopyProgress::State::kReady};

std::string Full(const char* name) {
  return std::string("foretoken:") + name;
}

// Counters by one label, each created when it is first counted.
class ByLabel {
 public:
  ByLabel(Family<Counter>& family, const char* label) : family_(family), label_(label) {}

  void Add(std::string_view value, double n) {
    if (n == 0) return;
    const std::lock_guard lock(mutex_);
    auto found = counters_.find(value);
    if (found == counters_.end())
      found =
          counters_.emplace(std::string(value), &family_.Add({{label_, std::string(value)}})).first;
    found->second->Increment(n);
  }

 private:
  Family<Counter>& family_;
  const std::string label_;
  std::mutex mutex_;
  std::map<std::string, Counter*, std::less<>> counters_;
};

const Histogram::BucketBoundaries kSeconds = {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08,
                                              0.1,   0.25,  0.5,  0.75, 1,    2.5,  5,
                                              7.5,   10,    20,   40,   80,   160,  640};
const Histogram::BucketBoundaries kTokenSeconds = {0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01,
                                                   0.025,  0.05,   0.075, 0.1,    0.15,  0.2,
                                                   0.3,    0.4,    0.5,   0.75,   1,     2.5};

// Draft lengths.
const Histogram::BucketBoundaries kLengths = {0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 64};
const Histogram::BucketBoundaries kRatios = {EngineCounts::kRatioBounds.begin(),
                                             EngineCounts::kRatioBounds.end()};

std::string Position(std::size_t i) {
  return fmt::format("{}", i);
}

}  // namespace

class Metrics::Impl {
 public:
  explicit Impl(const std::string& model_name) : labels_{{"model_name", model_name}} {}

  Family<Counter>& CounterFamily(const char* name, const char* help) {
    return prometheus::BuildCounter()
        .Name(Full(name))
        .Help(help)
        .Labels(labels_)
        .Register(registry);
  }
  Counter& Count(const char* name, const char* help) { return CounterFamily(name, help).Add({}); }
  Family<Gauge>& GaugeFamily(const char* name, const char* help) {
    return prometheus::BuildGauge().Name(Full(name)).Help(help).Labels(labels_).Register(registry);
  }
  Histogram& Spread(const char* name, const char* help,
                    const Histogram::BucketBoundaries& boundaries) {
    return prometheus::BuildHistogram()
        .Name(Full(name))
        .Help(help)
        .Labels(labels_)
        .Register(registry)
        .Add({}, boundaries);
  }

  prometheus::Registry registry;
  const std::map<std::string, std::string> labels_;

  Counter& drafts =
      Count("spec_decode_num_drafts_total", "Rounds with at least one drafted token.");
  Counter& draft_tokens = Count("spec_decode_num_draft_tokens_total", "Drafted tokens.");
  Counter& accepted_tokens = Count("spec_decode_num_accepted_tokens_total",
                                   "Drafted tokens that were accepted and committed.");
  Counter& relaxed_tokens =
      Count("spec_decode_num_relaxed_tokens_total",
            "Accepted drafts that relaxed acceptance verified, in parts that think.");
  ByLabel accepted_per_position{
      CounterFamily("spec_decode_num_accepted_tokens_per_pos_total",
                    "Accepted and committed drafts by position in the draft, from 0."),
      "position"};
  ByLabel drafted_per_position{CounterFamily("spec_decode_num_draft_tokens_per_pos_total",
                                             "Rounds that drafted this position."),
                               "position"};
  ByLabel verified_per_position{
      CounterFamily("spec_decode_num_judged_tokens_per_pos_total",
                    "Drafts with a verdict, by position: all earlier ones were accepted."),
      "position"};
  ByLabel wasted{CounterFamily("spec_decode_num_wasted_tokens_total",
                               "Drafts that were not committed: rejected, unjudged (behind a "
                               "rejected one) or cut (by the end of the text)."),
                 "reason"};
  ByLabel target_tokens{CounterFamily("spec_decode_num_target_tokens_total",
                                      "Tokens of the target's own: recovered (after a rejection), "
                                      "bonus (after a whole draft), plain (without a draft)."),
                        "kind"};
  ByLabel drafter_rounds{
      CounterFamily("spec_decode_drafter_rounds_total", "Rounds with a draft, by drafter."),
      "drafter"};
  ByLabel drafter_draft_tokens{
      CounterFamily("spec_decode_drafter_draft_tokens_total", "Drafted tokens, by drafter."),
      "drafter"};
  ByLabel drafter_accepted_tokens{CounterFamily("spec_decode_drafter_accepted_tokens_total",
                                                "Accepted and committed drafts, by drafter."),
                                  "drafter"};
  ByLabel draft_seconds{
      CounterFamily("spec_decode_draft_seconds_total",
                    "Time spent drafting, in request-seconds, by the method of the request."),
      "drafter"};
  Counter& draft_prefill_seconds = Count("spec_decode_draft_prefill_seconds_total",
                                         "The draft model's work on prompts, in request-seconds.");
  ByLabel verify_seconds{
      CounterFamily("spec_decode_verify_seconds_total",
                    "Target passes by the rows that they verified; prompt: that read prompts too."),
      "rows"};
  ByLabel verify_passes{
      CounterFamily("spec_decode_verify_passes_total", "Their number, by the same rows."), "rows"};
  ByLabel overhead_seconds{
      CounterFamily(
          "spec_decode_overhead_seconds_total",
          "The engine's own time: sample (verification and handing out tokens), rollback, "
          "control (planning and learning)."),
      "part"};
  Histogram& chosen_length = Spread("spec_decode_chosen_num_tokens",
                                    "Drafts chosen for a round; 0: plain by choice.", kLengths);
  Histogram& error_ratio =
      Spread("spec_decode_cost_model_error_ratio",
             "Predicted over actual time of a step that read no prompt.", kRatios);
  ByLabel fallback_rounds{
      CounterFamily("spec_decode_fallback_rounds_total", "Rounds without a draft, by reason."),
      "reason"};
  ByLabel fallback_seconds{
      CounterFamily("spec_decode_fallback_seconds_total", "Their time, in request-seconds."),
      "reason"};
  ByLabel probe_rounds{CounterFamily("spec_decode_probe_rounds_total",
                                     "Rounds that measure: baseline (plainly, before costs are "
                                     "known), drafter (a drafter that is not in use)."),
                       "kind"};
  Gauge& rows_budget =
      GaugeFamily("spec_decode_rows_budget", "Rows that the rounds of a pass may have.").Add({});
  Counter& rows_used = Count("spec_decode_rows_used_total", "Rows that rounds had.");
  Counter& actual_seconds =
      Count("spec_decode_actual_seconds_total", "Decoding time, in request-seconds.");
  Counter& plain_seconds =
      Count("spec_decode_estimated_plain_seconds_total",
            "What plain decoding would have taken for the same tokens, estimated.");
  Histogram& draft_length = Spread("spec_decode_num_tokens_per_draft",
                                   "Tokens drafted in a round; 0: a plain one.", kLengths);
  Family<Gauge>& speedup = GaugeFamily("spec_decode_estimated_speedup",
                                       "Estimated plain time over actual time, last 60 seconds.");
  Family<Gauge>& baseline =
      GaugeFamily("spec_decode_baseline_ms_per_token",
                  "A token's time without speculation, one request alone, estimated.");

  Histogram& first_token = Spread("time_to_first_token_seconds",
                                  "From a request's arrival to its first token.", kSeconds);
  Histogram& between_tokens =
      Spread("inter_token_latency_seconds",
             "Gap since the last emission over the tokens in it, once per token.", kTokenSeconds);
  Histogram& whole =
      Spread("e2e_request_latency_seconds", "From a request's arrival to its end.", kSeconds);
  Gauge& running = GaugeFamily("num_requests_running", "Requests that are decoded now.").Add({});
  Gauge& waiting = GaugeFamily("num_requests_waiting", "Requests that wait for that.").Add({});
  Gauge& cache =
      GaugeFamily("kv_cache_usage_perc", "Share of the cache that texts fill, 0 to 1.").Add({});
  Gauge& memory_limit =
      GaugeFamily("memory_limit_bytes", "What the process may have in memory.").Add({});
  Gauge& memory_resident =
      GaugeFamily("memory_resident_bytes",
                  "What it has, without pages of files that the system can drop.")
          .Add({});
  Family<Gauge>& memory_parts =
      GaugeFamily("memory_bytes", "Of that, by part: weights, cache (all of it), requests.");
  Gauge& memory_weights = memory_parts.Add({{"part", "weights"}});
  Gauge& memory_cache = memory_parts.Add({{"part", "cache"}});
  Gauge& memory_requests = memory_parts.Add({{"part", "requests"}});
  Gauge& overload_state =
      GaugeFamily(
          "overload_state",
          "0: none; 1: connections end after their answers; 2: new requests are refused; 3: "
          "the largest that wait are, too.")
          .Add({});
  Family<Gauge>& copy_states = GaugeFamily(
      "copy_state",
      "1 for what the model's copy that drafts is: none, refused, waiting, making or ready.");
  std::array<Gauge*, kCopyStates.size()> copy_state = [this] {
    std::array<Gauge*, kCopyStates.size()> gauges;
    for (std::size_t i = 0; i < gauges.size(); ++i)
      gauges[i] = &copy_states.Add({{"state", std::string(Name(kCopyStates[i]))}});
    return gauges;
  }();
  Gauge& copy_made_bytes =
      GaugeFamily("copy_made_bytes", "Bytes of the model's copy that are made.").Add({});
  Gauge& copy_bytes = GaugeFamily("copy_bytes", "Bytes of all of it.").Add({});
  Counter& prompt_tokens = Count("prompt_tokens_total", "Prompt tokens that were read.");
  Counter& preemptions =
      Count("num_preemptions_total", "Times that a request gave its part of the cache to others.");
  Counter& prefix_queries =
      Count("prefix_cache_queries_total", "Prompt tokens that were looked for in the cache.");
  Counter& prefix_hits =
      Count("prefix_cache_hits_total", "Of these, tokens that were found and not read again.");
  Gauge& file_blocks =
      GaugeFamily("cache_file_blocks", "Blocks of 32 tokens that the cache's file has.").Add({});
  Gauge& file_bytes = GaugeFamily("cache_file_bytes", "Bytes of all that it has.").Add({});
  Gauge& file_failed =
      GaugeFamily("cache_file_failed", "1: it cannot be written any more; the log says why.")
          .Add({});
  Counter& file_blocks_read =
      Count("cache_file_blocks_read_total", "Blocks that came back from the cache's file.");
  Counter& file_tokens_read =
      Count("cache_file_tokens_read_total", "Tokens of these, which no prompt had to read again.");
  Counter& file_bytes_read =
      Count("cache_file_bytes_read_total", "Bytes that came back, with copies of states.");
  Counter& file_blocks_written =
      Count("cache_file_blocks_written_total", "Blocks that went to the cache's file.");
  Counter& file_bytes_written =
      Count("cache_file_bytes_written_total", "Bytes that went there, with copies of states.");
  Counter& file_refused =
      Count("cache_file_refused_total", "Blocks and copies of states that were damaged there.");
  Counter& generation_tokens = Count("generation_tokens_total", "Tokens that were generated.");
  ByLabel ended{CounterFamily("request_success_total", "Requests that ended, by reason."),
                "finished_reason"};
  Counter& log_lines_dropped =
      Count("log_lines_dropped_total", "Lines that the reader of the log did not take in time.");
  Counter& next_turn_tokens = Count("next_turn_tokens_total",
                                    "Tokens of beginnings of next turns that were read, or found "
                                    "in the cache, while a tool ran.");
  ByLabel responses{CounterFamily("http_responses_total", "HTTP responses by status."), "status"};

  void ShowEngine(const EngineSnapshot& engine);
  void ShowCacheFile(const CacheFileCounts& now, const CacheFileCounts& before);
  void ShowMemory(const Overload& memory);
  void ShowCopy(const CopyProgress& copy);

  std::mutex render;
  EngineSnapshot engine_shown;
  // Exist while they have a value.
  Gauge* speedup_value = nullptr;
  Gauge* baseline_value = nullptr;
};

namespace {

void SetOrRemove(Family<Gauge>& family, Gauge*& gauge, const std::optional<double>& value) {
  if (value) {
    if (gauge == nullptr) gauge = &family.Add({});
    gauge->Set(*value);
  } else if (gauge != nullptr) {
    family.Remove(gauge);
    gauge = nullptr;
  }
}

// The additions to counts by name.
template <typename Entries, typename Names, typename Value>
void AddNew(ByLabel& family, const Names& names, const Entries& now, const Entries& before,
            Value value) {
  for (std::size_t i = 0; i < names.size(); ++i)
    family.Add(names[i], static_cast<double>(value(now[i]) - value(before[i])));
}

void AddNewLengths(Histogram& histogram, const EngineCounts& now, const EngineCounts& before) {
  std::vector<double> added(kLengths.size() + 1);
  double sum = 0;
  for (std::size_t k = 0; k < now.chosen.size(); ++k) {
    const auto n = static_cast<double>(now.chosen[k] - before.chosen[k]);
    const auto bucket = std::lower_bound(kLengths.begin(), kLengths.end(), static_cast<double>(k));
    added[static_cast<std::size_t>(bucket - kLengths.begin())] += n;
    sum += n * static_cast<double>(k);
  }
  histogram.ObserveMultiple(added, sum);
}

void AddNewRatios(Histogram& histogram, const EngineCounts::Ratios& now,
                  const EngineCounts::Ratios& before) {
  std::vector<double> added;
  for (std::size_t i = 0; i < now.counts.size(); ++i)
    added.push_back(static_cast<double>(now.counts[i] - before.counts[i]));
  histogram.ObserveMultiple(added, now.sum - before.sum);
}

}  // namespace

// REQUIRES: `render` is held.
void Metrics::Impl::ShowEngine(const EngineSnapshot& engine) {
  const EngineCounts &now = engine.counts, &before = engine_shown.counts;
  const EngineLoad &load = engine.load, &load_before = engine_shown.load;
  const auto seconds = [](const auto& entry) { return entry.us / 1e6; };
  const auto itself = [](std::int64_t n) { return n; };
  AddNew(verify_seconds, kRowBandNames, now.verify, before.verify, seconds);
  AddNew(verify_passes, kRowBandNames, now.verify, before.verify,
         [](const auto& entry) { return entry.passes; });
  AddNew(fallback_seconds, kPlainReasonNames, now.plain, before.plain, seconds);
  AddNew(fallback_rounds, kPlainReasonNames, now.plain, before.plain,
         [](const auto& entry) { return entry.rounds; });
  AddNew(probe_rounds, kProbeKindNames, now.probes, before.probes, itself);
  const EngineCounts::Overhead &time = now.overhead, &earlier = before.overhead;
  overhead_seconds.Add("sample", (time.sample_us - earlier.sample_us) / 1e6);
  overhead_seconds.Add("rollback", (time.rollback_us - earlier.rollback_us) / 1e6);
  overhead_seconds.Add("control", (time.control_us - earlier.control_us) / 1e6);
  AddNewLengths(chosen_length, now, before);
  AddNewRatios(error_ratio, now.cost_model, before.cost_model);
  rows_budget.Set(now.rows_budget);
  rows_used.Increment(static_cast<double>(now.rows_used - before.rows_used));
  preemptions.Increment(static_cast<double>(load.preemptions - load_before.preemptions));
  const std::int64_t hits = load.cached_prompt_tokens - load_before.cached_prompt_tokens;
  prefix_hits.Increment(static_cast<double>(hits));
  prefix_queries.Increment(static_cast<double>(hits + now.prefix_misses - before.prefix_misses));
  const int blocks = load.free_blocks + load.used_blocks + load.idle_blocks;
  cache.Set(blocks > 0 ? static_cast<double>(load.used_blocks) / blocks : 0);
  ShowCacheFile(load.cache_file, load_before.cache_file);
  engine_shown = engine;
}

void Metrics::Impl::ShowCacheFile(const CacheFileCounts& now, const CacheFileCounts& before) {
  const auto add = [](Counter& counter, std::int64_t n) {
    counter.Increment(static_cast<double>(n));
  };
  file_blocks.Set(static_cast<double>(now.blocks));
  file_bytes.Set(static_cast<double>(now.bytes));
  file_failed.Set(now.failed ? 1 : 0);
  add(file_blocks_read, now.blocks_read - before.blocks_read);
  add(file_tokens_read, now.tokens_read - before.tokens_read);
  add(file_bytes_read, now.bytes_read - before.bytes_read);
  add(file_blocks_written, now.blocks_written - before.blocks_written);
  add(file_bytes_written, now.bytes_written - before.bytes_written);
  file_refused.Increment(static_cast<double>(now.refused) - file_refused.Value());  // also at Open
}

void Metrics::Impl::ShowMemory(const Overload& memory) {
  const auto show = [](Gauge& gauge, std::int64_t n) { gauge.Set(static_cast<double>(n)); };
  show(memory_limit, memory.plan().ceiling);
  show(memory_resident, memory.resident());
  show(memory_weights, memory.plan().weights);
  show(memory_cache, memory.plan().cache);
  show(memory_requests, memory.held());
  show(overload_state, static_cast<int>(memory.state()));
}

void Metrics::Impl::ShowCopy(const CopyProgress& copy) {
  for (std::size_t i = 0; i < copy_state.size(); ++i)
    copy_state[i]->Set(copy.state == kCopyStates[i] ? 1 : 0);
  copy_made_bytes.Set(static_cast<double>(copy.made_bytes));
  copy_bytes.Set(static_cast<double>(copy.bytes));
}

Metrics::Metrics(const std::string& model_name) : impl_(std::make_unique<Impl>(model_name)) {}
Metrics::~Metrics() = default;

void Metrics::AddRound(const RoundEvent& round, bool prefill, double gap_ms) {
  Impl& m = *impl_;
  int accepted = 0, recovered = 0;
  for (const TokenEvent& event : round.events) {
    const bool is_draft = event.origin == TokenOrigin::kAccepted;
    accepted += is_draft;
    recovered += event.origin == TokenOrigin::kRecovered;
    if (!is_draft)
      m.target_tokens.Add(event.origin == TokenOrigin::kRecovered ? "recovered"
                          : event.origin == TokenOrigin::kBonus   ? "bonus"
                                                                  : "plain",
                          1);
    if (prefill)
      m.first_token.Observe(gap_ms / 1000);
    else
      m.between_tokens.Observe(gap_ms / 1000 / static_cast<double>(round.events.size()));
  }
  m.generation_tokens.Increment(static_cast<double>(round.events.size()));
  if (!prefill) m.draft_length.Observe(round.drafted);
  if (round.drafted == 0) return;
  const int refused = round.drafted - accepted;
  m.drafts.Increment();
  m.draft_tokens.Increment(round.drafted);
  m.accepted_tokens.Increment(accepted);
  m.wasted.Add("rejected", recovered);
  m.wasted.Add(recovered > 0 ? "unjudged" : "cut", refused - recovered);
  m.drafter_rounds.Add(round.drafter, 1);
  m.drafter_draft_tokens.Add(round.drafter, round.drafted);
  m.drafter_accepted_tokens.Add(round.drafter, accepted);
}

void Metrics::AddEnd(const ChoiceEnd& end) {
  Impl& m = *impl_;
  const RoundCounts& counted = end.reported;
  const Completion& completion = end.completion;
  const SpeculationStats& s = completion.speculation;
  const auto rest = [](std::int64_t all, std::int64_t seen) {
    return static_cast<double>(std::max<std::int64_t>(0, all - seen));
  };
  const std::int64_t seen_tokens =
      counted.accepted + counted.recovered + counted.bonus + counted.plain;
  std::int64_t verified = 0;
  for (std::size_t i = 0; i < s.drafted_per_position.size(); ++i) {
    verified += s.verified_per_position[i];
    m.drafted_per_position.Add(Position(i), static_cast<double>(s.drafted_per_position[i]));
    m.verified_per_position.Add(Position(i), static_cast<double>(s.verified_per_position[i]));
    m.accepted_per_position.Add(Position(i), static_cast<double>(s.accepted_per_position[i]));
  }
  m.drafts.Increment(rest(s.draft_rounds, counted.draft_rounds));
  m.draft_tokens.Increment(rest(s.drafted, counted.drafted));
  m.accepted_tokens.Increment(rest(s.accepted, counted.accepted));
  m.relaxed_tokens.Increment(static_cast<double>(s.accepted_relaxed));
  m.target_tokens.Add("recovered", rest(s.recovered, counted.recovered));
  m.target_tokens.Add("bonus", rest(s.bonus, counted.bonus));
  m.target_tokens.Add("plain", rest(s.plain, counted.plain));
  const double rejected = rest(verified - s.accepted, counted.verified - counted.accepted);
  m.wasted.Add("rejected", rejected);
  m.wasted.Add("unjudged",
               rest(s.drafted - s.accepted, counted.drafted - counted.accepted) - rejected);
  m.generation_tokens.Increment(rest(s.emitted, seen_tokens));
  if (end.first_of_prompt)
    m.prompt_tokens.Increment(static_cast<double>(completion.prompt_token_ids.size()));
  m.draft_seconds.Add(end.method, s.draft_ms / 1000);
  m.draft_prefill_seconds.Increment(s.draft_prompt_ms / 1000);
  m.whole.Observe(end.total_ms / 1000);
  m.ended.Add(completion.finish_reason == FinishReason::kCancelled ? "abort"
                                                                   : Name(completion.finish_reason),
              1);
}

void Metrics::AddTime(double actual_ms, double plain_ms) {
  impl_->actual_seconds.Increment(actual_ms / 1000);
  impl_->plain_seconds.Increment(plain_ms / 1000);
}

void Metrics::AddResponse(int status) {
  impl_->responses.Add(fmt::format("{}", status), 1);
}

void Metrics::BeginAt(const EngineSnapshot& engine) {
  const std::lock_guard lock(impl_->render);
  impl_->engine_shown = engine;
}

std::string Metrics::Render(const Now& now) {
  const std::lock_guard lock(impl_->render);
  impl_->ShowEngine(now.engine);
  impl_->running.Set(now.load.running);
  impl_->waiting.Set(now.load.waiting);
  const auto raise = [](Counter& counter, std::int64_t to) {
    counter.Increment(static_cast<double>(to) - counter.Value());
  };
  raise(impl_->log_lines_dropped, now.log_lines_dropped);
  raise(impl_->next_turn_tokens, now.next_turn_tokens);
  if (now.memory != nullptr) impl_->ShowMemory(*now.memory);
  impl_->ShowCopy(now.copy);
  SetOrRemove(impl_->speedup, impl_->speedup_value, now.estimated_speedup);
  std::optional<double> plain_ms;
  if (now.engine.plain_ms_per_token > 0) plain_ms = now.engine.plain_ms_per_token;
  SetOrRemove(impl_->baseline, impl_->baseline_value, plain_ms);
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, impl_->registry.Collect());
  return out.str();
}

}  // namespace foretoken::server
