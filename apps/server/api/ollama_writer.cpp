// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/api/json_fields.h"
#include "server/api/object_text.h"
#include "server/api/ollama_replies.h"
#include "server/api/reply_writer.h"

namespace foretoken::server {
namespace {

constexpr OwnName kOllamaNames[] = {{"max_tokens", "options.num_predict"},
                                    {"temperature", "options.temperature"},
                                    {"top_k", "options.top_k"},
                                    {"top_p", "options.top_p"},
                                    {"min_p", "options.min_p"},
                                    {"typical_p", "options.typical_p"},
                                    {"seed", "options.seed"},
                                    {"stop", "options.stop"},
                                    {"repetition_penalty", "options.repeat_penalty"},
                                    {"repeat_penalty", "options.repeat_penalty"},
                                    {"repeat_last_n", "options.repeat_last_n"},
                                    {"presence_penalty", "options.presence_penalty"},
                                    {"frequency_penalty", "options.frequency_penalty"},
                                    {"tfs_z", "options.tfs_z"},
                                    {"mirostat", "options.mirostat"},
                                    {"response_format", "format"},
                                    {"reasoning_effort", "think"},
                                    {"messages", "prompt"}};  // the last of generations alone

// Puts together what the parts of an answer say. Calls are given whole: one waits until the next
// part that is none of its arguments, or the end.
class OllamaAnswer {
 public:
  void Read(std::span<const calls::AnswerPart> parts) {
    using Kind = calls::AnswerPart::Kind;
    for (const calls::AnswerPart& part : parts) {
      if (part.kind != Kind::kArguments) EndCall(false);
      if (part.kind == Kind::kText) text_ += part.text;
      if (part.kind == Kind::kThought) thought_ += part.text;
      if (part.kind == Kind::kName) call_ = {part.text, ""};
      if (part.kind == Kind::kArguments && call_) call_->second += part.text;
    }
  }
  void Say(std::string_view text) { text_ += text; }
  // cut: the answer has been cut, perhaps in a call, which is then no call.
  void EndCall(bool cut) {
    if (!call_) return;
    auto [name, arguments] = *std::exchange(call_, std::nullopt);
    if (arguments.empty() && !cut) arguments = "{}";
    if (!ReadJson(arguments) || arguments.find_first_not_of(" \t\r\n") != arguments.find('{')) {
      lost_ = true;
      return;
    }
    // Line ends are between values, where a space serves as well.
    for (char& c : arguments)
      if (c == '\n' || c == '\r') c = ' ';
    calls_.append(calls_.empty() ? "" : ",")
        .append(fmt::format("{{\"function\":{{\"name\":{},\"arguments\":{}}}}}", QuotedJson(name),
                            arguments));
  }
  bool lost() const { return lost_; }  // a call that was cut
  bool empty() const { return text_.empty() && thought_.empty() && calls_.empty(); }

  // What was said since the last call, as a member of a reply.
  std::string Take(bool chat) {
    const std::string text = QuotedJson(std::exchange(text_, {}));
    const std::string thought = thought_.empty() ? "" : ",\"thinking\":" + QuotedJson(thought_);
    const std::string calls = std::exchange(calls_, {});
    thought_.clear();
    if (!chat) return "\"response\":" + text + thought;
    return fmt::format("\"message\":{{\"role\":\"assistant\",\"content\":{}{}{}}}", text, thought,
                       calls.empty() ? "" : ",\"tool_calls\":[" + calls + "]");
  }

 private:
  std::string text_, thought_, calls_;
  std::optional<std::pair<std::string, std::string>> call_;  // its name, and its arguments so far
  bool lost_ = false;
};

// At least one, as clients divide by it.
std::int64_t Nanoseconds(double ms) {
  return std::max<std::int64_t>(1, std::llround(ms * 1e6));
}

class Ollama final : public ReplyWriter {
 public:
  explicit Ollama(bool chat) : chat_(chat) {}

  LongText Whole(const ReplyFrame& frame, std::span<const Choice> choices, int) override {
    LongText text;
    text.AddLater([this, &frame, &choice = choices.front()](std::string& out) {
      answer_.Read(frame.PartsOf(choice.end.completion.text));
      answer_.EndCall(choice.end.completion.finish_reason != FinishReason::kStop);
      out += Last(frame, choice);
    });
    return text;
  }

  const char* stream_type() const override { return kOllamaLines; }
  LongText Begin(const ReplyFrame&, int, const Echo&, std::vector<TokenLogprobs>) override {
    return {};
  }
  std::string Part(const ReplyFrame& frame, const StreamPart& part) override {
    if (part.parts)
      answer_.Read(*part.parts);
    else
      answer_.Say(part.text);
    return Said(frame);
  }
  std::string End(const ReplyFrame& frame, int, const Completion& completion, bool,
                  std::span<const Choice> all) override {
    answer_.EndCall(completion.finish_reason != FinishReason::kStop);
    const std::string said = Said(frame);
    return all.empty() ? said : said + Last(frame, all.front()) + "\n";
  }
  std::string Finish(const ReplyFrame&, const Usage&) override { return {}; }
  std::string Failure(const ApiError& error) override { return Refusal(error) + "\n"; }
  std::string Refusal(const ApiError& error) override { return OllamaErrorJson(error); }
  std::span<const OwnName> own_names() const override {
    const std::span<const OwnName> names = kOllamaNames;
    return chat_ ? names.first(names.size() - 1) : names;
  }

 private:
  // The beginning of a reply or of a part, up to what was said.
  std::string Opening(const ReplyFrame& frame) {
    return fmt::format("{{\"model\":{},\"created_at\":\"{}\",{}", QuotedJson(frame.model),
                       OllamaTime(std::chrono::system_clock::now()), answer_.Take(chat_));
  }

  // What is to be told by now, as a line; nothing if there is nothing.
  std::string Said(const ReplyFrame& frame) {
    return answer_.empty() ? std::string() : Opening(frame) + ",\"done\":false}\n";
  }

  // A whole reply, or the last part of a stream.
  std::string Last(const ReplyFrame& frame, const Choice& choice) {
    const Completion& completion = choice.end.completion;
    Json rest = {{"done_reason", Name(completion.finish_reason)}, {"done", true}};
    if (!chat_) rest["context"] = Json::array();
    rest["total_duration"] = Nanoseconds(choice.end.total_ms);
    rest["load_duration"] = 0;
    rest["prompt_eval_count"] = completion.prompt_token_ids.size();
    rest["prompt_eval_duration"] = Nanoseconds(completion.timings.prompt_ms);
    rest["eval_count"] = completion.token_ids.size();
    rest["eval_duration"] = Nanoseconds(completion.timings.decode_ms);
    if (auto notices = Notices(frame, completion); !notices.empty())
      rest["notices"] = std::move(notices);
    return Opening(frame) + "," + OneLine(rest).substr(1);
  }

  std::vector<std::string> Notices(const ReplyFrame& frame, const Completion& completion) const {
    std::vector<std::string> notices = frame.notices;
    notices.insert(notices.end(), completion.notices.begin(), completion.notices.end());
    if (answer_.lost()) notices.emplace_back("tool_calls: a call that is not whole is left out");
    return notices;
  }

  const bool chat_;
  OllamaAnswer answer_;
};

}  // namespace

std::unique_ptr<ReplyWriter> OllamaWriter(bool chat) {
  return std::make_unique<Ollama>(chat);
}

}  // namespace foretoken::server
