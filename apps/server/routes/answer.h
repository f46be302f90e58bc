// SPDX-License-Identifier: Apache-2.0
// server/routes/answer.h: the events of one request, gathered as they come.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/api_error.h"
#include "server/http.h"
#include "server/mailbox.h"
#include "server/openai_replies.h"
#include "server/service.h"

namespace foretoken::server {

// The engine's refusal of a request.
ApiError OfEngine(const Error& error, bool chat);

// For the thread that serves the request. Destroyed before its end, it cancels what still runs.
class Answer {
 public:
  struct Setting {
    bool chat = false;
    int n = 1;                 // choices of a prompt
    std::vector<Echo> echoes;  // of each choice
    std::function<bool()> client_gone;
  };
  // `service` must outlive it.
  Answer(Service& service, std::shared_ptr<Mailbox> mailbox, Setting setting);
  ~Answer();
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;

  // The next event; waits for one. The ends are kept in choices(). Nothing: failure() says why, and
  // what runs is cancelled. REQUIRES: not ended.
  std::optional<Event> Next();
  // ... that is there already.
  std::optional<Event> NextReady();
  bool ended() const { return n_ended_ == choices_.size(); }
  const ApiError& failure() const { return failure_; }
  const std::vector<Choice>& choices() const { return choices_; }
  Usage usage() const { return UsageOf(choices_, setting_.n); }
  // What a log tells of it. REQUIRES: ended.
  void Describe(LogLine& line) const;

 private:
  std::optional<Event> Take(std::optional<Event> event);
  std::optional<Event> Fail(ApiError error);

  Service& service_;
  const std::shared_ptr<Mailbox> mailbox_;
  const Setting setting_;
  const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  std::vector<Choice> choices_;
  std::size_t n_ended_ = 0;
  ApiError failure_;
};

// Waits for the first event, so that a refusal has a status of its own; then streams.
HttpResponse StreamReply(Service& service, std::unique_ptr<Answer> answer, ReplyFrame frame,
                         LogLine& line);

}  // namespace foretoken::server
