// SPDX-License-Identifier: Apache-2.0
// engine/requests/job.h: a request from its arrival to its result.
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "foretoken/engine.h"
#include "foretoken/result.h"
#include "grammar/grammar.h"

namespace foretoken::engine {

struct Job {
  Ticket ticket = 0;
  Request request;            // without its prompt's tokens:
  std::vector<Token> prompt;  // at least one; Request::generated is the end of them
  std::vector<Token> prediction;
  SaltId salt = kNoSalt;  // stands for its cache_salt
  OnRound on_round;
  std::shared_ptr<const grammar::Grammar> grammar;
  bool in_batch = false;  // of GenerateBatch, where no other request waits for the next pass
  bool cancelled = false;
  bool paused = false;                   // takes no part in passes
  SeqId seq = -1;                        // while it runs
  std::optional<Completion> completion;  // once it has ended
  std::optional<Error> error = {};       // why it ends early
  Error no_memory = {};                  // made beforehand, for when there is no memory

  // Something is read of each token of its prompt, so none of them may come from the cache.
  bool reads_prompt() const {
    return request.prompt_logprobs >= 0 ||
           (request.embedding && *request.embedding < Pooling::kLast);
  }
  void Blame(Error why) noexcept {  // the first error stays
    if (!error) error = std::move(why);
  }
};

// All tokens that end a request's text. of_model: those that end every text.
std::vector<Token> EndTokensOf(const Request& request, std::span<const Token> of_model);

// The error of a request whose callback threw.
Error ThrownBy(std::string_view what) noexcept;

// Calls what may need memory for one request, or is the request's own callback. False where there
// is no memory or the callback threw: then the request has its error and must be finished.
template <typename Call>
bool TryFor(Job& job, Call&& call) noexcept {
  try {
    call();
    return true;
  } catch (const std::exception& e) {
    job.Blame(SaysNoMemory(e) ? std::move(job.no_memory) : ThrownBy(e.what()));
  } catch (...) {
    job.Blame(ThrownBy("no std::exception"));
  }
  return false;
}

}  // namespace foretoken::engine
