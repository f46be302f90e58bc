// SPDX-License-Identifier: Apache-2.0
#include "settings/speculative_sources.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>

#include "fixtures/tiny_model.h"
#include "settings/generate_flags.h"

namespace foretoken::settings {
namespace {

using Variables = std::map<std::string, std::string>;

Environment With(Variables variables) {
  return [variables = std::move(variables)](const std::string& name) {
    const auto at = variables.find(name);
    return at == variables.end() ? std::nullopt : std::optional<std::string>(at->second);
  };
}

std::string File(const std::string& text) {
  static int n = 0;
  std::string path = fixtures::TemporaryFolder() + "/sources" + std::to_string(n++) + ".yaml";
  EXPECT_TRUE(std::ofstream(path) << text);
  return path;
}

// For each key a value that differs from the default and that needs no other setting.
const std::map<std::string_view, std::string>& Values() {
  static const std::map<std::string_view, std::string> values = {
      {"speculative_method", "ngram,suffix"},
      {"rejection_sampling_strategy", "block"},
      {"num_speculative_tokens", "5"},
      {"min_speculative_tokens", "2"},
      {"lookahead", "heuristic"},
      {"lookahead_initial", "4"},
      {"lookahead_min", "3"},
      {"lookahead_max", "9"},
      {"lookahead_alpha", "0.5"},
      {"lookahead_cooldown_steps", "7"},
      {"num_speculative_tokens_per_batch_size", "1-4:5,5-16:2"},
      {"adaptive_speculative_widths", "4,1,2"},
      {"num_speculative_tokens_mixed_batch", "1"},
      {"draft_p_min", "0.25"},
      {"first_target", "off"},
      {"draft_vocabulary", "512"},
      {"draft_vocabulary_sample", "a b.txt"},
      {"draft_window", "1024"},
      {"draft_best_blocks", "16"},
      {"self_draft", "Q4_0,Q4_K"},
      {"synthetic_acceptance_rate", "0.6"},
      {"synthetic_acceptance_each", "on"},
      {"acceptance_threshold", "0.1"},
      {"skip_sample_adjustment", "on"},
      {"typical_epsilon", "0.2"},
      {"typical_delta", "0.7"},
      {"relaxed_top_n", "3"},
      {"relaxed_delta", "0.4"},
      {"use_relaxed_acceptance_for_thinking", "on"},
      {"thinking_begin", "<thought>"},
      {"thinking_end", "</thought>"},
      {"ngram_max", "5"},
      {"ngram_min", "2"},
      {"ngram_storage", "onelevel"},
      {"ngram_filler_top_k", "3"},
      {"ngram_keep", "on"},
      {"ngram_corpus", "corpus.txt"},
      {"suffix_max_tokens", "4096"},
      {"profile", "machine.json"},
      {"draft_models", "a.gguf"},
  };
  return values;
}

// "num_speculative_tokens" -> "--num-speculative-tokens".
std::string FlagName(std::string_view key) {
  std::string out = "--" + std::string(key);
  std::replace(out.begin(), out.end(), '_', '-');
  return out;
}

// The options after parsing flags, with these variables set meanwhile.
Result<SpeculativeOptions> ByFlags(const std::vector<std::string>& arguments,
                                   const Variables& variables = {}) {
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  GenerateSettings settings;
  const FlagSet flags = GenerateFlags(settings);
  const auto outcome = flags.Parse(arguments);
  for (const auto& [name, value] : variables) unsetenv(name.c_str());
  if (!outcome) return Fail(outcome.error());
  return settings.engine.speculative;
}

using Described = std::vector<std::pair<std::string, std::string>>;
Described Of(const Result<SpeculativeOptions>& options) {
  EXPECT_TRUE(options) << options.error().message;
  return options ? Describe(*options) : Described();
}

TEST(SpeculativeSources, EveryKeyComesFromFileEnvironmentAndFlagAlike) {
  ASSERT_EQ(Values().size(), SpeculativeKeys().size());
  for (const SpeculativeKey& key : SpeculativeKeys()) {
    const std::string& value = Values().at(key.name);
    SpeculativeOptions set;
    ASSERT_TRUE(SetSpeculativeOption(set, key.name, value)) << key.name;
    const Described wanted = Describe(set);
    EXPECT_NE(wanted, Describe(SpeculativeOptions())) << key.name;

    const std::string path =
        File(std::string(kSpeculativeSection) + ":\n  " + std::string(key.name) + ": " + value);
    EXPECT_EQ(Of(ByFlags({"--speculative-config", path})), wanted) << key.name;
    EXPECT_EQ(Of(ByFlags({}, {{VariableOf(key.name), value}})), wanted) << key.name;
    std::vector<std::string> flag = {FlagName(key.name), value};
    const bool bare = key.name == "skip_sample_adjustment" ||
                      key.name == "synthetic_acceptance_each" ||
                      key.name == "use_relaxed_acceptance_for_thinking";
    if (bare) flag.pop_back();
    EXPECT_EQ(Of(ByFlags(flag)), wanted) << key.name;
  }
}

TEST(SpeculativeSources, DraftModelsOfFlagsTakeThePlaceOfTheFiles) {
  const std::string path = File("speculative_config: {draft_models: [x.gguf, y.gguf]}");
  const auto by_file = ByFlags({"--speculative-config", path});
  ASSERT_TRUE(by_file) << by_file.error().message;
  EXPECT_EQ(by_file->draft_models, (std::vector<std::string>{"x.gguf", "y.gguf"}));
  const auto by_flags =
      ByFlags({"-m", "t.gguf", "-md", "a.gguf", "--speculative-config", path, "-md", "b,c.gguf"});
  ASSERT_TRUE(by_flags) << by_flags.error().message;
  EXPECT_EQ(by_flags->draft_models, (std::vector<std::string>{"a.gguf", "b,c.gguf"}));
}

TEST(SpeculativeSources, EveryAliasIsAVariable) {
  for (const SpeculativeKey& key : SpeculativeKeys()) {
    SpeculativeOptions set;
    ASSERT_TRUE(SetSpeculativeOption(set, key.name, Values().at(key.name)));
    for (const std::string_view alias : key.aliases) {
      SpeculativeOptions options;
      std::vector<GivenSetting> given;
      const Status status = ReadSpeculativeSources(
          {}, With({{VariableOf(alias), Values().at(key.name)}}), options, given);
      ASSERT_TRUE(status) << status.error().message;
      EXPECT_EQ(Describe(options), Describe(set)) << alias;
    }
  }
}

TEST(SpeculativeSources, FlagsWinOverTheEnvironmentAndThatOverTheFile) {
  const std::string path = File("speculative_config: {gamma: 1, ngram_max: 4, draft_p_min: 0.1}");
  const Variables variables = {{"FORETOKEN_GAMMA", "2"}, {"FORETOKEN_NGRAM_MAX", "5"}};
  // The order on the command line does not matter.
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"--speculative-config", path, "--gamma", "3"},
        std::vector<std::string>{"--gamma", "3", "--speculative-config", path}}) {
    const auto options = ByFlags(arguments, variables);
    ASSERT_TRUE(options) << options.error().message;
    EXPECT_EQ(options->num_speculative_tokens, 3);
    EXPECT_EQ(options->ngram_max, 5);
    EXPECT_FLOAT_EQ(options->draft_p_min, 0.1f);
    EXPECT_EQ(options->ngram_min, SpeculativeOptions().ngram_min);
  }
}

TEST(SpeculativeSources, AnotherSectionAndAJsonText) {
  const std::string path = File("a: {gamma: 1}\nb: {gamma: 2}\n");
  EXPECT_EQ(
      ByFlags({"--speculative-config", path, "--config-section", "b"})->num_speculative_tokens, 2);
  EXPECT_EQ(
      ByFlags({"--speculative-config", R"({"num_speculative_tokens": 6})"})->num_speculative_tokens,
      6);
}

TEST(SpeculativeSources, ErrorsNameTheSource) {
  const auto error = [](const std::vector<std::string>& arguments,
                        const Variables& variables = {}) {
    const auto options = ByFlags(arguments, variables);
    return options ? std::string() : options.error().message;
  };
  EXPECT_EQ(error({}, {{"FORETOKEN_GAMMA", "x"}}),
            "FORETOKEN_GAMMA: 'x' is not a whole number; give one in [0, 64]");
  EXPECT_EQ(error({}, {{"FORETOKEN_GAMMA", "2"}, {"FORETOKEN_NUM_SPECULATIVE_TOKENS", "3"}}),
            "FORETOKEN_NUM_SPECULATIVE_TOKENS=3 and FORETOKEN_GAMMA=2: two names of one setting "
            "with different values; keep one");
  EXPECT_EQ(error({}, {{"FORETOKEN_GAMMA", "2"}, {"FORETOKEN_NUM_SPECULATIVE_TOKENS", "2"}}), "");
  EXPECT_EQ(error({}, {{"FORETOKEN_GAMMA", ""}}), "");
  const std::string path = File("s:\n  gama: 1\n");
  EXPECT_EQ(error({"--speculative-config", path, "--config-section", "s"}),
            path + ": line 2: gama: no such setting; did you mean gamma?");
  EXPECT_EQ(error({"--speculative-config", path}),
            path + ": it has no section 'speculative_config'; choose one of s");
  EXPECT_EQ(error({"--config-section", "s"}).substr(0, 17), "--config-section:");
  EXPECT_EQ(error({"--speculative-config", ""}).substr(0, 21), "--speculative-config:");
  EXPECT_EQ(error({"--profile", ""}).substr(0, 10), "--profile:");
  EXPECT_EQ(error({"--gamma", "4.5"}), "--gamma: '4.5' is not a whole number; give one in [0, 64]");
  EXPECT_EQ(error({"--kv-cache", "never"}),
            "--kv-cache: 'never' is neither on nor off; give one of them");
  EXPECT_EQ(error({"--first-target", "never"}).substr(0, 24), "--first-target: 'never' ");
  EXPECT_EQ(error({"--kv-cache", "off", "--first-target", "off"}), "");
  EXPECT_EQ(error({"--kv-cache", "on", "--first-target", "on"}), "");
}

}  // namespace
}  // namespace foretoken::settings
