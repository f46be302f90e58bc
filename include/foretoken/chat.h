// SPDX-License-Identifier: Apache-2.0
// foretoken/chat.h: conversations, and how they become a prompt.
//
//   const std::vector<foretoken::ChatMessage> messages = {{"user", "Who are you?"}};
//   request.prompt_tokens = *engine->FormatChat(messages, {});
//
// A chat model was trained on one way of writing a conversation, and the model file contains it as
// a template. foretoken knows the templates of the common families and writes exactly what they
// would write. A message can never become a control token: "<|im_end|>" typed by a user is text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace foretoken {

struct ChatMessage {
  std::string role;  // "system", "user" or "assistant"
  std::string content;
};

struct ChatOptions {
  // One of ChatTemplateNames(), or the name of one of the model file's templates if it has several.
  // Empty: the file's own.
  std::string chat_template = {};
  bool add_generation_prompt = true;  // end with the beginning of an answer
  // For templates that tell the model the date: "26 Jul 2024". Empty: the template decides, and may
  // use today's.
  std::string date = {};
};

// "chatml", "llama2", "llama3", ...
std::vector<std::string_view> ChatTemplateNames();

}  // namespace foretoken
