// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/bench_runs.h"
#include "foretoken/catalogue.h"

#include <fmt/format.h>

#include <algorithm>

namespace foretoken::cli {
namespace {

// What one run decoded, for all prompts or for one kind.
struct Tally {
  double ms = 0, tokens = 0;
  double rate() const { return 1000 * tokens / ms; }
};

// The measurements of one BenchRow.
struct Readings {
  std::vector<double> plain, speculative;
  SpeculationStats plain_stats, stats;
};

Spread Ratios(const std::vector<double>& above, const std::vector<double>& below) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < above.size(); ++i) ratios.push_back(above[i] / below[i]);
  return SpreadOf(std::move(ratios));
}

class Runner {
 public:
  Runner(Engine& engine, const RunPlan& plan) : engine_(engine), plan_(plan) {
    const EngineSummary& summary = engine.summary();
    drafts_ = summary.method != "none" && summary.num_speculative_tokens > 0;
    for (const BenchPrompt& prompt : plan.prompts)
      if (std::find(kinds_.begin(), kinds_.end(), prompt.kind) == kinds_.end())
        kinds_.push_back(prompt.kind);
    if (kinds_.size() == 1) kinds_.clear();
  }

  Result<BenchRuns> All() {
    FORETOKEN_CHECK_OK(WarmUp());
    const int methods = drafts_ ? 2 : 1, batches = static_cast<int>(plan_.batches.size());
    int run = 0, repeats = plan_.repeats;
    for (int repeat = 0; repeat < repeats; ++repeat) {
      for (const int batch : plan_.batches)
        for (int method = 0; method < methods; ++method) {
          if (plan_.on_run) plan_.on_run(++run, repeats * methods * batches);
          FORETOKEN_CHECK_OK(Once(batch, !drafts_ || IsPlain(method, repeat)));
        }
      const bool short_of_time = decoded_ms_ < 1000 * plan_.least_seconds;
      if (repeat + 1 == repeats && short_of_time && repeats < 5 * plan_.repeats) ++repeats;
    }
    return Summarise();
  }

 private:
  // The method that comes first takes turns, because the clock of a core may fall while it works.
  static bool IsPlain(int method, int repeat) { return (method + repeat) % 2 == 0; }

  // The first run is slow, because memory is touched for the first time and caches hold other data.
  Status WarmUp() {
    for (const bool plain : {true, false}) {
      const Request request = RequestOf(0, plain);
      const auto completion = engine_.Generate(request);
      if (!completion) return Fail(Error(completion.error()).In(plan_.prompts.front().origin));
      strategy_ = completion->strategy;
      lossless_ = completion->lossless;
    }
    return {};
  }

  Request RequestOf(std::size_t i, bool plain) const {
    Request request = plan_.request;
    request.prompt = plan_.prompts[i % plan_.prompts.size()].text;
    request.id = i;
    request.speculative.enabled = !plain;
    return request;
  }

  // All prompts once, `batch` together. The last batch is filled up with prompts from the start,
  // because an incomplete one would count as slow.
  Status Once(int batch, bool plain) {
    const auto size = static_cast<std::size_t>(batch), n = plan_.prompts.size();
    Tally all;
    std::map<std::string, Tally> by_kind;
    // Otherwise texts that an earlier run wrote would be drafted whole.
    engine_.Forget();
    for (std::size_t first = 0; first < n; first += size) {
      std::vector<Request> requests;
      for (std::size_t i = first; i < first + size; ++i) requests.push_back(RequestOf(i, plain));
      auto completions = engine_.GenerateBatch(requests);
      if (!completions) return Fail(std::move(completions).error().In(OriginOf(first, batch)));
      const Tally tally = TallyOf(*completions);
      all.ms += tally.ms, all.tokens += tally.tokens;
      if (batch == 1) {
        Tally& kind = by_kind[plan_.prompts[first].kind];
        kind.ms += tally.ms, kind.tokens += tally.tokens;
      }
      for (std::size_t i = 0; i < completions->size(); ++i)
        Take(first + i, batch, plain, (*completions)[i]);
    }
    if (!(all.tokens > 0) || !(all.ms > 0)) {
      return Fail(ErrorCode::kInvalidArgument,
                  "prompts: every text ended with its first token; add --ignore-eos, raise -n, or "
                  "give other prompts");
    }
    decoded_ms_ += all.ms;
    Add(by_batch_[batch], plain, all);
    for (const auto& [kind, tally] : by_kind) Add(by_kind_[kind], plain, tally);
    return {};
  }

  std::string OriginOf(std::size_t first, int batch) const {
    const std::string& origin = plan_.prompts[first].origin;
    return batch == 1 ? origin : fmt::format("{} and the {} after it", origin, batch - 1);
  }

  // Requests that run together are prefilled first; what follows is decoding.
  static Tally TallyOf(const std::vector<Completion>& completions) {
    Tally tally;
    double prompts_ms = 0;
    for (const Completion& c : completions) {
      prompts_ms = std::max(prompts_ms, c.timings.prompt_ms);
      tally.ms = std::max(tally.ms, c.timings.prompt_ms + c.timings.decode_ms);
      tally.tokens += c.timings.decoded_tokens;
    }
    tally.ms -= prompts_ms;
    return tally;
  }

  static void Add(Readings& readings, bool plain, const Tally& tally) {
    (plain ? readings.plain : readings.speculative).push_back(tally.ms > 0 ? tally.rate() : 0);
  }

  void Take(std::size_t i, int batch, bool plain, const Completion& completion) {
    if (texts_.size() <= i) texts_.resize(i + 1);
    if (!texts_[i]) texts_[i] = completion.token_ids;
    identical_ &= *texts_[i] == completion.token_ids;
    const auto add = [&](Readings& readings) {
      (plain ? readings.plain_stats : readings.stats).Add(completion.speculation);
    };
    add(by_batch_[batch]);
    if (batch == 1) add(by_kind_[plan_.prompts[i].kind]);
  }

  BenchRow RowOf(const std::string& kind, int batch, const Readings& readings) const {
    const auto of_kind = [&](const BenchPrompt& p) { return kind.empty() || p.kind == kind; };
    BenchRow row{.kind = kind,
                 .batch = batch,
                 .prompts = static_cast<int>(
                     std::count_if(plan_.prompts.begin(), plan_.prompts.end(), of_kind)),
                 .plain = SpreadOf(readings.plain),
                 .speculative = {},
                 .speedup = {},
                 .plain_stats = readings.plain_stats,
                 .stats = readings.stats};
    if (readings.speculative.empty()) return row;
    row.speculative = SpreadOf(readings.speculative);
    row.speedup = Ratios(readings.speculative, readings.plain);
    return row;
  }

  BenchRuns Summarise() const {
    BenchRuns runs;
    for (const int batch : plan_.batches)
      runs.batches.push_back(RowOf("", batch, by_batch_.at(batch)));
    for (const std::string& kind : kinds_)
      if (const auto found = by_kind_.find(kind); found != by_kind_.end())
        runs.kinds.push_back(RowOf(kind, 1, found->second));
    runs.strategy = strategy_;
    const bool must_agree = plan_.request.sampling.greedy() || KeepsText(strategy_);
    if (drafts_ && must_agree && lossless_) runs.identical = identical_;
    return runs;
  }

  Engine& engine_;
  const RunPlan& plan_;
  bool drafts_ = false;
  std::vector<std::string> kinds_;
  std::map<int, Readings> by_batch_;
  std::map<std::string, Readings> by_kind_;
  std::vector<std::optional<std::vector<std::int32_t>>> texts_;  // the first of each request
  bool identical_ = true;
  double decoded_ms_ = 0;
  std::string strategy_;  // of the speculative runs
  bool lossless_ = true;
};

}  // namespace

Result<BenchRuns> RunInTurn(Engine& engine, const RunPlan& plan) {
  return Runner(engine, plan).All();
}

}  // namespace foretoken::cli
