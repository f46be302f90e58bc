// SPDX-License-Identifier: Apache-2.0
// server/log_writer.h: lines on their way to a descriptor whose reader may be slow, stalled or
// gone.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace foretoken::server {

// A thread of its own writes, and what waits for it is bounded: a line that finds no room is
// dropped and counted, and once lines flow again one of them says how many are missing.
class LogWriter {
 public:
  static constexpr std::size_t kMaxWaitingBytes = 1 << 20;

  explicit LogWriter(int descriptor);
  // What still waits has a second to leave.
  ~LogWriter();
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  // Any thread; never waits for the reader. The line has no break; the time is put before it.
  void Write(std::string_view line);
  // Lines that were dropped so far. Any thread.
  std::int64_t dropped() const;

 private:
  struct State;
  // Shared with the thread, which is left behind where a reader holds it at the end.
  const std::shared_ptr<State> state_;
};

}  // namespace foretoken::server
