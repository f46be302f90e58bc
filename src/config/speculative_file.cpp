// SPDX-License-Identifier: Apache-2.0
// Settings of speculation from files, and what other programs' files mean.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <system_error>
#include <utility>

#include "foretoken/drafts.h"
#include "foretoken/speculative_config.h"
#include "formats/settings_file.h"

namespace foretoken {
namespace {

Error InFile(Error error, std::string_view name, int line) {
  error.code = ErrorCode::kInvalidArgument;
  return std::move(error).In(fmt::format("{}: line {}", name, line));
}

bool IsText(const std::string& file) {
  return file.starts_with('{');
}

Result<std::vector<formats::Setting>> Read(const std::string& file, std::string_view section) {
  return IsText(file) ? formats::ParseSettings(file, "text", section)
                      : formats::ReadSettings(file, section);
}

// The section's settings; those of the whole text, or of the whole file where the section is the
// one that is read by default, if there are no sections at all.
Result<std::vector<formats::Setting>> ReadSectionOrAll(const std::string& file,
                                                       std::string_view section) {
  auto settings = Read(file, section);
  const bool other = section != kSpeculativeSection && !IsText(file);
  if (settings || settings.error().code != ErrorCode::kNotFound || other) return settings;
  auto all = Read(file, "");
  const auto flat = [](const formats::Setting& setting) {  // "ewma.min" is the only nested kind
    return setting.key.find('.') == std::string::npos || setting.key.starts_with("ewma.");
  };
  const bool has_sections = !all || all->empty() || !std::all_of(all->begin(), all->end(), flat);
  return has_sections ? std::move(settings) : std::move(all);
}

// What a key, or one of its values, of Modular MAX's SpeculativeConfig means here.
struct MaxWord {
  std::string_view key, value;     // value: empty: any other
  std::string_view becomes, text;  // the key here, empty: none; its value, empty: the same
  std::string_view advice;         // for what has no counterpart
};
constexpr const char *kWidths = "adaptive_speculative_widths",
                     *kPerBatchSize = "num_speculative_tokens_per_batch_size";
constexpr int kMaxTokens = 2;  // where the file has no number of tokens
constexpr std::array kMaxWords = {
    MaxWord{"speculative_method", "null", "speculative_method", "none", ""},
    MaxWord{"rejection_sampling_strategy", "typical-acceptance", "rejection_sampling_strategy",
            "target-probability", ""},
    MaxWord{"relaxed_topk", "", "relaxed_top_n", "", ""},
    MaxWord{"use_greedy_acceptance", "false", "", "", ""},
    MaxWord{"use_greedy_acceptance", "", "", "",
            "it would give the text of temperature 0; ask for that temperature, or leave it out"},
    MaxWord{"draft_proposal", "sampled", "", "", ""},
    MaxWord{"draft_proposal", "", "", "",
            "drafts follow the request's temperature; set SpeculativeParameters::draft_sampling to "
            "temperature 0, or leave it out"},
    MaxWord{"config_file", "null", "", "", ""},
    MaxWord{"config_file", "", "", "", "a file names no other file; give that one itself"},
    MaxWord{"section_name", "null", "", "", ""},
    MaxWord{"adaptive_speculative_widths", "null", "", "", ""},
    MaxWord{"adaptive_speculative_widths", "false", "", "", ""},
    MaxWord{"adaptive_speculative_widths", "true", "lookahead", "cost-model", ""},
    MaxWord{"adaptive_speculative_min_batch_size", "1", "", "", ""},
    MaxWord{"adaptive_speculative_min_batch_size", "", "", "",
            "it saves graphs of small batches, and nothing is captured here; leave it out"},
};

std::string Plain(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c == '_') c = '-';
  }
  return text;
}

// "[{batch_start:1,batch_end:4,num_tokens:3},...]" as "[[1,4,3],...]"; anything else as it is.
Result<std::string> TableOf(std::string text) {
  constexpr std::array<std::string_view, 3> kNames = {"batch_start:", "batch_end:", "num_tokens:"};
  if (!text.starts_with("[{")) return text;
  std::string table = "[", rest = text.substr(1);
  while (rest.starts_with('{')) {
    const std::size_t end = std::min(rest.find('}'), rest.size());
    std::array<std::string, 3> numbers;
    std::string_view fields = std::string_view(rest).substr(1, end - 1);
    for (bool more = true; more;) {
      const std::size_t comma = std::min(fields.find(','), fields.size());
      const std::string_view field = fields.substr(0, comma);
      const auto name = std::find_if(kNames.begin(), kNames.end(),
                                     [&](std::string_view n) { return field.starts_with(n); });
      if (name == kNames.end())
        return InvalidArgument(fmt::format(
            "'{}' is not a number of a row; write batch_start, batch_end and num_tokens",
            Shown(field)));
      numbers[static_cast<std::size_t>(name - kNames.begin())] = field.substr(name->size());
      more = comma < fields.size();
      fields.remove_prefix(std::min(comma + 1, fields.size()));
    }
    table += fmt::format("{}[{},{},{}]", table.size() > 1 ? "," : "", numbers[0], numbers[1],
                         numbers[2]);
    rest.erase(0, end + 1);
    if (rest.starts_with(',')) rest.erase(0, 1);
  }
  return table + "]";
}

// Settings of MAX that choose a controller here.
Status AddFromMax(const formats::Setting& setting, std::vector<formats::Setting>& out) {
  const auto add = [&](const char* key, std::string text) {
    out.push_back({key, std::move(text), setting.line});
  };
  if (setting.key == kWidths) {
    add("lookahead", "cost-model");
    add(kWidths, setting.text);
    return {};
  }
  FORETOKEN_TRY(std::string table, TableOf(setting.text));
  if (table != "null" && table != "[]") add("lookahead", "batch-size");
  add(kPerBatchSize, std::move(table));
  return {};
}

Result<std::vector<formats::Setting>> FromMax(std::vector<formats::Setting> settings,
                                              std::string_view name) {
  std::vector<formats::Setting> out;
  for (formats::Setting& setting : settings) {
    const std::string value = Plain(setting.text);
    const auto* const word =
        std::find_if(kMaxWords.begin(), kMaxWords.end(), [&](const MaxWord& row) {
          return Plain(setting.key) == Plain(std::string(row.key)) &&
                 (row.value.empty() || row.value == value);
        });
    if (word == kMaxWords.end() && (setting.key == kWidths || setting.key == kPerBatchSize)) {
      if (Status status = AddFromMax(setting, out); !status)
        return Fail(InFile(std::move(status.error()).In(setting.key), name, setting.line));
    } else if (word == kMaxWords.end()) {
      out.push_back(std::move(setting));
    } else if (!word->advice.empty()) {
      return InvalidArgument(fmt::format("{}: line {}: {}: not a setting here: {}", name,
                                         setting.line, setting.key, word->advice));
    } else if (!word->becomes.empty()) {
      out.push_back({std::string(word->becomes),
                     word->text.empty() ? setting.text : std::string(word->text), setting.line});
    }
  }
  return out;
}

// Takes the key `dialect` out of the settings.
Result<ConfigDialect> TakeDialect(std::vector<formats::Setting>& settings, std::string_view name,
                                  ConfigDialect asked) {
  const auto at = std::find_if(settings.begin(), settings.end(),
                               [](const auto& setting) { return setting.key == "dialect"; });
  if (at == settings.end()) return asked;
  auto dialect = ParseConfigDialect(at->text);
  if (!dialect) return Fail(InFile(std::move(dialect.error()).In("dialect"), name, at->line));
  if (asked != ConfigDialect::kForetoken && asked != *dialect)
    return InvalidArgument(
        fmt::format("{}: line {}: dialect: '{}' stands here, and another one was asked for; "
                    "keep one",
                    name, at->line, Shown(at->text)));
  settings.erase(at);
  return dialect;
}

// What MAX documents for keys that are left out. Each round has exactly num_speculative_tokens drafts
// unless the file, or the program, names another controller.
void SetMaxDefaults(SpeculativeOptions& options) {
  if (!options.num_speculative_tokens) options.num_speculative_tokens = kMaxTokens;
  if (options.method.empty()) options.method = "none";
  if (options.controller == SpeculativeOptions().controller) options.controller = "fixed";
}

}  // namespace

Result<ConfigDialect> ParseConfigDialect(std::string_view name) {
  if (name == "foretoken") return ConfigDialect::kForetoken;
  if (name == "max") return ConfigDialect::kMax;
  return InvalidArgument(
      fmt::format("'{}' is not a dialect; choose foretoken or max", Shown(name)));
}

Result<ConfigDialect> ReadSpeculativeFile(const std::string& file, std::string_view section,
                                          SpeculativeOptions& options, ConfigDialect dialect,
                                          std::vector<std::string>* keys) {
  const std::string_view name = IsText(file) ? "text" : std::string_view(file);
  FORETOKEN_TRY(auto settings, ReadSectionOrAll(file, section));
  FORETOKEN_TRY(dialect, TakeDialect(settings, name, dialect));
  if (dialect == ConfigDialect::kMax) {
    FORETOKEN_TRY(settings, FromMax(std::move(settings), name));
    SetMaxDefaults(options);
  }
  std::map<const SpeculativeKey*, const formats::Setting*> given;
  for (const formats::Setting& setting : settings) {
    const SpeculativeKey* const key = FindSpeculativeKey(setting.key);
    const auto [at, added] = given.emplace(key, &setting);
    if (key != nullptr && !added && at->second->text != setting.text)
      return InvalidArgument(
          fmt::format("{}: line {}: {} and, in line {}, {}: two names of one setting with "
                      "different values; keep one",
                      name, setting.line, setting.key, at->second->line, at->second->key));
    if (Status status = SetSpeculativeOption(options, setting.key, setting.text); !status)
      return Fail(InFile(std::move(status.error()), name, setting.line));
    if (keys != nullptr) keys->push_back(setting.key);
  }
  return dialect;
}

}  // namespace foretoken
