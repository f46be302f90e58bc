// SPDX-License-Identifier: Apache-2.0
#include "loader/file_watch.h"

#include <chrono>
#include <exception>
#include <utility>

#include "base/machine/background_thread.h"
#include "foretoken/result.h"
#include "model/weights/source_check.h"

namespace foretoken::loader {

FileWatch::~FileWatch() {
  pause_.End();
  if (thread_.joinable()) thread_.join();
}

void FileWatch::Add(const formats::Checkpoint& checkpoint, model::LocalRunner& runner) {
  watched_.push_back({.checkpoint = &checkpoint, .own = &runner});
}

void FileWatch::Add(const formats::Checkpoint& checkpoint, const model::LateRunner& runner) {
  watched_.push_back({.checkpoint = &checkpoint, .late = &runner});
}

// If the thread cannot be started, the sources of the tiles are not read again.
void FileWatch::Begin() {
  bool any = false;
  for (const Watched& w : watched_) any |= w.own != nullptr && !w.own->weights().sources().empty();
  if (!any) return;
  try {
    thread_ = BackgroundThread([this] { Read(); });
  } catch (const std::exception&) {
  }
}

Status FileWatch::CheckAll() {
  for (const Watched& w : watched_) {
    FORETOKEN_CHECK_OK(w.checkpoint->Check());
    if (model::LocalRunner* const runner = w.runner()) FORETOKEN_CHECK_OK(runner->CheckFiles());
  }
  return {};
}

void FileWatch::Note(Status status) noexcept {
  if (status || error_) return;
  error_ = std::move(status).error();
  failed_.store(true, std::memory_order_release);
}

bool FileWatch::Check() noexcept {
  if (failed_.load(std::memory_order_acquire)) return false;
  const std::lock_guard lock(mutex_);
  Note(CatchNoMemory("model files", [&] { return CheckAll(); }));
  return !error_;
}

Status FileWatch::status() const {
  const std::lock_guard lock(mutex_);
  if (error_) return Fail(*error_);
  for (const Watched& w : watched_) {
    FORETOKEN_CHECK_OK(w.checkpoint->Check());
    if (const model::LocalRunner* const runner = w.runner())
      FORETOKEN_CHECK_OK(runner->QuickCheckFiles());
  }
  return {};
}

void FileWatch::Read() noexcept {
  RunWhenIdle();
  Status status = CatchNoMemory("model files", [&] { return ReadSources(); });
  if (!status && status.error().code == ErrorCode::kNoMemory) return;
  const std::lock_guard lock(mutex_);
  Note(std::move(status));
}

Status FileWatch::ReadSources() {
  using Clock = std::chrono::steady_clock;
  for (const Watched& w : watched_) {
    if (w.own == nullptr || w.own->weights().sources().empty()) continue;
    model::SourceCheck check(*w.checkpoint, w.own->weights());
    for (bool more = true; more;) {
      const auto begin = Clock::now();
      more = check.Step();
      if (!pause_.For(3 * (Clock::now() - begin))) return {};
    }
    FORETOKEN_CHECK_OK(w.checkpoint->Check());  // a change of the file explains more
    FORETOKEN_CHECK_OK(check.Finish());
  }
  return {};
}

}  // namespace foretoken::loader
