// SPDX-License-Identifier: Apache-2.0
#include "settings/option_flags.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "settings/generate_flags.h"

namespace foretoken::settings {
namespace {

bool IsOfName(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// The whole words of the message that are `option` become `flag`.
void Replace(std::string& message, std::string_view option, std::string_view flag) {
  for (std::size_t at = 0; (at = message.find(option, at)) != std::string::npos;) {
    const std::size_t end = at + option.size();
    if (end < message.size() && IsOfName(message[end])) {
      at = end;
      continue;
    }
    message.replace(at, option.size(), flag);
    at += flag.size();
  }
}

// The first long name.
std::string_view LongName(const Flag& flag) {
  const auto name = std::find_if(flag.names.begin(), flag.names.end(),
                                 [](const std::string& n) { return n.starts_with("--"); });
  return name == flag.names.end() ? flag.names.front() : *name;
}

}  // namespace

std::string InFlags(std::string message, const FlagSet& flags) {
  for (const FlagGroup& group : flags.groups())
    for (const Flag& flag : group.flags)
      if (!flag.option.empty()) Replace(message, flag.option, LongName(flag));
  return message;
}

std::string InFlags(std::string message) {
  if (message.find("::") == std::string::npos) return message;
  GenerateSettings settings;
  return InFlags(std::move(message), GenerateFlags(settings));
}

}  // namespace foretoken::settings
