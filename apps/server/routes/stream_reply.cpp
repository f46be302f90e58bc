// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "server/router.h"
#include "server/routes/answer.h"
#include "server/sse.h"

namespace foretoken::server {
namespace {

// An answer as events. What rounds are there when the connection can take more go out together.
class ReplyStream : public BodyStream {
 public:
  ReplyStream(Service& service, std::unique_ptr<Answer> answer, ReplyFrame frame, LogLine line)
      : service_(service),
        answer_(std::move(answer)),
        frame_(std::move(frame)),
        line_(std::move(line)),
        shown_(answer_->choices().size()) {}

  ~ReplyStream() override {
    if (!answer_->ended() && !failed_) line_.Add("error", "client_gone");
    if (failed_) line_.Add("error", answer_->failure().code);
    if (answer_->ended()) answer_->Describe(line_);
    service_.log.Write(line_.Add("status", 200));
  }
  ReplyStream(const ReplyStream&) = delete;
  ReplyStream& operator=(const ReplyStream&) = delete;

  void Begin(const Event& event) { Show(event, begun_); }

  bool Next(std::string& part) override {
    part = std::exchange(begun_, {});
    while (part.empty()) {
      if (done_) return false;
      const auto event = answer_->Next();
      if (!event) return Abort(part);
      Show(*event, part);
      if (answer_->ended()) Finish(part);
    }
    while (!done_) {
      const auto event = answer_->NextReady();
      if (!event) break;
      Show(*event, part);
      if (answer_->ended()) Finish(part);
    }
    return true;
  }

 private:
  struct Shown {
    std::size_t text = 0;    // bytes
    std::size_t offset = 0;  // of the next token, in bytes
    int rounds = 0;
  };

  void Show(const Event& event, std::string& out) {
    const int choice = event.choice;
    Shown& shown = shown_[static_cast<std::size_t>(choice)];
    const Choice& known = answer_->choices()[static_cast<std::size_t>(choice)];
    // Log-probabilities of the prompt are known when it has been read.
    if (event.kind == Event::Kind::kBegun && !frame_.echo_logprobs &&
        (frame_.chat || !known.echo.text.empty()))
      out += EventText(EchoPartJson(frame_, choice, known.echo, {}));
    if (event.kind == Event::Kind::kRound) {
      if (shown.rounds == 0) ShowEcho(choice, event.round.prompt_logprobs, shown, out);
      ShowRound(event, shown, out);
    }
    if (event.kind == Event::Kind::kEnd) {
      const Completion& completion = known.end.completion;
      if (shown.rounds == 0) ShowEcho(choice, completion.prompt_logprobs, shown, out);
      ShowEnd(choice, completion, shown, out);
    }
  }

  void ShowEcho(int choice, std::span<const TokenLogprobs> logprobs, Shown& shown,
                std::string& out) {
    if (!frame_.echo_logprobs) return;
    const Echo& echo = answer_->choices()[static_cast<std::size_t>(choice)].echo;
    out += EventText(EchoPartJson(frame_, choice, echo, logprobs));
    shown.offset = echo.text.size();
  }

  void ShowRound(const Event& event, Shown& shown, std::string& out) {
    const RoundRecord& round = event.round;
    StreamPart part{.choice = event.choice,
                    .text = round.text,
                    .round = &round,
                    .round_number = ++shown.rounds,
                    .text_offset = shown.offset};
    if (frame_.logprobs)
      for (const RoundToken& token : round.tokens) shown.offset += frame_.piece(token.id).size();
    shown.text += round.text.size();
    if (round.text.empty() && !frame_.logprobs && !frame_.trace) return;
    out += EventText(PartJson(frame_, part));
  }

  void ShowEnd(int choice, const Completion& completion, const Shown& shown, std::string& out) {
    if (shown.text < completion.text.size())
      out += EventText(
          PartJson(frame_, {.choice = choice, .text = completion.text.substr(shown.text)}));
    const bool last = answer_->ended();
    out += EventText(EndPartJson(frame_, choice, completion.finish_reason,
                                 last ? std::span(answer_->choices()) : std::span<const Choice>()));
  }

  void Finish(std::string& out) {
    if (frame_.include_usage) out += EventText(UsagePartJson(frame_, answer_->usage()));
    out += LastEvent();
    done_ = true;
  }

  // The status has left long ago: the error is an event. Nobody reads it where the client has gone.
  bool Abort(std::string& out) {
    done_ = failed_ = true;
    out = EventText(ErrorJson(answer_->failure())) + LastEvent();
    return true;
  }

  Service& service_;
  const std::unique_ptr<Answer> answer_;
  const ReplyFrame frame_;
  LogLine line_;
  std::vector<Shown> shown_;
  std::string begun_;
  bool done_ = false, failed_ = false;
};

}  // namespace

HttpResponse StreamReply(Service& service, std::unique_ptr<Answer> answer, ReplyFrame frame,
                         LogLine& line) {
  const auto first = answer->Next();
  if (!first) {
    line.Add("error", answer->failure().code);
    return ErrorResponse(answer->failure());
  }
  auto stream = std::make_shared<ReplyStream>(service, std::move(answer), std::move(frame), line);
  stream->Begin(*first);
  return {.content_type = kEventStream,
          .stream = std::move(stream),
          .headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}}};
}

}  // namespace foretoken::server
