// SPDX-License-Identifier: Apache-2.0
// cli/line_editor.h: lines that a person types, or that a pipe gives.
//
// On a terminal: a prompt, editing as in a shell, and a history that a file keeps. From a pipe the
// lines come as they are, and no prompt is shown. One at a time, on the main thread: while it reads
// it minds Ctrl-C, a resized window and a return from the background.
#pragma once

#include <memory>
#include <string>

namespace foretoken::cli {

enum class LineOutcome {
  kLine,
  kInterrupted,  // Ctrl-C: what was typed is dropped
  kEnd,          // Ctrl-D, or the pipe's end
};

class LineEditor {
 public:
  // What `prompt` holds between two \1 takes no room on the terminal, such as colours; it ends with
  // something that does. history_file "": none is kept.
  LineEditor(std::string prompt, std::string history_file);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  // A line without its end, into `line`.
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
