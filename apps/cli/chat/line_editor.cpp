// SPDX-License-Identifier: Apache-2.0
#include "cli/chat/line_editor.h"

#include <histedit.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <system_error>
#include <utility>

namespace foretoken::cli {
namespace {

constexpr int kHistoryLines = 1000;

volatile sig_atomic_t interrupted = 0, resized = 0, resumed = 0;

// Handles a terminal's signals while it lives: the read that they interrupt fails with EINTR.
class SignalGuard {
 public:
  SignalGuard() {
    interrupted = 0;
    resized = 0;
    resumed = 0;
    struct sigaction action = {};
    action.sa_handler = [](int signal) {
      if (signal == SIGINT) interrupted = 1;
      if (signal == SIGWINCH) resized = 1;
      if (signal == SIGCONT) resumed = 1;
    };
    for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &action, &before_[i]);
  }
  ~SignalGuard() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
  }
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

 private:
  static constexpr std::array<int, 3> kSignals = {SIGINT, SIGWINCH, SIGCONT};
  std::array<struct sigaction, 3> before_ = {};
};

bool Taken(volatile sig_atomic_t& flag) {
  const bool was_set = flag != 0;
  flag = 0;
  return was_set;
}

// The next byte of standard input; -1 at its end and at Ctrl-C.
int ReadByte(EditLine* editor) {
  for (;;) {
    if (interrupted) return -1;
    if (Taken(resized)) el_resize(editor);
    if (Taken(resumed)) {
      el_set(editor, EL_PREP_TERM, 1);
      el_set(editor, EL_REFRESH);
    }
    unsigned char byte = 0;
    const ssize_t n = read(STDIN_FILENO, &byte, 1);
    if (n == 1) return byte;
    if (n == 0 || errno != EINTR) return -1;
  }
}

// UTF-8; a byte that is not part of a character is read as Latin-1.
int ReadCharacter(EditLine* editor, wchar_t* character) {
  const int lead = ReadByte(editor);
  if (lead < 0) return 0;
  const int n_more = lead < 0xC2 ? 0 : lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : lead < 0xF5 ? 3 : 0;
  int code = n_more == 0 ? lead : lead & (0x3F >> n_more);
  for (int i = 0; i < n_more; ++i) {
    const int next = ReadByte(editor);
    if (next < 0) return 0;
    code = code << 6 | (next & 0x3F);
  }
  *character = static_cast<wchar_t>(code);
  return 1;
}

// libedit writes as the locale says, and a C locale would break every accent.
void UseUtf8() {
  const char* set = std::setlocale(LC_CTYPE, "");
  if (set == nullptr ||
      (std::strstr(set, "UTF-8") == nullptr && std::strstr(set, "utf8") == nullptr))
    std::setlocale(LC_CTYPE, "C.UTF-8");
}

LineOutcome ReadPlain(std::string& line) {
  return std::getline(std::cin, line) ? LineOutcome::kLine : LineOutcome::kEnd;
}

}  // namespace

class LineEditor::Terminal {
 public:
  Terminal(std::string prompt, std::string history_file)
      : prompt_(std::move(prompt)), history_file_(std::move(history_file)) {
    UseUtf8();
    editor_ = el_init("foretoken", stdin, stdout, stderr);
    history_ = history_init();
    HistEvent event;
    history(history_, &event, H_SETSIZE, kHistoryLines);
    history(history_, &event, H_SETUNIQUE, 1);
    if (!history_file_.empty()) history(history_, &event, H_LOAD, history_file_.c_str());
    if (editor_ == nullptr) return;
    el_set(editor_, EL_CLIENTDATA, this);
    el_set(editor_, EL_PROMPT_ESC, Prompt, kLiteral);
    el_set(editor_, EL_EDITOR, "emacs");
    el_set(editor_, EL_SIGNAL, 0);
    el_set(editor_, EL_GETCFN, ReadCharacter);
    el_set(editor_, EL_HIST, history, history_);
    el_set(editor_, EL_BIND, "^R", "em-inc-search-prev", nullptr);
    el_set(editor_, EL_BIND, "^W", "ed-delete-prev-word", nullptr);
    el_source(editor_, nullptr);  // the user's own ~/.editrc
  }
  ~Terminal() {
    if (editor_ != nullptr) el_end(editor_);
    history_end(history_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  LineOutcome Read(std::string& line) {
    if (editor_ == nullptr) return ReadPlain(line);
    const SignalGuard guard;
    int size = 0;
    const char* text = el_gets(editor_, &size);
    if (interrupted) {
      el_reset(editor_);
      std::fputs("^C\n", stdout);
      std::fflush(stdout);
      return LineOutcome::kDropped;
    }
    if (text == nullptr || size <= 0) return LineOutcome::kEnd;
    line.assign(text, static_cast<std::size_t>(size));
    while (line.ends_with('\n') || line.ends_with('\r')) line.pop_back();
    if (!line.empty()) Remember(line);
    return LineOutcome::kLine;
  }

 private:
  // Surrounds what takes no room on the terminal, such as colours.
  static constexpr char kLiteral = '\1';

  static char* Prompt(EditLine* editor) {
    void* self = nullptr;
    el_get(editor, EL_CLIENTDATA, &self);
    return static_cast<Terminal*>(self)->prompt_.data();
  }

  // Written at once, so that another chat or a crash loses nothing. If the history cannot be
  // written, the chat continues.
  void Remember(const std::string& line) {
    HistEvent event;
    history(history_, &event, H_ENTER, line.c_str());
    if (history_file_.empty()) return;
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(history_file_).parent_path(),
                                        ignored);
    history(history_, &event, H_SAVE, history_file_.c_str());
  }

  std::string prompt_, history_file_;
  EditLine* editor_ = nullptr;
  History* history_ = nullptr;
};

LineEditor::LineEditor(std::string prompt, std::string history_file) {
  if (isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1)
    terminal_ = std::make_unique<Terminal>(std::move(prompt), std::move(history_file));
}

LineEditor::~LineEditor() = default;

LineOutcome LineEditor::Read(std::string& line) {
  return terminal_ ? terminal_->Read(line) : ReadPlain(line);
}

std::string LineEditor::HistoryFile() {
  const auto folder = [](const char* variable) {
    const char* value = std::getenv(variable);
    return std::string(value == nullptr ? "" : value);
  };
  if (const std::string state = folder("XDG_STATE_HOME"); state.starts_with('/'))
    return state + "/foretoken/history";
  if (const std::string home = folder("HOME"); !home.empty())
    return home + "/.local/state/foretoken/history";
  return "";
}

}  // namespace foretoken::cli
