// SPDX-License-Identifier: Apache-2.0
#include "model/ranks/message.h"

#include <algorithm>

namespace foretoken::model {
namespace {

// The next n words of a message, as long as there are so many.
class Words {
 public:
  explicit Words(std::span<const std::int32_t> words) : words_(words) {}

  std::span<const std::int32_t> Take(std::int32_t n) {
    if (n < 0 || static_cast<std::size_t>(n) > words_.size()) {
      good_ = false;
      return {};
    }
    const auto taken = words_.first(static_cast<std::size_t>(n));
    words_ = words_.subspan(taken.size());
    return taken;
  }
  std::int32_t Take() {
    const auto word = Take(1);
    return word.empty() ? 0 : word[0];
  }
  bool good() const { return good_; }
  bool empty() const { return words_.empty(); }

 private:
  std::span<const std::int32_t> words_;
  bool good_ = true;
};

std::int32_t SizeOf(std::span<const std::int32_t> words) {
  return static_cast<std::int32_t>(words.size());
}

}  // namespace

void Message::Begin(Order order, int runner) {
  words_.assign({0, static_cast<std::int32_t>(order), runner});
}

void Message::Add(std::span<const std::int32_t> words) {
  words_.insert(words_.end(), words.begin(), words.end());
}

void Message::AddPass(const Pass& pass) {
  Add(SizeOf(pass.tokens));
  Add(static_cast<std::int32_t>(pass.segments.size()));
  Add(SizeOf(pass.logit_rows));
  Add(pass.tokens);
  Add(pass.logit_rows);
  for (const kv::Segment& s : pass.segments) {
    for (const std::int32_t word : {s.seq, s.row_begin, s.n_rows, s.first_position,
                                    SizeOf(s.blocks), SizeOf(s.window_blocks)})
      Add(word);
    Add(s.blocks);
    Add(s.window_blocks);
  }
}

bool Message::Send(comm::Ranks& ranks) noexcept {
  const std::size_t size = words_.size();
  words_[0] = static_cast<std::int32_t>(size);
  if (size < kShort) words_.resize(kShort);
  const auto bytes = std::as_writable_bytes(std::span(words_));
  constexpr std::size_t kFirst = kShort * sizeof(std::int32_t);
  return ranks.Broadcast(bytes.first(kFirst)) &&
         (size <= kShort || ranks.Broadcast(bytes.subspan(kFirst)));
}

bool Message::Receive(comm::Ranks& ranks) {
  words_.resize(kShort);
  const auto head = std::as_writable_bytes(std::span(words_));
  if (!ranks.Await(head)) return false;
  const auto size = static_cast<std::size_t>(words_[0]);
  if (size < kHead) return false;
  words_.resize(size);
  return size <= kShort ||
         ranks.Broadcast(
             std::as_writable_bytes(std::span(words_)).subspan(kShort * sizeof(std::int32_t)));
}

bool Message::ReadPass(Pass& pass) {
  Words words(body());
  const std::int32_t n_rows = words.Take(), n_segments = words.Take(), n_logit_rows = words.Take();
  pass = {.tokens = words.Take(n_rows), .segments = {}, .logit_rows = words.Take(n_logit_rows)};
  segments_.clear();
  for (int i = 0; i < n_segments && words.good(); ++i) {
    const auto fixed = words.Take(6);
    if (!words.good()) return false;
    kv::Segment& s = segments_.emplace_back();
    s.seq = fixed[0], s.row_begin = fixed[1], s.n_rows = fixed[2], s.first_position = fixed[3];
    s.blocks = words.Take(fixed[4]);
    s.window_blocks = words.Take(fixed[5]);
  }
  pass.segments = segments_;
  return words.good() && words.empty();
}

}  // namespace foretoken::model
