// SPDX-License-Identifier: Apache-2.0
#include "base/argument_checks.h"

#include <fmt/format.h>

#include "foretoken/option_keys.h"

namespace foretoken {

Status CheckRange(std::string_view name, std::int64_t value, std::int64_t least,
                  std::int64_t most) {
  if (value >= least && value <= most) return {};
  return InvalidField(std::string(name),
                      fmt::format("{} is out of range; use {} to {}", value, least, most));
}

Status CheckEngineOption(std::string_view key, int value) {
  const EngineKey& row = *FindEngineKey(key);
  if (!row.range.is_set() || (row.range.or_zero && value == 0)) return {};
  return CheckRange(row.noun, value, row.range.least, row.range.most);
}

Status CheckTokens(std::string_view name, std::span<const Token> tokens, int vocabulary) {
  for (const Token id : tokens)
    if (id < 0 || id >= vocabulary)
      return InvalidField(std::string(name), fmt::format("{} is not in the vocabulary; use 0 to {}",
                                                         id, vocabulary - 1));
  return {};
}

}  // namespace foretoken
