// SPDX-License-Identifier: Apache-2.0
// base/work_count.h: counts the work of a thread, so that a CancellationScope can end it.
#pragma once

#include <cstddef>
#include <utility>

#include "foretoken/cancellation.h"
#include "foretoken/result.h"

namespace foretoken {

// Until the thread's scopes are asked again.
constinit inline thread_local std::size_t work_until_question = CancellationScope::kWorkPerQuestion;

// Throws WorkCancelled if a scope of this thread says so.
void AskWhetherWorkIsWanted();

// For loops whose length a client or a file decides: `n` bytes, nodes or steps more, each of less
// than a microsecond. Throws WorkCancelled.
inline void CountWork(std::size_t n = 1) {
  if (n < work_until_question)
    work_until_question -= n;
  else
    AskWhetherWorkIsWanted();
}

// The result of call(), or an empty one where a scope ended it.
template <typename Call>
auto EmptyIfCancelled(Call&& call) -> decltype(call()) {
  try {
    return std::forward<Call>(call)();
  } catch (const WorkCancelled&) {
    return {};
  }
}

}  // namespace foretoken
