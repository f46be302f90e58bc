// SPDX-License-Identifier: Apache-2.0
// capi/result.h: what a request gave, with the lists that foretoken_result_view points to.
#pragma once

#include <vector>

#include "foretoken.h"
#include "foretoken/event_stream.h"

struct foretoken_result {
  explicit foretoken_result(foretoken::ChoiceEnd ended);
  foretoken_result(const foretoken_result&) = delete;
  foretoken_result& operator=(const foretoken_result&) = delete;

  const foretoken::ChoiceEnd end;
  std::vector<float> logprobs, top_logprobs;
  std::vector<std::size_t> top_offsets;
  std::vector<std::int32_t> top_tokens;
  foretoken_result_view view = {};
};
