// SPDX-License-Identifier: Apache-2.0
// text/chat_style.h: the families of chat templates as data: the text around each message.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace foretoken::text {

// The text around a message. {role}, {bos}, {eos} and {date} are replaced; control tokens are
// written as they are.
struct ChatTurn {
  std::string open, close;
  bool trim = false;  // white space at both ends of the message is removed
};

// Where a system message is written.
enum class SystemPlace { kTurn, kFirstUser, kLastUser, kNowhere };

struct ChatStyle {
  std::string name;
  std::string start;  // before everything
  ChatTurn system, user, assistant;
  std::string assistant_role = "assistant";  // replaces {role}
  std::string prompt;                        // asks for an answer
  std::string no_prompt;                     // ends a conversation that does not ask for an answer
  SystemPlace system_place = SystemPlace::kTurn;
  std::optional<ChatTurn> first_system;  // for a system message at the beginning, if it differs
  bool always_system = false;            // first_system is written even without a message
  std::optional<std::string> default_system;  // used if there is no system message at the beginning
  bool needs_system = false;    // the template's default can only be known by running it
  bool trims_folded = false;    // trim also covers the system message in the user's turn
  bool alternates = false;      // user and assistant must alternate
  bool prompts_always = false;  // `prompt` is written even if it is not asked for
  // Drops text before </think> in answers to earlier questions.
  bool forgets_thoughts = false;
  std::string date;  // {date} if none is given; "" is today
};

// The names of the families, in their listed order.
std::vector<std::string_view> ChatStyleNames();
std::optional<ChatStyle> ChatStyleNamed(std::string_view name);

// The style of a Jinja program; nothing if it has the marks of no family.
std::optional<ChatStyle> RecogniseChatStyle(std::string_view program);

}  // namespace foretoken::text
