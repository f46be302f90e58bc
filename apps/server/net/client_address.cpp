// SPDX-License-Identifier: Apache-2.0
#include "server/net/client_address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>

#include "base/sha256.h"
#include "server/net/api_keys.h"

namespace foretoken::server {
namespace {

using Bytes = std::array<unsigned char, 16>;

// IPv4 as IPv6 has it: ::ffff:a.b.c.d.
std::optional<Bytes> ParsedAddress(const std::string& address) {
  Bytes bytes = {};
  if (inet_pton(AF_INET6, address.substr(0, address.find('%')).c_str(), bytes.data()) == 1)
    return bytes;
  if (inet_pton(AF_INET, address.c_str(), bytes.data() + 12) != 1) return std::nullopt;
  bytes[10] = bytes[11] = 0xff;
  return bytes;
}

bool IsIpv4(const Bytes& bytes) {
  for (std::size_t i = 0; i < 10; ++i)
    if (bytes[i] != 0) return false;
  return bytes[10] == 0xff && bytes[11] == 0xff;
}

std::string Text(int family, const void* bytes) {
  std::array<char, INET6_ADDRSTRLEN> text = {};
  return inet_ntop(family, bytes, text.data(), text.size()) != nullptr ? text.data() : "";
}

}  // namespace

std::string ClientOf(const std::string& address) {
  auto bytes = ParsedAddress(address);
  if (!bytes) return address;
  if (IsIpv4(*bytes)) return Text(AF_INET, bytes->data() + 12);
  std::fill(bytes->begin() + 8, bytes->end(), static_cast<unsigned char>(0));
  return Text(AF_INET6, bytes->data()) + "/64";
}

std::string ClientNameOf(const HttpRequest& request, const std::vector<std::string>& keys) {
  const auto key = KeyOf(request, keys);
  if (!key) return "address " + ClientOf(request.remote_address);
  std::string name = "key ";
  for (const std::byte byte : Sha256Of(std::as_bytes(std::span(keys[*key]))))
    for (const unsigned digit :
         {std::to_integer<unsigned>(byte) >> 4, std::to_integer<unsigned>(byte) & 15})
      name += "0123456789abcdef"[digit];
  return name;
}

bool IsAddress(std::string_view text) {
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  return ParsedAddress(std::string(text)).has_value();
}

bool IsThisMachineOnly(std::string_view host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

bool IsThisMachine(const std::string& address) {
  const auto bytes = ParsedAddress(address);
  if (!bytes) return false;
  if (IsIpv4(*bytes)) return (*bytes)[12] == 127;
  Bytes loopback = {};
  loopback[15] = 1;
  return *bytes == loopback;
}

std::string ForwardedAddress(const HttpRequest& request, std::string_view field) {
  std::string_view list;
  for (const auto& [name, value] : request.fields)
    if (name == field) list = value;
  list.remove_prefix(std::min(list.rfind(',') + 1, list.size()));  // npos + 1 is 0
  while (list.starts_with(' ')) list.remove_prefix(1);
  while (list.ends_with(' ')) list.remove_suffix(1);
  const std::string address(list);
  return ParsedAddress(address) ? address : std::string();
}

}  // namespace foretoken::server
