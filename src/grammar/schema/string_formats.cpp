// SPDX-License-Identifier: Apache-2.0
#include "grammar/schema/string_formats.h"

#include <utility>

// Years have four digits, the first of them not 0, as most date parsers want; there are no leap
// seconds; fractions of a second have as many digits as such parsers accept.
#define FORETOKEN_DATE                                                  \
  "(?:[1-9][0-9]{3}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"   \
  "|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))" \
  "|(?:[1-9][0-9](?:0[48]|[2468][048]|[13579][26])|(?:[2468][048]|[13579][26])00)-02-29)"
#define FORETOKEN_TIME                         \
  "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]" \
  "(?:\\.[0-9]{1,6})?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
#define FORETOKEN_OCTET "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"

namespace foretoken::grammar {
namespace {

constexpr std::pair<std::string_view, std::string_view> kFormats[] = {
    {"date", "^" FORETOKEN_DATE "$"},
    {"time", "^" FORETOKEN_TIME "$"},
    {"date-time", "^" FORETOKEN_DATE "T" FORETOKEN_TIME "$"},
    {"uuid", "^[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$"},
    {"ipv4", "^(?:" FORETOKEN_OCTET "\\.){3}" FORETOKEN_OCTET "$"},
    {"email",
     "^[A-Za-z0-9_%+-]{1,24}(?:\\.[A-Za-z0-9_%+-]{1,24})?"
     "@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,24}[A-Za-z0-9])?\\.){1,3}[A-Za-z]{2,12}$"},
};

}  // namespace

std::string_view PatternOfFormat(std::string_view format) {
  for (const auto& [name, pattern] : kFormats)
    if (name == format) return pattern;
  return {};
}

}  // namespace foretoken::grammar
