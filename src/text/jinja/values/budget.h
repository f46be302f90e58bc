// SPDX-License-Identifier: Apache-2.0
// text/jinja/values/budget.h: what the rendering of one template may use. Templates come from model
// files, so they are not trusted.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>

#include "foretoken/result.h"

namespace foretoken::text::jinja {

struct Limits {
  // A step is an expression or a statement, or 32 characters or elements that an operation touches.
  std::size_t steps = 20'000'000;
  int depth = 800;        // of expressions, blocks and macros that are inside each other
  int value_depth = 100;  // of lists and dictionaries that are inside each other
  std::size_t output_characters = std::size_t{1} << 24;
  std::size_t memory_bytes = std::size_t{1} << 28;  // of texts, lists and dictionaries alive
};

// Counts what is used. A bound that was exceeded stays exceeded; the evaluator looks at each step.
class Budget {
 public:
  explicit Budget(const Limits& limits) : limits_(limits) {}
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  // One step, and those for `touched` characters or elements.
  void Spend(std::size_t touched = 0) noexcept {
    steps_ += 1 + touched / 32;
    if (steps_ > limits_.steps) Exceed(Bound::kSteps);
  }
  void Take(std::size_t bytes) noexcept {
    bytes_ += bytes;
    if (bytes_ > limits_.memory_bytes) Exceed(Bound::kMemory);
  }
  void GiveBack(std::size_t bytes) noexcept { bytes_ -= bytes; }
  void SeeValueDepth(int depth) noexcept {
    if (depth > limits_.value_depth) Exceed(Bound::kValueDepth);
  }
  void SeeOutput(std::size_t characters) noexcept {
    if (characters > limits_.output_characters) Exceed(Bound::kOutput);
  }
  bool Enter() noexcept {
    if (++depth_ > limits_.depth) Exceed(Bound::kDepth);
    return !over();
  }
  void Leave() noexcept { --depth_; }

  // Asked before an operation makes `count` things of `bytes` bytes, which may be far more than it
  // was given. Error: kTooLarge; the bound is then exceeded.
  [[nodiscard]] Status Admit(std::size_t count, std::size_t bytes = 1) {
    const std::size_t most = limits_.memory_bytes - std::min(bytes_, limits_.memory_bytes);
    if (bytes != 0 && count > most / bytes) Exceed(Bound::kMemory);
    Spend(count);
    return status();
  }

  std::size_t bytes_held() const noexcept { return bytes_; }
  bool over() const noexcept { return exceeded_ != Bound::kNone; }
  [[nodiscard]] Status status() const;

 private:
  enum class Bound { kNone, kSteps, kDepth, kValueDepth, kOutput, kMemory };
  void Exceed(Bound bound) noexcept {
    if (exceeded_ == Bound::kNone) exceeded_ = bound;
  }

  Limits limits_;
  std::size_t steps_ = 0, bytes_ = 0;
  int depth_ = 0;
  Bound exceeded_ = Bound::kNone;
};

// Bytes of a budget, until the object that uses them is gone.
class Held {
 public:
  Held() = default;
  Held(Budget& budget, std::size_t bytes) noexcept : budget_(&budget), bytes_(bytes) {
    budget.Take(bytes);
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() {
    if (budget_ != nullptr) budget_->GiveBack(bytes_);
  }

 private:
  Budget* budget_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace foretoken::text::jinja
