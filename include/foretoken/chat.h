// SPDX-License-Identifier: Apache-2.0
// foretoken/chat.h: conversations, and how they become a prompt.
//
//   const std::vector<foretoken::ChatMessage> messages = {{"user", "Who are you?"}};
//   request.prompt_tokens = *engine->FormatChat(messages, {});
//
// Chat models were trained on one way of writing a conversation; the model file carries it as a
// template. foretoken knows the templates of the common families and writes what they would write,
// character by character. What messages say never becomes a control token: "<|im_end|>" typed by a
// user is text.
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
  // One of ChatTemplateNames() or, where the model file has several templates, the name of one of
  // them. Empty: the file's own.
  std::string chat_template = {};
  bool add_generation_prompt = true;  // end with the beginning of an answer
  // For templates that tell the model the date: "26 Jul 2024". Empty: what the template says, which
  // may be today's.
  std::string date = {};
};

// "chatml", "llama2", "llama3", ...
std::vector<std::string_view> ChatTemplateNames();

}  // namespace foretoken
