// SPDX-License-Identifier: Apache-2.0
// draft/lookup/text_room.h: how long the text of a sequence can become.
#pragma once

#include <algorithm>
#include <cstdint>

#include "draft/drafter.h"

namespace foretoken::draft {

// Tokens of prompt and output, one more than can be read, because the newest is never processed.
inline int TextRoom(const SequenceStart& start, int max_context) {
  // In 64 bits: max_new_tokens may be anything.
  const auto prompt = static_cast<std::int64_t>(start.prompt.size());
  const auto context = std::max<std::int64_t>(prompt, max_context);
  return static_cast<int>(std::min<std::int64_t>(prompt + start.max_new_tokens, context)) + 1;
}

}  // namespace foretoken::draft
