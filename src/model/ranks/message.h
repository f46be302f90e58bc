// SPDX-License-Identifier: Apache-2.0
// model/ranks/message.h: what rank 0 tells the other ranks to do with their part of a network.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "comm/ranks.h"
#include "model/pass.h"

namespace foretoken::model {

// kPrepare: make a team of threads, kMeasure: measure the ranks and their gathers, kOpen: load a part of
// a network (these are in loader/ranks). kPass,
// kKeepFeatures, kClearBlocks: what a Runner does. kStop: close the network. kLeave: rank 0 needs the
// others no more.
enum class Order : std::int32_t {
  kPrepare,
  kMeasure,
  kOpen,
  kPass,
  kKeepFeatures,
  kClearBlocks,
  kStop,
  kLeave
};

// A message of 32-bit words. Its memory grows to the longest message so far; Reserve makes room at
// once, so that no pass allocates. A message that was damaged on its way is refused.
class Message {
 public:
  Message() : words_(kShort) {}
  void Reserve(std::size_t n_words) { words_.reserve(n_words); }

  // Rank 0 writes: Begin, then the parts.
  void Begin(Order order, int runner);
  void Add(std::int32_t word) { words_.push_back(word); }
  void Add(std::span<const std::int32_t> words);
  void AddList(std::span<const std::int32_t> words);  // with its length
  void AddText(std::string_view text);                // with its length
  // features_width: numbers of each row's features; 0 where the pass has none.
  void AddPass(const Pass& pass, int features_width);
  // To all other ranks. False: a rank is lost.
  [[nodiscard]] bool Send(comm::Ranks& ranks) noexcept;

  // The others read. False: a rank is lost, or the message is damaged.
  [[nodiscard]] bool Receive(comm::Ranks& ranks);
  Order order() const { return static_cast<Order>(words_[1]); }
  int runner() const { return words_[2]; }
  // The words behind the head.
  std::span<const std::int32_t> body() const { return std::span(words_).subspan(kHead); }
  // The pass of the message, which has views of it. False: the message is damaged.
  [[nodiscard]] bool ReadPass(Pass& pass, int& features_width);

 private:
  // Size, order, runner, a hash of these three, a hash of the body.
  static constexpr std::size_t kHead = 5;
  static constexpr std::size_t kShort = 256;  // words that one broadcast brings

  std::int32_t HeadHash() const noexcept;
  std::int32_t BodyHash() const noexcept;

  std::vector<std::int32_t> words_;
  std::vector<kv::Segment> segments_;
  std::vector<float> features_;
  std::vector<kernels::Choice> choices_;
};

}  // namespace foretoken::model
