// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "server/router.h"
#include "server/routes/answer.h"
#include "server/sse.h"

namespace foretoken::server {
namespace {

constexpr std::size_t kAtOnce = 32 << 10;  // bytes of events; more go with the next delivery

// An answer as events. What rounds are there when the connection can take more go out together.
class Stream : public GenerationReply {
 public:
  Stream(Service& service, std::unique_ptr<Answer> answer, ReplyFrame frame, const LogLine& line)
      : GenerationReply(service, std::move(answer), std::move(frame), line),
        shown_(answer_->choices().size()) {}

  Delivery Take() override {
    Delivery delivery;
    bool begins = false;  // the head leaves at once, with the first event
    while (!answer_->ended() && !begins && delivery.bytes.size() < kAtOnce) {
      const auto event = answer_->Next();
      if (answer_->failed()) return Fail(std::move(delivery));
      if (!event) return delivery;
      begins = !has_head();
      if (begins) Begin(delivery);
      Show(*event, delivery.bytes);
    }
    delivery.more = !answer_->ended();
    if (answer_->ended()) Finish(delivery);
    return delivery;
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

  void Begin(Delivery& delivery) {
    delivery.head = Head({.content_type = kEventStream,
                          .headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}}});
  }

  void Finish(Delivery& delivery) {
    if (frame_.include_usage) delivery.bytes += EventText(UsagePartJson(frame_, answer_->usage()));
    delivery.bytes += LastEvent();
    delivery.ended = true;
  }

  // Where the status has left long ago the error is an event.
  Delivery Fail(Delivery delivery) {
    if (!has_head()) return Refusal();
    delivery.bytes += EventText(ErrorJson(answer_->failure())) + LastEvent();
    delivery.ended = true;
    return delivery;
  }

  std::vector<Shown> shown_;
};

}  // namespace

std::shared_ptr<LaterReply> StreamReply(Service& service, std::unique_ptr<Answer> answer,
                                        ReplyFrame frame, const LogLine& line) {
  return std::make_shared<Stream>(service, std::move(answer), std::move(frame), line);
}

}  // namespace foretoken::server
