// SPDX-License-Identifier: Apache-2.0
// foretoken/cancellation.h: ends long work that nobody waits for any more.
//
//   const foretoken::CancellationScope scope([&] { return client_gone.load(); });
//   auto prepared = engine->Prepare(std::move(request));  // kStopped, once the client has gone
//
// A scope holds for its own thread while it lives: for writing a conversation, tokenizing a prompt,
// and compiling a grammar, a JSON schema, a pattern or choices. Such work asks the question each
// time it has read or made about 4,096 bytes, nodes or steps more, and ends with kStopped when the
// answer is yes. What it made so far is destroyed.
#pragma once

#include <cstddef>
#include <functional>

namespace foretoken {

class CancellationScope {
 public:
  static constexpr std::size_t kWorkPerQuestion = 4096;

  // `cancelled` must not throw. It is asked in this thread, until it has said yes once. Scopes may
  // be inside each other; then each one is asked.
  explicit CancellationScope(std::function<bool()> cancelled);
  // REQUIRES: the same thread; scopes that were made later have gone.
  ~CancellationScope();
  CancellationScope(const CancellationScope&) = delete;
  CancellationScope& operator=(const CancellationScope&) = delete;

  // Whether work was told to end.
  bool cancelled() const noexcept { return cancelled_; }

  // Asks the scopes of this thread.
  static bool AnyIsCancelled() noexcept;

 private:
  const std::function<bool()> question_;
  CancellationScope* const outer_;
  bool cancelled_ = false;
};

}  // namespace foretoken
