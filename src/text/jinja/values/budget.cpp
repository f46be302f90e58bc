// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/values/budget.h"

#include <fmt/format.h>

namespace foretoken::text::jinja {

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
    case Bound::kValueDepth:
      return fail(fmt::format("lists and dictionaries are more than {} inside each other",
                              limits_.value_depth));
    case Bound::kOutput:
      return fail(fmt::format("it writes more than {} characters", limits_.output_characters));
    case Bound::kMemory:
      break;
  }
  return fail(
      fmt::format("its values need more than {} MiB of memory", limits_.memory_bytes >> 20));
}

}  // namespace foretoken::text::jinja
