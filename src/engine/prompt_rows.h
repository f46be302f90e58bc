// SPDX-License-Identifier: Apache-2.0
// engine/prompt_rows.h: how many prompt tokens a pass may read while others decode or may join, so
// that nobody waits long for a long prompt.
//
// A pass may cost a fixed factor of what it would cost without prompts: more where nobody decodes
// and only one that comes could wait. How dear a row is is learned from the passes that read
// prompts; until something is known a fixed number is allowed. There is a least number, too: where
// rows are dear a factor of a single row's pass would be next to nothing.
#pragma once

namespace foretoken::engine {

class PromptRows {
 public:
  static constexpr int kLeast = 16, kUnknown = 32;
  static constexpr double kFactor = 3;
  static constexpr int kUndisturbed = 2;  // times as much where nobody decodes

  explicit PromptRows(int most) : most_(most) {}  // of any pass

  // A pass with that many prompt rows took us; without them it would have taken plain_us (0: not
  // known).
  void See(int rows, double us, double plain_us) noexcept;
  // For a pass that takes plain_us without them.
  int Most(double plain_us, bool others_decode) const noexcept;

 private:
  int most_;
  double row_us_ = 0;  // 0: not known
};

}  // namespace foretoken::engine
