// SPDX-License-Identifier: Apache-2.0
// server/api/answer_facts.h: what statistics tell of an answer's parts.
#pragma once

#include <cstdint>

#include "foretoken/engine.h"

namespace foretoken::server {

struct ReplyFrame;

struct AnswerFacts {
  bool has_calls = false;  // of tools
  // Tokens of thoughts and of their marks. One that holds the end of a thought and more belongs
  // to it.
  std::int64_t reasoning_tokens = 0;
};

// Takes time in proportion to the answer.
AnswerFacts FactsOf(const ReplyFrame& frame, const Completion& completion);

}  // namespace foretoken::server
