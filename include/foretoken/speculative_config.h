// SPDX-License-Identifier: Apache-2.0
// foretoken/speculative_config.h: SpeculativeOptions that were checked, and all their settings by
// name.
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
// text; one table (SpeculativeKeys) reads and prints them all.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretoken/options.h"
#include "foretoken/result.h"
#include "foretoken/speculative_use.h"

namespace foretoken {

inline constexpr std::string_view kSpeculativeSection = "speculative_config";

// Whose words a settings file uses. kMax: Modular MAX's SpeculativeConfig, with the defaults that
// it documents: num_speculative_tokens is 2, and without a speculative_method nothing is drafted;
// its typical-acceptance is target-probability here. A file may name its dialect itself: dialect:
// max.
enum class ConfigDialect { kForetoken, kMax };
// "foretoken" or "max". Errors: kInvalidArgument.
[[nodiscard]] Result<ConfigDialect> ParseConfigDialect(std::string_view name);

// Immutable: what Create has checked stays so.
class SpeculativeConfig {
 public:
  // Checks all that needs no model: each range, and which settings go together. Method names
  // become canonical ("draft" -> "standalone"). Errors: kInvalidArgument, naming the key.
  [[nodiscard]] static Result<SpeculativeConfig> Create(const SpeculativeOptions& options);

  // `base` with the settings of a section of a YAML or JSON file; of the whole file where `section`
  // is empty, or where it is the default one and the file has no sections at all. Unknown keys are
  // errors. Errors: kInvalidArgument (with file and line), kNotFound (no such file or section),
  // kInvalidFile, kTooLarge, kIo.
  [[nodiscard]] static Result<SpeculativeConfig> Load(
      const std::string& path, std::string_view section = kSpeculativeSection,
      SpeculativeOptions base = {}, ConfigDialect dialect = ConfigDialect::kForetoken);

  const SpeculativeOptions& options() const { return options_; }

  // The one method is this one. An empty method is none of them: the draft model's file decides.
  bool is_standalone() const { return options_.method == "standalone"; }
  bool is_eagle() const { return options_.method == "eagle"; }
  bool is_mtp() const { return options_.method == "mtp"; }
  bool uses_greedy_rejection() const { return options_.strategy == VerifyStrategy::kGreedy; }
  bool uses_typical_acceptance() const {
    return options_.strategy == VerifyStrategy::kTypicalAcceptance;
  }
  bool uses_logit_comparison() const {
    return options_.strategy == VerifyStrategy::kLogitComparison;
  }
  // True if the text has the distribution that plain decoding gives it, whatever the drafter and
  // the temperature. At temperature 0 also other strategies are lossless, as they are greedy there.
  bool lossless() const;

 private:
  explicit SpeculativeConfig(SpeculativeOptions options) : options_(std::move(options)) {}
  SpeculativeOptions options_;
};

// The settings of a file's section, or of a JSON text where `file` begins with '{', into `options`,
// key by key: for callers with more sources to read before Create. `keys` gets the names of the
// settings that it has. Errors as Load's; `options` then hold the settings before the faulty one.
[[nodiscard]] Status ReadSpeculativeFile(const std::string& file, std::string_view section,
                                         SpeculativeOptions& options,
                                         ConfigDialect dialect = ConfigDialect::kForetoken,
                                         std::vector<std::string>* keys = nullptr);

// One row of the table of settings.
struct SpeculativeKey {
  enum class Type { kInteger, kNumber, kSwitch, kName, kPath, kTable };

  std::string_view name;                      // "num_speculative_tokens"
  std::span<const std::string_view> aliases;  // {"gamma", ...}
  Type type;
  // Reads a value: "4.0" is 4, yes and on are true. The error begins with the value ("65 is not in
  // [0, 64]; give a value in that range"): what it is for is put before it.
  Status (*set)(SpeculativeOptions& options, const std::string& text);
  // A text that `set` reads as the same value.
  std::string (*print)(const SpeculativeOptions& options);
  // Why the setting, as `options` have it, has no effect in this use ("only ngram reads it"); empty
  // where it has one.
  std::string (*idle)(const SpeculativeOptions& options, const SpeculativeUse& use);
};

// In the order of Describe. The table and all in it last as long as the program.
std::span<const SpeculativeKey> SpeculativeKeys();
// By name or alias; hyphens count as underscores. Null where there is none.
const SpeculativeKey* FindSpeculativeKey(std::string_view name);

// Errors: kInvalidArgument: no such key (with the nearest one), or a value that it does not take.
[[nodiscard]] Status SetSpeculativeOption(SpeculativeOptions& options, std::string_view key,
                                          const std::string& text);

// The same for Request::prediction.
std::string WhyNoPrediction(const SpeculativeUse& use);

// Every setting by its canonical name, as SetSpeculativeOption reads it.
std::vector<std::pair<std::string, std::string>> Describe(const SpeculativeOptions& options);

}  // namespace foretoken
