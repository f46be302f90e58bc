// SPDX-License-Identifier: Apache-2.0
// grammar/list_memory.h: the memory of a list, counted and released.
#pragma once

#include <cstddef>
#include <vector>

namespace foretoken::grammar {

template <typename T>
std::size_t BytesOf(const std::vector<T>& list) {
  return list.capacity() * sizeof(T);
}

template <typename T>
void Free(std::vector<T>& list) noexcept {
  std::vector<T>().swap(list);
}

}  // namespace foretoken::grammar
