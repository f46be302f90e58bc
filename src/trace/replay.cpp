// SPDX-License-Identifier: Apache-2.0
// Plays recorded texts again with another draft length or controller. The passes are put together
// as Engine::Impl::Step does it; the controllers are its own.
#include "foretoken/tools/replay.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <memory>

#include "draft_length/registry.h"
#include "draft_length/table_costs.h"
#include "foretoken/drafts.h"
#include "trace/traced_costs.h"
#include "trace/traced_text.h"

namespace foretoken {
namespace {

using trace::TracedCosts;
using trace::TracedPass;
using trace::TracedRates;
using trace::TracedText;

void Count(ReplayTally& tally, int drafted, int accepted, int committed) {
  ++tally.rounds;
  tally.draft_rounds += drafted > 0;
  tally.drafted += drafted;
  tally.accepted += accepted;
  tally.tokens += committed;
  const auto at = static_cast<std::size_t>(drafted);
  if (tally.k_histogram.size() <= at) tally.k_histogram.resize(at + 1);
  ++tally.k_histogram[at];
}

// Requests that ran together, in the order they came, and how many at a time.
struct Cohort {
  std::vector<int> requests;
  std::size_t together = 1;
};

std::vector<Cohort> CohortsOf(const RunTrace& trace) {
  std::vector<std::int64_t> last(trace.requests.size(), -1);
  for (const TracedRound& r : trace.rounds) last[static_cast<std::size_t>(r.request)] = r.pass;
  std::vector<Cohort> cohorts;
  std::vector<bool> known(trace.requests.size());
  std::int64_t until = -1, pass = -1;
  std::size_t in_pass = 0;
  for (const TracedRound& r : trace.rounds) {
    const auto request = static_cast<std::size_t>(r.request);
    if (r.pass > until) cohorts.emplace_back();  // nobody of before is left
    in_pass = r.pass == pass ? in_pass + 1 : 1;
    pass = r.pass;
    cohorts.back().together = std::max(cohorts.back().together, in_pass);
    until = std::max(until, last[request]);
    if (!known[request]) cohorts.back().requests.push_back(r.request);
    known[request] = true;
  }
  return cohorts;
}

class Player {
 public:
  Player(const RunTrace& trace, const ReplayOptions& options)
      : trace_(trace),
        options_(options),
        passes_(trace::PassesOf(trace)),
        costs_(trace, passes_),
        rates_(trace),
        cohorts_(CohortsOf(trace)),
        learnt_(kMostRows, 1, MostTogether()),
        fixed_(kMostRows, 1, MostTogether()) {
    for (int i = 0; i < static_cast<int>(trace.requests.size()); ++i) texts_.emplace_back(trace, i);
    for (const TracedRound& r : trace.rounds) {
      texts_[static_cast<std::size_t>(r.request)].Add(r);
      instant_ |= r.instant;
    }
    MakeController();
  }

  ReplayResult Play() {
    for (const Cohort& cohort : cohorts_) Play(cohort);
    result_.recorded_over_fit = costs_.recorded_over_fit();
    for (const MeasuredSetting& m : MeasuredSettings(trace_))
      if (IsTheSame(m)) result_.measured = m.tally;
    return std::move(result_);
  }

 private:
  static constexpr int kMostRows = 1 << 12;

  struct Running {
    SeqId seq = 0;
    const TracedText* text = nullptr;
    int generated = 0;
    int asked = 0, evidence = 0;  // in this pass
    TracedText::Round round = {};

    int left() const { return text->tokens() - generated; }
    // The longest draft that may be committed.
    int room() const { return std::max(0, text->request().max_new_tokens - generated - 1); }
    int context() const { return text->request().prompt_tokens + generated - 1; }
  };

  int MostTogether() const {
    std::size_t together = 1;
    for (const Cohort& cohort : cohorts_) together = std::max(together, cohort.together);
    return static_cast<int>(together);
  }

  // It begins with what an engine measures when it is opened.
  void MakeController() {
    if (options_.num_speculative_tokens == 0) return;
    const int together = MostTogether();
    std::vector<PassCost> passes;
    for (const TracedCost& c : trace_.costs)
      passes.push_back({c.rows, c.context, {.median = c.us, .least = c.us, .most = c.us}});
    learnt_.Start(passes);
    draft_length::StartWithTable(fixed_, 1, {});
    if (!passes.empty()) fixed_.Start(passes);
    if (costs_.drafts_at_once()) learnt_.DraftsAtOnce(0), fixed_.DraftsAtOnce(0);
    const auto draft_us = [this](int n) { return costs_.Of({.asking = n, .drafts = 1}).draft_us; };
    if (!instant_) learnt_.StartDrafter(0, draft_us(1), draft_us(together), 0);
    if (!instant_) fixed_.StartDrafter(0, draft_us(1), draft_us(together), 0);
    lookahead_ =
        draft_length::MakeController({.name = options_.controller,
                                      .max_sequences = together,
                                      .n_drafters = 1,
                                      .adaptive_lookahead = options_.adaptive_lookahead,
                                      .batch_sizes = options_.num_speculative_tokens_per_batch_size,
                                      .costs = &learnt_,
                                      .fixed_costs = &fixed_});
    running_.reserve(static_cast<std::size_t>(together));
  }

  bool IsTheSame(const MeasuredSetting& m) const {
    if (options_.num_speculative_tokens == 0) return m.num_speculative_tokens == 0;
    return m.controller == options_.controller &&
           m.num_speculative_tokens == options_.num_speculative_tokens;
  }

  void Play(const Cohort& cohort) {
    std::deque<int> waiting;
    for (const int request : cohort.requests)
      if (trace_.requests[static_cast<std::size_t>(request)].drafts()) waiting.push_back(request);
    for (;;) {
      std::erase_if(running_, [](const Running& r) { return r.left() <= 0; });
      for (SeqId seq = 0; seq < static_cast<SeqId>(cohort.together); ++seq) {
        const auto has = [seq](const Running& r) { return r.seq == seq; };
        if (std::any_of(running_.begin(), running_.end(), has)) continue;
        while (!waiting.empty() && !Start(waiting.front(), seq)) waiting.pop_front();
        if (!waiting.empty()) waiting.pop_front();
      }
      if (running_.empty()) return;
      Pass();
    }
  }

  // Its prompt is read, which gives the first token. False: that is all of it.
  bool Start(int request, SeqId seq) {
    const TracedText& text = texts_[static_cast<std::size_t>(request)];
    if (text.tokens() <= 1) return false;
    running_.push_back({.seq = seq, .text = &text, .generated = 1});
    if (lookahead_) lookahead_->Begin(seq, {.most = options_.num_speculative_tokens});
    return true;
  }

  TracedText::Round Round(const Running& r, int k) const {
    return r.text->Play(r.generated, k, rates_, options_.seed);
  }

  // Sets what each running request asks for.
  void Choose() {
    for (Running& r : running_) r.asked = 0;
    if (!lookahead_) return;
    offers_.assign(running_.size(), {});
    plans_.clear();
    for (std::size_t i = 0; i < running_.size(); ++i) {
      Running& r = running_[i];
      offers_[i] = OfferFor(r);
      r.evidence = offers_[i].evidence;
      plans_.push_back({.seq = r.seq, .context = r.context(), .offers = {}});
      if (r.room() > 0) plans_.back().offers = {&offers_[i], 1};
    }
    lookahead_->Choose(plans_);
    for (std::size_t i = 0; i < running_.size(); ++i) running_[i].asked = plans_[i].k;
  }

  draft_length::Offer OfferFor(const Running& r) const {
    draft_length::Offer offer;
    offer.most = std::min(options_.num_speculative_tokens, r.room());
    if (!instant_) return offer;
    const int most = lookahead_->Most(r.seq, static_cast<int>(running_.size()));
    offer.made = true;
    offer.most = Round(r, std::min(offer.most, most)).drafted;
    offer.evidence = r.text->Evidence(r.generated);
    return offer;
  }

  void Pass() {
    Choose();
    TracedPass pass;
    int drafts = 0;
    for (Running& r : running_) {
      r.round = Round(r, r.asked);
      result_.verified += r.round.verified;
      result_.at_random += r.round.at_random;
      pass.rows += 1 + r.round.drafted;
      pass.context += r.context();
      // Drafts that are made before the choice are asked for in any case.
      pass.asking += instant_ && lookahead_ ? r.room() > 0 : r.asked > 0;
      pass.drafts = std::max(pass.drafts, r.round.drafted);
      drafts += r.round.drafted;
      pass.verified += r.round.accepted + 1;
    }
    pass.context /= static_cast<int>(running_.size());
    const TracedCosts::Cost cost = costs_.Of(pass);
    for (Running& r : running_) Commit(r, pass.context, cost.us());
    result_.tally.us += cost.us();
    learnt_.RecordPass({pass.rows, static_cast<int>(running_.size()), pass.context},
                       cost.verify_us);
    if (pass.asking > 0 && !instant_)
      learnt_.RecordDrafts(0, drafts, pass.drafts, cost.draft_us, pass.context);
    learnt_.RecordRest(cost.rest_us);
  }

  void Commit(Running& r, int context, double us) {
    const int committed = std::min(r.round.accepted + 1, r.left());
    Count(result_.tally, r.round.drafted, std::min(r.round.accepted, committed), committed);
    r.generated += committed;
    if (lookahead_)
      lookahead_->Observe(r.seq, {.drafter = 0,
                                  .evidence = r.evidence,
                                  .drafted = r.round.drafted,
                                  .accepted = r.round.accepted,
                                  .n_decoding = static_cast<int>(running_.size()),
                                  .context = context,
                                  .us = us});
  }

  const RunTrace& trace_;
  const ReplayOptions& options_;
  const std::vector<TracedPass> passes_;
  const TracedCosts costs_;
  const TracedRates rates_;
  const std::vector<Cohort> cohorts_;
  bool instant_ = false;
  std::vector<TracedText> texts_;
  std::vector<Running> running_;
  std::vector<draft_length::Offer> offers_;  // of the plans, one each
  std::vector<draft_length::Plan> plans_;
  draft_length::RoundCosts learnt_,
      fixed_;  // fixed_: for by-text; an engine has a table's in its place
  std::unique_ptr<draft_length::Controller> lookahead_;  // null: plain decoding
  ReplayResult result_;
};

Status Check(const RunTrace& trace, const ReplayOptions& options) {
  const auto bad = [](std::string message) {
    return Fail(ErrorCode::kInvalidArgument, std::move(message));
  };
  if (options.num_speculative_tokens < 0 || options.num_speculative_tokens > kMaxDraft)
    return bad(fmt::format("speculative tokens: {} is out of range; use 0 to {}",
                           options.num_speculative_tokens, kMaxDraft));
  const auto names = NamesOf(AllControllers());
  if (std::find(names.begin(), names.end(), options.controller) == names.end())
    return bad(fmt::format("lookahead: '{}' does not exist; use {}", Shown(options.controller),
                           fmt::join(names, ", ")));
  FORETOKEN_CHECK_OK(AdaptiveLookahead::Create(options.adaptive_lookahead));
  for (const BatchDraftLength& row : options.num_speculative_tokens_per_batch_size)
    if (row.num_speculative_tokens < 0 || row.num_speculative_tokens > kMaxDraft)
      return bad(fmt::format("speculative tokens per batch size: {} is out of range; use 0 to {}",
                             row.num_speculative_tokens, kMaxDraft));
  const auto drafts = [](const TracedRound& r) { return !r.drafts.empty(); };
  if (std::none_of(trace.rounds.begin(), trace.rounds.end(), drafts))
    return bad("replay: nothing was drafted in this trace; record a run that speculates");
  return {};
}

}  // namespace

std::vector<MeasuredSetting> MeasuredSettings(const RunTrace& trace) {
  std::vector<MeasuredSetting> settings;
  std::vector<std::size_t> of_request;
  for (const TracedRequest& request : trace.requests) {
    const std::string method = request.drafts() ? request.method : "none";
    const std::string controller = request.drafts() ? request.controller : "";
    const auto same = [&](const MeasuredSetting& m) {
      return m.method == method && m.controller == controller &&
             m.num_speculative_tokens == request.num_speculative_tokens;
    };
    auto found = std::find_if(settings.begin(), settings.end(), same);
    if (found == settings.end())
      found = settings.insert(settings.end(),
                              {method, controller, request.num_speculative_tokens, 0, {}});
    ++found->requests;
    of_request.push_back(static_cast<std::size_t>(found - settings.begin()));
  }
  const auto passes = trace::PassesOf(trace);
  auto round = trace.rounds.begin();
  for (const TracedPass& pass : passes) {
    const auto begin = round;
    const std::size_t setting = of_request[static_cast<std::size_t>(begin->request)];
    bool alike = !pass.prefill;
    for (; round != trace.rounds.end() && round->pass == pass.pass; ++round)
      alike &= of_request[static_cast<std::size_t>(round->request)] == setting;
    if (!alike) continue;
    ReplayTally& tally = settings[setting].tally;
    for (auto r = begin; r != round; ++r)
      Count(tally, static_cast<int>(r->drafts.size()), std::min(r->accepted, r->committed),
            r->committed);
    tally.us += pass.us();
  }
  return settings;
}

Result<ReplayResult> Replay(const RunTrace& trace, const ReplayOptions& options) {
  FORETOKEN_CHECK_OK(Check(trace, options));
  return Player(trace, options).Play();
}

}  // namespace foretoken
