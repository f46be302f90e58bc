// SPDX-License-Identifier: Apache-2.0
#include <signal.h>

#include <array>
#include <atomic>
#include <cerrno>

namespace foretoken {
namespace {

using SignalHandler = void (*)(int);

// By the signal's number: Windows forgets a handler when it calls it, so it is set again.
std::array<std::atomic<SignalHandler>, NSIG> g_handlers;

void HandleAgain(int number) {
  ::signal(number, HandleAgain);
  if (const SignalHandler handler = g_handlers[static_cast<std::size_t>(number)].load())
    handler(number);
}

}  // namespace

int sigaction(int number, const struct sigaction* action, struct sigaction* before) {
  if (number < 0 || number >= NSIG) return errno = EINVAL, -1;
  auto& kept = g_handlers[static_cast<std::size_t>(number)];
  const SignalHandler old_kept = kept.load();
  SignalHandler set = action == nullptr ? SIG_DFL : action->sa_handler;
  if (action != nullptr && set != SIG_DFL && set != SIG_IGN &&
      (action->sa_flags & SA_RESETHAND) == 0) {
    kept.store(set);
    set = HandleAgain;
  }
  const SignalHandler old = ::signal(number, set);
  if (old == SIG_ERR) return -1;
  if (action == nullptr) ::signal(number, old);
  if (before != nullptr)
    *before = {.sa_handler = old == HandleAgain ? old_kept : old,
               .sa_flags = old == HandleAgain ? 0 : SA_RESETHAND};
  return 0;
}

}  // namespace foretoken
