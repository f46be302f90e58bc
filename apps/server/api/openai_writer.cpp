// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "server/api/plain_replies.h"
#include "server/api/reply_writer.h"
#include "server/net/sse.h"

namespace foretoken::server {
namespace {

class OpenAi final : public ReplyWriter {
 public:
  LongText Whole(const ReplyFrame& frame, std::span<const Choice> choices, int n) override {
    return ReplyText(frame, choices, n);
  }
  const char* stream_type() const override { return kEventStream; }
  LongText Begin(const ReplyFrame& frame, int choice, const Echo& echo,
                 std::vector<TokenLogprobs> logprobs) override {
    return EchoParts(frame, choice, echo, std::move(logprobs));
  }
  std::string Part(const ReplyFrame& frame, const StreamPart& part) override {
    return EventText(PartJson(frame, part));
  }
  std::string End(const ReplyFrame& frame, int choice, const Completion& completion, bool has_calls,
                  std::span<const Choice> all) override {
    return EventText(EndPartJson(frame, choice, completion.finish_reason, has_calls, all));
  }
  std::string Finish(const ReplyFrame& frame, const Usage& usage) override {
    return (frame.include_usage ? EventText(UsagePartJson(frame, usage)) : "") + LastEvent();
  }
  std::string Failure(const ApiError& error) override {
    return EventText(ErrorJson(error)) + LastEvent();
  }
  std::string Refusal(const ApiError& error) override { return ErrorJson(error); }
};

}  // namespace

std::unique_ptr<ReplyWriter> OpenAiWriter() {
  return std::make_unique<OpenAi>();
}

}  // namespace foretoken::server
