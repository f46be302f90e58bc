// SPDX-License-Identifier: Apache-2.0
#include "model/ranks/message.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>

#include "base/hash.h"
#include "model/ranks/words.h"

namespace foretoken::model {
namespace {

constexpr std::size_t kChoiceWords = sizeof(kernels::Choice) / sizeof(std::int32_t);
static_assert(std::is_trivially_copyable_v<kernels::Choice> &&
              sizeof(kernels::Choice) == (3 + 5) * sizeof(std::int32_t));

// The words may be too few: then the message is damaged.
kernels::Choice ChoiceOf(std::span<const std::int32_t> words) {
  std::array<std::int32_t, kChoiceWords> whole{};
  std::copy_n(words.begin(), std::min(words.size(), kChoiceWords), whole.begin());
  return std::bit_cast<kernels::Choice>(whole);
}

std::int32_t SizeOf(std::span<const std::int32_t> words) {
  return static_cast<std::int32_t>(words.size());
}

// Whether segments cover all rows in order, the rows with logits are ascending rows, and each has
// a choice or none has.
bool IsWhole(const Pass& pass) {
  int next = 0, least = 0;
  for (const kv::Segment& s : pass.segments) {
    if (s.row_begin != next || s.n_rows < 1 || s.n_rows > pass.n_rows() - next) return false;
    next += s.n_rows;
  }
  for (const int row : pass.logit_rows) {
    if (row < least || row >= pass.n_rows()) return false;
    least = row + 1;
  }
  for (const kernels::Choice& choice : pass.choices)
    if (choice.rule < kernels::ChoiceRule::kNone || choice.rule > kernels::ChoiceRule::kRace ||
        choice.n_tokens < 0)
      return false;
  return pass.n_rows() > 0 && next == pass.n_rows() && pass.window >= 0 &&
         (pass.choices.empty() || pass.choices.size() == pass.logit_rows.size());
}

}  // namespace

void Message::Begin(Order order, int runner) {
  words_.assign({0, static_cast<std::int32_t>(order), runner, 0, 0});
}

void Message::Add(std::span<const std::int32_t> words) {
  words_.insert(words_.end(), words.begin(), words.end());
}

void Message::AddList(std::span<const std::int32_t> words) {
  Add(SizeOf(words));
  Add(words);
}

void Message::AddText(std::string_view text) {
  Add(static_cast<std::int32_t>(text.size()));
  const std::size_t begin = words_.size();
  words_.resize(begin + (text.size() + 3) / 4);
  std::copy(text.begin(), text.end(), reinterpret_cast<char*>(words_.data() + begin));
}

void Message::AddPass(const Pass& pass, int features_width) {
  Add(SizeOf(pass.tokens));
  Add(static_cast<std::int32_t>(pass.segments.size()));
  Add(SizeOf(pass.logit_rows));
  Add(pass.tokens);
  Add(pass.logit_rows);
  for (const kv::Segment& s : pass.segments) {
    for (const std::int32_t word : {s.seq, s.row_begin, s.n_rows, s.first_position, s.state.from,
                                    s.state.to, s.state.source, s.state.checkpoint, s.rows_of,
                                    s.window_rows_of, SizeOf(s.blocks), SizeOf(s.window_blocks)})
      Add(word);
    Add(s.blocks);
    Add(s.window_blocks);
  }
  Add(static_cast<std::int32_t>(pass.choices.size()));
  for (const kernels::Choice& choice : pass.choices)
    Add(std::bit_cast<std::array<std::int32_t, kChoiceWords>>(choice));
  Add(static_cast<std::int32_t>(pass.own_features));
  Add(static_cast<std::int32_t>(pass.reduced));
  Add(static_cast<std::int32_t>(pass.wants_states));
  Add(pass.window);
  Add(features_width);
  const std::size_t n_features = pass.tokens.size() * static_cast<std::size_t>(features_width),
                    at = words_.size();
  if (n_features == 0) return;
  words_.resize(at + n_features);
  std::memcpy(words_.data() + at, pass.features, n_features * sizeof(float));
}

std::int32_t Message::HeadHash() const noexcept {
  return static_cast<std::int32_t>(HashOf(std::span(words_).first(kHead - 2)));
}
std::int32_t Message::BodyHash() const noexcept {
  return static_cast<std::int32_t>(HashOf(body()));
}

bool Message::Send(comm::Ranks& ranks) noexcept {
  const std::size_t size = words_.size();
  words_[0] = static_cast<std::int32_t>(size);
  words_[3] = HeadHash();
  words_[4] = BodyHash();
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
  if (words_[3] != HeadHash() || words_[0] < static_cast<std::int32_t>(kHead)) return false;
  const auto size = static_cast<std::size_t>(words_[0]);
  words_.resize(size);
  if (size > kShort &&
      !ranks.Broadcast(
          std::as_writable_bytes(std::span(words_)).subspan(kShort * sizeof(std::int32_t))))
    return false;
  return words_[4] == BodyHash();
}

bool Message::ReadPass(Pass& pass, int& features_width) {
  Words words(body());
  const auto counts = words.Take(3);
  if (!words.good()) return false;
  const std::int32_t n_rows = counts[0], n_segments = counts[1], n_logit_rows = counts[2];
  pass = {.tokens = words.Take(n_rows), .segments = {}, .logit_rows = words.Take(n_logit_rows)};
  segments_.clear();
  for (int i = 0; i < n_segments && words.good(); ++i) {
    const auto fixed = words.Take(12);
    if (!words.good()) return false;
    kv::Segment& s = segments_.emplace_back();
    s.seq = fixed[0], s.row_begin = fixed[1], s.n_rows = fixed[2], s.first_position = fixed[3];
    s.state = {fixed[4], fixed[5], fixed[6], fixed[7]};
    s.rows_of = fixed[8], s.window_rows_of = fixed[9];
    s.blocks = words.Take(fixed[10]);
    s.window_blocks = words.Take(fixed[11]);
  }
  pass.segments = segments_;
  choices_.clear();
  const std::int32_t n_choices = words.Take();
  for (int i = 0; i < n_choices && words.good(); ++i)
    choices_.push_back(ChoiceOf(words.Take(kChoiceWords)));
  pass.choices = choices_;
  pass.own_features = words.Take() != 0;
  pass.reduced = words.Take() != 0;
  pass.wants_states = words.Take() != 0;
  pass.window = words.Take();
  features_width = words.Take();
  const auto features = words.Take(std::int64_t{n_rows} * features_width);
  features_.resize(features.size());
  if (!features.empty()) {
    std::memcpy(features_.data(), features.data(), features.size_bytes());
    pass.features = features_.data();
  }
  return words.good() && words.empty() && IsWhole(pass);
}

}  // namespace foretoken::model
