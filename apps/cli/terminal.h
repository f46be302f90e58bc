// SPDX-License-Identifier: Apache-2.0
// cli/terminal.h: the program's surroundings: terminals, colours, standard output, Ctrl-C.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "foretoken/options.h"
#include "foretoken/result.h"

namespace foretoken::cli {

bool StandardOutputIsTerminal();
bool StandardErrorIsTerminal();
// TERM is "dumb" or empty: the terminal has no escape sequences.
bool TerminalIsDumb();
// Standard output is a terminal that shows colours, and NO_COLOR is not set.
bool ColourOnStandardOutput();
// Columns for texts on standard output: $COLUMNS, else those of the terminal, else 80; 40 to 120.
std::size_t TerminalWidth();

// Lines for people, escaped. On a terminal each line is broken at spaces before the edge, and the
// rest is indented. If the descriptor (STDERR_FILENO, ...) is not a terminal, the text is
// unchanged.
std::string Fitted(const std::string& text, int descriptor, std::size_t indent);

// The text, escaped (settings/escaped_text.h), with line breaks as \n and tabs as \t. For texts
// from files: they must neither break a line nor control the terminal.
std::string OnOneLine(std::string_view text);

// Writes to standard output at once. After a failure the rest is dropped, and failed() is true.
class Output {
 public:
  // raw: control characters go to a terminal as they are.
  explicit Output(bool raw = false) : escapes_(!raw && StandardOutputIsTerminal()) {}

  // Any text, with parts of models, files and prompts in it. A terminal gets it escaped
  // (settings/escaped_text.h); others get its bytes.
  void Write(std::string_view text);
  // Text with the program's own colours; the caller has escaped the rest if escapes() is true.
  void WriteColoured(std::string_view text);
  bool escapes() const { return escapes_; }
  bool failed() const { return error_ != 0; }
  // kIo with the reason. A reader that closed the pipe (as `head` does) is not worth a message: see
  // closed_pipe().
  Status status() const;
  bool closed_pipe() const;

 private:
  const bool escapes_;
  int error_ = 0;
};

// While one lives, the first Ctrl-C sets interrupted(); the second ends the program.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  static bool interrupted();
};

// One line on standard error that is rewritten again and again, and disappears with the object.
// Does nothing unless `shown` is set and standard error is a terminal that can erase lines.
class ProgressLine {
 public:
  explicit ProgressLine(bool shown)
      : shown_(shown && StandardErrorIsTerminal() && !TerminalIsDumb()) {}
  ~ProgressLine() { Clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  void Show(const std::string& text);
  void Clear();

 private:
  bool shown_;
  std::string last_;
};

}  // namespace foretoken::cli
