// SPDX-License-Identifier: Apache-2.0
// foretoken/speculative_config.h: SpeculativeOptions that were checked, and all settings by name.
//
//   auto config = foretoken::SpeculativeConfig::Load("speculation.yaml");
//   if (!config) return Print(config.error().message);
//   auto engine = foretoken::Engine::Open({.model = "target.gguf",
//                                          .speculative = config->options()});
//
//   # speculation.yaml
//   speculative_config:
//     speculative_method: [ngram, suffix]
//     gamma: 4                              # another name of num_speculative_tokens
//     lookahead: ewma
//     ewma: {initial: 3, max: 8}
//
// Files, environment variables, flags and requests name a setting by its key and give its value as
// text. One table (SpeculativeKeys) reads and prints all of them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretoken/options.h"
#include "foretoken/result.h"

namespace foretoken {

inline constexpr std::string_view kSpeculativeSection = "speculative_config";

// The dialect of a settings file. kMax: Modular MAX's SpeculativeConfig, with its documented
// defaults: each round has exactly num_speculative_tokens drafts, 2, and without a speculative_method
// nothing is drafted; its typical-acceptance is target-probability here. A file may name its dialect
// itself: dialect: max.
enum class ConfigDialect { kForetoken, kMax };
// "foretoken" or "max". Errors: kInvalidArgument.
[[nodiscard]] Result<ConfigDialect> ParseConfigDialect(std::string_view name);

// Immutable, so what Create has checked stays valid.
class SpeculativeConfig {
 public:
  // Checks everything that needs no model: each range, and which settings go together. Method names
  // become canonical ("draft" -> "standalone"). Errors: kInvalidArgument, with the key.
  [[nodiscard]] static Result<SpeculativeConfig> Create(const SpeculativeOptions& options);

  // Reads the settings of a section of a YAML or JSON file over `base`. The whole file is read if
  // `section` is empty, or if it is the default one and the file has no sections at all. Unknown
  // keys are errors. Errors: kInvalidArgument (with file and line), kNotFound (no such file or
  // section), kInvalidFile, kTooLarge, kIo.
  [[nodiscard]] static Result<SpeculativeConfig> Load(
      const std::string& path, std::string_view section = kSpeculativeSection,
      SpeculativeOptions base = {}, ConfigDialect dialect = ConfigDialect::kForetoken);

  // These settings with one changed, of their dialect still. `key` and `value` are foretoken's own words.
  // Errors: kInvalidArgument.
  [[nodiscard]] Result<SpeculativeConfig> With(std::string_view key,
                                               const std::string& value) const;

  const SpeculativeOptions& options() const { return options_; }

  // Whether the only method is this one. An empty method is neither: the draft model's file
  // decides.
  bool is_standalone() const { return options_.method == "standalone"; }
  bool is_eagle() const { return options_.method == "eagle"; }
  bool is_mtp() const { return options_.method == "mtp"; }
  bool uses_greedy_rejection() const { return options_.strategy == VerifyStrategy::kGreedy; }
  // In MAX's words target-probability is typical acceptance.
  bool uses_typical_acceptance() const {
    return options_.strategy == VerifyStrategy::kTypicalAcceptance ||
           (dialect_ == ConfigDialect::kMax &&
            options_.strategy == VerifyStrategy::kTargetProbability);
  }
  bool uses_logit_comparison() const {
    return options_.strategy == VerifyStrategy::kLogitComparison;
  }
  // True if the text has the distribution of plain decoding, for every drafter and temperature. At
  // temperature 0 other strategies are lossless too, because they are greedy there.
  bool lossless() const;

 private:
  explicit SpeculativeConfig(SpeculativeOptions options) : options_(std::move(options)) {}
  SpeculativeOptions options_;
  ConfigDialect dialect_ = ConfigDialect::kForetoken;  // of the file, if it was loaded
};

// Reads the settings of a file's section, or of a JSON text if `file` begins with '{', into
// `options`, key by key, and returns its dialect. For callers that read more sources before Create.
// `keys` gets the names of the settings that it has. Errors: as Load; `options` then hold the settings
// before the faulty one.
[[nodiscard]] Result<ConfigDialect> ReadSpeculativeFile(
    const std::string& file, std::string_view section, SpeculativeOptions& options,
    ConfigDialect dialect = ConfigDialect::kForetoken, std::vector<std::string>* keys = nullptr);

// One row of the table of settings.
struct SpeculativeKey {
  enum class Type { kInteger, kNumber, kSwitch, kName, kPath, kTable, kList, kText };

  std::string_view name;                      // "num_speculative_tokens"
  std::span<const std::string_view> aliases;  // {"gamma", ...}
  Type type;
  // Reads a value: "4.0" is 4, yes and on are true. The error begins with the value ("65 is not in
  // [0, 64]; give a value in that range"); callers put the setting's name before it.
  Status (*set)(SpeculativeOptions& options, const std::string& text);
  // Prints the value as a text that `set` reads as the same value.
  std::string (*print)(const SpeculativeOptions& options);
  // Why the setting, as `options` have it, has no effect in this use ("only ngram reads it"); empty
  // if it has one.
  std::string (*idle)(const SpeculativeOptions& options, const SpeculativeUse& use);
  // The range of a number. Settings without one have least > most.
  double least = 1, most = 0;
  // Gives the words that it accepts: names, or what may stand in place of a number. Null: none.
  std::vector<std::string_view> (*words)() = nullptr;
};

// In the order of Describe. The table is valid as long as the program runs.
std::span<const SpeculativeKey> SpeculativeKeys();
// Finds a setting by name or alias; hyphens count as underscores. Null if there is none.
const SpeculativeKey* FindSpeculativeKey(std::string_view name);

// Errors: kInvalidArgument: no such key (with the nearest one), or a value that it does not accept.
[[nodiscard]] Status SetSpeculativeOption(SpeculativeOptions& options, std::string_view key,
                                          const std::string& text);

// Why Request::prediction has no effect in this use; empty if it has one.
std::string WhyNoPrediction(const SpeculativeUse& use);

// Every setting by its canonical name, with a value that SetSpeculativeOption reads.
std::vector<std::pair<std::string, std::string>> Describe(const SpeculativeOptions& options);

}  // namespace foretoken
