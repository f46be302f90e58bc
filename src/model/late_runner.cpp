// SPDX-License-Identifier: Apache-2.0
#include "model/late_runner.h"

#include <exception>
#include <utility>

#include "base/machine/background_thread.h"

namespace foretoken::model {

LateRunner::LateRunner(const RunnerInfo& info, Load load,
                       std::function<void(std::string)> on_failure,
                       std::chrono::milliseconds patience)
    : reduced_tokens_(info.reduced_tokens.begin(), info.reduced_tokens.end()),
      load_(std::move(load)),
      on_failure_(std::move(on_failure)) {
  info_ = info;
  info_.reduced_tokens = reduced_tokens_;
  try {
    thread_ = BackgroundThread([this, patience] { Make(patience); });
  } catch (const std::exception& e) {
    why_none_ = e.what();
    failed_ = true;
  }
}

LateRunner::~LateRunner() {
  making_.stop = true;
  unasked_.End();
  if (thread_.joinable()) thread_.join();
}

void LateRunner::Make(std::chrono::milliseconds patience) noexcept {
  unasked_.For(patience);
  try {
    auto made = load_(making_);
    if (made) {
      own_ = *std::move(made);
      made_.store(own_.get(), std::memory_order_release);
      return;
    }
    why_none_ = std::move(made).error().message;
  } catch (const std::exception& e) {
    why_none_ = e.what();
  }
  failed_.store(true, std::memory_order_release);
}

bool LateRunner::Ready() noexcept {
  if (made() != nullptr) return true;
  if (!asked_) {
    asked_ = true;
    unasked_.End();
  }
  if (!told_ && why_none() != nullptr) Tell();
  return false;
}

void LateRunner::Tell() noexcept {
  told_ = true;
  try {
    on_failure_(why_none_);
  } catch (const std::exception&) {  // there is no memory for the text
  }
}

}  // namespace foretoken::model
