// SPDX-License-Identifier: Apache-2.0
// POSIX's <sys/uio.h> for Windows: see base/windows/README.md.
#pragma once

#include <sys/types.h>

#include <cstddef>

namespace foretoken {

struct iovec {
  void* iov_base;
  std::size_t iov_len;
};
ssize_t preadv(int descriptor, const struct iovec* pieces, int n, off_t offset);
ssize_t pwritev(int descriptor, const struct iovec* pieces, int n, off_t offset);

}  // namespace foretoken
