// SPDX-License-Identifier: Apache-2.0
// Windows' console edits a line and remembers lines itself, while the program runs.
#include "cli/chat/line_editor.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <utility>

namespace foretoken::cli {
namespace {

LineOutcome ReadConsoleLine(std::string& line) {
  if (!std::getline(std::cin, line)) return LineOutcome::kEnd;
  while (line.ends_with('\r')) line.pop_back();
  return LineOutcome::kLine;
}

}  // namespace

class LineEditor::Terminal {
 public:
  explicit Terminal(std::string prompt) : prompt_(std::move(prompt)) { std::erase(prompt_, '\1'); }

  LineOutcome Read(std::string& line) {
    std::fputs(prompt_.c_str(), stdout);
    std::fflush(stdout);
    return ReadConsoleLine(line);
  }

 private:
  std::string prompt_;
};

LineEditor::LineEditor(std::string prompt, std::string /*history_file*/) {
  if (isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1)
    terminal_ = std::make_unique<Terminal>(std::move(prompt));
}

LineEditor::~LineEditor() = default;

LineOutcome LineEditor::Read(std::string& line) {
  return terminal_ ? terminal_->Read(line) : ReadConsoleLine(line);
}

std::string LineEditor::HistoryFile() {
  return "";
}

}  // namespace foretoken::cli
