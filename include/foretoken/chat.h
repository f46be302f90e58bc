// SPDX-License-Identifier: Apache-2.0
// foretoken/chat.h: conversations, and how they become a prompt.
//
//   const std::vector<foretoken::ChatMessage> messages = {{"user", "Who are you?"}};
//   request.prompt_tokens = *engine->FormatChat(messages, {});
//
// A chat model was trained on one way of writing a conversation, and the model file contains it as
// a Jinja template. foretoken runs the template and writes what Python's Jinja would write. A
// message can never become a control token: "<|im_end|>" typed by a user is text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace foretoken {

struct ChatMessage {
  std::string role;  // "system", "user", "assistant", "tool", or another that the template knows
  std::string content;
  // Other members of the message for the template, as a JSON object: tool_calls, tool_call_id,
  // name, reasoning_content. Its role and its content do not count, except a content that is null.
  // Empty: there are none.
  std::string members_json = {};
};

struct ChatOptions {
  // The name of one of the model file's templates if it has several, or one of ChatTemplateNames().
  // Empty: the file's own.
  std::string chat_template = {};
  bool add_generation_prompt = true;  // end with the beginning of an answer
  // For templates that tell the model the date: their variable date_string. Empty: the template
  // decides, and may use today's.
  std::string date = {};
  // The text of a Jinja template, used instead of the model file's. Empty: the file's.
  std::string template_text = {};
  // The tools that the model may call, as OpenAI's JSON list. Empty: none.
  std::string tools_json = {};
  // Further variables for the template, as a JSON object: {"enable_thinking": false}.
  std::string template_kwargs_json = {};
  // The most memory that writing the conversation may take, and then turning it into tokens, beside
  // the result. A template and a conversation that need more are an error (kTooLarge).
  std::size_t max_memory_bytes = std::size_t{256} << 20;
};

// Templates for files that have none: "chatml".
std::vector<std::string_view> ChatTemplateNames();

}  // namespace foretoken
