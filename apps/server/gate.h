// SPDX-License-Identifier: Apache-2.0
// server/gate.h: a server's connections while no request is under way on them.
//
// One thread takes connections in and reads from all of them. A request that has come whole goes,
// with its connection, to a worker thread, and the connection comes back when it is answered. So a
// client that is slow to ask, or that only holds its connection open, costs bytes and no thread.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "server/framing.h"
#include "server/worker_threads.h"

namespace foretoken::server {

// A whole request, for the worker that answers it.
struct Visit {
  int socket = -1;  // open until the worker is done; not blocking
  std::string_view request;
  int number = 1;  // of the connection's requests
};

class Gate {
 public:
  struct Options {
    int max_workers = 64;
    // More wait until one ends; the one that has been idle the longest is made to.
    int max_connections = 1024;
    std::chrono::seconds idle_timeout{30}, read_timeout{30};
    Framing::Limits limits;
  };
  // Answers on the socket, in a worker thread. False: the connection ends.
  using Serve = std::function<bool(const Visit&)>;
  // What is sent, whole, to who asked for nothing that can be answered: 400, 408, 413, 431, 503.
  using Refusal = std::function<std::string(int status)>;

  Gate(const Options& options, Serve serve, Refusal refuse);
  ~Gate();
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  // Serves the socket, which it closes, until Stop was called and all connections have ended.
  // REQUIRES: `listener` listens; called once.
  void Work(int listener);
  // Any thread. Takes in what waits at the door, and nothing more; connections without a request
  // end; answers under way have `grace` to leave. Returns at once.
  void Stop(std::chrono::milliseconds grace);
  bool stopping() const { return stopping_.load(std::memory_order_relaxed); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Guest;

  void HandleEvents();
  void Admit();
  void OpenDoor(bool open);
  bool MakeRoom();
  void Receive(Guest& guest);
  void Look(Guest& guest);
  void HandOver(Guest& guest);
  void TakeBack();
  void TakeBack(Guest& guest, bool stays);
  void Await(Guest& guest);
  Clock::time_point After(std::chrono::milliseconds time) const;
  void Refuse(Guest& guest, int status);
  void Leave(Guest& guest);
  void Close(Guest& guest);
  void LookAtClocks();
  void BeginStop();
  void Watch(int fd);
  void Unwatch(int fd);
  void Wake();

  const Options options_;
  const Serve serve_;
  const Refusal refuse_;
  int epoll_ = -1, listener_ = -1;
  int wake_read_ = -1, wake_write_ = -1;
  bool door_open_ = false, stop_begun_ = false;
  Clock::time_point next_look_;
  std::unordered_map<int, std::unique_ptr<Guest>> guests_;  // by socket
  std::size_t held_bytes_ = 0;                              // of requests that are not whole

  std::atomic<bool> stopping_ = false;
  std::mutex mutex_;
  Clock::time_point stop_end_;                     // guarded
  std::vector<std::pair<Guest*, bool>> returned_;  // guarded; true: it stays
  std::unique_ptr<WorkerThreads> workers_;         // the last member: they use the others
};

}  // namespace foretoken::server
