// SPDX-License-Identifier: Apache-2.0
#include "foretoken/speculative_config.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <limits>
#include <map>

#include "base/failure_testing.h"
#include "config/nearest_name.h"
#include "fixtures/tiny_model.h"

namespace foretoken {
namespace {

using Change = std::function<void(SpeculativeOptions&)>;

std::string CreateError(const Change& change) {
  SpeculativeOptions options;
  change(options);
  return MessageOf(SpeculativeConfig::Create(options));
}

SpeculativeConfig Config(const Change& change) {
  SpeculativeOptions options;
  change(options);
  auto config = SpeculativeConfig::Create(options);
  EXPECT_TRUE(config) << config.error().message;
  return *config;
}

std::string File(const std::string& text) {
  static int n = 0;
  std::string path = fixtures::TemporaryFolder() + "/config" + std::to_string(n++) + ".yaml";
  EXPECT_TRUE(std::ofstream(path) << text);
  return path;
}

// A value of each key, which differs from the default and is written as it is printed.
const std::map<std::string_view, std::string>& Values() {
  static const std::map<std::string_view, std::string> values = {
      {"speculative_method", "ngram,suffix"},
      {"rejection_sampling_strategy", "block"},
      {"num_speculative_tokens", "5"},
      {"min_speculative_tokens", "2"},
      {"lookahead", "ewma"},
      {"lookahead_initial", "4"},
      {"lookahead_min", "3"},
      {"lookahead_max", "9"},
      {"lookahead_alpha", "0.5"},
      {"lookahead_cooldown_steps", "7"},
      {"num_speculative_tokens_per_batch_size", "[[1,4,5],[5,16,2]]"},
      {"adaptive_speculative_widths", "[1,2,4]"},
      {"num_speculative_tokens_mixed_batch", "1"},
      {"draft_p_min", "0.25"},
      {"first_target", "false"},
      {"draft_models", "[a.gguf,b.gguf]"},
      {"draft_vocabulary", "512"},
      {"draft_vocabulary_sample", "a b.txt"},
      {"draft_window", "1024"},
      {"draft_best_blocks", "16"},
      {"self_draft", "Q4_0,Q4_K"},
      {"synthetic_acceptance_rate", "0.6"},
      {"synthetic_acceptance_each", "true"},
      {"acceptance_threshold", "0.1"},
      {"skip_sample_adjustment", "true"},
      {"typical_epsilon", "0.2"},
      {"typical_delta", "0.7"},
      {"relaxed_top_n", "3"},
      {"relaxed_delta", "0.4"},
      {"use_relaxed_acceptance_for_thinking", "true"},
      {"thinking_begin", "<thought>"},
      {"thinking_end", "</thought>"},
      {"ngram_max", "5"},
      {"ngram_min", "2"},
      {"ngram_storage", "single-level"},
      {"ngram_filler_top_k", "3"},
      {"ngram_keep", "true"},
      {"ngram_corpus", "corpus.txt"},
      {"suffix_max_tokens", "4096"},
      {"profile", "machine.json"},
  };
  return values;
}

TEST(SpeculativeKeys, EveryKeyChangesItsOwnSettingAndPrintsIt) {
  const auto defaults = Describe({});
  ASSERT_EQ(defaults.size(), Values().size());
  for (const SpeculativeKey& key : SpeculativeKeys()) {
    SpeculativeOptions options;
    const std::string& value = Values().at(key.name);
    ASSERT_TRUE(Works(SetSpeculativeOption(options, key.name, value)));
    const auto described = Describe(options);
    for (std::size_t i = 0; i < described.size(); ++i) {
      EXPECT_EQ(described[i].first, defaults[i].first);
      if (described[i].first == key.name) {
        EXPECT_EQ(described[i].second, value);
        EXPECT_NE(described[i].second, defaults[i].second) << key.name;
      } else {
        EXPECT_EQ(described[i].second, defaults[i].second) << key.name;
      }
    }
  }
}

TEST(SpeculativeKeys, WhatIsPrintedIsRead) {
  SpeculativeOptions options;
  for (const auto& [key, value] : Values())
    ASSERT_TRUE(SetSpeculativeOption(options, key, value)) << key;
  for (const SpeculativeOptions& source : {options, SpeculativeOptions()}) {
    SpeculativeOptions copy = options;
    for (const auto& [key, text] : Describe(source))
      ASSERT_TRUE(SetSpeculativeOption(copy, key, text)) << key << ": " << text;
    EXPECT_EQ(Describe(copy), Describe(source));
  }
}

TEST(SpeculativeKeys, AliasesAndHyphensMeanTheSame) {
  std::map<std::string, const SpeculativeKey*> seen;
  for (const SpeculativeKey& key : SpeculativeKeys()) {
    EXPECT_TRUE(seen.emplace(key.name, &key).second) << key.name;
    for (const std::string_view alias : key.aliases) {
      EXPECT_TRUE(seen.emplace(alias, &key).second) << alias << " stands for two keys";
      EXPECT_EQ(FindSpeculativeKey(alias), &key) << alias;
    }
  }
  EXPECT_EQ(FindSpeculativeKey("num-speculative-tokens"),
            FindSpeculativeKey("num_speculative_tokens"));
  EXPECT_EQ(FindSpeculativeKey("gamma")->name, "num_speculative_tokens");
  EXPECT_EQ(FindSpeculativeKey("nonsense"), nullptr);
}

TEST(SpeculativeKeys, CoerceWhereNothingIsLost) {
  SpeculativeOptions options;
  for (const char* four : {"4", "4.0", "+4", " 4 ", "4e0"}) {
    options = {};
    ASSERT_TRUE(SetSpeculativeOption(options, "gamma", four)) << four;
    EXPECT_EQ(options.num_speculative_tokens, 4) << four;
  }
  for (const char* unset : {"auto", "null", "default"}) {
    ASSERT_TRUE(SetSpeculativeOption(options, "gamma", unset));
    EXPECT_FALSE(options.num_speculative_tokens);
  }
  for (const char* on : {"on", "yes", "true", "1", "True", "ON"}) {
    options = {};
    ASSERT_TRUE(SetSpeculativeOption(options, "ngram_keep", on));
    EXPECT_TRUE(options.ngram_keep) << on;
    ASSERT_TRUE(SetSpeculativeOption(options, "ngram_keep", "off"));
    EXPECT_FALSE(options.ngram_keep);
  }
  ASSERT_TRUE(SetSpeculativeOption(options, "strategy", "Sample_Match"));
  EXPECT_EQ(options.strategy, VerifyStrategy::kSampleMatch);
  ASSERT_TRUE(SetSpeculativeOption(options, "schedule", "1-4:8, 5-16:2"));
  ASSERT_EQ(options.num_speculative_tokens_per_batch_size.size(), 2u);
  EXPECT_EQ(options.num_speculative_tokens_per_batch_size[1].least, 5);
  EXPECT_EQ(options.num_speculative_tokens_per_batch_size[1].num_speculative_tokens, 2);
  ASSERT_TRUE(SetSpeculativeOption(options, "schedule", "[[1, 1, 3]]"));
  EXPECT_EQ(Describe(options)[10].second, "[[1,1,3]]");
  ASSERT_TRUE(SetSpeculativeOption(options, "schedule", "1:3"));
  EXPECT_EQ(Describe(options)[10].second, "[[1,1,3]]");
}

TEST(SpeculativeKeys, MethodsHaveTheNamesOfOtherPrograms) {
  for (const auto& [written, meant] : {std::pair{"draft", "standalone"},
                                       {"draft_model", "standalone"},
                                       {"EAGLE3", "eagle"},
                                       {"NEXTN", "mtp"},
                                       {"ngram-mod", "ngram"},
                                       {"auto", ""},
                                       {"suffix, draft", "suffix,standalone"},
                                       {"[ngram,ngram-mod]", "ngram"},
                                       {"eagle,mtp", "eagle,mtp"},
                                       {"draft:a, draft:B.q8", "standalone:a,standalone:B.q8"},
                                       {"portfolio", "portfolio"}}) {
    SpeculativeOptions options;
    ASSERT_TRUE(SetSpeculativeOption(options, "method", written)) << written;
    EXPECT_EQ(options.method, meant);
  }
}

TEST(SpeculativeKeys, DraftModelsAreAListOfPaths) {
  SpeculativeOptions options;
  for (const auto& [written, paths] : std::vector<std::pair<std::string, std::vector<std::string>>>{
           {"a.gguf", {"a.gguf"}},
           {"[a.gguf, b c.gguf]", {"a.gguf", "b c.gguf"}},
           {"a,b", {"a", "b"}},
           {R"([x\,y.gguf,z\\w])", {"x,y.gguf", R"(z\w)"}},
           {"[]", {}},
           {"", {}}}) {
    ASSERT_TRUE(SetSpeculativeOption(options, "draft_models", written)) << written;
    EXPECT_EQ(options.draft_models, paths) << written;
    const std::string printed = FindSpeculativeKey("draft_models")->print(options);
    ASSERT_TRUE(SetSpeculativeOption(options, "draft_model", printed)) << printed;
    EXPECT_EQ(options.draft_models, paths) << printed;
  }
}

TEST(SpeculativeKeys, EachErrorSaysWhatWouldDo) {
  const auto error = [](std::string_view key, const std::string& text) {
    SpeculativeOptions options;
    return MessageOf(SetSpeculativeOption(options, key, text));
  };
  EXPECT_EQ(error("gamma", "4.5"), "gamma: '4.5' is not a whole number; give one in [0, 64]");
  EXPECT_EQ(error("gamma", "65"), "gamma: 65 is not in [0, 64]; give a value in that range");
  EXPECT_EQ(error("gamma", ""), "gamma: '' is not a whole number; give one in [0, 64]");
  EXPECT_EQ(error("gamma", "1e999"), "gamma: '1e999' is not a whole number; give one in [0, 64]");
  EXPECT_EQ(error("draft_p_min", "1.5"),
            "draft_p_min: 1.5 is not in [0, 1]; give a value in that range");
  EXPECT_EQ(error("draft_p_min", "nan"), "draft_p_min: 'nan' is not a number; give one in [0, 1]");
  EXPECT_EQ(error("ngram_keep", "maybe"), "ngram_keep: 'maybe' is not a switch; use on or off");
  EXPECT_EQ(error("method", "nggram"),
            "method: 'nggram' is not a drafter; did you mean ngram? choose one of auto, none, "
            "standalone, eagle, mtp, dflash, self, ngram, suffix, prediction, grammar, portfolio");
  EXPECT_EQ(error("method", "none,ngram"),
            "method: 'none' stands alone, and here in a list; leave it or the others out");
  EXPECT_EQ(error("method", "ngram,").substr(0, 28), "method: '' is not a drafter;");
  EXPECT_EQ(error("strategy", "guess"),
            "strategy: 'guess' is not a strategy; choose one of auto, greedy, residual, "
            "sample-match, target-probability, block, typical-acceptance, logit-comparison, "
            "relaxed");
  EXPECT_EQ(error("lookahead", "guess"),
            "lookahead: 'guess' is not a controller; choose one of cost-model, fixed, ewma, "
            "heuristic, batch-size, by-text");
  EXPECT_EQ(error("ngram_storage", "trie"),
            "ngram_storage: 'trie' is not a storage; choose one of multi-level, single-level");
  for (const char* table : {"8", "1-4", "[[1,4]]", "[[1,4,8],5,6,7]", "[[1,4,8]"})
    EXPECT_NE(error("schedule", table).find("write LEAST-MOST:K"), std::string::npos) << table;
  EXPECT_EQ(error("schedule", "4-1:8"),
            "schedule: the row 4 to 1 is empty; write the smaller size first");
  EXPECT_EQ(error("schedule", "1-4:8,4-8:2"),
            "schedule: the rows 1 to 4 and 4 to 8 are not one after the other; let the sizes rise");
  EXPECT_EQ(error("gama", "4"), "gama: no such setting; did you mean gamma?");
  EXPECT_EQ(error("completely_different", "4"),
            "completely_different: no such setting; docs/configuration.md lists them");
  EXPECT_EQ(error("model", "x").substr(0, 39), "model: not a setting here; write draft_");
  EXPECT_EQ(error("draft_models", "a,,b"),
            "draft_models: 'a,,b' has an empty path; write [PATH, PATH]");
  EXPECT_EQ(error("method", "ngram:a"),
            "method: 'ngram:a' names no draft file; write standalone:NAME, eagle:NAME, mtp:NAME, "
            "dflash:NAME, NAME being the file's without .gguf");
  EXPECT_EQ(error("method", "eagle:").substr(0, 36), "method: 'eagle:' names no draft file");
  EXPECT_EQ(error("method", "self:").substr(0, 35), "method: 'self:' names no draft file");
  EXPECT_EQ(error("method", "self:whole,ngram"), "");
  EXPECT_EQ(error("a\nb", "x").find('\n'), std::string::npos);
  EXPECT_EQ(error("gamma", "a\nb").find('\n'), std::string::npos);
}

TEST(SpeculativeConfig, DefaultsPassAndEachRangeIsChecked) {
  EXPECT_EQ(CreateError([](auto&) {}), "");
  const std::vector<std::pair<std::string, Change>> faults = {
      {"speculative_method: ", [](auto& o) { o.method = "guess"; }},
      {"num_speculative_tokens: 65", [](auto& o) { o.num_speculative_tokens = 65; }},
      {"num_speculative_tokens: -1", [](auto& o) { o.num_speculative_tokens = -1; }},
      {"min_speculative_tokens: ", [](auto& o) { o.min_speculative_tokens = -1; }},
      {"lookahead: ", [](auto& o) { o.controller = "guess"; }},
      {"lookahead_initial: ", [](auto& o) { o.adaptive_lookahead.initial = 0; }},
      {"lookahead_min: ", [](auto& o) { o.adaptive_lookahead.min = 0; }},
      {"lookahead_max: ", [](auto& o) { o.adaptive_lookahead.max = 65; }},
      {"lookahead_alpha: 'nan'", [](auto& o) { o.adaptive_lookahead.alpha = std::nan(""); }},
      {"lookahead_cooldown_steps: ", [](auto& o) { o.adaptive_lookahead.cooldown_steps = -1; }},
      {"lookahead initial: 5", [](auto& o) { o.adaptive_lookahead.max = 4; }},
      {"lookahead max: 1", [](auto& o) { o.adaptive_lookahead.max = 1; }},
      {"num_speculative_tokens_per_batch_size: 0 is not in [1, 1024]",
       [](auto& o) {
         o.num_speculative_tokens_per_batch_size = {{0, 1, 1}};
       }},
      {"adaptive_speculative_widths: 0 is not in [1, 64]",
       [](auto& o) {
         o.adaptive_speculative_widths = {3, 0};
       }},
      {"num_speculative_tokens_mixed_batch: ",
       [](auto& o) { o.num_speculative_tokens_mixed_batch = 65; }},
      {"draft_p_min: ", [](auto& o) { o.draft_p_min = 1.5f; }},
      {"draft_p_min: 'nan'", [](auto& o) { o.draft_p_min = std::nanf(""); }},
      {"draft_vocabulary: ", [](auto& o) { o.draft_vocabulary = -1; }},
      {"synthetic_acceptance_rate: ", [](auto& o) { o.synthetic_acceptance_rate = -0.1; }},
      {"acceptance_threshold: ", [](auto& o) { o.acceptance_threshold = 1.1f; }},
      {"typical_epsilon: ", [](auto& o) { o.typical_epsilon = -1; }},
      {"typical_delta: ",
       [](auto& o) { o.typical_delta = std::numeric_limits<float>::infinity(); }},
      {"relaxed_top_n: ", [](auto& o) { o.relaxed_top_n = 0; }},
      {"relaxed_delta: ", [](auto& o) { o.relaxed_delta = 2; }},
      {"ngram_max: ", [](auto& o) { o.ngram_max = 17; }},
      {"ngram_min: 0", [](auto& o) { o.ngram_min = 0; }},
      {"ngram_filler_top_k: ", [](auto& o) { o.ngram_filler_top_k = 0; }},
      {"suffix_max_tokens: ", [](auto& o) { o.suffix_max_tokens = -1; }},
  };
  for (const auto& [begin, change] : faults)
    EXPECT_EQ(CreateError(change).find(begin), 0u) << begin << " / " << CreateError(change);
}

TEST(SpeculativeConfig, WhatDoesNotGoTogetherIsRefused) {
  const std::vector<std::pair<std::string, Change>> faults = {
      {"draft_vocabulary: 'ngram' drafts without",
       [](auto& o) { o.method = "ngram", o.draft_vocabulary = 9; }},
      {"draft_vocabulary_sample: draft_vocabulary is 0",
       [](auto& o) { o.draft_vocabulary = 0, o.draft_vocabulary_sample = "x"; }},
      {"min_speculative_tokens: 3 is more than the 2",
       [](auto& o) { o.min_speculative_tokens = 3, o.num_speculative_tokens = 2; }},
      {"min_speculative_tokens: under residual a drawn draft must be verified",
       [](auto& o) { o.min_speculative_tokens = 1, o.strategy = VerifyStrategy::kResidual; }},
      {"min_speculative_tokens: under block",
       [](auto& o) { o.min_speculative_tokens = 1, o.strategy = VerifyStrategy::kBlock; }},
      {"lookahead: batch-size has no table", [](auto& o) { o.controller = "batch-size"; }},
      {"adaptive_speculative_widths: 5 is more than the 4",
       [](auto& o) {
         o.num_speculative_tokens = 4, o.adaptive_speculative_widths = {2, 5};
       }},
      {"adaptive_speculative_widths: none is as long as the 3",
       [](auto& o) {
         o.min_speculative_tokens = 3, o.adaptive_speculative_widths = {1, 2};
         o.num_speculative_tokens = 8;
       }},
      {"num_speculative_tokens_mixed_batch: 5 is more than the 4",
       [](auto& o) { o.num_speculative_tokens = 4, o.num_speculative_tokens_mixed_batch = 5; }},
      {"num_speculative_tokens_per_batch_size: lookahead is fixed",
       [](auto& o) {
         o.controller = "fixed", o.num_speculative_tokens_per_batch_size = {{1, 2, 3}};
       }},
      {"num_speculative_tokens_per_batch_size: 3 is more than the 2",
       [](auto& o) {
         o.controller = "batch-size", o.num_speculative_tokens = 2;
         o.num_speculative_tokens_per_batch_size = {{1, 2, 3}};
       }},
      {"ngram_min: 4 is more than the 3", [](auto& o) { o.ngram_min = 4; }},
      {"acceptance_threshold: block does not read it",
       [](auto& o) { o.acceptance_threshold = 0.1f, o.strategy = VerifyStrategy::kBlock; }},
      {"skip_sample_adjustment: greedy does not read it",
       [](auto& o) { o.skip_sample_adjustment = true, o.strategy = VerifyStrategy::kGreedy; }},
      {"acceptance_threshold: 'ngram' reports no distributions",
       [](auto& o) { o.acceptance_threshold = 0.1f, o.method = "ngram"; }},
      {"rejection_sampling_strategy: 'residual' needs a drafter that reports its distributions, "
       "and "
       "'ngram,suffix'",
       [](auto& o) { o.method = "ngram,suffix", o.strategy = VerifyStrategy::kResidual; }},
      {"rejection_sampling_strategy: 'logit-comparison' needs a drafter that reports its logits",
       [](auto& o) { o.method = "prediction", o.strategy = VerifyStrategy::kLogitComparison; }},
  };
  for (const auto& [begin, change] : faults) {
    const std::string message = CreateError(change);
    EXPECT_EQ(message.find(begin), 0u) << begin << " / " << message;
    EXPECT_NE(message.find("; "), std::string::npos) << message;
  }
  EXPECT_EQ(CreateError([](auto& o) {
              o.method = "ngram,standalone", o.strategy = VerifyStrategy::kResidual;
            }),
            "");
}

TEST(SpeculativeConfig, AnswersWhatItIs) {
  const SpeculativeConfig plain = Config([](auto& o) { o.method = "draft"; });
  EXPECT_TRUE(plain.is_standalone());
  EXPECT_EQ(plain.options().method, "standalone");
  EXPECT_FALSE(plain.is_eagle() || plain.is_mtp() || plain.uses_greedy_rejection());
  EXPECT_TRUE(plain.lossless());
  EXPECT_TRUE(Config([](auto& o) { o.method = "eagle"; }).is_eagle());
  EXPECT_TRUE(Config([](auto& o) { o.method = "mtp"; }).is_mtp());
  EXPECT_FALSE(Config([](auto&) {}).is_standalone());
  using S = VerifyStrategy;
  for (const auto& [strategy, lossless] : {std::pair{S::kAuto, true},
                                           {S::kGreedy, true},
                                           {S::kResidual, true},
                                           {S::kSampleMatch, true},
                                           {S::kTargetProbability, true},
                                           {S::kBlock, true},
                                           {S::kTypicalAcceptance, false},
                                           {S::kLogitComparison, false},
                                           {S::kRelaxed, false}}) {
    const SpeculativeConfig config = Config([s = strategy](auto& o) { o.strategy = s; });
    EXPECT_EQ(config.lossless(), lossless) << Name(strategy);
    EXPECT_EQ(config.uses_greedy_rejection(), strategy == S::kGreedy);
    EXPECT_EQ(config.uses_typical_acceptance(), strategy == S::kTypicalAcceptance);
    EXPECT_EQ(config.uses_logit_comparison(), strategy == S::kLogitComparison);
  }
  EXPECT_FALSE(Config([](auto& o) { o.acceptance_threshold = 0.1f; }).lossless());
  EXPECT_FALSE(Config([](auto& o) { o.skip_sample_adjustment = true; }).lossless());
  EXPECT_FALSE(Config([](auto& o) { o.synthetic_acceptance_rate = 0.5; }).lossless());
}

TEST(SpeculativeConfig, EveryKeyComesFromAFile) {
  for (const SpeculativeKey& key : SpeculativeKeys()) {
    const std::string& value = Values().at(key.name);
    for (const std::string& text : {std::string(key.name) + ": " + value,
                                    "\"" + std::string(key.name) + "\": \"" + value + "\""}) {
      SpeculativeOptions from_file, set;
      const std::string path = File("speculative_config:\n  " + text + "\n");
      ASSERT_TRUE(Works(ReadSpeculativeFile(path, kSpeculativeSection, from_file)));
      ASSERT_TRUE(SetSpeculativeOption(set, key.name, value));
      EXPECT_EQ(Describe(from_file), Describe(set)) << text;
    }
  }
}

TEST(SpeculativeConfig, NestedAndFlatControllerSettingsMeanTheSame) {
  const auto nested = Got(SpeculativeConfig::Load(
      File("speculative_config:\n  gamma: 6\n  ewma: {initial: 4, min: 3, max: 9, alpha: .5, "
           "cooldown_steps: 7}\n")));
  const auto flat = Got(SpeculativeConfig::Load(
      File("x:\n  num_speculative_tokens: 6\n  lookahead_initial: 4\n  lookahead_min: 3\n"
           "  lookahead_max: 9\n  lookahead_alpha: 0.5\n  lookahead_cooldown_steps: 7\n"),
      "x"));
  EXPECT_EQ(Describe(nested.options()), Describe(flat.options()));
  EXPECT_EQ(nested.options().adaptive_lookahead.max, 9);
}

TEST(SpeculativeConfig, AFileChangesTheBaseWhereItSpeaks) {
  SpeculativeOptions base;
  base.num_speculative_tokens = 3;
  base.ngram_max = 5;
  const auto config =
      Got(SpeculativeConfig::Load(File("s: {gamma: 7, method: [ngram, suffix]}"), "s", base));
  EXPECT_EQ(config.options().num_speculative_tokens, 7);
  EXPECT_EQ(config.options().ngram_max, 5);
  EXPECT_EQ(config.options().method, "ngram,suffix");
}

TEST(SpeculativeConfig, AJsonTextStandsForAFile) {
  SpeculativeOptions options;
  ASSERT_TRUE(ReadSpeculativeFile(R"({"method": "ngram", "num_speculative_tokens": 5,
                                      "prompt_lookup_max": 4})",
                                  "ignored", options));
  EXPECT_EQ(options.method, "ngram");
  EXPECT_EQ(options.num_speculative_tokens, 5);
  EXPECT_EQ(options.ngram_max, 4);
}

TEST(SpeculativeConfig, FaultyFilesAreNamedWithTheirLine) {
  const auto error = [](const std::string& text, std::string_view section = "s") {
    const std::string path = File(text);
    const auto config = SpeculativeConfig::Load(path, section);
    if (config) return std::string();
    const std::string& message = config.error().message;
    EXPECT_EQ(message.find(path + ": "), 0u) << message;
    return message.substr(path.size() + 2);
  };
  EXPECT_EQ(error("s:\n  gama: 4\n"), "line 2: gama: no such setting; did you mean gamma?");
  EXPECT_EQ(error("s:\n  gamma: 4.5\n"),
            "line 2: gamma: '4.5' is not a whole number; give one in [0, 64]");
  EXPECT_EQ(error("s:\n  gamma: 4\n  num_speculative_tokens: 5\n"),
            "line 3: num_speculative_tokens and, in line 2, gamma: two names of one setting with "
            "different values; keep one");
  EXPECT_EQ(error("s:\n  gamma: 4\n  num_speculative_tokens: 4\n"), "");
  EXPECT_EQ(error("s:\n  ewma: {min: 1, mix: 2}\n"),
            "line 2: ewma.mix: no such setting; did you mean ewma.min?");
  EXPECT_EQ(error("s:\n  gamma: 2\n  n_min: 3\n"),
            "min_speculative_tokens: 3 is more than the 2 that a round drafts at most; lower it or "
            "raise num_speculative_tokens");
  EXPECT_EQ(error("t: {}"), "it has no section 's'; choose one of t");
  EXPECT_EQ(error("gamma: 4\n"),
            "it has no section 's'; write 's:' in a line of its own, and the settings below it, "
            "indented");
}

TEST(SpeculativeConfig, AFileWithoutSectionsIsReadWhole) {
  for (const char* text : {"gamma: 6\nlookahead: ewma\newma: {max: 9}\n",
                           R"({"gamma": 6, "lookahead": "ewma", "ewma": {"max": 9}})"}) {
    const auto config = Got(SpeculativeConfig::Load(File(text)));
    EXPECT_EQ(config.options().num_speculative_tokens, 6);
    EXPECT_EQ(config.options().adaptive_lookahead.max, 9);
  }
  SpeculativeOptions options;
  ASSERT_TRUE(
      ReadSpeculativeFile(R"({"speculative_config": {"gamma": 3}})", kSpeculativeSection, options));
  EXPECT_EQ(options.num_speculative_tokens, 3);
  const auto error = [](const std::string& text) {
    const auto config = SpeculativeConfig::Load(File(text));
    return config ? "" : config.error().message.substr(config.error().message.find(".yaml: ") + 7);
  };
  EXPECT_EQ(error("gama: 4\n"), "line 1: gama: no such setting; did you mean gamma?");
  EXPECT_EQ(error("ewma: {mix: 4}\n"), "line 1: ewma.mix: no such setting; did you mean ewma.min?");
  EXPECT_EQ(error("gamma: 4\nserver: {port: 80}\n"),
            "it has no section 'speculative_config'; choose one of server");
  EXPECT_EQ(error("# nothing\n"),
            "it has no section 'speculative_config'; write 'speculative_config:' in a line of its "
            "own, and the settings below it, indented");
}

TEST(ConfigDialect, OfMaxHasTheDefaultsThatItDocuments) {
  const auto load = [](const std::string& text, ConfigDialect dialect = ConfigDialect::kMax,
                       const SpeculativeOptions& base = {}) {
    auto config = SpeculativeConfig::Load(File(text), kSpeculativeSection, base, dialect);
    EXPECT_TRUE(config) << config.error().message;
    return config ? config->options() : SpeculativeOptions();
  };
  const SpeculativeOptions empty = load("speculative_config: {}");
  EXPECT_EQ(empty.num_speculative_tokens, 2);
  EXPECT_EQ(empty.method, "none");
  // Ours stay: the controller chooses K, and the method is what the draft's file is.
  const SpeculativeOptions ours = load("speculative_config: {}", ConfigDialect::kForetoken);
  EXPECT_FALSE(ours.num_speculative_tokens);
  EXPECT_EQ(ours.method, "");
  for (const char* null : {"speculative_method: null", "speculative_method: ~"})
    EXPECT_EQ(load(std::string("speculative_config:\n  ") + null).method, "none");
  const std::string whole =
      "speculative_config:\n  speculative_method: eagle\n"
      "  rejection_sampling_strategy: typical-acceptance\n  synthetic_acceptance_rate: null\n"
      "  use_relaxed_acceptance_for_thinking: false\n  use_greedy_acceptance: False\n"
      "  relaxed_topk: 7\n  relaxed_delta: 0.5\n  draft_proposal: sampled\n";
  for (const auto& [text, dialect] : {std::pair(whole, ConfigDialect::kMax),
                                      {whole + "  dialect: max\n", ConfigDialect::kMax},
                                      {whole + "  dialect: max\n", ConfigDialect::kForetoken}}) {
    const SpeculativeOptions options = load(text, dialect);
    EXPECT_EQ(options.method, "eagle");
    EXPECT_EQ(options.num_speculative_tokens, 2);
    EXPECT_EQ(options.strategy, VerifyStrategy::kTargetProbability);
    EXPECT_EQ(options.relaxed_top_n, 7);
    EXPECT_FALSE(options.use_relaxed_acceptance_for_thinking);
  }
  const auto relaxed = SpeculativeConfig::Load(
      File("s: {speculative_method: eagle, use_relaxed_acceptance_for_thinking: True}"), "s", {},
      ConfigDialect::kMax);
  ASSERT_TRUE(relaxed);
  EXPECT_TRUE(relaxed->options().use_relaxed_acceptance_for_thinking);
  EXPECT_FALSE(relaxed->lossless());
  SpeculativeOptions base;  // what a program set stays where the file is silent
  base.num_speculative_tokens = 5;
  base.method = "ngram";
  EXPECT_EQ(load("speculative_config: {}", ConfigDialect::kMax, base).num_speculative_tokens, 5);
  EXPECT_EQ(load("speculative_config: {}", ConfigDialect::kMax, base).method, "ngram");
}

TEST(ConfigDialect, OfMaxHasItsDraftLengths) {
  const auto load = [](const std::string& keys) {
    const std::string text = "s: {speculative_method: ngram, " + keys + "}";
    auto config = SpeculativeConfig::Load(File(text), "s", {}, ConfigDialect::kMax);
    EXPECT_TRUE(config) << config.error().message;
    return config ? config->options() : SpeculativeOptions();
  };
  EXPECT_EQ(load("num_speculative_tokens: 3").controller, "fixed");  // exactly three
  EXPECT_EQ(load("num_speculative_tokens: 3").num_speculative_tokens, 3);
  EXPECT_EQ(load("num_speculative_tokens: 3, lookahead: ewma").controller, "ewma");
  for (const char* all : {"all", "true"}) {
    const auto options =
        load(std::string("num_speculative_tokens: 5, adaptive_speculative_widths: ") + all);
    EXPECT_EQ(options.controller, "cost-model");
    EXPECT_EQ(options.num_speculative_tokens, 5);
    EXPECT_EQ(options.min_speculative_tokens, 0);
  }
  EXPECT_EQ(load("adaptive_speculative_widths: null").controller, "fixed");
  EXPECT_TRUE(load("adaptive_speculative_widths: all").adaptive_speculative_widths.empty());
  for (const char* keys :
       {"num_speculative_tokens: 6, adaptive_speculative_widths: \"2, 3,5\"",
        "adaptive_speculative_widths: \"5,2,3\", num_speculative_tokens: 5",
        "adaptive_speculative_widths: [2, 5, 3, 2], num_speculative_tokens: 8"}) {
    const auto options = load(keys);
    EXPECT_EQ(options.controller, "cost-model");
    EXPECT_EQ(options.adaptive_speculative_widths, (std::vector{2, 3, 5})) << keys;
    EXPECT_GE(options.num_speculative_tokens, 5);
    EXPECT_EQ(options.min_speculative_tokens, 0);
  }
  const auto table = load(
      "num_speculative_tokens: 4, num_speculative_tokens_per_batch_size: "
      "[{batch_start: 1, batch_end: 4, num_tokens: 3}, {num_tokens: 1, batch_start: 5, batch_end: "
      "8}]");
  EXPECT_EQ(table.controller, "batch-size");
  ASSERT_EQ(table.num_speculative_tokens_per_batch_size.size(), 2U);
  EXPECT_EQ(table.num_speculative_tokens_per_batch_size[1].least, 5);
  EXPECT_EQ(table.num_speculative_tokens_per_batch_size[1].most, 8);
  EXPECT_EQ(table.num_speculative_tokens_per_batch_size[1].num_speculative_tokens, 1);
  EXPECT_EQ(load("num_speculative_tokens_mixed_batch: 1").num_speculative_tokens_mixed_batch, 1);
  EXPECT_EQ(load("config_file: null, section_name: ~, num_speculative_tokens_mixed_batch: null")
                .num_speculative_tokens,
            2);
}

TEST(ConfigDialect, OfMaxCallsTargetProbabilityTypical) {
  const auto uses = [](const std::string& text) {
    return SpeculativeConfig::Load(File(text), "s")->uses_typical_acceptance();
  };
  EXPECT_TRUE(uses("s: {dialect: max, rejection_sampling_strategy: typical-acceptance}"));
  EXPECT_FALSE(uses("s: {dialect: max, rejection_sampling_strategy: residual}"));
  EXPECT_FALSE(uses("s: {rejection_sampling_strategy: target-probability}"));
  EXPECT_TRUE(uses("s: {rejection_sampling_strategy: typical-acceptance}"));
}

TEST(SpeculativeConfig, ChangesOneSettingAndKeepsItsDialect) {
  const auto config = SpeculativeConfig::Load(
      File("s: {dialect: max, rejection_sampling_strategy: typical-acceptance}"), "s");
  ASSERT_TRUE(config);
  const auto more = config->With("gamma", "5");
  ASSERT_TRUE(more) << more.error().message;
  EXPECT_EQ(more->options().num_speculative_tokens, 5);
  EXPECT_TRUE(more->uses_typical_acceptance());  // as MAX calls it
  EXPECT_EQ(config->options().num_speculative_tokens, 2);
  EXPECT_EQ(config->With("gamma", "65").error().message,
            "gamma: 65 is not in [0, 64]; give a value in that range");
  EXPECT_FALSE(config->With("min_speculative_tokens", "3"));  // more than K
}

TEST(SpeculativeConfig, RefusesTomlByName) {
  EXPECT_EQ(MessageOf(SpeculativeConfig::Load("settings.toml")),
            "settings.toml: TOML is not read; write the settings as YAML (key: value) or JSON");
}

TEST(ConfigDialect, WhatHasNoCounterpartIsRefused) {
  const auto error = [](const std::string& text) {
    const auto config = SpeculativeConfig::Load(File(text), "s", {}, ConfigDialect::kMax);
    return config ? "" : config.error().message.substr(config.error().message.find(".yaml: ") + 7);
  };
  EXPECT_EQ(error("s: {use_greedy_acceptance: true}").find("line 1: use_greedy_acceptance:"), 0u);
  EXPECT_EQ(error("s: {draft_proposal: argmax}").find("line 1: draft_proposal:"), 0u);
  EXPECT_EQ(error("s: {config_file: other.yaml}"),
            "line 1: config_file: not a setting here: a file names no other file; give that one "
            "itself");
  EXPECT_EQ(error("s: {num_speculative_tokens_mixed_batch: 3}"),
            "num_speculative_tokens_mixed_batch: 3 is more than the 2 that a round drafts at most; "
            "lower it or raise num_speculative_tokens");
  EXPECT_EQ(error("s: {adaptive_speculative_widths: \"1,x\"}"),
            "line 1: adaptive_speculative_widths: 'x' is not a whole number; give one in [1, 64]");
  EXPECT_EQ(error("s: {adaptive_speculative_widths: \"1,3\"}"),
            "adaptive_speculative_widths: 3 is more than the 2 that a round drafts at most; leave "
            "it out or raise num_speculative_tokens");
  EXPECT_EQ(error("s: {num_speculative_tokens_per_batch_size: [{batch_start: 1, size: 4}]}"),
            "line 1: num_speculative_tokens_per_batch_size: 'size:4' is not a number of a row; "
            "write batch_start, batch_end and num_tokens");
  EXPECT_EQ(error("s: {dialect: mix}"),
            "line 1: dialect: 'mix' is not a dialect; choose foretoken or max");
  EXPECT_EQ(error("s: {dialect: foretoken}").find("line 1: dialect: 'foretoken' stands here"), 0u);
  // The words of that dialect are no settings of foretoken's own.
  EXPECT_FALSE(SpeculativeConfig::Load(File("s: {relaxed_topk: 7}"), "s"));
}

TEST(NearestName, IsATypingErrorAway) {
  constexpr std::array<std::string_view, 3> kKnown = {"--model", "--model-draft", "-n"};
  EXPECT_EQ(NearestName("--modle", kKnown), "--model");
  EXPECT_EQ(NearestName("--model-darft", kKnown), "--model-draft");
  EXPECT_EQ(NearestName("--completely-different", kKnown), "");
  EXPECT_EQ(NearestName(std::string(100000, 'x'), kKnown), "");
  EXPECT_EQ(NearestName("x", {}), "");
}

}  // namespace
}  // namespace foretoken
