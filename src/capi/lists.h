// SPDX-License-Identifier: Apache-2.0
// capi/lists.h: lists and texts between C and C++.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "capi/errors.h"

namespace foretoken::capi {

template <typename T>
std::span<const T> ListOf(const T* list, std::size_t count) {
  return {list, list == nullptr ? 0 : count};
}

// NULL becomes an empty text.
inline std::string_view TextOf(const char* text, std::size_t size) {
  return text == nullptr ? std::string_view() : std::string_view(text, size);
}

// Writes at most `capacity` elements, and how many there are.
template <typename List>
Status Give(const List& list, typename List::value_type* buffer, std::size_t capacity,
            std::size_t* count) {
  FORETOKEN_CHECK_OK(Needs(count, "count"));
  if (capacity > 0) FORETOKEN_CHECK_OK(Needs(buffer, "buffer"));
  *count = list.size();
  std::copy_n(list.begin(), std::min(capacity, list.size()), buffer);
  return {};
}

// A text, which ends with a NUL where there is room.
inline Status GiveText(std::string_view text, char* buffer, std::size_t capacity,
                       std::size_t* count) {
  FORETOKEN_CHECK_OK(Needs(count, "count"));
  if (capacity > 0) FORETOKEN_CHECK_OK(Needs(buffer, "buffer"));
  *count = text.size();
  std::copy_n(text.begin(), std::min(capacity, text.size()), buffer);
  if (capacity > text.size()) buffer[text.size()] = '\0';
  return {};
}

}  // namespace foretoken::capi
