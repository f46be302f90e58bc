// SPDX-License-Identifier: Apache-2.0
// The part of <sys/ioctl.h> that foretoken calls, for Windows: see base/windows/README.md.
#pragma once

#define TIOCGWINSZ 1

namespace foretoken {

struct winsize {
  unsigned short ws_row, ws_col;
};
int ioctl(int descriptor, int request, struct winsize* size);

}  // namespace foretoken
