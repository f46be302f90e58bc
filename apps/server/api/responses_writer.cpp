// SPDX-License-Identifier: Apache-2.0
#include "server/api/responses_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "server/api/object_text.h"
#include "server/api/plain_replies.h"
#include "server/net/sse.h"

namespace foretoken::server {
namespace {

using calls::AnswerPart;

constexpr OwnName kNamesOfResponses[] = {{"messages", "input"},
                                         {"max_tokens", "max_output_tokens"},
                                         {"reasoning_effort", "reasoning.effort"},
                                         {"response_format", "text.format"}};

// The few codes that responses have for a failure.
const char* ResponseErrorCode(const ApiError& error) {
  if (error.status == 429) return "rate_limit_exceeded";
  return error.status >= 500 ? "server_error" : "invalid_prompt";
}

Json ResponseUsageJson(const Usage& usage) {
  return {{"input_tokens", usage.prompt_tokens},
          {"input_tokens_details", {{"cached_tokens", usage.cached_prompt_tokens}}},
          {"output_tokens", usage.completion_tokens},
          {"output_tokens_details", {{"reasoning_tokens", usage.reasoning_tokens}}},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens}};
}

// A message, a call of a function or a thought, as far as it has come.
struct OutputItem {
  AnswerPart::Kind kind = AnswerPart::Kind::kText;
  std::string id, call_id = {}, name = {};
  std::string text = {};  // a call's arguments
  const char* status = "in_progress";

  bool is_call() const { return kind == AnswerPart::Kind::kName; }
  bool is_thought() const { return kind == AnswerPart::Kind::kThought; }
  Json ContentPart() const {
    if (is_thought()) return {{"type", "reasoning_text"}, {"text", text}};
    return {{"type", "output_text"},
            {"text", text},
            {"annotations", Json::array()},
            {"logprobs", Json::array()}};
  }
  Json AsJson(bool with_content) const {
    if (is_call())
      return {{"type", "function_call"}, {"id", id},        {"call_id", call_id}, {"name", name},
              {"arguments", text},       {"status", status}};
    Json content = Json::array();
    if (with_content) content.push_back(ContentPart());
    if (is_thought())
      return {{"type", "reasoning"},
              {"id", id},
              {"summary", Json::array()},
              {"content", std::move(content)},
              {"status", status}};
    return {{"type", "message"},
            {"id", id},
            {"status", status},
            {"role", "assistant"},
            {"content", std::move(content)}};
  }
};

class Responses final : public ReplyWriter {
 public:
  explicit Responses(ResponsesReply reply) : reply_(std::move(reply)) {}

  std::span<const OwnName> own_names() const override { return kNamesOfResponses; }

  LongText Whole(const ReplyFrame& frame, std::span<const Choice> choices, int n) override {
    Start(frame);
    LongText text;
    if (choices.empty()) return text;
    const Completion& completion = choices.front().end.completion;
    for (const AnswerPart& part : frame.PartsOf(completion.text)) Say(part);
    EndItems(completion);
    text.Add(EndedText(ResponseUsageJson(UsageOf(choices, n))));
    return text;
  }

  const char* stream_type() const override { return kEventStream; }
  LongText Begin(const ReplyFrame& frame, int, const Echo&, std::vector<TokenLogprobs>) override {
    streams_ = true;
    Start(frame);
    EmitResponse("response.created", ResponseText(nullptr));
    EmitResponse("response.in_progress", ResponseText(nullptr));
    LongText text;
    text.Add(TakeEvents());
    return text;
  }
  std::string Part(const ReplyFrame&, const StreamPart& part) override {
    if (!part.parts)
      Say({AnswerPart::Kind::kText, part.text});
    else
      for (const AnswerPart& said : *part.parts) Say(said);
    return TakeEvents();
  }
  std::string End(const ReplyFrame&, int, const Completion& completion, bool,
                  std::span<const Choice>) override {
    EndItems(completion);
    return TakeEvents();
  }
  std::string Finish(const ReplyFrame&, const Usage& usage) override {
    EmitResponse(fmt::format("response.{}", status_).c_str(), EndedText(ResponseUsageJson(usage)));
    return TakeEvents();
  }
  std::string Failure(const ApiError& error) override {
    status_ = "failed";
    error_ = {{"code", ResponseErrorCode(error)}, {"message", error.message}};
    Emit("error", {{"code", NameOf(error)},
                   {"message", error.message},
                   {"param", NullIfEmpty(error.param)}});
    EmitResponse("response.failed", ResponseText(nullptr));
    return TakeEvents();
  }

  std::string Refusal(const ApiError& error) override { return ErrorJson(error); }

 private:
  void Start(const ReplyFrame& frame) {
    number_ = frame.id.substr(frame.id.find('-') + 1);
    created_ = frame.created;
    model_ = frame.model;
    notices_ = frame.notices;
  }

  void Say(const AnswerPart& part) {
    using Kind = AnswerPart::Kind;
    if (part.kind == Kind::kName) return Open(Kind::kName, part.text);
    if (part.text.empty()) return;
    const Kind kind = part.kind == Kind::kArguments ? Kind::kName : part.kind;
    if (!open_ || items_.back().kind != kind) {
      if (kind == Kind::kName) return;  // without a name there is no call
      Open(kind, {});
    }
    items_.back().text += part.text;
    if (kind == Kind::kName)
      EmitItem("response.function_call_arguments.delta", {{"delta", part.text}});
    else if (kind == Kind::kThought)
      EmitItem("response.reasoning_text.delta", {{"content_index", 0}, {"delta", part.text}});
    else
      EmitText("response.output_text.delta", {{"delta", part.text}});
  }

  void Open(AnswerPart::Kind kind, const std::string& name) {
    Close("completed");
    const std::size_t n = items_.size();
    OutputItem item{.kind = kind, .id = {}};
    const bool is_call = item.is_call();
    item.id = fmt::format("{}_{}_{}",
                          is_call             ? "fc"
                          : item.is_thought() ? "rs"
                                              : "msg",
                          number_, n);
    if (is_call) item.call_id = fmt::format("call_{}_{}", number_, n), item.name = name;
    items_.push_back(std::move(item));
    open_ = true;
    if (!streams_) return;
    EmitOutput("response.output_item.added", false);
    if (!is_call)
      EmitItem("response.content_part.added",
               {{"content_index", 0}, {"part", items_.back().ContentPart()}});
  }

  void Close(const char* status) {
    if (!std::exchange(open_, false)) return;
    OutputItem& item = items_.back();
    item.status = status;
    if (!streams_) return;
    if (item.is_call()) {
      EmitItem("response.function_call_arguments.done",
               {{"name", item.name}, {"arguments", item.text}});
    } else if (item.is_thought()) {
      EmitItem("response.reasoning_text.done", {{"content_index", 0}, {"text", item.text}});
      EmitItem("response.content_part.done", {{"content_index", 0}, {"part", item.ContentPart()}});
    } else {
      EmitText("response.output_text.done", {{"text", item.text}});
      EmitItem("response.content_part.done", {{"content_index", 0}, {"part", item.ContentPart()}});
    }
    EmitOutput("response.output_item.done", true);
  }

  void EndItems(const Completion& completion) {
    const bool cut = completion.finish_reason == FinishReason::kLength;
    if (items_.empty()) Open(AnswerPart::Kind::kText, {});
    status_ = cut ? "incomplete" : "completed";
    Close(status_);
    for (const std::string& notice : completion.notices)
      if (std::find(notices_.begin(), notices_.end(), notice) == notices_.end())
        notices_.push_back(notice);
  }

  // Keeps the response, and returns it.
  std::string EndedText(const Json& usage) {
    if (reply_.keep == nullptr) return ResponseText(usage);
    StoredResponse response{.id = "resp_" + number_, .previous = reply_.previous};
    for (const OutputItem& item : items_)
      response.output.push_back({item.id, OneLine(item.AsJson(true))});
    response.head = HeadText();
    response.tail = TailText(usage);
    if (!reply_.keep(std::move(response))) {
      reply_.keep = nullptr;
      notices_.emplace_back(
          "store: the response and its input are larger than what is kept for one client, so it "
          "cannot be continued by its id");
    }
    return ResponseText(usage);
  }

  std::string ResponseText(const Json& usage) const {
    std::string text = HeadText();
    for (const OutputItem& item : items_)
      text.append(&item != &items_.front() ? "," : "").append(OneLine(item.AsJson(true)));
    return text + TailText(usage);
  }

  // The response before its output items.
  std::string HeadText() const {
    Json head = {{"id", "resp_" + number_},
                 {"object", "response"},
                 {"created_at", created_},
                 {"status", status_},
                 {"background", false},
                 {"error", error_},
                 {"incomplete_details", nullptr},
                 {"model", model_},
                 {"previous_response_id", nullptr},
                 {"store", reply_.keep != nullptr}};
    if (!reply_.previous.empty()) head["previous_response_id"] = reply_.previous;
    if (std::string_view(status_) == "incomplete")
      head["incomplete_details"] = {{"reason", "max_output_tokens"}};
    std::string text = OneLine(head);
    text.back() = ',';
    return text + reply_.echo + ",\"output\":[";
  }

  // The response behind its output items.
  std::string TailText(const Json& usage) const {
    const bool ends = std::string_view(status_) != "in_progress";
    Json tail = {{"usage", usage}};
    if (ends && !notices_.empty())
      for (const std::string& notice : notices_) tail["notices"].push_back(notice);
    return "]," + OneLine(tail).substr(1);
  }

  // An event. data: its members after the type and the number, as JSON.
  void Write(const char* type, std::string_view members) {
    events_ += fmt::format("event: {}\n", type);
    events_ += EventText(fmt::format("{{\"type\":\"{}\",\"sequence_number\":{},{}}}", type,
                                     sequence_number_++, members));
  }
  void Emit(const char* type, const Json& members) {
    const std::string text = OneLine(members);
    if (streams_) Write(type, std::string_view(text).substr(1, text.size() - 2));
  }
  void EmitResponse(const char* type, const std::string& response) {
    Write(type, "\"response\":" + response);
  }
  void EmitOutput(const char* type, bool with_content) {
    Emit(type, {{"output_index", items_.size() - 1}, {"item", items_.back().AsJson(with_content)}});
  }
  void EmitItem(const char* type, const Json& members) {
    Json all = {{"item_id", items_.back().id}, {"output_index", items_.size() - 1}};
    all.update(members);
    Emit(type, all);
  }
  void EmitText(const char* type, const Json& member) {
    Json all = {{"content_index", 0}};
    all.update(member);
    all["logprobs"] = Json::array();
    EmitItem(type, all);
  }
  std::string TakeEvents() { return std::exchange(events_, {}); }

  ResponsesReply reply_;
  std::string number_, model_;
  std::int64_t created_ = 0;
  const char* status_ = "in_progress";
  Json error_ = nullptr;
  std::vector<std::string> notices_;
  std::vector<OutputItem> items_;
  bool open_ = false;  // the last item goes on
  bool streams_ = false;
  int sequence_number_ = 0;
  std::string events_;  // that have not been taken
};

}  // namespace

std::unique_ptr<ReplyWriter> ResponsesWriter(ResponsesReply reply) {
  return std::make_unique<Responses>(std::move(reply));
}

}  // namespace foretoken::server
