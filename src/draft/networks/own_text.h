// SPDX-License-Identifier: Apache-2.0
// draft/networks/own_text.h: the text of a sequence in the tokens of its draft model. If both have one
// vocabulary, it is the text itself. Otherwise each token of the text has its own reading
// (foretoken/tools/model_file.h), so a longer text only adds to it. The middle of a long text may be left
// out.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "base/ids.h"
#include "foretoken/tools/model_file.h"
#include "tensor/block_layout.h"

namespace foretoken::draft {

class OwnText {
 public:
  // The first tokens of a text, which are kept where others are left out: attention rests on them.
  static constexpr int kKept = tensor::kKvBlock;

  // map: null: one vocabulary. most: more tokens than this are not kept, and length() then says that
  // there are more.
  OwnText(std::shared_ptr<const TokenMap> map, int most) : map_(std::move(map)), most_(most) {
    if (map_ != nullptr) tokens_.reserve(static_cast<std::size_t>(most_) + 1);
  }

  // For a text of up to so many tokens, of which some may be left out; Read and LeaveOut then allocate
  // nothing.
  void Reserve(int n_text, bool leaves_out) {
    if (map_ != nullptr) ends_.reserve(static_cast<std::size_t>(n_text));
    if (map_ == nullptr && leaves_out)
      tokens_.reserve(static_cast<std::size_t>(std::min(n_text, most_ + 1)));
  }

  // Forgets the tokens of the text from n on; where that reaches what is left out, all but the kept ones.
  void Cut(int n) noexcept {
    n_ = std::min(n_, n);
    if (left_out_ > 0 && Whole(n_) < kKept + left_out_) {
      while (Whole(n_) > kKept) --n_;
      left_out_ = 0;
    }
    if (map_ != nullptr) ends_.resize(static_cast<std::size_t>(n_));
    tokens_.resize(std::min(tokens_.size(), static_cast<std::size_t>(length())));
  }

  // The tokens of the whole text that are not left out. Those up to the last Cut or Read are as they were. The
  // view is valid until the next call, and as long as `text`.
  std::span<const Token> Read(std::span<const Token> text) noexcept {
    const int before = n_;
    n_ = static_cast<int>(text.size());
    if (is_text()) return text;
    for (int i = before, at = Whole(before); i < n_; ++i) {
      const Token token = text[static_cast<std::size_t>(i)];
      for (const Token own : map_ == nullptr ? std::span(&token, 1) : map_->Reading(token))
        Add(own, at++);
      if (map_ != nullptr) ends_.push_back(at);
    }
    return tokens_;
  }

  // From now on only the first kKept own tokens and the last n of this text, which Read has read, are read, and
  // what comes behind them.
  void LeaveOut(std::span<const Token> text, int n) noexcept {
    left_out_ = std::max(0, Whole(n_) - kKept - n);
    tokens_.clear(), ends_.clear();
    n_ = 0;
    Read(text);
  }

  // Whether a draft of this token has one token here, as all have but those that nothing else was left
  // for.
  bool HasOne(Token draft) const noexcept {
    return map_ == nullptr || map_->Reading(draft).size() == 1;
  }

  // Own tokens of the first n tokens of the text, or of all that were read, without those left out.
  int Length(int n) const noexcept {
    const int whole = Whole(std::min(n, n_));
    return whole <= kKept ? whole : std::max(kKept, whole - left_out_);
  }
  int length() const noexcept { return Length(n_); }
  bool leaves_out() const noexcept { return left_out_ > 0; }

 private:
  bool is_text() const noexcept { return map_ == nullptr && left_out_ == 0; }
  // Own tokens of the first n tokens of the text, those left out among them.
  int Whole(int n) const noexcept {
    if (map_ == nullptr || n <= 0) return std::max(0, n);
    return ends_[static_cast<std::size_t>(n) - 1];
  }
  // at: of the own tokens of the whole text.
  void Add(Token own, int at) noexcept {
    const bool left_out = at >= kKept && at < kKept + left_out_;
    if (!left_out && static_cast<int>(tokens_.size()) <= most_) tokens_.push_back(own);
  }

  std::shared_ptr<const TokenMap> map_;
  int most_ = 0, n_ = 0;       // n_: tokens of the text that were read
  int left_out_ = 0;           // own tokens behind the first kKept
  std::vector<Token> tokens_;  // at most most_ + 1; empty where the text itself is read
  std::vector<int> ends_;      // own tokens of the first i + 1 tokens of the text; only with a map
};

}  // namespace foretoken::draft
