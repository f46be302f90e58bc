// SPDX-License-Identifier: Apache-2.0
// server/input_end.h: the end of the standard input.
#pragma once

#include <functional>
#include <memory>

namespace foretoken::server {

// A thread reads the standard input from now on and drops what it reads. At the end it calls `tell`,
// once. It is left to itself when this object is gone, and calls nothing then.
class InputEnd {
 public:
  using Tell = std::function<void()>;

  explicit InputEnd(Tell tell);
  ~InputEnd();
  InputEnd(const InputEnd&) = delete;
  InputEnd& operator=(const InputEnd&) = delete;

  // The end calls this one instead; an empty one: nothing. Does not return while another one runs.
  void SetTell(Tell tell);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace foretoken::server
