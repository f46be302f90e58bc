// SPDX-License-Identifier: Apache-2.0
// calls/json_call.h: reads a call that is written as a JSON object, character by character:
// {"name": "f", "arguments": {...}}, or with "tool_name", or with "parameters". Other members, such as
// ids, are left out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "calls/tool_use.h"

namespace foretoken::calls {

class JsonCall {
 public:
  enum class State { kOpen, kEnded, kBroken };

  // Reads the next character; the first one must be {. Arguments pass on as they come, once the name
  // is known. kBroken: it is no call; its text is raw().
  State Read(char c, std::vector<AnswerPart>& parts);
  // Whether the name has been passed on, so that it is a call, whatever follows.
  bool named() const { return named_; }
  // All of it, while it has no name.
  const std::string& raw() const { return raw_; }

 private:
  enum class At { kBegin, kKey, kInKey, kColon, kValue, kInValue, kBehind };

  State Broken() const { return named_ ? State::kEnded : State::kBroken; }
  State ReadKey(char c, std::vector<AnswerPart>& parts);
  State ReadValue(char c, std::vector<AnswerPart>& parts);
  void EndValue(std::vector<AnswerPart>& parts);
  void PassOn(std::string_view arguments, std::vector<AnswerPart>& parts);
  State End(std::vector<AnswerPart>& parts);

  At at_ = At::kBegin;
  std::string raw_, key_, value_;  // value_: of a name, or of arguments that must wait
  std::string waiting_;            // arguments that came before the name
  bool named_ = false, has_arguments_ = false;
  // Within the value.
  int depth_ = 0;
  bool in_text_ = false, escaped_ = false;
};

}  // namespace foretoken::calls
