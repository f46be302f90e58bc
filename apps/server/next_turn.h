// SPDX-License-Identifier: Apache-2.0
// server/next_turn.h: reads the beginning of a conversation's next turn while its client runs the
// tools that an answer called.
//
// What a template writes behind a call, up to the tool's result, is known as soon as the call is. It is
// read while the engine has nothing else to do, and each request that comes goes first. A client that
// sends the result then finds all of it in the cache, also where the template spells the answer in
// another way than the model did.
//
// A conversation waits within a bound, and the oldest one is forgotten first: then its next turn reads
// what it would have read anyway.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "calls/tool_use.h"
#include "foretoken/async_engine.h"
#include "foretoken/chat.h"
#include "server/routes/tool_calls.h"

namespace foretoken::server {

// A conversation up to the answer, as its client sent it.
struct Conversation {
  std::vector<ChatMessage> messages;
  ChatOptions format;      // with its tools
  std::string cache_salt;  // of its request
  ByteHold held = {};

  std::size_t bytes() const;
};

// Any thread may call the members, several at once.
class NextTurns {
 public:
  // Both must outlive it.
  NextTurns(AsyncEngine& requests, const ModelCalls& model);
  ~NextTurns() { Stop(); }
  NextTurns(const NextTurns&) = delete;
  NextTurns& operator=(const NextTurns&) = delete;

  // The model has answered with calls.
  void Add(std::shared_ptr<const Conversation> conversation, std::vector<calls::AnswerPart> answer);
  // A request has come: what is being read for a next turn stops where it is, and goes on later.
  void GiveWay() noexcept;
  // Nothing is read any more.
  void Stop() noexcept;
  // Tokens of beginnings that were read, or found in the cache, so far.
  std::int64_t tokens() const;

 private:
  struct Answered {
    std::shared_ptr<const Conversation> conversation;
    std::vector<calls::AnswerPart> answer;
    int n_interrupted = 0;
  };
  void Run();
  std::optional<Answered> Next();
  // False: a request came in between.
  bool Read(const Answered& answered);
  void Put(Answered answered, bool first);
  std::vector<std::int32_t> Beginning(const Answered& answered) const;
  std::vector<std::int32_t> Written(const Answered& answered, const std::string& id,
                                    const std::string& result) const;

  AsyncEngine& requests_;
  const ModelCalls& model_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Answered> waiting_;
  std::size_t bytes_ = 0;  // of them
  std::int64_t tokens_ = 0;
  EventStream* reading_ = nullptr;
  bool stopped_ = false;
  std::jthread thread_;
};

}  // namespace foretoken::server
