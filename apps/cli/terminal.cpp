// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace foretoken::cli {
namespace {

std::atomic<bool> interrupt_seen{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler writes it");

bool Set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

}  // namespace

bool StandardOutputIsTerminal() {
  return isatty(STDOUT_FILENO) == 1;
}

bool StandardErrorIsTerminal() {
  return isatty(STDERR_FILENO) == 1;
}

bool ColourOnStandardOutput() {
  const char* term = std::getenv("TERM");
  const bool dumb = term == nullptr || std::strcmp(term, "dumb") == 0;
  return StandardOutputIsTerminal() && !Set("NO_COLOR") && !dumb;
}

std::string OnOneLine(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      out += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      out += '?';
    } else {
      out += c;
    }
  }
  return out;
}

void IgnoreBrokenPipes() {
  std::signal(SIGPIPE, SIG_IGN);
}

void Output::Write(std::string_view text) {
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
  std::fprintf(stderr, "\r\033[K%s", text.c_str());
  std::fflush(stderr);
}

void ProgressLine::Clear() {
  if (!shown_ || last_.empty()) return;
  last_.clear();
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
}

}  // namespace foretoken::cli
