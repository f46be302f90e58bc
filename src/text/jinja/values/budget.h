// SPDX-License-Identifier: Apache-2.0
// text/jinja/values/budget.h: what the rendering of one template may use. Templates come from model
// files, and texts from clients, so neither is trusted.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretoken/result.h"

namespace foretoken::text::jinja {

struct Limits {
  // A step is an expression or a statement, or 32 characters or 8 elements that an operation touches.
  std::size_t steps = 20'000'000;
  int depth = 800;        // of expressions, blocks and macros that are inside each other
  int value_depth = 100;  // of lists and dictionaries that are inside each other
  std::size_t output_characters = std::size_t{1} << 24;
  std::size_t memory_bytes = std::size_t{1}
                             << 28;  // of all that is alive, temporary texts included
};

// An allocation that would exceed the budget's memory. Template::Render and FromJson turn it into
// their error; so must others that make values (WithinMemory).
struct OverBudget final : std::bad_alloc {
  const char* what() const noexcept override { return "beyond the memory of a template"; }
};

// An element of a list or dictionary takes as long as so many characters: its references are counted, and
// its weight and depth are read.
inline constexpr std::size_t kTouchedPerElement = 4;

// Counts what is used. A bound that was exceeded stays exceeded; the evaluator looks at each step.
// Being cancelled (CancellationScope) is one of them.
//
// From its construction to its destruction, what Charged allocates in this thread is counted here,
// and refused beyond the bound. So it is made before the values that count, and destroyed after
// them, in the same thread.
class Budget {
 public:
  explicit Budget(Limits limits)
      : limits_(std::move(limits)), outer_(std::exchange(present, this)) {}
  ~Budget() { present = outer_; }
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  // One step, and those for `touched` characters or elements.
  void Spend(std::size_t touched = 0) noexcept {
    steps_ += 1 + touched / kTouchedPerStep;
    if (steps_ >= next_look_) Look();
  }
  void SeeValueDepth(int depth) noexcept {
    if (depth > limits_.value_depth) Exceed(Bound::kValueDepth);
  }
  void SeeOutput(std::size_t characters) noexcept {
    if (characters > limits_.output_characters) Exceed(Bound::kOutput);
  }
  // Also looks at the room that is left on the thread's stack.
  bool Enter() noexcept;
  void Leave() noexcept { --depth_; }

  // Asked before an operation makes `count` things of `bytes` bytes, which may be far more than it
  // was given. Error: kTooLarge; the bound is then exceeded.
  [[nodiscard]] Status Admit(std::size_t count, std::size_t bytes = 1) {
    if (bytes != 0 && count > memory_left() / bytes) Exceed(Bound::kMemory);
    Spend(count);
    return status();
  }

  std::size_t memory_left() const noexcept {
    const std::int64_t left = static_cast<std::int64_t>(limits_.memory_bytes) - bytes_;
    return left < 0 ? 0 : static_cast<std::size_t>(left);
  }

  // For tests.
  std::size_t steps() const noexcept { return steps_; }
  std::int64_t bytes_held() const noexcept { return bytes_; }

  bool over() const noexcept { return exceeded_ != Bound::kNone; }
  [[nodiscard]] Status status() const;

  // For Charged. Throws OverBudget.
  static void TakeMemory(std::size_t bytes) {
    if (present == nullptr) return;
    const auto most = static_cast<std::int64_t>(present->limits_.memory_bytes);
    if (bytes > present->limits_.memory_bytes || present->bytes_ + Rounded(bytes) > most) {
      present->Exceed(Bound::kMemory);
      throw OverBudget();
    }
    present->bytes_ += Rounded(bytes);
  }
  static void ReturnMemory(std::size_t bytes) noexcept {
    if (present != nullptr) present->bytes_ -= Rounded(bytes);
  }

 private:
  enum class Bound { kNone, kSteps, kDepth, kStack, kValueDepth, kOutput, kMemory, kCancelled };
  static constexpr std::size_t kTouchedPerStep = 32;
  static constexpr std::size_t kStepsPerLook = 4096;  // less than a millisecond
  // What the system's allocator takes for so many bytes.
  static std::int64_t Rounded(std::size_t bytes) noexcept {
    return static_cast<std::int64_t>((bytes + 8 + 15) & ~std::size_t{15});
  }
  static constinit inline thread_local Budget* present = nullptr;

  void Exceed(Bound bound) noexcept {
    if (exceeded_ == Bound::kNone) exceeded_ = bound;
  }
  void Look() noexcept;

  const Limits limits_;
  Budget* const outer_;
  std::size_t steps_ = 0, next_look_ = std::min(kStepsPerLook, limits_.steps + 1);
  // Less than what is held, and even less than 0, where values from outside are destroyed inside.
  std::int64_t bytes_ = 0;
  int depth_ = 0;
  Bound exceeded_ = Bound::kNone;
};

// The allocator of all that a rendering makes: it counts for the thread's Budget, if there is one.
template <typename T>
struct Charged {
  using value_type = T;

  Charged() = default;
  template <typename Other>
  Charged(const Charged<Other>& /*other*/) noexcept {}

  T* allocate(std::size_t n) {
    Budget::TakeMemory(n * sizeof(T));
    return std::allocator<T>().allocate(n);
  }
  void deallocate(T* place, std::size_t n) noexcept {
    std::allocator<T>().deallocate(place, n);
    Budget::ReturnMemory(n * sizeof(T));
  }
  friend bool operator==(const Charged& /*a*/, const Charged& /*b*/) noexcept { return true; }
};

template <typename T>
using List = std::vector<T, Charged<T>>;
using Utf8Text = std::basic_string<char, std::char_traits<char>, Charged<char>>;

// A shared object that counts.
template <typename T>
std::shared_ptr<T> Shared(T object) {
  return std::allocate_shared<T>(Charged<T>(), std::move(object));
}

// The result of call(), or the budget's error where it exceeds the memory.
template <typename Call>
auto WithinMemory(const Budget& budget, Call&& call) -> decltype(call()) {
  try {
    return std::forward<Call>(call)();
  } catch (const OverBudget&) {
    return Fail(budget.status().error());
  }
}

}  // namespace foretoken::text::jinja
