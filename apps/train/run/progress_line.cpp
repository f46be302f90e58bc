// SPDX-License-Identifier: Apache-2.0
#include "train/run/progress_line.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace foretoken::train {

ProgressLine::ProgressLine() : shown_(isatty(STDERR_FILENO) == 1) {}

ProgressLine::~ProgressLine() {
  if (shown_ && drawn_) std::fputc('\n', stderr);
}

// Spaces overwrite the rest of a longer line. That needs no escape sequence, which a dumb terminal
// would print.
void ProgressLine::Draw(const std::string& text) {
  if (!shown_) return;
  const std::size_t rest = last_size_ - std::min(last_size_, text.size());
  std::fprintf(stderr, "\r%s%*s", text.c_str(), static_cast<int>(rest), "");
  std::fflush(stderr);
  last_size_ = text.size();
  drawn_ = true;
}

}  // namespace foretoken::train
