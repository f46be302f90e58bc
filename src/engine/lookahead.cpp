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
  int Next() const noexcept override { return k_; }
  void Observe(int, int) noexcept override {}

 private:
  int k_;
};

class Ewma final : public Lookahead {
 public:
  explicit Ewma(int ceiling) : adaptive_(*AdaptiveLookahead::Create(Within(ceiling))) {}
  int Next() const noexcept override { return adaptive_.lookahead(); }
  void Observe(int drafted, int accepted) noexcept override {
    adaptive_.Observe(drafted, accepted);
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
  int Next() const noexcept override { return k_; }
  void Observe(int drafted, int accepted) noexcept override {
    k_ = std::clamp(accepted >= drafted ? k_ + 2 : k_ - 1, 1, ceiling_);
  }

 private:
  int ceiling_, k_;
};

constexpr std::array<std::string_view, 3> kNames = {"fixed", "ewma", "heuristic"};

}  // namespace

std::span<const std::string_view> LookaheadNames() {
  return kNames;
}

int DefaultCeiling(std::string_view name) {
  if (name == "ewma") return AdaptiveLookaheadConfig().max;
  return name == "heuristic" ? 8 : 4;
}

std::unique_ptr<Lookahead> MakeLookahead(const LookaheadSettings& settings) {
  if (settings.ceiling == 0) return nullptr;
  if (settings.name == "ewma") return std::make_unique<Ewma>(settings.ceiling);
  if (settings.name == "heuristic") return std::make_unique<Heuristic>(settings.ceiling);
  FORETOKEN_CHECK(settings.name == "fixed");
  return std::make_unique<Fixed>(settings.ceiling);
}

}  // namespace foretoken::engine
