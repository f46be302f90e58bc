// SPDX-License-Identifier: Apache-2.0
// server/net/log_writer.h: writes lines to a descriptor whose reader may be slow, stalled or gone.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace foretoken::server {

// A separate thread writes, and the waiting lines are bounded. Further lines are dropped and
// counted; once lines flow again, one of them says how many are missing.
class LogWriter {
 public:
  static constexpr std::size_t kMaxWaitingBytes = 1 << 20;

  explicit LogWriter(int descriptor);
  // Waits at most a second for the remaining lines.
  ~LogWriter();
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  // Any thread; never waits for the reader. The line has no line break; the time is put before it.
  void Write(std::string_view line);
  // Lines that were dropped so far. Any thread.
  std::int64_t dropped() const;

 private:
  struct State;
  // Shared with the thread, which is left behind if a reader blocks it at the end.
  const std::shared_ptr<State> state_;
};

}  // namespace foretoken::server
