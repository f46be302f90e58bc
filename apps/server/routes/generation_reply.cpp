// SPDX-License-Identifier: Apache-2.0
#include <new>
#include <utility>

#include "server/router.h"
#include "server/routes/answer.h"

namespace foretoken::server {
namespace {

class Whole : public GenerationReply {
 public:
  using GenerationReply::GenerationReply;

  Delivery Take() override {
    while (!answer_->ended())
      if (!Next()) return answer_->failed() ? Refusal() : Delivery();
    Delivery delivery;
    if (!has_head()) {
      delivery.head = Head({});
      text_ = writer_->Whole(frame_, answer_->choices(), answer_->n_per_prompt());
    }
    text_.Write(kAtOnce, delivery.bytes);
    delivery.ended = text_.ended();
    delivery.more = !delivery.ended;
    return delivery;
  }

 private:
  LongText text_;
};

}  // namespace

GenerationReply::GenerationReply(Service& service, std::unique_ptr<Answer> answer, ReplyFrame frame,
                                 std::unique_ptr<ReplyWriter> writer, LogLine line)
    : service_(service),
      answer_(std::move(answer)),
      frame_(std::move(frame)),
      writer_(std::move(writer)),
      line_(std::move(line)) {}

GenerationReply::~GenerationReply() {
  if (answer_->failed()) {
    const ApiError error = Failure();
    line_.Add("error", NameOf(error));
    if (!error.param.empty()) line_.Add("param", error.param);
  } else if (answer_->ended()) {
    answer_->Describe(line_);
    ReadNextTurn();
  } else {
    line_.Add("error", NameOf(ClientGone()));
  }
  if (status_ == 0) service_.metrics.AddResponse(status_ = ClientGone().status);
  service_.log.Write(line_.Add("status", status_));
}

// Where there is no memory for it, the next turn reads all of its beginning itself.
void GenerationReply::ReadNextTurn() noexcept try {
  if (answer_->conversation() == nullptr || service_.overload.refuses_requests()) return;
  const Choice& choice = answer_->choices().front();
  if (!choice.facts.has_calls || choice.end.completion.finish_reason == FinishReason::kLength)
    return;
  service_.next_turns.Add(answer_->conversation(), frame_.PartsOf(choice.end.completion.text));
} catch (const std::bad_alloc&) {
}

std::optional<StreamEvent> GenerationReply::Next() {
  auto event = answer_->Next();
  if (event && event->kind == StreamEvent::Kind::kEnd) {
    const auto& choice = answer_->choices()[static_cast<std::size_t>(event->choice)];
    answer_->Know(event->choice, FactsOf(frame_, choice.end.completion));
  }
  return event;
}

HttpResponse GenerationReply::Head(HttpResponse head) {
  status_ = head.status;
  service_.metrics.AddResponse(status_);
  return head;
}

Delivery GenerationReply::Refusal() {
  const ApiError error = Failure();
  HttpResponse response = ErrorResponse(error);
  response.body.clear();
  std::string body = writer_->Refusal(error);
  return {.head = Head(std::move(response)), .bytes = std::move(body), .ended = true};
}

std::shared_ptr<LaterReply> WholeReply(Service& service, std::unique_ptr<Answer> answer,
                                       ReplyFrame frame, std::unique_ptr<ReplyWriter> writer,
                                       const LogLine& line) {
  return std::make_shared<Whole>(service, std::move(answer), std::move(frame), std::move(writer),
                                 line);
}

}  // namespace foretoken::server
