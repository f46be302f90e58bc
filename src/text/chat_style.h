// SPDX-License-Identifier: Apache-2.0
// text/chat_style.h: the families of chat templates as data: what stands around each message.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace foretoken::text {

// What surrounds a message. In these texts {role}, {bos}, {eos} and {date} stand for those;
// control tokens are written as they are.
struct ChatTurn {
  std::string open, close;
  bool trim = false;  // the message loses the white space at its ends
};

// Where a system message goes.
enum class SystemPlace { kTurn, kFirstUser, kLastUser, kNowhere };

struct ChatStyle {
  std::string name;
  std::string start;  // before everything
  ChatTurn system, user, assistant;
  std::string assistant_role = "assistant";  // what {role} says
  std::string prompt;                        // asks for an answer
  std::string no_prompt;                     // ends a conversation that asks for none
  SystemPlace system_place = SystemPlace::kTurn;
  std::optional<ChatTurn> first_system;  // of a system message that stands first, if it differs
  bool always_system = false;            // first_system stands there without a message, too
  std::optional<std::string> default_system;  // where no system message stands first
  bool needs_system = false;      // the template has a default that only running it would tell
  bool trims_folded = false;      // trimming includes the system message in the user's turn
  bool alternates = false;        // user and assistant in turn, else an error
  bool prompts_always = false;    // the template does not ask whether to write `prompt`
  bool forgets_thoughts = false;  // of answers before the last question: what </think> ends
  std::string date;               // {date} where none is given; "" is today
};

// The families by name, in the order in which they are told.
std::vector<std::string_view> ChatStyleNames();
std::optional<ChatStyle> ChatStyleNamed(std::string_view name);

// The style of a Jinja program; nothing where its marks are those of no family.
std::optional<ChatStyle> RecogniseChatStyle(std::string_view program);

}  // namespace foretoken::text
