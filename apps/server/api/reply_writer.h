// SPDX-License-Identifier: Apache-2.0
// server/api/reply_writer.h: the form of a reply. Each API has one: OpenAI's chats and completions,
// and those that are translated to them.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "server/api/api_error.h"
#include "server/api/long_text.h"
#include "server/api/openai_replies.h"
#include "server/api/own_names.h"

namespace foretoken::server {

// Writes one reply, whole or as a stream, in the order of the functions below. The frame, choices and
// echoes that it gets must outlive it and its texts.
class ReplyWriter {
 public:
  virtual ~ReplyWriter() = default;

  // What the client's API calls the fields of chats and completions. Errors and notices that the writer
  // gets have these names.
  virtual std::span<const OwnName> own_names() const { return {}; }

  // The body of a whole reply. n: choices of each prompt.
  virtual LongText Whole(const ReplyFrame& frame, std::span<const Choice> choices, int n) = 0;

  virtual const char* stream_type() const = 0;  // Content-Type
  // A choice begins. logprobs: of its echo, where the frame has them.
  virtual LongText Begin(const ReplyFrame& frame, int choice, const Echo& echo,
                         std::vector<TokenLogprobs> logprobs) = 0;
  // It goes on. The part says something, or the frame shows rounds.
  virtual std::string Part(const ReplyFrame& frame, const StreamPart& part) = 0;
  // It ends. all: the choices, if this is the last one to end; otherwise none.
  virtual std::string End(const ReplyFrame& frame, int choice, const Completion& completion,
                          bool has_calls, std::span<const Choice> all) = 0;
  // All have ended.
  virtual std::string Finish(const ReplyFrame& frame, const Usage& usage) = 0;
  // In place of what would follow: the error of a stream whose status has left.
  virtual std::string Failure(const ApiError& error) = 0;

  // The body of an error that is the whole reply.
  virtual std::string Refusal(const ApiError& error) = 0;
};

// OpenAI's form of completions and chats.
std::unique_ptr<ReplyWriter> OpenAiWriter();

}  // namespace foretoken::server
