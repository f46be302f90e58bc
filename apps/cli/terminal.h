// SPDX-License-Identifier: Apache-2.0
// cli/terminal.h: what surrounds the program: terminals, colours, standard output, Ctrl-C.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "foretoken/options.h"
#include "foretoken/result.h"

namespace foretoken::cli {

bool StandardOutputIsTerminal();
bool StandardErrorIsTerminal();
// TERM says "dumb" or nothing: the terminal knows no escape sequences.
bool TerminalIsDumb();
// Standard output is a terminal that shows colours, and NO_COLOR is not set.
bool ColourOnStandardOutput();
// Columns for texts on standard output: $COLUMNS, else those of the terminal, else 80; 40 to 120.
std::size_t TerminalWidth();

// Lines for people, escaped: on a terminal each is broken at spaces where it would run over the
// edge, and what follows is indented. The same text where the descriptor (STDERR_FILENO, ...) is
// none.
std::string Fitted(const std::string& text, int descriptor, std::size_t indent);

// The text, escaped (settings/escaped_text.h), with line breaks as \n and tabs as \t. For texts out
// of files: they must neither break a line nor steer the terminal.
std::string OnOneLine(std::string_view text);

// A closed pipe becomes a failed write instead of the program's death. Called once, at the start.
void IgnoreWriteSignals();

// Writes at once to standard output. After a failure the rest is dropped and failed() says so.
class Output {
 public:
  // raw: what a terminal obeys goes there as it is.
  explicit Output(bool raw = false) : escapes_(!raw && StandardOutputIsTerminal()) {}

  // Any text, with parts of models, files and prompts in it. A terminal gets it escaped
  // (settings/escaped_text.h); all others get its bytes.
  void Write(std::string_view text);
  // Text with colours of this program's own; the rest of it is escaped already where escapes() says
  // so.
  void WriteColoured(std::string_view text);
  bool escapes() const { return escapes_; }
  bool failed() const { return error_ != 0; }
  // kIo with the reason. A reader that closed the pipe (as `head` does) is no failure worth a
  // message: closed_pipe() tells.
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

// One line on standard error that is written over and over, and vanishes with the object. Does
// nothing unless `shown` and standard error is a terminal that can erase lines.
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
