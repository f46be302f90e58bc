// SPDX-License-Identifier: Apache-2.0
#include "draft_length/registry.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "draft_length/by_text.h"
#include "draft_length/cost_model.h"
#include "foretoken/adaptive_lookahead.h"

namespace foretoken {
namespace draft_length {
namespace {

// A controller that decides for each sequence separately.
template <typename State>
class Separate final : public Controller {
 public:
  Separate(const State& initial, int max_sequences)
      : states_(static_cast<std::size_t>(max_sequences), initial), least_(states_.size(), 1) {}

  void Begin(SeqId seq, const DraftLengths& lengths) override {
    least_[static_cast<std::size_t>(seq)] = lengths.least;
    At(seq).ceiling = lengths.most;
    At(seq).Reset();
  }
  void Reset(SeqId seq) noexcept override { At(seq).Reset(); }
  int Most(SeqId seq, int n_decoding) const noexcept override {
    const auto at = static_cast<std::size_t>(seq);
    const int k = states_[at].Next(n_decoding);
    return k == 0 ? 0 : std::max(k, least_[at]);
  }
  void Choose(std::span<Plan> plans) noexcept override {
    for (Plan& plan : plans) {
      plan.k = 0;
      for (std::size_t i = 0; i < plan.offers.size() && plan.k == 0; ++i) {
        plan.chosen = static_cast<int>(i);
        const int k = std::min(Most(plan.seq, static_cast<int>(plans.size())), plan.offers[i].most);
        plan.k = k < least_[static_cast<std::size_t>(plan.seq)] ? 0 : k;
      }
    }
  }
  void Observe(SeqId seq, const RoundOutcome& round) noexcept override {
    // A draft that is too short to be verified counts as one of which nothing was accepted.
    RoundOutcome made = round;
    made.drafted += made.withheld;
    if (made.drafted > 0) At(seq).Observe(made);
  }
  AdaptiveLookahead* Adaptive([[maybe_unused]] SeqId seq) noexcept override {
    if constexpr (requires(State & s) { s.adaptive; }) return &At(seq).adaptive;
    return nullptr;
  }

 private:
  State& At(SeqId seq) { return states_[static_cast<std::size_t>(seq)]; }
  std::vector<State> states_;
  std::vector<int> least_;  // the fewest drafts of a round that drafts at all
};

struct Fixed {
  int ceiling = 0;
  void Reset() noexcept {}
  int Next(int) const noexcept { return ceiling; }
  void Observe(const RoundOutcome&) noexcept {}
};

struct Ewma {
  AdaptiveLookahead adaptive;
  int ceiling = 0;
  void Reset() noexcept { adaptive.Reset(); }
  int Next(int) const noexcept { return std::min(adaptive.lookahead(), ceiling); }
  void Observe(const RoundOutcome& round) noexcept {
    adaptive.Observe(round.drafted, round.accepted);
  }
};

struct Heuristic {
  int ceiling = 0, k = 0;
  void Reset() noexcept { k = (ceiling + 1) / 2; }
  int Next(int) const noexcept { return k; }
  void Observe(const RoundOutcome& round) noexcept {
    k = std::clamp(round.accepted >= round.drafted ? k + 2 : k - 1, 1, ceiling);
  }
};

struct BatchSize {
  std::span<const BatchDraftLength> table;
  int ceiling = 0;
  void Reset() noexcept {}
  int Next(int n) const noexcept {
    for (const BatchDraftLength& row : table)
      if (n >= row.least && n <= row.most) return std::min(ceiling, row.num_speculative_tokens);
    return ceiling;
  }
  void Observe(const RoundOutcome&) noexcept {}
};

constexpr std::array<std::string_view, 1> kFixedNames = {"constant"},
                                          kBatchSizeNames = {"schedule"};

template <int kK>
int Always(const SpeculativeOptions&) {
  return kK;
}

// It drafts so many tokens only where a long copy runs and rows are cheap.
int SixteenOrTheWidest(const SpeculativeOptions& options) {
  const auto& widths = options.adaptive_speculative_widths;
  return widths.empty() ? 16 : widths.back();
}

int LargestOfTable(const SpeculativeOptions& options) {
  int most = 0;
  for (const BatchDraftLength& row : options.num_speculative_tokens_per_batch_size)
    most = std::max(most, row.num_speculative_tokens);
  return most;
}

// All but cost-model and by-text draft with a sequence's first offer that has enough drafts.
constexpr std::array kRows = {
    ControllerSpec{{.name = "cost-model",
                    .help = "the length that promises the most tokens per second, possibly 0",
                    .length = "the length that promises the most tokens per second; it may be 0",
                    .default_k = "16",
                    .weighs_costs = true,
                    .follows_load = true},
                   SixteenOrTheWidest,
                   [](const ControllerSettings& s) -> std::unique_ptr<Controller> {
                     return std::make_unique<ByText>(s, std::make_unique<CostModel>(s));
                   }},
    ControllerSpec{{.name = "fixed",
                    .aliases = kFixedNames,
                    .help = "always K",
                    .length = "K",
                    .default_k = "4"},
                   Always<4>,
                   [](const ControllerSettings& s) -> std::unique_ptr<Controller> {
                     return std::make_unique<Separate<Fixed>>(Fixed(), s.max_sequences);
                   }},
    ControllerSpec{
        {.name = "ewma",
         .help = "follows the mean of accepted drafts",
         .length = "round(ewma + 1) within 2 to K, changed at most every fifth round; ewma is the "
                   "mean of accepted drafts, the newest with weight 0.2; it begins with 5",
         .default_k = "12"},
        [](const SpeculativeOptions& o) { return o.adaptive_lookahead.max; },
        [](const ControllerSettings& s) -> std::unique_ptr<Controller> {
          return std::make_unique<Separate<Ewma>>(
              Ewma{*AdaptiveLookahead::Create(s.adaptive_lookahead)}, s.max_sequences);
        }},
    ControllerSpec{{.name = "heuristic",
                    .help = "two more after a draft accepted whole, else one less",
                    .length = "two more after a draft that was accepted whole, else one less; 1 to "
                              "K; it begins with half of K",
                    .default_k = "8"},
                   Always<8>,
                   [](const ControllerSettings& s) -> std::unique_ptr<Controller> {
                     return std::make_unique<Separate<Heuristic>>(Heuristic(), s.max_sequences);
                   }},
    ControllerSpec{{.name = "batch-size",
                    .aliases = kBatchSizeNames,
                    .help = "by the number of requests that decode together, from a table",
                    .length = "K by the number of requests that decode together, from a table",
                    .default_k = "the table's largest",
                    .follows_load = true},
                   LargestOfTable,
                   [](const ControllerSettings& s) -> std::unique_ptr<Controller> {
                     return std::make_unique<ByText>(
                         s, std::make_unique<Separate<BatchSize>>(BatchSize{s.batch_sizes},
                                                                  s.max_sequences));
                   }},
    ControllerSpec{
        {.name = "by-text",
         .help = "as cost-model, with costs from a table, so that lengths depend on the text alone",
         .length = "as `cost-model`, with costs that never change and each request by itself",
         .default_k = "16",
         .weighs_costs = true},
        SixteenOrTheWidest,
        [](const ControllerSettings& s) -> std::unique_ptr<Controller> {
          return std::make_unique<ByText>(s, nullptr);
        }},
};

}  // namespace

std::span<const ControllerSpec> Specs() {
  return kRows;
}

const ControllerSpec& SpecOf(std::string_view name) {
  const auto row = std::find_if(kRows.begin(), kRows.end(),
                                [&](const ControllerSpec& spec) { return spec.info.name == name; });
  FORETOKEN_CHECK(row != kRows.end());
  return *row;
}

}  // namespace draft_length

std::span<const ControllerInfo* const> AllControllers() {
  static const auto rows = [] {
    std::array<const ControllerInfo*, draft_length::kRows.size()> all{};
    std::transform(draft_length::kRows.begin(), draft_length::kRows.end(), all.begin(),
                   [](const draft_length::ControllerSpec& row) { return &row.info; });
    return all;
  }();
  return rows;
}

}  // namespace foretoken
