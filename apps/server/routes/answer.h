// SPDX-License-Identifier: Apache-2.0
// server/routes/answer.h: collects the events of one request as they come.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "foretoken/event_stream.h"
#include "server/api/api_error.h"
#include "server/api/openai_replies.h"
#include "server/api/reply_writer.h"
#include "server/net/http.h"
#include "server/next_turn.h"
#include "server/service.h"

namespace foretoken::server {

// An error of the engine as a reply.
ApiError OfEngine(const Error& error, bool chat);
// Why a request ended before its choices did.
ApiError OfRequest(const Service& service, const Error& error, bool chat);
// Why the engine did not take a request.
ApiError NotTaken(const Error& error);

// For the thread of all connections. If it is destroyed before its end, it cancels what still runs.
class Answer {
 public:
  struct Setting {
    bool chat = false;
    int n = 1;                 // choices of a prompt
    std::vector<Echo> echoes;  // of each choice
    // Not null: the answer may have calls, and the conversation goes on.
    std::shared_ptr<const Conversation> conversation = nullptr;
  };
  // `service` must outlive it.
  Answer(Service& service, EventStream events, Setting setting);
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;

  // See LaterReply.
  void Watch(std::function<void()> ready) { events_.Watch(std::move(ready)); }
  std::chrono::steady_clock::time_point deadline() const { return events_.deadline(); }

  // Ends it, because the server has no memory for it.
  void Drop() { Fail(NoMemory()); }

  // The next event. The ends are kept in choices(). Nothing: none has come yet, or it has failed.
  // REQUIRES: not ended.
  std::optional<StreamEvent> Next();
  // Keeps what is known of a choice that has ended.
  void Know(int choice, AnswerFacts facts) {
    choices_[static_cast<std::size_t>(choice)].facts = facts;
  }
  bool ended() const { return n_ended_ == choices_.size(); }
  bool failed() const { return failed_; }
  const ApiError& failure() const { return failure_; }
  const std::vector<Choice>& choices() const { return choices_; }
  int n_per_prompt() const { return setting_.n; }
  Usage usage() const { return UsageOf(choices_, setting_.n); }
  const std::shared_ptr<const Conversation>& conversation() const { return setting_.conversation; }
  // Fills in the log line. REQUIRES: ended.
  void Describe(LogLine& line) const;

 private:
  std::optional<StreamEvent> Fail(ApiError error);

  Service& service_;
  EventStream events_;
  const Setting setting_;
  std::vector<Choice> choices_;
  std::vector<ByteHold> held_;  // for their ends
  std::size_t n_ended_ = 0;
  bool failed_ = false;
  ApiError failure_;
};

// Bytes of one delivery; the rest goes with the next one.
constexpr std::size_t kAtOnce = 32 << 10;

// An answer of the engine on its way to the client. It counts and logs itself, with the status of
// its head, or 499 if its client went before it had one.
class GenerationReply : public LaterReply {
 public:
  GenerationReply(Service& service, std::unique_ptr<Answer> answer, ReplyFrame frame,
                  std::unique_ptr<ReplyWriter> writer, LogLine line);
  ~GenerationReply() override;
  GenerationReply(const GenerationReply&) = delete;
  GenerationReply& operator=(const GenerationReply&) = delete;

  void Watch(std::function<void()> ready) override { answer_->Watch(std::move(ready)); }
  std::chrono::steady_clock::time_point deadline() const override { return answer_->deadline(); }
  bool Drop() override {
    answer_->Drop();
    return true;
  }

 protected:
  // As Answer::Next.
  std::optional<StreamEvent> Next();
  // The head of the first delivery.
  HttpResponse Head(HttpResponse head);
  bool has_head() const { return status_ != 0; }
  void ReadNextTurn() noexcept;
  // The answer's failure, as one delivery. REQUIRES: there is no head yet.
  Delivery Refusal();
  // In the names of the client's API.
  ApiError Failure() const { return InOwnNames(answer_->failure(), writer_->own_names()); }

  Service& service_;
  const std::unique_ptr<Answer> answer_;
  const ReplyFrame frame_;
  const std::unique_ptr<ReplyWriter> writer_;

 private:
  LogLine line_;
  int status_ = 0;
};

// Sends everything at its end.
std::shared_ptr<LaterReply> WholeReply(Service& service, std::unique_ptr<Answer> answer,
                                       ReplyFrame frame, std::unique_ptr<ReplyWriter> writer,
                                       const LogLine& line);
// Sends a stream. The first event decides the status, so that a refusal has its own.
std::shared_ptr<LaterReply> StreamReply(Service& service, std::unique_ptr<Answer> answer,
                                        ReplyFrame frame, std::unique_ptr<ReplyWriter> writer,
                                        const LogLine& line);

}  // namespace foretoken::server
