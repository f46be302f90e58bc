// SPDX-License-Identifier: Apache-2.0
// cli/chat/chat_session.h: everything that a chat remembers between two lines.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/chat/chat_engines.h"
#include "foretoken/chat.h"
#include "foretoken/request.h"
#include "foretoken/stats.h"

namespace foretoken::cli {

// The modes, in the order in which they answer.
enum class ChatMode : std::uint8_t { kSpeculative, kTarget, kDrafter, kNgram };
inline constexpr std::array<ChatMode, 4> kChatModes = {ChatMode::kSpeculative, ChatMode::kTarget,
                                                       ChatMode::kDrafter, ChatMode::kNgram};
const char* Name(ChatMode mode);  // "speculative"

// The totals of a mode since /reset_stats.
struct ChatTotals {
  SpeculationStats stats;
  std::int64_t answers = 0, tokens = 0;
  std::int64_t prompt_tokens = 0, cached_prompt_tokens = 0;  // read; found in the cache
  double decode_ms = 0;                                      // of `tokens`
};

struct ChatSession {
  ChatEngines engines;
  Request request;  // for every answer, except prompt and method
  bool uses_template = false;
  ChatOptions format;
  std::string system;                // "": none
  std::vector<ChatMessage> history;  // with the template only
  std::array<bool, 4> enabled = {};  // by ChatMode
  std::array<ChatTotals, 4> totals;
  bool debug = false;  // each round is shown
  bool quit = false;

  bool& Enabled(ChatMode mode) { return enabled[static_cast<std::size_t>(mode)]; }
  ChatTotals& Totals(ChatMode mode) { return totals[static_cast<std::size_t>(mode)]; }
};

}  // namespace foretoken::cli
