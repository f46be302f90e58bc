// SPDX-License-Identifier: Apache-2.0
#include "server/net/query.h"

#include <algorithm>
#include <charconv>

namespace foretoken::server {
namespace {

// A byte that was written as two digits; -1: these are none.
int CodedByte(std::string_view digits) {
  int byte = -1;
  const char* const end = digits.data() + digits.size();
  const auto [last, error] = std::from_chars(digits.data(), end, byte, 16);
  return digits.size() == 2 && last == end && error == std::errc() ? byte : -1;
}

std::string DecodedField(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const int byte = text[i] == '%' ? CodedByte(text.substr(i + 1, 2)) : -1;
    decoded += byte >= 0 ? static_cast<char>(byte) : text[i] == '+' ? ' ' : text[i];
    if (byte >= 0) i += 2;
  }
  return decoded;
}

}  // namespace

std::optional<std::string> QueryField(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const std::string_view field = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(field.size() + 1, query.size()));
    const std::size_t equals = std::min(field.find('='), field.size());
    if (DecodedField(field.substr(0, equals)) == name)
      return DecodedField(field.substr(std::min(equals + 1, field.size())));
  }
  return std::nullopt;
}

}  // namespace foretoken::server
