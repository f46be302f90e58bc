// SPDX-License-Identifier: Apache-2.0
// Conversations of foretoken.h.
#include "foretoken/chat.h"

#include <utility>
#include <vector>

#include "capi/engine.h"
#include "capi/lists.h"

struct foretoken_chat {
  std::vector<foretoken::ChatMessage> messages;
};

namespace foretoken::capi {
namespace {

// Options that may be NULL.
Result<ChatOptions> ChatOptionsOf(const foretoken_options* options) {
  if (options == nullptr) return ChatOptions();
  FORETOKEN_CHECK_OK(NeedsKind(options, FORETOKEN_CHAT));
  return options->chat;
}

}  // namespace
}  // namespace foretoken::capi

using foretoken::Status;
namespace capi = foretoken::capi;

extern "C" {

foretoken_status foretoken_chat_create(foretoken_chat** chat, foretoken_error** error) {
  return capi::Guarded(error, [&]() -> Status {
    FORETOKEN_CHECK_OK(capi::Needs(chat, "chat"));
    *chat = nullptr;
    *chat = new foretoken_chat();
    return {};
  });
}

foretoken_status foretoken_chat_add(foretoken_chat* chat, const char* role, const char* content,
                                    size_t size, const char* members_json,
                                    foretoken_error** error) {
  return capi::Guarded(error, [&]() -> Status {
    FORETOKEN_CHECK_OK(capi::Needs(chat, "chat"));
    FORETOKEN_CHECK_OK(capi::Needs(role, "role"));
    FORETOKEN_CHECK_OK(capi::NeedsList(content, size, "content"));
    chat->messages.push_back({role, std::string(capi::TextOf(content, size)),
                              members_json == nullptr ? "" : members_json});
    return {};
  });
}

foretoken_status foretoken_chat_tokens(const foretoken_chat* chat, const foretoken_engine* engine,
                                       const foretoken_options* options, int32_t* tokens,
                                       size_t capacity, size_t* count, foretoken_error** error) {
  return capi::Guarded(error, [&]() -> Status {
    FORETOKEN_CHECK_OK(capi::Needs(chat, "chat"));
    FORETOKEN_CHECK_OK(capi::Needs(engine, "engine"));
    FORETOKEN_TRY(const auto format, capi::ChatOptionsOf(options));
    FORETOKEN_TRY(const auto written, engine->engine->engine().FormatChat(chat->messages, format));
    return capi::Give(written, tokens, capacity, count);
  });
}

foretoken_status foretoken_chat_text(const foretoken_chat* chat, const foretoken_engine* engine,
                                     const foretoken_options* options, char* text, size_t capacity,
                                     size_t* count, foretoken_error** error) {
  return capi::Guarded(error, [&]() -> Status {
    FORETOKEN_CHECK_OK(capi::Needs(chat, "chat"));
    FORETOKEN_CHECK_OK(capi::Needs(engine, "engine"));
    FORETOKEN_TRY(const auto format, capi::ChatOptionsOf(options));
    FORETOKEN_TRY(const auto written, engine->engine->engine().WriteChat(chat->messages, format));
    return capi::GiveText(written, text, capacity, count);
  });
}

void foretoken_chat_free(foretoken_chat* chat) {
  delete chat;
}

}  // extern "C"
