// SPDX-License-Identifier: Apache-2.0
// Log-probabilities of a prompt's own tokens, read while it is read. Row p of the prompt gives
// those of token p + 1: a pass that reads it has logits for such rows too. A prompt whose blocks
// were given back is read again, and what is known of it is not.
#include <algorithm>

#include "engine/impl.h"

namespace foretoken {

// Not all that was asked for is known yet.
bool Engine::Impl::ReadsPromptLogprobs(const engine::Sequence& s) const noexcept {
  return s.request().prompt_logprobs >= 0 &&
         s.completion.prompt_logprobs.size() + 1 < s.job->prompt.size();
}

void Engine::Impl::AskPromptLogits(Work& work) noexcept {
  const engine::Sequence& s = At(work.seq);
  work.n_prompt_logits = 0;
  if (!work.prefill || !ReadsPromptLogprobs(s)) return;
  const int cached = cache_->length(work.seq);
  const int first = static_cast<int>(s.completion.prompt_logprobs.size());
  const int end = std::min(cached + work.n_feed, static_cast<int>(s.job->prompt.size()) - 1);
  for (int p = first; p < end; ++p) logit_rows_.push_back(work.first_row + p - cached);
  work.n_prompt_logits = std::max(0, end - first);
}

void Engine::Impl::ReadPromptLogprobs(Work& work) {
  engine::Sequence& s = At(work.seq);
  auto& known = s.completion.prompt_logprobs;
  for (int i = -work.n_prompt_logits; i < 0; ++i) {
    const Token token = s.job->prompt[known.size() + 1];
    logprobs_->Read(LogitsOf(work, i), token, s.request().prompt_logprobs, known.emplace_back());
  }
  const bool all_read = work.prefill && !work.decodes && !ReadsPromptLogprobs(s);
  if (all_read && s.emitter.tokens_left() <= 0) work.ended = FinishReason::kLength;
}

}  // namespace foretoken
