// SPDX-License-Identifier: Apache-2.0
// train/run/progress_line.h: a line that is redrawn on a terminal; nothing in a pipe.
#pragma once

#include <cstddef>
#include <string>

namespace foretoken::train {

class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();  // the next output begins on a line of its own
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void Draw(const std::string& text);

 private:
  bool shown_, drawn_ = false;
  std::size_t last_size_ = 0;
};

}  // namespace foretoken::train
