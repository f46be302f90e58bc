// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/values/budget.h"

#include <fmt/format.h>

#include "base/machine/stack.h"
#include "foretoken/cancellation.h"

namespace foretoken::text::jinja {
namespace {

// What the deepest call that does not go through Enter may need: a walk through a value of the
// greatest depth, with the numbers that it formats.
constexpr std::size_t kLeastStack = 96 << 10;

}  // namespace

bool Budget::Enter() noexcept {
  if (++depth_ > limits_.depth) Exceed(Bound::kDepth);
  if (StackLeft() < kLeastStack) Exceed(Bound::kStack);
  return !over();
}

void Budget::Look() noexcept {
  if (steps_ > limits_.steps) Exceed(Bound::kSteps);
  if (CancellationScope::AnyIsCancelled()) Exceed(Bound::kCancelled);
  next_look_ = std::min(steps_ + kStepsPerLook, std::max(steps_, limits_.steps) + 1);
}

Status Budget::status() const {
  const auto fail = [](std::string why) {
    return Fail(ErrorCode::kTooLarge,
                std::move(why) + "; use another template, or a shorter conversation");
  };
  switch (exceeded_) {
    case Bound::kNone:
      return {};
    case Bound::kSteps:
      return fail(fmt::format("it needs more than {} steps", limits_.steps));
    case Bound::kDepth:
      return fail(fmt::format("expressions, blocks and macros are more than {} inside each other",
                              limits_.depth));
    case Bound::kStack:
      return fail(
          fmt::format("expressions, blocks and macros are {} inside each other, and this thread's "
                      "stack has no room for more",
                      depth_));
    case Bound::kValueDepth:
      return fail(fmt::format("lists and dictionaries are more than {} inside each other",
                              limits_.value_depth));
    case Bound::kOutput:
      return fail(fmt::format("it writes more than {} characters", limits_.output_characters));
    case Bound::kCancelled:
      return Fail(ErrorCode::kStopped,
                  "it was cancelled while its text was written; ask again if you want it");
    case Bound::kMemory:
      break;
  }
  return fail(
      fmt::format("its values need more than {} MiB of memory", limits_.memory_bytes >> 20));
}

}  // namespace foretoken::text::jinja
