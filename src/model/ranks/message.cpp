// SPDX-License-Identifier: Apache-2.0
#include "model/ranks/message.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>

#include "base/hash.h"
#include "model/ranks/fields.h"

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

// All but its segments, choices and features.
template <class Record, class Field>
requires std::same_as<std::remove_const_t<Record>, Pass>
void VisitFields(Record& pass, Field&& field) {
  field(pass.tokens), field(pass.logit_rows), field(pass.window), field(pass.best_blocks);
  field(pass.own_features), field(pass.reduced), field(pass.wants_states);
}

template <class Record, class Field>
requires std::same_as<std::remove_const_t<Record>, kv::Segment>
void VisitFields(Record& s, Field&& field) {
  field(s.seq), field(s.row_begin), field(s.n_rows), field(s.first_position);
  field(s.state.from), field(s.state.to), field(s.state.source), field(s.state.checkpoint);
  field(s.rows_of), field(s.window_rows_of), field(s.blocks), field(s.window_blocks);
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
  return pass.n_rows() > 0 && next == pass.n_rows() && pass.window >= 0 && pass.best_blocks >= 0 &&
         (pass.best_blocks == 0 || pass.window > 0) &&
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
  Add(static_cast<std::int32_t>(words.size()));
  Add(words);
}

void Message::AddText(std::string_view text) {
  Add(static_cast<std::int32_t>(text.size()));
  const std::size_t begin = words_.size();
  words_.resize(begin + (text.size() + 3) / 4);
  std::copy(text.begin(), text.end(), reinterpret_cast<char*>(words_.data() + begin));
}

void Message::AddPass(const Pass& pass, int features_width) {
  const AddFields add(*this);
  VisitFields(pass, add);
  Add(static_cast<std::int32_t>(pass.segments.size()));
  for (const kv::Segment& s : pass.segments) VisitFields(s, add);
  Add(static_cast<std::int32_t>(pass.choices.size()));
  for (const kernels::Choice& choice : pass.choices)
    Add(std::bit_cast<std::array<std::int32_t, kChoiceWords>>(choice));
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
  const TakeFields take(words);
  pass = {};
  VisitFields(pass, take);
  segments_.clear();
  for (int n = words.Take(); n > 0 && words.good(); --n)
    VisitFields(segments_.emplace_back(), take);
  pass.segments = segments_;
  choices_.clear();
  for (int n = words.Take(); n > 0 && words.good(); --n)
    choices_.push_back(ChoiceOf(words.Take(kChoiceWords)));
  pass.choices = choices_;
  features_width = words.Take();
  const auto features = words.Take(std::int64_t{pass.n_rows()} * features_width);
  features_.resize(features.size());
  if (!features.empty()) {
    std::memcpy(features_.data(), features.data(), features.size_bytes());
    pass.features = features_.data();
  }
  return words.good() && words.empty() && IsWhole(pass);
}

}  // namespace foretoken::model
