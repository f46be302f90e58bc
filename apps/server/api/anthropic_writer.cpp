// SPDX-License-Identifier: Apache-2.0
#include "server/api/anthropic_writer.h"

#include <fmt/format.h>

#include <utility>

#include "server/api/object_text.h"
#include "server/net/sse.h"

namespace foretoken::server {
namespace {

using calls::AnswerPart;

constexpr OwnName kNamesOfMessages[] = {{"reasoning_effort", "output_config.effort"},
                                        {"thinking_budget_tokens", "thinking.budget_tokens"},
                                        {"response_format", "output_config.format"},
                                        {"stop", "stop_sequences"}};

const char* TypeOfError(const ApiError& error) {
  switch (error.status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    default:
      return error.status >= 500 ? "api_error" : "invalid_request_error";
  }
}

// Cached tokens do not count as read.
Json UsageOfMessage(const Usage& usage) {
  return {{"input_tokens", usage.prompt_tokens - usage.cached_prompt_tokens},
          {"cache_creation_input_tokens", 0},
          {"cache_read_input_tokens", usage.cached_prompt_tokens},
          {"output_tokens", usage.completion_tokens}};
}

class Messages final : public ReplyWriter {
 public:
  std::span<const OwnName> own_names() const override { return kNamesOfMessages; }
  LongText Whole(const ReplyFrame& frame, std::span<const Choice> choices, int n) override {
    LongText text;
    if (choices.empty()) return text;
    const Completion& completion = choices.front().end.completion;
    bool has_calls = false;
    std::string blocks;
    std::size_t n_blocks = 0;
    for (const auto& [kind, said, name] : BlocksOf(frame, completion.text)) {
      has_calls |= kind == Kind::kName;
      blocks.append(n_blocks > 0 ? "," : "").append(WholeBlock(frame, kind, said, name, n_blocks));
      ++n_blocks;
    }
    Json rest = {{"stop_reason", StopReason(completion.finish_reason, has_calls)},
                 {"stop_sequence", nullptr},
                 {"usage", UsageOfMessage(UsageOf(choices, n))}};
    if (auto notices = NoticesOf(frame, choices); !notices.empty())
      rest["notices"] = std::move(notices);
    std::string head = OneLine(MessageOf(frame));
    head.pop_back();
    text.Add(head + ",\"content\":[" + blocks + "]," + OneLine(rest).substr(1));
    return text;
  }

  const char* stream_type() const override { return kEventStream; }
  LongText Begin(const ReplyFrame& frame, int, const Echo&, std::vector<TokenLogprobs>) override {
    Json message = MessageOf(frame);
    message["content"] = Json::array();
    message["stop_reason"] = message["stop_sequence"] = nullptr;
    message["usage"] = UsageOfMessage({});
    LongText text;
    text.Add(Event("message_start", {{"message", std::move(message)}}));
    return text;
  }
  std::string Part(const ReplyFrame& frame, const StreamPart& part) override {
    std::string events;
    if (!part.parts) Say(frame, {Kind::kText, part.text}, events);
    for (const AnswerPart& said : part.parts.value_or(std::vector<AnswerPart>()))
      Say(frame, said, events);
    return events;
  }
  std::string End(const ReplyFrame& frame, int, const Completion& completion, bool has_calls,
                  std::span<const Choice> all) override {
    notices_ = NoticesOf(frame, all);
    stop_reason_ = StopReason(completion.finish_reason, has_calls);
    return Close();
  }
  std::string Finish(const ReplyFrame&, const Usage& usage) override {
    Json last = {{"delta", {{"stop_reason", stop_reason_}, {"stop_sequence", nullptr}}},
                 {"usage", UsageOfMessage(usage)}};
    if (!notices_.empty()) last["notices"] = notices_;
    return Event("message_delta", last) + Event("message_stop", Json::object());
  }
  std::string Failure(const ApiError& error) override {
    return fmt::format("event: error\n{}", EventText(AnthropicErrorJson(error)));
  }
  std::string Refusal(const ApiError& error) override { return AnthropicErrorJson(error); }

 private:
  using Kind = AnswerPart::Kind;
  struct Block {
    Kind kind;
    std::string said, name;  // of a call: its arguments
  };

  static std::string Event(const char* type, const Json& members) {
    Json all = {{"type", type}};
    all.update(members);
    return fmt::format("event: {}\n{}", type, EventText(OneLine(all)));
  }

  static Json MessageOf(const ReplyFrame& frame) {
    return {{"id", "msg_" + Number(frame)},
            {"type", "message"},
            {"role", "assistant"},
            {"model", frame.model}};
  }
  static std::string Number(const ReplyFrame& frame) {
    return frame.id.substr(frame.id.find('-') + 1);
  }
  static std::string CallId(const ReplyFrame& frame, std::size_t n) {
    return fmt::format("toolu_{}_{}", Number(frame), n);
  }
  static const char* StopReason(FinishReason reason, bool has_calls) {
    if (reason == FinishReason::kLength) return "max_tokens";
    return has_calls ? "tool_use" : "end_turn";
  }

  static std::vector<Block> BlocksOf(const ReplyFrame& frame, const std::string& text) {
    std::vector<Block> blocks;
    for (AnswerPart& part : frame.PartsOf(text)) {
      if (part.kind == Kind::kName)
        blocks.push_back({Kind::kName, "", std::move(part.text)});
      else if (part.kind != Kind::kArguments)
        blocks.push_back({part.kind, std::move(part.text), ""});
      else if (!blocks.empty())
        blocks.back().said += part.text;
    }
    return blocks;
  }

  // A block of text or of a thought.
  static Json SaidBlock(Kind kind, const std::string& said) {
    if (kind == Kind::kThought)
      return {{"type", "thinking"}, {"thinking", said}, {"signature", ""}};
    return {{"type", "text"}, {"text", said}};
  }

  // As JSON. A call's input is the text of its arguments, so that nothing of them changes; arguments
  // that the end of the answer cuts are none.
  static std::string WholeBlock(const ReplyFrame& frame, Kind kind, const std::string& said,
                                const std::string& name, std::size_t n) {
    if (kind != Kind::kName) return OneLine(SaidBlock(kind, said));
    const bool whole = said.starts_with('{') && ReadJson(said).has_value();
    return ObjectText()
        .Put("type", "\"tool_use\"")
        .Put("id", QuotedJson(CallId(frame, n)))
        .Put("name", QuotedJson(name))
        .Put("input", whole ? WithoutSpace(said) : "{}")
        .Text();
  }

  // A part of the answer, in the block that is open or in a new one.
  void Say(const ReplyFrame& frame, const AnswerPart& part, std::string& events) {
    if (part.kind == Kind::kName) {
      Open(Kind::kName,
           {{"type", "tool_use"},
            {"id", CallId(frame, n_blocks_)},
            {"name", part.text},
            {"input", Json::object()}},
           events);
      return;
    }
    if (part.text.empty()) return;
    const Kind kind = part.kind == Kind::kArguments ? Kind::kName : part.kind;
    if (!open_ || kind_ != kind) {
      if (kind == Kind::kName) return;  // without a name there is no call
      Open(kind, SaidBlock(kind, ""), events);
    }
    Json delta =
        kind == Kind::kName      ? Json{{"type", "input_json_delta"}, {"partial_json", part.text}}
        : kind == Kind::kThought ? Json{{"type", "thinking_delta"}, {"thinking", part.text}}
                                 : Json{{"type", "text_delta"}, {"text", part.text}};
    events += Event("content_block_delta", {{"index", n_blocks_ - 1}, {"delta", std::move(delta)}});
  }

  void Open(Kind kind, Json block, std::string& events) {
    events += Close();
    open_ = true, kind_ = kind;
    events +=
        Event("content_block_start", {{"index", n_blocks_++}, {"content_block", std::move(block)}});
  }
  std::string Close() {
    if (!std::exchange(open_, false)) return {};
    return Event("content_block_stop", {{"index", n_blocks_ - 1}});
  }

  bool open_ = false;
  Kind kind_ = Kind::kText;
  std::size_t n_blocks_ = 0;
  const char* stop_reason_ = "end_turn";
  std::vector<std::string> notices_;
};

}  // namespace

std::unique_ptr<ReplyWriter> AnthropicWriter() {
  return std::make_unique<Messages>();
}

std::string AnthropicErrorJson(const ApiError& error) {
  return OneLine(Json{{"type", "error"},
                      {"error", {{"type", TypeOfError(error)}, {"message", error.message}}}});
}

}  // namespace foretoken::server
