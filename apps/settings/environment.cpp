// SPDX-License-Identifier: Apache-2.0
#include "settings/environment.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "config/nearest_name.h"
#include "foretoken/speculative_config.h"

namespace foretoken::settings {
namespace {

constexpr std::string_view kPrefix = "FORETOKEN_";

// Variables besides those of SpeculativeKeys(): of the programs, then of the packages for Python and
// Node, of deploy/, tools/ and tests/.
constexpr auto kVariables = std::to_array<std::string_view>({
    "FORETOKEN_API_KEY",
    "FORETOKEN_ISA",
    "FORETOKEN_MODELS",
    "FORETOKEN_THREADS",
    "FORETOKEN_LIBRARY",
    "FORETOKEN_PROGRAM",
    "FORETOKEN_FLAGS",
    "FORETOKEN_JOBS",
    "FORETOKEN_NODE_MODULES",
    "FORETOKEN_TRAIN",
});

std::vector<std::string> KnownVariables() {
  std::vector<std::string> known(kVariables.begin(), kVariables.end());
  for (const SpeculativeKey& key : SpeculativeKeys()) {
    known.push_back(VariableOf(key.name));
    for (const std::string_view alias : key.aliases) known.push_back(VariableOf(alias));
  }
  return known;
}

}  // namespace

Environment ProcessEnvironment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* const value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
}

std::vector<std::string> ProcessVariables() {
  std::vector<std::string> names;
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
    const std::string_view entry = *at;
    names.emplace_back(entry.substr(0, entry.find('=')));
  }
  return names;
}

std::string VariableOf(std::string_view key) {
  std::string out(kPrefix);
  for (const char c : key)
    out += c == '.' ? '_' : c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return out;
}

std::vector<std::string> UnknownVariables(std::span<const std::string> names) {
  std::vector<std::string> lines;
  const std::vector<std::string> known = KnownVariables();
  // Without the common prefix, which would make distant names look near.
  std::vector<std::string_view> ends;
  for (const std::string& name : known)
    ends.push_back(std::string_view(name).substr(kPrefix.size()));
  for (const std::string& name : names) {
    if (!name.starts_with(kPrefix) || std::find(known.begin(), known.end(), name) != known.end())
      continue;
    const std::string_view end = std::string_view(name).substr(kPrefix.size());
    const std::string_view nearest = NearestName(end, ends);
    lines.push_back(nearest.empty()
                        ? fmt::format("{}: no such variable, so it has no effect; "
                                      "docs/configuration.md lists them",
                                      name)
                        : fmt::format("{}: no such variable, so it has no effect; did you mean "
                                      "{}{}?",
                                      name, kPrefix, nearest));
  }
  return lines;
}

}  // namespace foretoken::settings
