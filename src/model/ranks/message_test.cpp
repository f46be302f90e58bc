// SPDX-License-Identifier: Apache-2.0
#include "model/ranks/message.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "comm/ranks.h"

namespace foretoken::model {
namespace {

// Rank 0 writes what it broadcasts into a buffer, and rank 1 reads it from there.
class Wire final : public comm::Ranks {
 public:
  Wire() : Ranks(0, {"here", "there"}) {}

  bool Broadcast(std::span<std::byte> bytes) noexcept override {
    if (reading_) {
      if (at_ + bytes.size() > sent_.size()) return false;
      std::copy_n(sent_.begin() + static_cast<std::ptrdiff_t>(at_), bytes.size(), bytes.begin());
      at_ += bytes.size();
      return true;
    }
    sent_.insert(sent_.end(), bytes.begin(), bytes.end());
    return true;
  }
  bool Await(std::span<std::byte> bytes) noexcept override { return Broadcast(bytes); }
  bool Gather(std::byte*, std::span<const std::int32_t>) noexcept override { return true; }
  bool GatherToLead(std::byte*, std::span<const std::int32_t>) noexcept override { return true; }
  void Abort(const std::string&) noexcept override {}
  bool Meet() noexcept override { return true; }
  void ExpectEnd() noexcept override {}

  // From here on it reads, from the beginning.
  void Read() { reading_ = true, at_ = 0; }
  std::vector<std::byte>& sent() { return sent_; }

 private:
  std::vector<std::byte> sent_;
  std::size_t at_ = 0;
  bool reading_ = false;
};

// A pass with two sequences, and the memory that it shows.
struct OwnPass {
  explicit OwnPass(int n_rows, int features_width = 0) : width(features_width) {
    for (int i = 0; i < n_rows; ++i) tokens.push_back(i * 31);
    for (int i = 0; i < n_rows * width; ++i) features.push_back(static_cast<float>(i) * 0.25F);
    logit_rows = {0, n_rows - 1};
    choices = {{},
               {.rule = kernels::ChoiceRule::kRace,
                .n_tokens = 300,
                .inverse_temperature = 1.5F,
                .noise = {{1, 2, 3}, {4, 0xffffffffU}}}};
    segments = {{.seq = 4,
                 .row_begin = 0,
                 .n_rows = 1,
                 .first_position = 70,
                 .blocks = blocks,
                 .window_blocks = window_blocks,
                 .rows_of = 7,
                 .window_rows_of = 3,
                 .state = {.from = 64, .to = 70, .source = 2, .checkpoint = 5}},
                {.seq = 2,
                 .row_begin = 1,
                 .n_rows = n_rows - 1,
                 .first_position = 0,
                 .blocks = std::span(blocks).first(1)}};
  }
  Pass View() const {
    return {.tokens = tokens,
            .segments = segments,
            .logit_rows = logit_rows,
            .choices = choices,
            .features = width == 0 ? nullptr : features.data(),
            .own_features = width != 0,
            .reduced = width != 0,
            .wants_states = width != 0,
            .window = 17 * width,
            .best_blocks = 3 * width};
  }

  int width;
  std::vector<Token> tokens;
  std::vector<int> logit_rows;
  std::vector<kernels::Choice> choices;
  std::vector<float> features;
  std::vector<std::int32_t> blocks = {7, 3, 9}, window_blocks = {1, -1, 2};
  std::vector<kv::Segment> segments;
};

bool SameTokens(std::span<const std::int32_t> a, std::span<const std::int32_t> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

void ExpectSame(const Pass& got, const Pass& wanted, int width) {
  EXPECT_TRUE(SameTokens(got.tokens, wanted.tokens));
  EXPECT_TRUE(SameTokens(got.logit_rows, wanted.logit_rows));
  EXPECT_EQ(got.own_features, wanted.own_features);
  EXPECT_EQ(got.reduced, wanted.reduced);
  EXPECT_EQ(got.wants_states, wanted.wants_states);
  EXPECT_EQ(got.window, wanted.window);
  EXPECT_EQ(got.best_blocks, wanted.best_blocks);
  ASSERT_EQ(got.features == nullptr, wanted.features == nullptr);
  if (wanted.features != nullptr) {
    EXPECT_TRUE(
        std::equal(wanted.features, wanted.features + wanted.n_rows() * width, got.features));
  }
  ASSERT_EQ(got.choices.size(), wanted.choices.size());
  for (std::size_t i = 0; i < wanted.choices.size(); ++i)
    EXPECT_EQ(std::memcmp(&got.choices[i], &wanted.choices[i], sizeof(kernels::Choice)), 0);
  ASSERT_EQ(got.segments.size(), wanted.segments.size());
  for (std::size_t i = 0; i < wanted.segments.size(); ++i) {
    const kv::Segment &a = got.segments[i], &b = wanted.segments[i];
    EXPECT_EQ(a.seq, b.seq);
    EXPECT_EQ(a.row_begin, b.row_begin);
    EXPECT_EQ(a.n_rows, b.n_rows);
    EXPECT_EQ(a.first_position, b.first_position);
    EXPECT_EQ(a.state.from, b.state.from);
    EXPECT_EQ(a.state.to, b.state.to);
    EXPECT_EQ(a.state.source, b.state.source);
    EXPECT_EQ(a.state.checkpoint, b.state.checkpoint);
    EXPECT_EQ(a.rows_of, b.rows_of);
    EXPECT_EQ(a.window_rows_of, b.window_rows_of);
    EXPECT_TRUE(SameTokens(a.blocks, b.blocks));
    EXPECT_TRUE(SameTokens(a.window_blocks, b.window_blocks));
  }
}

void SendPass(Wire& wire, const OwnPass& pass) {
  Message message;
  message.Begin(Order::kPass, 3);
  message.AddPass(pass.View(), pass.width);
  ASSERT_TRUE(message.Send(wire));
  wire.Read();
}

// Short and long, with and without features.
const std::vector<std::pair<int, int>> kSizes = {{2, 0}, {5, 24}, {900, 0}, {2000, 0}, {64, 96}};

TEST(Message, BringsThePass) {
  for (const auto& [n_rows, width] : kSizes) {
    const OwnPass pass(n_rows, width);
    Wire wire;
    SendPass(wire, pass);
    Message message;
    ASSERT_TRUE(message.Receive(wire));
    EXPECT_EQ(message.order(), Order::kPass);
    EXPECT_EQ(message.runner(), 3);
    Pass got;
    int got_width = 0;
    ASSERT_TRUE(message.ReadPass(got, got_width));
    EXPECT_EQ(got_width, width);
    ExpectSame(got, pass.View(), width);
  }
}

TEST(Message, BringsOtherOrders) {
  Wire wire;
  Message message;
  const std::vector<std::int32_t> blocks = {5, 1, 8};
  message.Begin(Order::kClearBlocks, 1);
  message.Add(blocks);
  ASSERT_TRUE(message.Send(wire));
  message.Begin(Order::kStop, 0);
  ASSERT_TRUE(message.Send(wire));
  wire.Read();
  Message got;
  ASSERT_TRUE(got.Receive(wire));
  EXPECT_EQ(got.order(), Order::kClearBlocks);
  EXPECT_EQ(got.runner(), 1);
  EXPECT_TRUE(SameTokens(got.body(), blocks));
  ASSERT_TRUE(got.Receive(wire));
  EXPECT_EQ(got.order(), Order::kStop);
  EXPECT_TRUE(got.body().empty());
}

// One bit of each word that was sent is another one.
TEST(Message, RefusesEachDamagedWord) {
  for (const auto& [n_rows, width] : {std::pair{5, 24}, {900, 0}}) {
    Wire wire;
    SendPass(wire, OwnPass(n_rows, width));
    Message whole;
    ASSERT_TRUE(whole.Receive(wire));
    const std::size_t n_words = whole.body().size() + 5;
    for (std::size_t word = 0; word < n_words; ++word) {
      std::byte& byte = wire.sent()[word * 4 + word % 4];
      const std::byte kept = byte;
      byte ^= static_cast<std::byte>(1 << word % 8);
      wire.Read();
      Message message;
      EXPECT_FALSE(message.Receive(wire)) << word;
      byte = kept;
    }
  }
}

TEST(Message, RefusesAMessageThatIsCutShort) {
  Wire wire;
  SendPass(wire, OwnPass(2000));
  wire.sent().resize(wire.sent().size() - 4);
  Message message;
  EXPECT_FALSE(message.Receive(wire));
}

// A message that is not damaged, but whose words are no pass: each is changed before it is sent.
TEST(Message, ReadsNoPassBeyondItsWords) {
  Wire first;
  SendPass(first, OwnPass(5, 24));
  Message whole;
  ASSERT_TRUE(whole.Receive(first));
  const std::vector<std::int32_t> body(whole.body().begin(), whole.body().end());
  const auto reads = [](std::span<const std::int32_t> words) {
    Wire wire;
    Message message;
    message.Begin(Order::kPass, 0);
    message.Add(words);
    EXPECT_TRUE(message.Send(wire));
    wire.Read();
    EXPECT_TRUE(message.Receive(wire));
    Pass pass;
    int width = 0;
    return message.ReadPass(pass, width);
  };
  ASSERT_TRUE(reads(body));
  for (std::size_t n = 0; n < body.size(); ++n) EXPECT_FALSE(reads(std::span(body).first(n))) << n;
  // Whatever it says, the words of a pass are read within the message.
  for (std::size_t i = 0; i < body.size(); ++i)
    for (const std::int32_t value : {-1, 0, 1, 6, 1 << 20, INT32_MIN, INT32_MAX}) {
      std::vector<std::int32_t> other = body;
      other[i] = value;
      reads(other);
    }
  std::vector<std::int32_t> longer = body;
  longer.push_back(0);
  EXPECT_FALSE(reads(longer));
}

// The counts of rows, segments and logits; a segment's place and length; a row of logits.
TEST(Message, RefusesRowsThatAreNotThePass) {
  const auto refused = [](const std::function<void(OwnPass&)>& change) {
    OwnPass pass(6);
    change(pass);
    Wire wire;
    SendPass(wire, pass);
    Message message;
    Pass got;
    int width = 0;
    return message.Receive(wire) && !message.ReadPass(got, width);
  };
  EXPECT_FALSE(refused([](OwnPass&) {}));
  EXPECT_TRUE(refused([](OwnPass& p) { p.segments[1].row_begin = 2; }));
  EXPECT_TRUE(refused([](OwnPass& p) { p.segments[1].n_rows = 4; }));
  EXPECT_TRUE(refused([](OwnPass& p) { p.segments[1].n_rows = 6; }));
  EXPECT_TRUE(refused([](OwnPass& p) { p.segments[0].n_rows = 0; }));
  EXPECT_TRUE(refused([](OwnPass& p) { p.segments.clear(); }));
  EXPECT_TRUE(refused([](OwnPass& p) { p.logit_rows = {3, 6}; }));
  EXPECT_TRUE(refused([](OwnPass& p) { p.choices.pop_back(); }));
  EXPECT_TRUE(refused([](OwnPass& p) { p.choices[1].n_tokens = -1; }));
  EXPECT_TRUE(refused([](OwnPass& p) { p.choices[0].rule = kernels::ChoiceRule{3}; }));
  EXPECT_FALSE(refused([](OwnPass& p) { p.choices.clear(); }));
  EXPECT_TRUE(refused([](OwnPass& p) { p.logit_rows = {3, 3}; }));
  EXPECT_TRUE(refused([](OwnPass& p) { p.logit_rows = {-1}; }));
}

}  // namespace
}  // namespace foretoken::model
