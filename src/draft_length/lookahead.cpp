// SPDX-License-Identifier: Apache-2.0
#include "draft_length/lookahead.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "draft_length/by_text.h"
#include "draft_length/cost_model.h"
#include "foretoken/adaptive_lookahead.h"

namespace foretoken::draft_length {
namespace {

// A controller that looks at each sequence by itself.
template <typename State>
class Separate final : public Lookahead {
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
    // What is too short to be sent is a draft of which nothing came.
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
  std::vector<int> least_;  // drafts of a round that has any
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

constexpr std::array<std::string_view, 6> kNames = {"cost-model", "fixed",      "ewma",
                                                    "heuristic",  "batch-size", "by-text"};

}  // namespace

std::span<const std::string_view> LookaheadNames() {
  return kNames;
}

int DefaultCeiling(const SpeculativeOptions& options) {
  if (options.lookahead == "ewma") return options.ewma.max;
  // Those that weigh costs draft that much where a long copy runs and rows are cheap, only.
  if (options.lookahead == "cost-model" || options.lookahead == "by-text") return 16;
  if (options.lookahead != "batch-size") return options.lookahead == "fixed" ? 4 : 8;
  int most = 0;
  for (const BatchDraftLength& row : options.num_speculative_tokens_per_batch_size)
    most = std::max(most, row.num_speculative_tokens);
  return most;
}

std::unique_ptr<Lookahead> MakeLookahead(const LookaheadSettings& settings) {
  const int n = settings.max_sequences;
  if (settings.name == "by-text") return std::make_unique<ByText>(settings, nullptr);
  if (settings.name == "cost-model")
    return std::make_unique<ByText>(settings, std::make_unique<CostModel>(settings));
  if (settings.name == "ewma")
    return std::make_unique<Separate<Ewma>>(Ewma{*AdaptiveLookahead::Create(settings.ewma)}, n);
  if (settings.name == "heuristic") return std::make_unique<Separate<Heuristic>>(Heuristic(), n);
  if (settings.name == "batch-size")
    return std::make_unique<ByText>(
        settings, std::make_unique<Separate<BatchSize>>(BatchSize{settings.batch_sizes}, n));
  FORETOKEN_CHECK(settings.name == "fixed");
  return std::make_unique<Separate<Fixed>>(Fixed(), n);
}

}  // namespace foretoken::draft_length
