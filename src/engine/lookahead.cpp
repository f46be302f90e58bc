// SPDX-License-Identifier: Apache-2.0
#include "engine/lookahead.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "foretoken/adaptive_lookahead.h"

namespace foretoken::engine {
namespace {

class Fixed final : public Lookahead {
 public:
  explicit Fixed(int k) : k_(k) {}
  int Next(int) noexcept override { return k_; }
  void Observe(const RoundOutcome&) noexcept override {}

 private:
  int k_;
};

class Ewma final : public Lookahead {
 public:
  explicit Ewma(int ceiling) : adaptive_(*AdaptiveLookahead::Create(Within(ceiling))) {}
  int Next(int) noexcept override { return adaptive_.lookahead(); }
  void Observe(const RoundOutcome& round) noexcept override {
    if (round.drafted > 0) adaptive_.Observe(round.drafted, round.accepted);
  }

 private:
  static AdaptiveLookaheadConfig Within(int ceiling) {
    AdaptiveLookaheadConfig config;
    config.max = std::min(config.max, ceiling);
    config.min = std::min(config.min, config.max);
    config.initial = std::min(config.initial, config.max);
    return config;
  }
  AdaptiveLookahead adaptive_;
};

class Heuristic final : public Lookahead {
 public:
  explicit Heuristic(int ceiling) : ceiling_(ceiling), k_((ceiling + 1) / 2) {}
  int Next(int) noexcept override { return k_; }
  void Observe(const RoundOutcome& round) noexcept override {
    if (round.drafted > 0)
      k_ = std::clamp(round.accepted >= round.drafted ? k_ + 2 : k_ - 1, 1, ceiling_);
  }

 private:
  int ceiling_, k_;
};

// Chooses K that maximises
//   (others + 1 + s_1 + ... + s_K) / (K draft + pass(others + 1 + K) + rest)
// K = 0 wins unless the gain exceeds a margin. While it decodes plainly it probes with one draft,
// the more seldom the more probes failed, and never for more than a hundredth of the time; not at
// all where even drafts that were always right would not pay.
class CostModel final : public Lookahead {
 public:
  CostModel(int ceiling, const RoundCosts& costs, Survival& shared)
      : ceiling_(std::min(ceiling, Survival::kPositions)), costs_(costs), shared_(shared) {}

  int Next(int others) noexcept override {
    if (rounds_ < kPlainRounds || !costs_.known()) return 0;  // a pass of one row is seen first
    const int most = std::min(ceiling_, costs_.TrustedRows() - others - 1);
    std::array<double, Survival::kPositions> s;
    own_.Read(shared_.First(kPrior), most, s.data());
    const int best = Best(others, most, s.data());
    probing_ = false;
    if (best > 0) return best;
    if (!ProbeIsDue()) return 0;
    s.fill(1);
    if (Best(others, most, s.data()) == 0) return 0;
    probing_ = true;
    return 1;
  }

  void Observe(const RoundOutcome& round) noexcept override {
    ++rounds_;
    total_us_ += round.us;
    if (round.drafted == 0) {
      ++idle_rounds_;
      return;
    }
    own_.Observe(round.drafted, round.accepted);
    shared_.Observe(round.drafted, round.accepted);
    idle_rounds_ = 0;
    if (!probing_) {
      interval_ = kFirstInterval;
      return;
    }
    probe_us_ += std::max(0.0, round.us - costs_.PassUs(1));
    interval_ = round.accepted > 0 ? std::max(2, interval_ / 2) : std::min(4096, 2 * interval_);
  }

 private:
  static constexpr int kPlainRounds = 2, kFirstInterval = 16;
  static constexpr double kPrior = 0.7, kMargin = 1.03, kProbeShare = 0.01;

  // Of 0 to `most`; s: survival.
  int Best(int others, int most, const double* s) const noexcept {
    const double rest = costs_.RestUs(), draft = costs_.DraftUs();
    const double plain = (others + 1) / (costs_.PassUs(others + 1) + rest);
    double tokens = others + 1, best_rate = plain * kMargin;
    int best = 0;
    for (int k = 1; k <= most; ++k) {
      tokens += s[k - 1];
      const double rate = tokens / (k * draft + costs_.PassUs(others + 1 + k) + rest);
      if (rate <= best_rate) continue;
      best_rate = rate;
      best = k;
    }
    return best;
  }

  bool ProbeIsDue() const noexcept {
    return idle_rounds_ >= interval_ && probe_us_ <= kProbeShare * total_us_;
  }

  int ceiling_;
  const RoundCosts& costs_;
  Survival& shared_;
  Survival own_;
  int rounds_ = 0, idle_rounds_ = 0, interval_ = kFirstInterval;
  bool probing_ = false;
  double total_us_ = 0, probe_us_ = 0;
};

constexpr std::array<std::string_view, 4> kNames = {"fixed", "ewma", "heuristic", "cost-model"};

}  // namespace

std::span<const std::string_view> LookaheadNames() {
  return kNames;
}

int DefaultCeiling(std::string_view name) {
  if (name == "ewma") return AdaptiveLookaheadConfig().max;
  return name == "fixed" ? 4 : 8;
}

std::unique_ptr<Lookahead> MakeLookahead(const LookaheadSettings& settings) {
  if (settings.ceiling == 0) return nullptr;
  if (settings.name == "ewma") return std::make_unique<Ewma>(settings.ceiling);
  if (settings.name == "heuristic") return std::make_unique<Heuristic>(settings.ceiling);
  if (settings.name == "cost-model")
    return std::make_unique<CostModel>(settings.ceiling, *settings.costs, *settings.shared);
  FORETOKEN_CHECK(settings.name == "fixed");
  return std::make_unique<Fixed>(settings.ceiling);
}

}  // namespace foretoken::engine
