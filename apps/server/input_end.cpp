// SPDX-License-Identifier: Apache-2.0
#include "server/input_end.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <mutex>
#include <thread>
#include <utility>

namespace foretoken::server {
namespace {

void ReadToEnd() {
  std::array<char, 4096> unwanted = {};
  while (true) {
    const ssize_t count = read(STDIN_FILENO, unwanted.data(), unwanted.size());
    if (count > 0 || (count < 0 && errno == EINTR)) continue;
    if (count == 0 || errno != EAGAIN) return;
    pollfd input = {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};  // it does not block
    poll(&input, 1, -1);
  }
}

}  // namespace

struct InputEnd::State {
  std::mutex mutex;
  Tell tell;
};

InputEnd::InputEnd(Tell tell) : state_(std::make_shared<State>()) {
  state_->tell = std::move(tell);
  std::thread([state = state_] {
    ReadToEnd();
    const std::lock_guard lock(state->mutex);
    if (state->tell) state->tell();
  }).detach();
}

InputEnd::~InputEnd() {
  SetTell({});
}

void InputEnd::SetTell(Tell tell) {
  const std::lock_guard lock(state_->mutex);
  state_->tell = std::move(tell);
}

}  // namespace foretoken::server
