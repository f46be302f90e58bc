// SPDX-License-Identifier: Apache-2.0
// engine/step/prompt_rows.h: how many prompt rows a pass may have while others decode or may join,
// so that nobody waits long for a long prompt.
//
// With prompt rows a pass may cost a fixed factor of what it would cost without them; more if
// nobody decodes, so that only a new request would wait. The cost of a row is learned from passes
// with prompt rows; until it is known a fixed number is allowed. There is also a least number,
// because where rows are expensive a factor of a single row's pass would allow almost none.
#pragma once

namespace foretoken::engine {

class PromptRows {
 public:
  static constexpr int kLeast = 16, kUnknown = 32;
  static constexpr double kFactor = 3;
  static constexpr int kUndisturbed = 2;  // times as much if nobody decodes

  explicit PromptRows(int most) : most_(most) {}  // the most for any pass

  // Records that a pass with that many prompt rows took us; without them it would have taken
  // plain_us (0: not known).
  void Record(int rows, double us, double plain_us) noexcept;
  // For a pass that takes plain_us without them.
  int Most(double plain_us, bool others_decode) const noexcept;

 private:
  int most_;
  double row_us_ = 0;  // 0: not known
};

}  // namespace foretoken::engine
