// SPDX-License-Identifier: Apache-2.0
// POSIX's <arpa/inet.h> for Windows: see base/windows/README.md.
#pragma once

#include <sys/socket.h>
