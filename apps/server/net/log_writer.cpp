// SPDX-License-Identifier: Apache-2.0
#include "server/net/log_writer.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace foretoken::server {
namespace {

using Clock = std::chrono::steady_clock;

// A pipe that is ready accepts this much without waiting (PIPE_BUF).
constexpr std::size_t kWriteAtOnce = 4096;
constexpr int kLookEveryMs = 50;  // at the end, while the reader takes nothing
constexpr std::chrono::seconds kLastWords{1};

std::string Timed(std::string_view line) {
  const auto now = std::chrono::system_clock::now();
  const auto ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  return fmt::format("time={:%Y-%m-%dT%H:%M:%S}.{:03}Z{}\n",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(now)), ms, line);
}

std::int64_t LinesOf(std::string_view text) {
  return std::count(text.begin(), text.end(), '\n');
}

}  // namespace

struct LogWriter::State {
  void Run(int descriptor);
  bool Send(int descriptor, std::string_view text, std::size_t& sent);

  mutable std::mutex mutex;
  std::condition_variable changed;
  std::string waiting;                    // guarded, like all that follows
  std::int64_t dropped = 0, told_of = 0;  // lines; dropped lines that a line has reported
  std::optional<Clock::time_point> end;   // the latest end; set once it must stop
  bool ended = false;
};

// Nothing more is waited for: it must end.
bool LogWriter::State::Send(int descriptor, std::string_view text, std::size_t& sent) {
  while (sent < text.size()) {
    pollfd entry = {.fd = descriptor, .events = POLLOUT, .revents = 0};
    if (poll(&entry, 1, kLookEveryMs) <= 0) {
      const std::lock_guard lock(mutex);
      if (end && Clock::now() >= *end) return false;
      continue;
    }
    const ssize_t n =
        write(descriptor, text.data() + sent, std::min(kWriteAtOnce, text.size() - sent));
    if (n > 0) sent += static_cast<std::size_t>(n);
    if (n < 0 && errno != EINTR && errno != EAGAIN) return true;  // nobody reads, or no room
  }
  return true;
}

void LogWriter::State::Run(int descriptor) {
  std::unique_lock lock(mutex);
  for (bool on = true; on;) {
    changed.wait(lock, [this] { return !waiting.empty() || dropped > told_of || end; });
    if (waiting.empty() && dropped == told_of) break;
    std::string text = std::exchange(waiting, {});
    const std::int64_t missing = dropped - told_of;
    if (missing > 0) text += Timed(fmt::format(" error=log_stalled lines_dropped={}", missing));
    std::size_t sent = 0;
    lock.unlock();
    on = Send(descriptor, text, sent);
    lock.lock();
    const bool whole = sent == text.size();
    if (whole) told_of += missing;
    if (!whole) dropped += LinesOf(std::string_view(text).substr(sent)) - (missing > 0 ? 1 : 0);
    // If nobody reads, there is nobody to tell.
    if (!whole) told_of = dropped;
  }
  ended = true;
  changed.notify_all();
}

LogWriter::LogWriter(int descriptor) : state_(std::make_shared<State>()) {
  std::thread([state = state_, descriptor] { state->Run(descriptor); }).detach();
}

LogWriter::~LogWriter() {
  std::unique_lock lock(state_->mutex);
  state_->end = Clock::now() + kLastWords;
  state_->changed.notify_all();
  state_->changed.wait_until(lock, *state_->end + std::chrono::milliseconds(2 * kLookEveryMs),
                             [this] { return state_->ended; });
}

void LogWriter::Write(std::string_view line) {
  const std::string text = Timed(line);
  const std::lock_guard lock(state_->mutex);
  if (state_->waiting.size() + text.size() > kMaxWaitingBytes) {
    ++state_->dropped;
    return;
  }
  state_->waiting += text;
  state_->changed.notify_all();
}

std::int64_t LogWriter::dropped() const {
  const std::lock_guard lock(state_->mutex);
  return state_->dropped;
}

}  // namespace foretoken::server
