// SPDX-License-Identifier: Apache-2.0
#include "server/net/api_keys.h"

#include <string_view>

namespace foretoken::server {
namespace {

// Takes the same time however much of the key was right.
bool SameKey(std::string_view given, std::string_view key) {
  unsigned difference = given.size() == key.size() ? 0 : 1;
  for (std::size_t i = 0; i < given.size(); ++i)
    difference |= static_cast<unsigned char>(given[i] ^ key[i % key.size()]);
  return difference == 0;
}

// The key behind "Bearer "; "" for another scheme.
std::string_view BearerKey(std::string_view authorization) {
  constexpr std::string_view kScheme = "bearer ";
  if (authorization.size() < kScheme.size()) return {};
  for (std::size_t i = 0; i < kScheme.size(); ++i) {
    const char c = authorization[i];
    if ((c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c) != kScheme[i]) return {};
  }
  authorization.remove_prefix(kScheme.size());
  while (authorization.starts_with(' ')) authorization.remove_prefix(1);
  return authorization;
}

}  // namespace

std::optional<std::size_t> KeyOf(const HttpRequest& request, const std::vector<std::string>& keys) {
  std::string_view given = BearerKey(request.Field("authorization"));
  if (given.empty()) given = request.Field("x-api-key");
  if (given.empty()) return std::nullopt;
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < keys.size(); ++i)
    if (SameKey(given, keys[i])) found = i;
  return found;
}

}  // namespace foretoken::server
