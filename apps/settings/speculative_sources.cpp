// SPDX-License-Identifier: Apache-2.0
#include "settings/speculative_sources.h"

#include <fmt/format.h>

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

Status ReadSpeculativeSources(const SpeculativeFile& file, const Environment& environment,
                              SpeculativeOptions& options, std::vector<GivenSetting>& given) {
  if (!file.path.empty()) {
    std::vector<std::string> keys;
    FORETOKEN_CHECK_OK(ReadSpeculativeFile(file.path, file.section, options, file.dialect, &keys));
    for (const std::string& key : keys)
      given.push_back({FindSpeculativeKey(key), key + " of the settings file", true});
  }
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
      given.push_back({&key, variable.name});
    }
  }
  return {};
}

}  // namespace foretoken::settings
