// SPDX-License-Identifier: Apache-2.0
// What POSIX's <errno.h> has and Windows' lacks: see base/windows/README.md.
#pragma once

#include_next <errno.h>

#ifndef EDQUOT
#define EDQUOT 10069
#endif
