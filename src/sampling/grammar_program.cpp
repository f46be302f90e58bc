// SPDX-License-Identifier: Apache-2.0
#include "sampling/grammar_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sampling/gbnf.h"

namespace foretoken::sampling {
namespace {

using StepKind = GrammarStep::Kind;

constexpr std::size_t kMaxSteps = std::size_t{1} << 18;
constexpr int kMaxVisits = 1 << 20;  // of nodes: repetitions of nothing make no steps

struct Utf8 {
  std::array<std::uint8_t, 4> bytes = {};
  int size = 0;
};

Utf8 Encode(char32_t c) {
  const auto tail = [c](int shift) {
    return static_cast<std::uint8_t>(0x80 | ((c >> shift) & 0x3F));
  };
  if (c < 0x80) return {{static_cast<std::uint8_t>(c)}, 1};
  if (c < 0x800) return {{static_cast<std::uint8_t>(0xC0 | c >> 6), tail(0)}, 2};
  if (c < 0x10000) return {{static_cast<std::uint8_t>(0xE0 | c >> 12), tail(6), tail(0)}, 3};
  return {{static_cast<std::uint8_t>(0xF0 | c >> 18), tail(12), tail(6), tail(0)}, 4};
}

// Writes steps from the end to the beginning: what follows is known when a node is written.
class Writer {
 public:
  explicit Writer(const Gbnf& gbnf) : gbnf_(gbnf) { steps_.push_back({.kind = StepKind::kReturn}); }

  [[nodiscard]] Result<GrammarProgram> Write() {
    std::vector<int> begins;
    for (const GbnfRule& rule : gbnf_.rules) begins.push_back(WriteNode(rule.body, 0));
    if (too_large_)
      return Fail(
          ErrorCode::kTooLarge,
          fmt::format("grammar: its repetitions make more than {} steps; lower them", kMaxSteps));
    for (GrammarStep& step : steps_)
      if (step.kind == StepKind::kCall) step.other = begins[static_cast<std::size_t>(step.other)];
    return GrammarProgram{std::move(steps_), begins[static_cast<std::size_t>(gbnf_.root)]};
  }

 private:
  int Add(const GrammarStep& step) {
    if (steps_.size() >= kMaxSteps) return too_large_ = true, 0;
    steps_.push_back(step);
    return static_cast<int>(steps_.size()) - 1;
  }
  int Split(int first, int second) {
    return Add({.kind = StepKind::kSplit, .next = first, .other = second});
  }

  int WriteNode(int index, int next) {
    if (++n_visits_ > kMaxVisits) too_large_ = true;
    if (too_large_) return 0;
    const GbnfNode& node = gbnf_.nodes[static_cast<std::size_t>(index)];
    switch (node.kind) {
      case GbnfNode::Kind::kSequence:
        for (auto child = node.children.rbegin(); child != node.children.rend(); ++child)
          next = WriteNode(*child, next);
        return next;
      case GbnfNode::Kind::kAlternatives: {
        int any = WriteNode(node.children.back(), next);
        for (auto child = node.children.rbegin() + 1; child != node.children.rend(); ++child)
          any = Split(WriteNode(*child, next), any);
        return any;
      }
      case GbnfNode::Kind::kCharacter:
        return WriteCharacter(node.ranges, next);
      case GbnfNode::Kind::kRule:
        return Add({.kind = StepKind::kCall, .next = next, .other = node.rule});
      case GbnfNode::Kind::kRepeat:
        return WriteRepeat(node, next);
    }
    return next;
  }

  int WriteRepeat(const GbnfNode& node, int next) {
    const int child = node.children.front();
    int begin = next;
    if (node.most < 0) {
      begin = Split(next, next);
      const int body = WriteNode(child, begin);
      if (!too_large_) steps_[static_cast<std::size_t>(begin)].next = body;
    }
    for (int i = node.least; i < node.most && !too_large_; ++i)
      begin = Split(WriteNode(child, begin), next);
    for (int i = 0; i < node.least && !too_large_; ++i) begin = WriteNode(child, begin);
    return begin;
  }

  int WriteCharacter(const std::vector<CodePoints>& ranges, int next) {
    const auto first_step = static_cast<int>(steps_.size());
    std::vector<int> begins;
    for (const CodePoints& r : ranges) WriteRange(r.first, r.last, next, first_step, begins);
    int any = begins.back();
    for (auto begin = begins.rbegin() + 1; begin != begins.rend(); ++begin)
      any = Split(*begin, any);
    return any;
  }

  // Cuts [first, last] into ranges whose sequences are products of byte ranges.
  void WriteRange(char32_t first, char32_t last, int next, int first_step,
                  std::vector<int>& begins) {
    if (too_large_) return begins.push_back(0);
    const auto cut = [&](char32_t end) {
      WriteRange(first, end, next, first_step, begins);
      WriteRange(end + 1, last, next, first_step, begins);
    };
    for (const char32_t end : {0x7Fu, 0x7FFu, 0xFFFFu})
      if (first <= end && end < last) return cut(end);
    const Utf8 low = Encode(first), high = Encode(last);
    for (int i = 1; i < low.size; ++i) {
      const char32_t tail = (char32_t{1} << (6 * i)) - 1;  // what the last i bytes hold
      if ((first & ~tail) == (last & ~tail)) continue;
      if ((first & tail) != 0) return cut(first | tail);
      if ((last & tail) != tail) return cut((last & ~tail) - 1);
    }
    for (int i = low.size - 1; i >= 0; --i)
      next = WriteByte(low.bytes[static_cast<std::size_t>(i)],
                       high.bytes[static_cast<std::size_t>(i)], next, first_step);
    begins.push_back(next);
  }

  // Sequences with the same end share it.
  int WriteByte(std::uint8_t low, std::uint8_t high, int next, int first_step) {
    for (auto i = static_cast<std::size_t>(first_step); i < steps_.size(); ++i) {
      const GrammarStep& s = steps_[i];
      if (s.kind == StepKind::kByte && s.low == low && s.high == high && s.next == next)
        return static_cast<int>(i);
    }
    return Add({.kind = StepKind::kByte, .low = low, .high = high, .next = next});
  }

  const Gbnf& gbnf_;
  std::vector<GrammarStep> steps_;
  int n_visits_ = 0;
  bool too_large_ = false;
};

}  // namespace

Result<GrammarProgram> CompileGbnf(std::string_view text) {
  FORETOKEN_TRY(const Gbnf gbnf, ParseGbnf(text));
  return Writer(gbnf).Write();
}

}  // namespace foretoken::sampling
