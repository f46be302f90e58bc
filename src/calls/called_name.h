// SPDX-License-Identifier: Apache-2.0
// calls/called_name.h: the name of a tool or an argument in a notation that writes names without
// quotes. A name with other characters than letters, digits, _ - . stands in the quotes of JSON.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "calls/tool_use.h"

namespace foretoken::calls {

// The name as such a notation writes it. REQUIRES: UTF-8.
std::string PlainOrQuoted(std::string_view name);

// Reads the name of a tool as PlainOrQuoted writes it, up to the bracket behind it.
class CalledName {
 public:
  enum class State {
    kOpen,
    kRead,  // it has ended, with the bracket behind it
    kOther  // it is no name
  };

  explicit CalledName(char bracket) : bracket_(bracket) {}
  void Begin() { written_.clear(), escaped_ = closed_ = false; }
  State Read(char c);
  // Once it is kRead.
  const std::string& name() const { return written_; }
  // The tool of this name; null: there is none.
  const Tool* ToolIn(const std::vector<Tool>& tools) const;

 private:
  char bracket_;
  std::string written_;
  bool escaped_ = false,
       closed_ = false;  // in quotes: behind a backslash, and behind the last quote
};

}  // namespace foretoken::calls
