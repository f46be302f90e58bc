// SPDX-License-Identifier: Apache-2.0
// server/api/llama_cpp_replies.h: writes the replies of llama.cpp's own paths, as JSON on one line.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "foretoken/engine.h"
#include "server/api/api_error.h"
#include "server/api/openai_schema.h"
#include "server/api/reply_writer.h"

namespace foretoken::server {

std::string LlamaCppErrorJson(const ApiError& error);

// generation_settings, without the seed. context: tokens.
std::string LlamaCppSettingsJson(const GenerationCall& call, int context);

// What a reply tells beside its answer.
struct LlamaCppReply {
  std::string settings_json;
  std::vector<std::string> stop;
  bool return_tokens = false;
  std::vector<std::string> response_fields;  // empty: all members
  // The text of a prompt, control tokens by their names.
  std::function<std::string(std::span<const std::int32_t>)> text_of;
  std::vector<std::size_t> prompt_sizes;  // the tokens of each prompt
  int n = 1;                              // choices of a prompt
};
std::unique_ptr<ReplyWriter> LlamaCppWriter(LlamaCppReply reply);

// GET /props and GET /slots.
struct LlamaCppProps {
  std::string name;           // the served model's
  std::string chat_template;  // "": not known
  std::string bos, eos;       // "": there is none
  int slots = 0, running = 0;
  int context = 0;  // tokens
  bool speculative = false;
};
std::string LlamaCppPropsJson(const LlamaCppProps& props);
std::string LlamaCppSlotsJson(const LlamaCppProps& props);

// POST /slots/N: what was saved, restored or erased.
struct LlamaCppSlotAction {
  int slot = 0;
  std::string filename;  // of a save or restore
  SlotCounts counts;
  double ms = 0;
};
std::string LlamaCppSavedJson(const LlamaCppSlotAction& action);
std::string LlamaCppRestoredJson(const LlamaCppSlotAction& action);
std::string LlamaCppErasedJson(const LlamaCppSlotAction& action);

}  // namespace foretoken::server
