// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <utility>

#include "server/router.h"
#include "server/routes/answer.h"

namespace foretoken::server {
namespace {

// An answer as events. All rounds that are ready when the connection can take more go out together.
class Stream : public GenerationReply {
 public:
  Stream(Service& service, std::unique_ptr<Answer> answer, ReplyFrame frame,
         std::unique_ptr<ReplyWriter> writer, const LogLine& line)
      : GenerationReply(service, std::move(answer), std::move(frame), std::move(writer), line),
        shown_(answer_->choices().size()) {
    for (Shown& shown : shown_) shown.reader = frame_.Reader();
  }

  Delivery Take() override {
    Delivery delivery;
    bool begins = false;  // the head leaves at once, with the first event
    text_.Write(kAtOnce, delivery.bytes);
    while (!answer_->ended() && !begins && delivery.bytes.size() < kAtOnce) {
      auto event = Next();
      if (answer_->failed()) return Fail(std::move(delivery));
      if (!event) return delivery;
      begins = !has_head();
      if (begins) Begin(delivery);
      Show(*event);
      if (answer_->ended()) Finish();
      text_.Write(kAtOnce, delivery.bytes);
    }
    delivery.ended = answer_->ended() && text_.ended();
    delivery.more = !delivery.ended;
    return delivery;
  }

 private:
  struct Shown {
    std::size_t text = 0;    // bytes
    std::size_t offset = 0;  // of the next token, in bytes
    int rounds = 0;
    std::unique_ptr<calls::CallReader> reader = {};
    int n_calls = 0;
  };

  void Show(StreamEvent& event) {
    const int choice = event.choice;
    Shown& shown = shown_[static_cast<std::size_t>(choice)];
    const Choice& known = answer_->choices()[static_cast<std::size_t>(choice)];
    // Log-probabilities of the prompt are known after the prefill.
    if (event.kind == StreamEvent::Kind::kBegun && !frame_.echo_logprobs &&
        (frame_.chat || !known.echo.text.empty()))
      text_.Add(writer_->Begin(frame_, choice, known.echo, {}));
    if (event.kind == StreamEvent::Kind::kRound) {
      if (shown.rounds == 0) ShowEcho(choice, std::move(event.round.prompt_logprobs), shown);
      ShowRound(event, shown);
    }
    if (event.kind == StreamEvent::Kind::kEnd) {
      const Completion& completion = known.end.completion;
      if (shown.rounds == 0) ShowEcho(choice, completion.prompt_logprobs, shown);
      ShowEnd(choice, completion, shown);
    }
  }

  void ShowEcho(int choice, std::vector<TokenLogprobs> logprobs, Shown& shown) {
    if (!frame_.echo_logprobs) return;
    const Echo& echo = answer_->choices()[static_cast<std::size_t>(choice)].echo;
    text_.Add(writer_->Begin(frame_, choice, echo, std::move(logprobs)));
    shown.offset = echo.text.size();
  }

  void ShowRound(const StreamEvent& event, Shown& shown) {
    const RoundRecord& round = event.round;
    StreamPart part{.choice = event.choice,
                    .text = round.text,
                    .round = &round,
                    .round_number = ++shown.rounds,
                    .text_offset = shown.offset};
    if (frame_.logprobs)
      for (const RoundToken& token : round.tokens) shown.offset += frame_.piece(token.id).size();
    shown.text += round.text.size();
    ReadAnswer(part, shown, false);
    const bool empty = part.parts ? part.parts->empty() : round.text.empty();
    if (empty && !frame_.logprobs && !frame_.trace) return;
    text_.Add(writer_->Part(frame_, part));
  }

  void ShowEnd(int choice, const Completion& completion, Shown& shown) {
    StreamPart rest{.choice = choice,
                    .text = completion.text.substr(std::min(shown.text, completion.text.size()))};
    ReadAnswer(rest, shown, true);
    if (rest.parts ? !rest.parts->empty() : !rest.text.empty())
      text_.Add(writer_->Part(frame_, rest));
    const bool last = answer_->ended();
    text_.Add(writer_->End(frame_, choice, completion, shown.n_calls > 0,
                           last ? std::span(answer_->choices()) : std::span<const Choice>()));
  }

  // Fills in the parts of a text that goes on, or ends.
  static void ReadAnswer(StreamPart& part, Shown& shown, bool ends) {
    if (shown.reader == nullptr) return;
    part.n_calls = shown.n_calls;
    auto& parts = part.parts.emplace();
    shown.reader->Read(part.text, parts);
    if (ends) shown.reader->End(parts);
    for (const calls::AnswerPart& read : parts)
      shown.n_calls += read.kind == calls::AnswerPart::Kind::kName ? 1 : 0;
  }

  void Begin(Delivery& delivery) {
    delivery.head = Head({.content_type = writer_->stream_type(),
                          .headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}}});
  }

  void Finish() { text_.Add(writer_->Finish(frame_, answer_->usage())); }

  // If the status has already left, the error is an event.
  Delivery Fail(Delivery delivery) {
    if (!has_head()) return Refusal();
    delivery.bytes += writer_->Failure(Failure());
    delivery.ended = true;
    return delivery;
  }

  std::vector<Shown> shown_;
  LongText text_;  // that has come and not left
};

}  // namespace

std::shared_ptr<LaterReply> StreamReply(Service& service, std::unique_ptr<Answer> answer,
                                        ReplyFrame frame, std::unique_ptr<ReplyWriter> writer,
                                        const LogLine& line) {
  return std::make_shared<Stream>(service, std::move(answer), std::move(frame), std::move(writer),
                                  line);
}

}  // namespace foretoken::server
