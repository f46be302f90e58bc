// SPDX-License-Identifier: Apache-2.0
#include "settings/speculative_sources.h"

#include <fmt/format.h>

#include <cstdlib>
#include <utility>
#include <vector>

namespace foretoken::settings {
namespace {

struct Variable {
  std::string name, value;
};

// The variables that are set for a key, by its name and its aliases.
std::vector<Variable> VariablesFor(const SpeculativeKey& key, const Environment& environment) {
  std::vector<std::string_view> names = {key.name};
  names.insert(names.end(), key.aliases.begin(), key.aliases.end());
  std::vector<Variable> set;
  for (const std::string_view name : names) {
    const std::string variable = VariableOf(name);
    if (!set.empty() && set.back().name == variable) continue;  // ewma.min and ewma_min
    const auto value = environment(variable);
    if (value && !value->empty()) set.push_back({variable, *value});
  }
  return set;
}

}  // namespace

Environment ProcessEnvironment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* const value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
}

std::string VariableOf(std::string_view key) {
  std::string out = "FORETOKEN_";
  for (const char c : key)
    out += c == '.' ? '_' : c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return out;
}

Status ReadSpeculativeSources(const SpeculativeFile& file, const Environment& environment,
                              SpeculativeOptions& options) {
  if (!file.path.empty()) FORETOKEN_CHECK_OK(ReadSpeculativeFile(file.path, file.section, options));
  for (const SpeculativeKey& key : SpeculativeKeys()) {
    const std::vector<Variable> set = VariablesFor(key, environment);
    for (const Variable& variable : set) {
      if (variable.value != set[0].value)
        return Fail(ErrorCode::kInvalidArgument,
                    fmt::format("{}={} and {}={}: two names of one setting with different values; "
                                "keep one",
                                set[0].name, set[0].value, variable.name, variable.value));
      if (Status status = key.set(options, variable.value); !status)
        return Fail(std::move(status.error()).In(variable.name));
    }
  }
  return {};
}

}  // namespace foretoken::settings
