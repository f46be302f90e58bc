// SPDX-License-Identifier: Apache-2.0
#include "draft_length/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace foretoken::bench {
namespace {

using draft_length::CostModel;
using draft_length::LearnedVerdicts;
using draft_length::Offer;
using draft_length::Plan;
using draft_length::RoundCosts;

constexpr double kRestUs = 5, kPlanUs = 1;

class World {
 public:
  // fixed: drafts in each round; < 0: the cost model chooses
  World(const Scenario& scenario, unsigned seed, int fixed = -1)
      : s_(scenario),
        fixed_(fixed),
        random_(seed),
        costs_(16 * (kMostDrafts + 1), Drafters(), scenario.sequences),
        model_({.name = "cost-model",
                .max_sequences = scenario.sequences,
                .n_drafters = Drafters(),
                .costs = &costs_}),
        sequences_(static_cast<std::size_t>(scenario.sequences)) {
    for (Sequence& sequence : sequences_) sequence.missing = s_.prompt;
    if (s_.measured) Measure();
    for (int seq = 0; seq < s_.sequences; ++seq)
      model_.Begin(seq, {.least = 1, .most = kMostDrafts});
  }

  void Play(int rounds) {
    for (int round = 0; round < rounds; ++round) late_ = round >= rounds / 2, Round(round);
  }
  std::vector<LearnedVerdicts> Learned() const { return model_.Learned(); }
  void Start(std::span<const LearnedVerdicts> learned) { model_.Start(learned); }
  double us() const { return us_; }
  double plain_us() const { return plain_us_; }

 private:
  struct Sequence {
    int tokens = 0, missing = 0, texts = 0;
    std::vector<Offer> offers;
  };
  int Drafters() const { return s_.portfolio ? 2 : 1; }
  bool IsLookup(int drafter) const { return s_.portfolio ? drafter == 1 : s_.draft == 0; }
  double Uniform() { return std::uniform_real_distribution<double>(0, 1)(random_); }
  double PassUs(int rows) const { return s_.pass_us * (1 + s_.row * (rows - 1)); }
  // The pass of all sequences, with what their contexts cost.
  double PassUs(int rows, int context) const {
    return PassUs(rows) +
           s_.pass_us * context / 1000.0 * (s_.bytes * s_.sequences + s_.arithmetic * rows);
  }
  int Context(const Sequence& sequence) const {
    return (s_.turns && sequence.texts % 2 == 0 ? 256 : s_.context) + sequence.tokens;
  }
  int Context() const {
    std::int64_t all = 0;
    for (const Sequence& sequence : sequences_) all += Context(sequence);
    return static_cast<int>(all / s_.sequences);
  }

  void Measure() {
    std::vector<PassCost> passes;
    for (const int rows : {1, 2, 3, 5, 9, 17, 33}) {
      if (rows > std::max(1 + kMostDrafts, 1 + 2 * s_.sequences)) continue;  // as at a true start
      const double added = (PassUs(rows) - s_.pass_us) * s_.start_error;
      const bool bad = rows >= s_.bad_from && rows <= s_.bad_to;
      passes.push_back({rows, 0, {(s_.pass_us + added) * (bad ? s_.bad : 1), 0, 0}});
    }
    costs_.Start(passes);
    const double draft = s_.draft * s_.pass_us * s_.start_error * s_.bad_draft;
    for (int d = 0; d < Drafters(); ++d)
      if (!IsLookup(d)) costs_.StartDrafter(d, draft, s_.sequences > 1 ? draft : 0, draft / 5);
  }

  // The probability that a draft of the token at this place is right.
  double Right(const Sequence& sequence, int drafter) const {
    const int at = sequence.tokens;
    const bool copies = at % 150 < 30;
    if (s_.portfolio && IsLookup(drafter)) return copies ? 0.97 : 0.02;
    switch (s_.text) {
      case Text::kSteady:
        return s_.accepted;
      case Text::kChapters:
        return at / 200 % 2 == 0 ? s_.accepted : 0.1;
      case Text::kCopies:
        return copies ? 0.97 : 0.05;
      case Text::kLate:
        return late_ ? s_.accepted : 0.02;
    }
    return 0;
  }

  void Offers(int seq) {
    Sequence& sequence = sequences_[static_cast<std::size_t>(seq)];
    sequence.offers.clear();
    const int most = fixed_ < 0 ? model_.Most(seq, s_.sequences) : kMostDrafts;
    for (int d = 0; most > 0 && d < Drafters(); ++d)
      sequence.offers.push_back({.drafter = d,
                                 .most = most,
                                 .made = IsLookup(d),
                                 .missing = IsLookup(d) ? 0 : sequence.missing});
  }

  void Round(int round) {
    std::vector<Plan> plans;
    double plan_us = 0;
    for (int seq = 0; seq < s_.sequences; ++seq) {
      Offers(seq);
      const Sequence& sequence = sequences_[static_cast<std::size_t>(seq)];
      if (!sequence.offers.empty()) plan_us += kPlanUs;
      Plan& plan = plans.emplace_back();
      plan.seq = seq, plan.context = Context(sequence), plan.offers = sequence.offers;
      const int most = s_.most_tokens > 0 ? s_.most_tokens : s_.request_tokens;
      if (s_.text != Text::kLate) plan.left = most - sequence.tokens;
    }
    if (fixed_ < 0) {
      model_.Choose(plans);
    } else {
      plan_us = 0;
      for (Plan& plan : plans) plan.k = fixed_;
    }
    if (s_.bursts && burst_ == 0 && Uniform() < 0.01) burst_ = 16;
    if (round == 0) burst_ = s_.slow_start;
    int drafts = 0;
    for (const Plan& plan : plans) drafts += plan.k;
    cold_ = drafts > 0 && n_drafted_++ < 12 ? 1 + s_.cold : 1;
    const double draft_us = Draft(plans);
    const double speed = s_.slow_minutes && round % 4000 >= 3000 ? 1.7 : 1,
                 spike = s_.spikes && Uniform() < 0.01 ? 5 : 1,
                 scatter = speed * spike * (1 + s_.noise * (2 * Uniform() - 1));
    const int context = Context();
    const double pass_us = PassUs(s_.sequences + drafts, context) * scatter * Disturbed();
    costs_.RecordPass({s_.sequences + drafts, s_.sequences, context}, pass_us);
    costs_.RecordRest(kRestUs);
    const double us =
        pass_us + draft_us + kRestUs + plan_us + (drafts > 0 ? s_.hidden * s_.pass_us : 0);
    us_ += us;
    const double mean = burst_ > 0 ? 1.5 : 1;
    for (const Plan& plan : plans)
      Verify(plan, us, (PassUs(s_.sequences, context) * speed * mean + kRestUs) / s_.sequences);
    if (burst_ > 0) --burst_;
  }

  // By how much a piece of work takes longer than it must.
  double Disturbed() { return cold_ * (burst_ > 0 ? 1 + Uniform() : 1); }

  double Draft(std::span<const Plan> plans) {
    double us = 0;
    for (int d = 0; d < Drafters(); ++d) {
      if (IsLookup(d)) continue;
      int drafts = 0, longest = 0, rows = 0;
      for (const Plan& plan : plans) {
        if (plan.k == 0 || plan.offers[static_cast<std::size_t>(plan.chosen)].drafter != d)
          continue;
        Sequence& sequence = sequences_[static_cast<std::size_t>(plan.seq)];
        rows += std::exchange(sequence.missing, 0);
        drafts += plan.k, longest = std::max(longest, plan.k);
      }
      if (drafts == 0) continue;
      const double draft = s_.draft + s_.draft_bytes * Context() / 1000.0,
                   draft_us = longest * draft * s_.pass_us * Disturbed(),
                   rows_us = rows * s_.draft * s_.pass_us / 5;
      costs_.RecordDrafts(d, drafts, longest, draft_us, Context());
      costs_.RecordCatchUp(d, rows, rows_us);
      us += draft_us + rows_us;
    }
    return us;
  }

  void Verify(const Plan& plan, double us, double plain_us) {
    Sequence& sequence = sequences_[static_cast<std::size_t>(plan.seq)];
    const int drafter = plan.k > 0 ? plan.offers[static_cast<std::size_t>(plan.chosen)].drafter : 0;
    int accepted = 0;
    while (accepted < plan.k && Uniform() < Right(sequence, drafter)) ++accepted, ++sequence.tokens;
    ++sequence.tokens;
    if (plan.k == 0 || IsLookup(drafter)) sequence.missing += 1 + accepted;
    plain_us_ += (1 + accepted) * plain_us;
    model_.Observe(plan.seq, {.drafter = drafter,
                              .drafted = plan.k,
                              .accepted = accepted,
                              .n_decoding = s_.sequences,
                              .context = Context(sequence),
                              .us = us});
    if (sequence.tokens < s_.request_tokens || s_.text == Text::kLate) return;
    sequence.tokens = 0, sequence.missing = s_.prompt, ++sequence.texts;
    model_.Begin(plan.seq, {.least = 1, .most = kMostDrafts});
  }

  const Scenario& s_;
  const int fixed_;
  std::mt19937 random_;
  RoundCosts costs_;
  CostModel model_;
  std::vector<Sequence> sequences_;
  bool late_ = false;  // the second half of the rounds
  int burst_ = 0;      // rounds that are left of a disturbance
  int n_drafted_ = 0;  // rounds with drafts
  double cold_ = 1;
  double us_ = 0, plain_us_ = 0;
};

}  // namespace

double Play(const Scenario& scenario, int rounds, unsigned seed) {
  return PlayFixed(scenario, -1, rounds, seed);
}

double PlayFixed(const Scenario& scenario, int k, int rounds, unsigned seed) {
  const int part = scenario.engine_rounds > 0 ? scenario.engine_rounds : rounds;
  double plain_us = 0, us = 0;
  std::vector<LearnedVerdicts> learned;
  Scenario engine = scenario;
  for (int done = 0; done < rounds; done += part) {
    engine.accepted = scenario.other_texts && done / part % 2 == 0 ? 0.1 : scenario.accepted;
    World world(engine, seed + static_cast<unsigned>(done), k);
    if (scenario.kept) world.Start(learned);
    world.Play(std::min(part, rounds - done));
    learned = world.Learned();
    plain_us += world.plain_us(), us += world.us();
  }
  return plain_us / us;
}

std::vector<Scenario> Scenarios() {
  std::vector<Scenario> all;
  for (const double row : {0.03, 0.12, 0.4})
    for (const double draft : {0.0, 0.1, 0.4})
      for (const double accepted : {0.1, 0.5, 0.8, 0.95})
        all.push_back({.name = "steady", .row = row, .draft = draft, .accepted = accepted});
  for (const double accepted : {0.1, 0.5, 0.9, 0.97})
    for (const double draft : {0.0, 0.15})
      all.push_back({.name = "first text",
                     .pass_us = 400,
                     .row = 0.6,
                     .draft = draft,
                     .accepted = accepted,
                     .engine_rounds = 150});
  for (const int prompt : {30, 120})
    for (const double accepted : {0.1, 0.5, 0.8})
      for (const int rounds : {0, 100})
        all.push_back(
            {.name = fmt::format("head, prompt of {}{}", prompt, rounds > 0 ? ", first text" : ""),
             .pass_us = 170,
             .row = 0.2,
             .draft = 0.35,
             .accepted = accepted,
             .prompt = prompt,
             .engine_rounds = rounds});
  for (const int prompt : {500, 2000})
    for (const double accepted : {0.1, 0.5, 0.8})
      for (const int rounds : {0, 300})
        for (const int tokens : {100, 400})
          all.push_back({.name = fmt::format("prompt of {}, text of {}{}", prompt, tokens,
                                             rounds > 0 ? ", first texts" : ""),
                         .row = 0.08,
                         .draft = 0.08,
                         .accepted = accepted,
                         .prompt = prompt,
                         .request_tokens = tokens,
                         .most_tokens = 4000,
                         .engine_rounds = rounds});
  for (const double accepted : {0.1, 0.5, 0.65, 0.77, 0.85})
    for (const int rounds : {0, 300})
      for (const bool bursts : {false, true})
        all.push_back({.name = fmt::format("head, cold{}{}", bursts ? ", bursts" : "",
                                           rounds > 0 ? ", first texts" : ""),
                       .pass_us = 175,
                       .row = 0.11,
                       .draft = 0.42,
                       .accepted = accepted,
                       .prompt = 27,
                       .bursts = bursts,
                       .cold = 0.2,
                       .request_tokens = 128,
                       .engine_rounds = rounds});
  for (const double accepted : {0.1, 0.5, 0.65, 0.77, 0.85})
    for (const int rounds : {0, 1000})
      all.push_back({.name = fmt::format("head, slow start{}", rounds > 0 ? ", texts" : ""),
                     .pass_us = 175,
                     .row = 0.11,
                     .draft = 0.42,
                     .accepted = accepted,
                     .prompt = 27,
                     .slow_start = 40,
                     .cold = 0.2,
                     .request_tokens = 128,
                     .engine_rounds = rounds});
  for (const double accepted : {0.02, 0.3, 0.5, 0.75})
    for (const bool spikes : {false, true})
      all.push_back({.name = fmt::format("short text, long prompt{}", spikes ? ", spikes" : ""),
                     .pass_us = 5'500,
                     .row = 0.08,
                     .draft = 0.055,
                     .accepted = accepted,
                     .prompt = 230,
                     .spikes = spikes,
                     .context = 16'000,
                     .bytes = 0.05,
                     .arithmetic = 0.012,
                     .request_tokens = 160,
                     .most_tokens = 160,
                     .engine_rounds = 160});
  for (const double row : {0.05, 0.2})
    for (const double draft : {0.0, 0.1}) {
      all.push_back({.name = "chapters",
                     .row = row,
                     .draft = draft,
                     .accepted = 0.9,
                     .text = Text::kChapters});
      all.push_back({.name = "copies", .row = row, .draft = draft, .text = Text::kCopies});
      all.push_back(
          {.name = "late", .row = row, .draft = draft, .accepted = 0.9, .text = Text::kLate});
      all.push_back(
          {.name = "small model", .pass_us = 60, .row = row, .draft = draft, .accepted = 0.3});
      all.push_back({.name = "slow minutes", .row = row, .draft = draft, .slow_minutes = true});
      all.push_back({.name = "spikes",
                     .row = row,
                     .draft = draft,
                     .accepted = 0.5,
                     .noise = 0.2,
                     .spikes = true});
      all.push_back({.name = "nothing measured",
                     .row = row,
                     .draft = draft,
                     .accepted = 0.6,
                     .measured = false});
      for (const double error : {0.4, 2.5})
        all.push_back({.name = "measured badly",
                       .row = row,
                       .draft = draft,
                       .accepted = 0.6,
                       .start_error = error});
      for (const auto& [from, to] : {std::pair(1, 1), {2, 3}, {3, 3}, {5, 5}, {3, 17}, {9, 17}})
        all.push_back({.name = fmt::format("bad start, {} to {} rows", from, to),
                       .row = row,
                       .draft = draft,
                       .accepted = 0.7,
                       .bad_from = from,
                       .bad_to = to,
                       .bad = 2.5});
      if (draft > 0)
        all.push_back({.name = "bad start, drafts",
                       .row = row,
                       .draft = draft,
                       .accepted = 0.8,
                       .bad_draft = 8});
      all.push_back(
          {.name = "hidden cost", .row = row, .draft = draft, .accepted = 0.5, .hidden = 0.8});
      for (const int sequences : {4, 16}) {
        all.push_back({.name = "together",
                       .row = row,
                       .draft = draft,
                       .accepted = 0.7,
                       .sequences = sequences});
        all.push_back({.name = "together, hidden cost",
                       .row = row,
                       .draft = draft,
                       .accepted = 0.5,
                       .sequences = sequences,
                       .hidden = 0.8});
      }
      if (draft > 0)
        all.push_back(
            {.name = "portfolio", .row = row, .draft = draft, .accepted = 0.6, .portfolio = true});
    }
  for (const double accepted : {0.1, 0.5, 0.8, 0.95})
    for (const double row : {0.2, 0.64})
      for (const bool others : {false, true})
        all.push_back({.name = others ? "another text" : "next text",
                       .row = row,
                       .draft = 0.15,
                       .accepted = accepted,
                       .engine_rounds = 100,
                       .kept = true,
                       .other_texts = others});
  for (const auto& [bytes, arithmetic] : {std::pair(0.05, 0.008), {0.028, 0.019}})
    for (const double accepted : {0.1, 0.5, 0.8, 0.9})
      for (const double draft_bytes : {0.0, 0.05})
        for (const int rounds : {0, 60}) {
          const auto far = [&](const char* what) {
            return Scenario{.name = fmt::format("{}{}", what, rounds > 0 ? ", first text" : ""),
                            .pass_us = 40'000,
                            .row = 0.03,
                            .draft = draft_bytes > 0 ? 0.5 : 0.1,
                            .accepted = accepted,
                            .context = 16'000,
                            .bytes = bytes,
                            .arithmetic = arithmetic,
                            .draft_bytes = draft_bytes,
                            .engine_rounds = rounds};
          };
          all.push_back(far("far"));
          if (rounds > 0) continue;
          all.push_back(far("far and near")), all.back().turns = true;
          all.push_back(far("growing")), all.back().context = 256;
          all.back().request_tokens = 4'000;
        }
  return all;
}

}  // namespace foretoken::bench
