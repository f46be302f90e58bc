// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "settings/escaped_text.h"
#include "settings/help_text.h"

namespace foretoken::cli {
namespace {

std::atomic<bool> interrupt_seen{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler writes it");

bool Set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

// $COLUMNS, else the terminal's width; 0 if neither is known.
std::size_t Columns(int descriptor) {
  std::size_t columns = 0;
  if (const char* text = std::getenv("COLUMNS"))
    std::from_chars(text, text + std::strlen(text), columns);
  winsize size = {};
  if (columns == 0 && isatty(descriptor) == 1 && ioctl(descriptor, TIOCGWINSZ, &size) == 0)
    columns = size.ws_col;
  return columns;
}

}  // namespace

bool StandardOutputIsTerminal() {
  return isatty(STDOUT_FILENO) == 1;
}

bool StandardErrorIsTerminal() {
  return isatty(STDERR_FILENO) == 1;
}

bool TerminalIsDumb() {
  const char* term = std::getenv("TERM");
  return term == nullptr || *term == '\0' || std::strcmp(term, "dumb") == 0;
}

bool ColourOnStandardOutput() {
  return StandardOutputIsTerminal() && !Set("NO_COLOR") && !TerminalIsDumb();
}

std::size_t TerminalWidth() {
  constexpr std::size_t kDefault = 80, kLeast = 40, kMost = 120;
  const std::size_t columns = Columns(STDOUT_FILENO);
  return columns == 0 ? kDefault : std::clamp(columns, kLeast, kMost);
}

std::string Fitted(const std::string& text, int descriptor, std::size_t indent) {
  constexpr std::size_t kLeast = 40;
  const std::string lines = settings::Escaped(text);
  if (isatty(descriptor) != 1) return lines;
  const std::size_t width = Columns(descriptor);
  if (width < kLeast) return lines;
  std::string out;
  for (std::size_t at = 0; at < lines.size();) {
    const std::size_t end = std::min(lines.find('\n', at), lines.size());
    std::string line = settings::Wrapped(lines.substr(at, end - at), width, indent);
    if (end == lines.size()) line.pop_back();  // the text's last line has no break
    out += line;
    at = end + 1;
  }
  return out;
}

std::string OnOneLine(std::string_view text) {
  std::string out;
  for (const char c : settings::Escaped(text)) {
    if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else
      out += c;
  }
  return out;
}

void Output::Write(std::string_view text) {
  WriteColoured(escapes_ ? settings::Escaped(text) : text);
}

void Output::WriteColoured(std::string_view text) {
  if (failed() || text.empty()) return;
  errno = 0;
  const bool complete = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!complete || std::fflush(stdout) != 0) error_ = errno != 0 ? errno : EIO;
}

Status Output::status() const {
  if (!failed()) return {};
  return Fail(ErrorCode::kIo, std::string("standard output: ") + std::strerror(error_) +
                                  "; make room or send it elsewhere");
}

bool Output::closed_pipe() const {
  return error_ == EPIPE;
}

InterruptGuard::InterruptGuard() {
  interrupt_seen = false;
  struct sigaction action = {};
  action.sa_handler = [](int) { interrupt_seen = true; };
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);  // the second one kills
  sigaction(SIGINT, &action, nullptr);
}

InterruptGuard::~InterruptGuard() {
  std::signal(SIGINT, SIG_DFL);
}

bool InterruptGuard::interrupted() {
  return interrupt_seen;
}

void ProgressLine::Show(const std::string& text) {
  if (!shown_ || text == last_) return;
  last_ = text;
  std::fprintf(stderr, "\r\033[K%s", OnOneLine(text).c_str());
  std::fflush(stderr);
}

void ProgressLine::Clear() {
  if (!shown_ || last_.empty()) return;
  last_.clear();
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
}

}  // namespace foretoken::cli
