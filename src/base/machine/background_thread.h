// SPDX-License-Identifier: Apache-2.0
// base/machine/background_thread.h: a thread for work that may wait.
#pragma once

#include <functional>
#include <thread>

namespace foretoken {

// Starts a thread that takes no signals but SIGBUS (of a mapped file that was cut short): they are for the
// program's own threads. Throws std::system_error if there is no thread, as std::thread does.
std::thread BackgroundThread(std::function<void()> work);

// From now on the calling thread runs only when no other wants to. If the system refuses, nothing changes.
void RunWhenIdle() noexcept;

}  // namespace foretoken
