// SPDX-License-Identifier: Apache-2.0
// draft/networks/own_text.h: the text of a sequence in the tokens of its draft model. If both have one
// vocabulary, it is the text itself. Otherwise each token of the text has its own reading
// (foretoken/tools/model_file.h), so a longer text only adds to it.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "base/ids.h"
#include "foretoken/tools/model_file.h"

namespace foretoken::draft {

class OwnText {
 public:
  // map: null: one vocabulary. most: more tokens than this are not kept, and length() then says that
  // there are more.
  OwnText(std::shared_ptr<const TokenMap> map, int most) : map_(std::move(map)), most_(most) {
    if (map_ != nullptr) tokens_.reserve(static_cast<std::size_t>(most_) + 1);
  }

  // For a text of up to so many tokens; Read then allocates nothing.
  void Reserve(int n_text) {
    if (map_ != nullptr) ends_.reserve(static_cast<std::size_t>(n_text));
  }

  // Forgets the tokens of the text from n on.
  void Cut(int n) noexcept {
    n_ = std::min(n_, n);
    if (map_ == nullptr) return;
    ends_.resize(static_cast<std::size_t>(n_));
    tokens_.resize(std::min(tokens_.size(), static_cast<std::size_t>(Length(n_))));
  }

  // The whole text, whose tokens up to the last Cut or Read are as they were. The view is valid until
  // the next call, and as long as `text`.
  std::span<const Token> Read(std::span<const Token> text) noexcept {
    const int before = n_;
    n_ = static_cast<int>(text.size());
    if (map_ == nullptr) return text;
    for (int i = before; i < n_; ++i) {
      for (const Token token : map_->Reading(text[static_cast<std::size_t>(i)]))
        if (static_cast<int>(tokens_.size()) <= most_) tokens_.push_back(token);
      ends_.push_back(static_cast<int>(tokens_.size()));
    }
    return tokens_;
  }

  // Whether a draft of this token has one token here, as all have but those that nothing else was left
  // for.
  bool HasOne(Token draft) const noexcept {
    return map_ == nullptr || map_->Reading(draft).size() == 1;
  }

  // Own tokens of the first n tokens of the text, or of all that were read.
  int Length(int n) const noexcept {
    n = std::min(n, n_);
    if (map_ == nullptr) return n;
    return n <= 0 ? 0 : ends_[static_cast<std::size_t>(n) - 1];
  }
  int length() const noexcept { return Length(n_); }

 private:
  std::shared_ptr<const TokenMap> map_;
  int most_ = 0, n_ = 0;       // n_: tokens of the text that were read
  std::vector<Token> tokens_;  // at most most_ + 1
  std::vector<int> ends_;      // own tokens of the first i + 1 tokens of the text
};

}  // namespace foretoken::draft
