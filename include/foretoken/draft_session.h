// SPDX-License-Identifier: Apache-2.0
// foretoken/draft_session.h: runs any drafter on your own text, without an engine.
//
//   auto session = foretoken::DraftSession::Create(drafter);
//   (*session)->Begin({.prompt = tokens});
//   auto drafts = (*session)->Propose(4);             // tokens and their probabilities
//   (*session)->Observe(committed);                   // how the text went on
//   auto more = (*session)->Propose(4);
//
// The session draws the drafts, checks them and keeps copies, as an engine does. With the seed and
// the parameters of an engine's request it gives the drafts of the engine's drafter.
//
// One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "foretoken/drafter.h"
#include "foretoken/drafts.h"
#include "foretoken/result.h"

namespace foretoken {

// A text that a session drafts for.
struct SessionText {
  std::vector<std::int32_t> prompt = {};      // at least one token
  int max_new_tokens = 256;                   // the most tokens that may follow the prompt
  int min_new_tokens = 0;                     // end tokens are not drafted until then
  SamplingParameters sampling = {};           // how drafts are drawn
  std::vector<std::int32_t> end_tokens = {};  // a draft ends with one of these
  float draft_p_min = 0;                      // drafts end where no token has this probability
  std::uint64_t seed = 0, id = 0;             // as in Request
  // True: drafts use the noise with which the target draws its own tokens, as an engine's drafts do
  // under sample-match. False: they use noise of their own, as under residual.
  bool shares_noise = true;
};

// Sessions may share a drafter: each text that has begun has a sequence of it, and they may draft
// together.
class DraftSession {
 public:
  // vocabulary_size: ids that may be drafted are in [0, vocabulary_size); 0: the drafter's own
  // limit. Errors: kInvalidArgument (a drafter with distributions that has no such limit).
  [[nodiscard]] static Result<std::unique_ptr<DraftSession>> Create(
      std::shared_ptr<Drafter> drafter, int vocabulary_size = 0);
  ~DraftSession();

  // Starts a text. It replaces a text that has begun; a draft model then keeps the part of its
  // cache that both share. Errors: kInvalidArgument (no prompt, unknown tokens, parameters; other
  // sessions, or an engine, have all of the drafter's sequences).
  [[nodiscard]] Status Begin(const SessionText& text);

  // Up to k drafts that continue the text, k in [0, 64]; options.num_steps is not read. Errors:
  // kInvalidArgument (no text has begun, k; rows of a vocabulary whose size is not known).
  [[nodiscard]] Result<Drafts> Propose(int k, const DraftOptions& options = {});
  // Drafts for several sessions of one drafter, [sessions]; its model shares its passes among
  // them. Each text gets the drafts that it gets alone. Errors: as Propose; kInvalidArgument
  // (another drafter, a session twice).
  [[nodiscard]] static Result<std::vector<Drafts>> ProposeAll(
      std::span<DraftSession* const> sessions, int k, const DraftOptions& options = {});

  // The text continues with these tokens, whatever was drafted. Errors: kInvalidArgument (no text
  // has begun, unknown tokens, more than max_new_tokens); nothing has happened then.
  [[nodiscard]] Status Observe(std::span<const std::int32_t> committed);

  void End();  // does nothing if no text has begun

  std::span<const std::int32_t> text() const;  // the prompt and the observed tokens
  // What the drafter's model did for this session's proposals since the last call; passes that
  // sessions shared count for each.
  DrafterWork TakeWork();
  // The first fault of each kind that the drafter has made (drafter.h).
  const std::vector<std::string>& notices() const;

 private:
  class Impl;
  explicit DraftSession(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace foretoken
