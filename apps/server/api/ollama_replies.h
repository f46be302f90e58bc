// SPDX-License-Identifier: Apache-2.0
// server/api/ollama_replies.h: writes Ollama's replies, as JSON on one line, but those of answers
// (ollama_writer.cpp). Bytes that are not UTF-8 become U+FFFD.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "server/api/model_replies.h"
#include "server/api/openai_replies.h"
#include "server/api/reply_writer.h"

namespace foretoken::server {

// A time as RFC 3339 has it, in UTC, with nine digits behind the second.
std::string OllamaTime(std::chrono::system_clock::time_point time);

inline constexpr const char kOllamaLines[] = "application/x-ndjson";  // of streams

std::string OllamaErrorJson(const ApiError& error);
// GET /api/tags, GET /api/ps and POST /api/show.
std::string OllamaTagsJson(const ServedModel& model);
std::string OllamaPsJson(const ServedModel& model);
std::string OllamaShowJson(const ServedModel& model);
// The reply to a request without messages or prompt: the model is loaded.
std::string OllamaLoadedJson(const std::string& model, bool chat);

// The form of chats, or that of /api/generate. It writes replies of one choice.
std::unique_ptr<ReplyWriter> OllamaWriter(bool chat);

}  // namespace foretoken::server
