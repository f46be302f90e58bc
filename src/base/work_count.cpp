// SPDX-License-Identifier: Apache-2.0
#include "base/work_count.h"

#include <utility>

namespace foretoken {
namespace {

constinit thread_local CancellationScope* innermost_scope = nullptr;

}  // namespace

CancellationScope::CancellationScope(std::function<bool()> cancelled)
    : question_(std::move(cancelled)), outer_(std::exchange(innermost_scope, this)) {
  work_until_question = kWorkPerQuestion;
}

CancellationScope::~CancellationScope() {
  innermost_scope = outer_;
  work_until_question = kWorkPerQuestion;
}

bool CancellationScope::AnyIsCancelled() noexcept {
  for (CancellationScope* scope = innermost_scope; scope != nullptr; scope = scope->outer_) {
    scope->cancelled_ = scope->cancelled_ || scope->question_();
    if (scope->cancelled_) return true;
  }
  return false;
}

void AskWhetherWorkIsWanted() {
  const bool cancelled = CancellationScope::AnyIsCancelled();
  work_until_question = cancelled ? 0 : CancellationScope::kWorkPerQuestion;
  if (cancelled) throw WorkCancelled();
}

}  // namespace foretoken
