// SPDX-License-Identifier: Apache-2.0
// cli/chat/line_editor.h: lines from a person or a pipe.
//
// On a terminal: a prompt, editing as in a shell, and a history that a file keeps. From a pipe the
// lines come as they are, without a prompt. One at a time, on the main thread. While it reads it
// handles Ctrl-C, a resized window and a return from the background.
#pragma once

#include <memory>
#include <string>

namespace foretoken::cli {

enum class LineOutcome {
  kLine,
  kDropped,  // Ctrl-C: the typed text is dropped
  kEnd,      // Ctrl-D, or the pipe's end
};

class LineEditor {
 public:
  // Text of `prompt` between two \1 takes no room on the terminal, such as colours; the prompt ends
  // with visible text. history_file "": no history.
  LineEditor(std::string prompt, std::string history_file);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  // Reads a line, without its end, into `line`.
  LineOutcome Read(std::string& line);
  // Both standard input and output are a terminal.
  bool interactive() const { return terminal_ != nullptr; }

  // $XDG_STATE_HOME/foretoken/history, else ~/.local/state/foretoken/history; "" without a home.
  static std::string HistoryFile();

 private:
  class Terminal;
  std::unique_ptr<Terminal> terminal_;
};

}  // namespace foretoken::cli
