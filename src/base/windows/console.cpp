// SPDX-License-Identifier: Apache-2.0
#include "base/machine/standard_streams.h"

#include <fcntl.h>
#include <io.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/windows/system_error.h"

namespace foretoken {
namespace {

HANDLE ConsoleOf(int descriptor) {
  return reinterpret_cast<HANDLE>(_get_osfhandle(descriptor));
}

}  // namespace

int isatty(int descriptor) {
  DWORD mode = 0;
  return GetConsoleMode(ConsoleOf(descriptor), &mode) ? 1 : 0;
}

int ioctl(int descriptor, int request, struct winsize* size) {
  CONSOLE_SCREEN_BUFFER_INFO console;
  if (request != TIOCGWINSZ || !GetConsoleScreenBufferInfo(ConsoleOf(descriptor), &console))
    return LastError();
  size->ws_col = static_cast<unsigned short>(console.srWindow.Right - console.srWindow.Left + 1);
  size->ws_row = static_cast<unsigned short>(console.srWindow.Bottom - console.srWindow.Top + 1);
  return 0;
}

void PrepareStandardStreams() {
  for (FILE* const stream : {stdin, stdout, stderr}) _setmode(_fileno(stream), _O_BINARY);
  SetConsoleOutputCP(CP_UTF8);
  SetConsoleCP(CP_UTF8);
  DWORD mode = 0;
  const HANDLE console = GetStdHandle(STD_OUTPUT_HANDLE);
  const bool escapes = GetConsoleMode(console, &mode) &&
                       SetConsoleMode(console, mode | ENABLE_VIRTUAL_TERMINAL_PROCESSING);
  if (escapes && getenv("TERM") == nullptr) _putenv("TERM=xterm-256color");
}

}  // namespace foretoken
