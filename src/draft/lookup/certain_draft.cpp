// SPDX-License-Identifier: Apache-2.0
#include "draft/lookup/certain_draft.h"
#include "foretoken/drafts.h"

#include <algorithm>

namespace foretoken::draft {

void CertainDraft::Begin(const SequenceStart& start) {
  tokens_.clear();
  tokens_.reserve(kMaxDraft);
  end_tokens_.assign(start.end_tokens.begin(), start.end_tokens.end());
  min_new_tokens_ = start.min_new_tokens;
  left_ = 0;
}

void CertainDraft::Start(int n, int n_generated) noexcept {
  tokens_.clear();
  n_generated_ = n_generated;
  left_ = std::min(n, kMaxDraft);
}

void CertainDraft::Push(Token token) noexcept {
  const bool end = std::find(end_tokens_.begin(), end_tokens_.end(), token) != end_tokens_.end();
  left_ = end ? 0 : left_ - 1;
  if (end && n_generated_ + static_cast<int>(tokens_.size()) < min_new_tokens_) return;
  tokens_.push_back(token);
}

}  // namespace foretoken::draft
