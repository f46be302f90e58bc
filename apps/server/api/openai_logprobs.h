// SPDX-License-Identifier: Apache-2.0
// server/api/openai_logprobs.h: log-probabilities as OpenAI's replies have them: entries of chats, and four
// lists for completions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/json/json.h"
#include "server/api/long_text.h"
#include "server/api/reply_frame.h"

namespace foretoken::server {

// A finite number also for an impossible token.
double Logprob(float value);

struct LogprobOf {
  std::int32_t id;
  const TokenLogprobs* logprobs;  // null: none, as for a prompt's first token
};

// The offset of each token in the text, in bytes; first those of the prompt, if it is echoed. A
// text may lack the space with which its first token begins, so a prompt's offsets are counted from
// its end.
class TextOffsets {
 public:
  explicit TextOffsets(const ReplyFrame& frame, std::size_t begin) : frame_(&frame), next_(begin) {}
  TextOffsets(const ReplyFrame& frame, const Echo& echo)
      : frame_(&frame), next_(echo.text.size()), n_echoed_(echo.tokens.size()) {
    for (const std::int32_t id : echo.tokens) left_ += frame.text_of(id).size();
  }
  // The offset of the next token.
  std::size_t Pass(std::int32_t id) {
    if (n_echoed_ == 0) return std::exchange(next_, next_ + frame_->piece(id).size());
    --n_echoed_;
    const std::size_t offset = next_ - std::min(left_, next_);
    left_ -= frame_->text_of(id).size();
    return offset;
  }

 private:
  const ReplyFrame* frame_;
  std::size_t next_ = 0, left_ = 0;
  std::size_t n_echoed_ = 0;  // tokens before those of the answer
};

Json FourLists(const ReplyFrame& frame, std::span<const LogprobOf> tokens, TextOffsets& offsets);

// The log-probabilities of one chunk of a stream.
Json LogprobsJson(const ReplyFrame& frame, std::span<const LogprobOf> tokens, std::size_t offset);

// The entries of the prompt, whose first token has none.
std::vector<LogprobOf> EchoTokens(const Echo& echo, std::span<const TokenLogprobs> logprobs);

// The log-probabilities of a whole reply. They may be many, so they are written in parts.
void AddLogprobs(const ReplyFrame& frame, const Choice& choice, LongText& text);

}  // namespace foretoken::server
