// SPDX-License-Identifier: Apache-2.0
// base/machine/pages.h: memory from the system, in pages.
#pragma once

#include <cstddef>

namespace foretoken {

// Pages of zeros, on huge pages if there are many and the system offers them; untouched ones use no resident
// memory. Rounds `bytes` up to what was taken. Null: the system gives no more.
std::byte* TakePages(std::size_t& bytes) noexcept;
void ReturnPages(std::byte* pages, std::size_t bytes) noexcept;  // all that were taken together

}  // namespace foretoken
