// SPDX-License-Identifier: Apache-2.0
#include "grammar/grammar_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <unordered_map>

#include "base/seeded_hash.h"
#include "base/work_count.h"
#include "grammar/control_literal.h"
#include "grammar/gbnf.h"

namespace foretoken::grammar {
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

// Characters whose UTF-8 sequences have one length, with a range for each byte.
struct ByteRanges {
  Utf8 low, high;

  std::uint8_t Low(int i) const { return low.bytes[static_cast<std::size_t>(i)]; }
  std::uint8_t High(int i) const { return high.bytes[static_cast<std::size_t>(i)]; }
  bool SharesByte(int i, const ByteRanges& other) const {
    return Low(i) == other.Low(i) && High(i) == other.High(i);
  }
};

// Writes steps from the end to the beginning, so that the next step is known when a node is
// written.
class Writer {
 public:
  explicit Writer(const Gbnf& gbnf) : gbnf_(gbnf) { steps_.push_back({.kind = StepKind::kReturn}); }

  [[nodiscard]] Result<GrammarProgram> Write() {
    std::vector<int> begins;
    for (const GbnfRule& rule : gbnf_.rules) begins.push_back(WriteNode(rule.body, 0));
    if (too_large_)
      return FailField(
          ErrorCode::kTooLarge, "grammar",
          fmt::format("its repetitions make more than {} steps; lower them", kMaxSteps));
    for (GrammarStep& step : steps_)
      if (step.kind == StepKind::kCall) step.other = begins[static_cast<std::size_t>(step.other)];
    return GrammarProgram{std::move(steps_), begins[static_cast<std::size_t>(gbnf_.root)],
                          std::move(controls_)};
  }

 private:
  // Finds steps of one class by their content.
  using SharedBytes = std::unordered_map<std::uint64_t, int, SeededHasher>;

  int Add(const GrammarStep& step) {
    if (steps_.size() >= kMaxSteps) return too_large_ = true, 0;
    steps_.push_back(step);
    return static_cast<int>(steps_.size()) - 1;
  }
  int Split(int first, int second) {
    return Add({.kind = StepKind::kSplit, .next = first, .other = second});
  }

  int WriteNode(int index, int next) {
    CountWork();
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
      case GbnfNode::Kind::kControl:
        return WriteControl(node.token, next);
      case GbnfNode::Kind::kRule:
        return Add({.kind = StepKind::kCall, .next = next, .other = node.rule});
      case GbnfNode::Kind::kRepeat:
        return WriteRepeat(node, next);
    }
    return next;
  }

  int WriteControl(Token token, int next) {
    if (std::find(controls_.begin(), controls_.end(), token) == controls_.end())
      controls_.push_back(token);
    const std::string bytes = ControlLiteral(token);
    for (auto byte = bytes.rbegin(); byte != bytes.rend(); ++byte) {
      const auto value = static_cast<std::uint8_t>(*byte);
      next = Add({.kind = StepKind::kByte, .low = value, .high = value, .next = next});
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
    sequences_.clear();
    for (const CodePoints& r : ranges) AddSequences(r.first, r.last);
    if (sequences_.size() == 1) return WriteBytes(sequences_[0], 0, next);
    SharedBytes shared(sequences_.size());
    return WriteSequences(sequences_, 0, next, shared);
  }

  // Cuts [first, last] into ranges whose sequences are products of byte ranges.
  void AddSequences(char32_t first, char32_t last) {
    const auto cut = [&](char32_t end) {
      AddSequences(first, end);
      AddSequences(end + 1, last);
    };
    for (const char32_t end : {0x7Fu, 0x7FFu, 0xFFFFu})
      if (first <= end && end < last) return cut(end);
    const Utf8 low = Encode(first), high = Encode(last);
    for (int i = 1; i < low.size; ++i) {
      const char32_t tail = (char32_t{1} << (6 * i)) - 1;  // the values of the last i bytes
      if ((first & ~tail) == (last & ~tail)) continue;
      if ((first & tail) != 0) return cut(first | tail);
      if ((last & tail) != tail) return cut((last & ~tail) - 1);
    }
    CountWork();
    sequences_.push_back({low, high});
  }

  // From byte i on.
  int WriteBytes(const ByteRanges& sequence, int i, int next) {
    for (int at = sequence.low.size - 1; at >= i; --at)
      next = Add({.kind = StepKind::kByte,
                  .low = sequence.Low(at),
                  .high = sequence.High(at),
                  .next = next});
    return next;
  }

  // A tree from byte i on. The sequences ascend, so those that share a byte range are adjacent, and
  // different ranges are disjoint. A text continues in at most one of them.
  int WriteSequences(std::span<const ByteRanges> sequences, int i, int next, SharedBytes& shared) {
    int any = 0;
    for (std::size_t end = sequences.size(); end > 0 && !too_large_;) {
      const ByteRanges& last = sequences[end - 1];
      std::size_t begin = end - 1;
      while (begin > 0 && sequences[begin - 1].SharesByte(i, last)) --begin;
      const bool ends = i + 1 == last.low.size;
      const int rest =
          ends ? next : WriteSequences(sequences.subspan(begin, end - begin), i + 1, next, shared);
      const int byte = WriteByte(last.Low(i), last.High(i), rest, shared);
      any = end == sequences.size() ? byte : Split(byte, any);
      end = begin;
    }
    return any;
  }

  // Sequences with the same end share it.
  int WriteByte(std::uint8_t low, std::uint8_t high, int next, SharedBytes& shared) {
    const std::uint64_t key =
        static_cast<std::uint64_t>(next) << 16 | static_cast<std::uint64_t>(low) << 8 | high;
    const auto [known, added] = shared.try_emplace(key, 0);
    if (added)
      known->second = Add({.kind = StepKind::kByte, .low = low, .high = high, .next = next});
    return known->second;
  }

  const Gbnf& gbnf_;
  std::vector<GrammarStep> steps_;
  std::vector<Token> controls_;
  std::vector<ByteRanges> sequences_;  // of the character that is being written
  int n_visits_ = 0;
  bool too_large_ = false;
};

}  // namespace

Result<GrammarProgram> CompileGbnf(std::string_view text) {
  FORETOKEN_TRY(const Gbnf gbnf, ParseGbnf(text));
  return Writer(gbnf).Write();
}

}  // namespace foretoken::grammar
