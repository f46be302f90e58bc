// SPDX-License-Identifier: Apache-2.0
// base/thought_marks.h: the texts between which models are known to think before they answer.
#pragma once

#include <array>
#include <string_view>

namespace foretoken {

struct ThoughtMarks {
  std::string_view begin, end;

  bool StandIn(std::string_view chat_template) const {
    return chat_template.find(begin) != chat_template.npos &&
           chat_template.find(end) != chat_template.npos;
  }
};

// Where several stand in one template, the first ones count.
inline constexpr std::array kThoughtMarks = {
    ThoughtMarks{"<think>", "</think>"},
    ThoughtMarks{"[THINK]", "[/THINK]"},
    ThoughtMarks{"<seed:think>", "</seed:think>"},
    ThoughtMarks{"<|START_THINKING|>", "<|END_THINKING|>"},
    ThoughtMarks{"<|channel>thought", "<channel|>"},
    ThoughtMarks{"<|channel|>analysis<|message|>", "<|end|>"},
};

}  // namespace foretoken
