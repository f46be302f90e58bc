// SPDX-License-Identifier: Apache-2.0
#include "settings/generate_flags.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "settings/help_text.h"

namespace foretoken::settings {
namespace {

// Message of the first error, or "".
std::string Read(GenerateSettings& settings, const std::vector<std::string>& arguments) {
  const FlagSet flags = GenerateFlags(settings);
  const auto outcome = flags.Parse(arguments);
  if (!outcome) return outcome.error().message;
  const Status status = Finish(settings);
  return status ? "" : status.error().message;
}

std::string MessageOfGenerate(const std::vector<std::string>& arguments) {
  GenerateSettings settings;
  return Read(settings, arguments);
}

TEST(GenerateFlags, DefaultsAreThoseOfTheHelp) {
  GenerateSettings settings;
  ASSERT_EQ(Read(settings, {"-m", "a", "-p", "x"}), "");
  EXPECT_FLOAT_EQ(settings.request.sampling.temperature, 0.8f);
  EXPECT_EQ(settings.request.max_new_tokens, 128);
  EXPECT_EQ(settings.engine.speculative.method, "");
  EXPECT_EQ(settings.engine.speculative.strategy, VerifyStrategy::kAuto);
  EXPECT_FALSE(settings.request.speculative.draft_sampling);
  EXPECT_FALSE(settings.engine.pin_threads);
}

TEST(GenerateFlags, TakesTheNamesOfLlamaCpp) {
  for (const char* name : {"draft", "draft-simple", "standalone"}) {
    GenerateSettings settings;
    ASSERT_EQ(Read(settings, {"-m", "a", "-md", "b", "-p", "x", "--spec-type", name}), "");
    EXPECT_EQ(settings.engine.speculative.method, "standalone");
  }
  GenerateSettings settings;
  ASSERT_EQ(Read(settings, {"-m", "a", "-p", "x", "--spec-type", "ngram-mod", "--draft-max", "7",
                            "--draft-p-min", "0.5", "-ctk", "q8_0", "-n", "5"}),
            "");
  EXPECT_EQ(settings.engine.speculative.method, "ngram");
  EXPECT_EQ(settings.engine.speculative.num_speculative_tokens, 7);
  EXPECT_FLOAT_EQ(settings.engine.speculative.draft_p_min, 0.5f);
  EXPECT_EQ(settings.engine.cache_type_k, CacheType::kQ8_0);
}

TEST(GenerateFlags, TakeEachTypeOfTheCache) {
  const std::pair<const char*, CacheType> types[] = {{"f32", CacheType::kF32},
                                                     {"f16", CacheType::kF16},
                                                     {"bf16", CacheType::kBF16},
                                                     {"q8_0", CacheType::kQ8_0},
                                                     {"q4_0", CacheType::kQ4_0}};
  for (const auto& [name, type] : types) {
    GenerateSettings settings;
    ASSERT_EQ(Read(settings, {"-m", "a", "-p", "x", "--cache-type-v", name}), "");
    EXPECT_EQ(settings.engine.cache_type_v, type) << name;
  }
  EXPECT_EQ(MessageOfGenerate({"-m", "a", "-p", "x", "-ctk", "q4"}),
            "-ctk: 'q4' is not a cache type; choose f32, f16, bf16, q8_0 or q4_0");
}

TEST(GenerateFlags, BoundTheCacheAndSwitchSharingOff) {
  GenerateSettings settings;
  EXPECT_TRUE(settings.engine.prefix_cache);
  ASSERT_EQ(
      Read(settings, {"-m", "a", "-p", "x", "--cache-tokens", "4096", "--prefix-cache", "off"}),
      "");
  EXPECT_EQ(settings.engine.cache_tokens, 4096);
  EXPECT_FALSE(settings.engine.prefix_cache);
  EXPECT_NE(MessageOfGenerate({"-m", "a", "-p", "x", "--prefix-cache", "perhaps"}), "");
}

TEST(GenerateFlags, HeadsHaveTheNamesOfOtherPrograms) {
  for (const auto& [name, method] : {std::pair{"eagle", "eagle"},
                                     {"eagle3", "eagle"},
                                     {"draft-eagle3", "eagle"},
                                     {"mtp", "mtp"},
                                     {"draft-mtp", "mtp"},
                                     {"nextn", "mtp"}}) {
    GenerateSettings settings;
    ASSERT_EQ(Read(settings, {"-m", "a", "-md", "b", "-p", "x", "--spec-type", name}), "");
    EXPECT_EQ(settings.engine.speculative.method, method) << name;
    EXPECT_EQ(settings.engine.DraftFiles(), std::vector<std::string>{"b"});
  }
  EXPECT_EQ(MessageOfGenerate({"-m", "a", "-p", "x", "--spec-type", "mtp"}),
            "");  // in the model's file
}

TEST(GenerateFlags, TakesEveryDrafterAloneOrInAList) {
  for (const auto& [name, method] : {std::pair{"suffix", "suffix"},
                                     {"prediction", "prediction"},
                                     {"portfolio", "portfolio"},
                                     {"ngram,suffix", "ngram,suffix"},
                                     {"ngram-mod,suffix,ngram", "ngram,suffix"}}) {
    GenerateSettings settings;
    ASSERT_EQ(Read(settings, {"-m", "a", "-p", "x", "--spec-type", name}), "");
    EXPECT_EQ(settings.engine.speculative.method, method) << name;
  }
}

TEST(GenerateFlags, ListsWhatExistsForNamesItLacks) {
  for (const char* name : {"nonsense", "medusa", "ngram,nonsense"}) {
    const std::string message = MessageOfGenerate({"-m", "a", "-p", "x", "--spec-type", name});
    EXPECT_EQ(message.find("--spec-type: '"), 0u) << message;
    EXPECT_NE(message.find("none, standalone, eagle, mtp, dflash, self, ngram, suffix, prediction, "
                           "grammar, portfolio"),
              std::string::npos)
        << name << ": " << message;
  }
  EXPECT_NE(MessageOfGenerate({"-m", "a", "-p", "x", "--lookahead", "guess"}).find("ewma"),
            std::string::npos);
  EXPECT_NE(
      MessageOfGenerate({"-m", "a", "-p", "x", "--verify", "guess"}).find("typical-acceptance"),
      std::string::npos);
}

TEST(GenerateFlags, TheHelpMarksWhatIsLossy) {
  GenerateSettings settings;
  const std::string help = HelpText(GenerateFlags(settings), {.all = true});
  for (const char* flag : {"--verify", "--acceptance-threshold", "--skip-sample-adjustment"}) {
    const std::size_t at = help.find(flag), end = help.find("\n  -", at);
    EXPECT_NE(help.substr(at, end - at).find("LOSSY"), std::string::npos) << flag;
  }
}

TEST(GenerateFlags, TakeEachValueThatShellsOffer) {
  GenerateSettings settings;
  const FlagSet flags = GenerateFlags(settings);
  int offered = 0;
  for (const FlagGroup& group : flags.groups())
    for (const Flag& flag : group.flags)
      for (const std::string& choice : flag.choices) {
        ++offered;
        EXPECT_TRUE(flag.set(choice)) << flag.names.front() << ' ' << choice;
      }
  EXPECT_GT(offered, 30);
}

TEST(GenerateFlags, TheLastBiasOfATokenWins) {
  GenerateSettings settings;
  ASSERT_EQ(Read(settings, {"-m", "a", "-p", "x", "--logit-bias", "1=2", "--logit-bias", "7=4",
                            "--logit-bias", "1=3"}),
            "");
  EXPECT_EQ(settings.request.sampling.logit_bias,
            (std::map<std::int32_t, float>{{1, 3.0f}, {7, 4.0f}}));
}

TEST(GenerateFlags, MinusOneIsAsMuchAsFits) {
  GenerateSettings settings;
  ASSERT_EQ(Read(settings, {"-m", "a", "-p", "x", "-n", "-1"}), "");
  EXPECT_GE(settings.request.max_new_tokens, 1 << 24);
  EXPECT_EQ(MessageOfGenerate({"-m", "a", "-p", "x", "-n", "-2"}),
            "-n: -2 is not in [0, 16777216]; give a value in that range, or -1 for as many as fit");
}

TEST(GenerateFlags, LlamaCppsFlagsAreAcceptedOrRefusedWithAWayOut) {
  GenerateSettings settings;
  const FlagSet flags = GenerateFlags(settings);
  const auto parsed =
      flags.Parse({"-m", "a", "-p", "x", "-cb", "-fa", "-b", "512", "-ub", "128", "--jinja",
                   "--metrics", "--no-mmap", "--mlock", "-ngl", "0", "-no-cnv"});
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->without_effect.size(), 10U);
  for (const char* name :
       {"-e", "-l", "-r", "-v", "--lora", "-hf", "--mirostat", "--rope-scale", "--samplers"}) {
    const std::string message = MessageOfGenerate({"-m", "a", "-p", "x", name, "1"});
    EXPECT_EQ(message.find(std::string(name) + ": no such flag; "), 0U) << message;
    EXPECT_EQ(message.find("did you mean"), std::string::npos) << message;
  }
}

TEST(GenerateFlags, SettingsAreCheckedTogether) {
  EXPECT_EQ(MessageOfGenerate({"-m", "a", "-p", "x", "--ngram-min", "4"}).substr(0, 10),
            "ngram_min:");
  EXPECT_EQ(MessageOfGenerate({"-m", "a", "-p", "x", "--ngram-min", "4", "--ngram-max", "5"}), "");
  EXPECT_EQ(
      MessageOfGenerate({"-m", "a", "-p", "x", "--spec-type", "ngram", "--verify", "residual"})
          .substr(0, 28),
      "rejection_sampling_strategy:");
}

TEST(GenerateFlags, TheDraftersOwnParametersFallBackToTheTexts) {
  GenerateSettings settings;
  ASSERT_EQ(Read(settings, {"-m", "a", "-p", "x", "--draft-top-k", "5", "--draft-top-p", "0.5",
                            "--min-p", "0.1", "--prediction", "y"}),
            "");
  ASSERT_TRUE(settings.request.speculative.draft_sampling);
  const SamplingParameters& draft = *settings.request.speculative.draft_sampling;
  EXPECT_EQ(draft.top_k, 5);
  EXPECT_FLOAT_EQ(draft.top_p, 0.5f);
  EXPECT_FLOAT_EQ(draft.min_p, 0.1f);
  EXPECT_EQ(settings.request.sampling.top_k, 0);
  EXPECT_EQ(settings.request.prediction, "y");
  EXPECT_EQ(MessageOfGenerate({"-m", "a", "-p", "x", "--prediction", "y", "--prediction-file", "z"})
                .substr(0, 11),
            "prediction:");
}

TEST(GenerateFlags, RefusesCombinationsThatCannotBeMeant) {
  EXPECT_EQ(MessageOfGenerate({"-m", "", "-p", "x"}).substr(0, 3), "-m:");
  EXPECT_EQ(MessageOfGenerate({"-m", "a", "-md", "", "-p", "x"}).substr(0, 4), "-md:");
  EXPECT_EQ(MessageOfGenerate({"-m", "a"}).substr(0, 7), "prompt:");
  EXPECT_EQ(MessageOfGenerate({"-m", "a", "-p", "x", "-f", "y"}).substr(0, 7), "prompt:");
  EXPECT_NE(MessageOfGenerate({"-m", "a", "-p", "x", "--verify", "greedy"}), "");
  EXPECT_EQ(MessageOfGenerate({"-m", "a", "-p", "x", "--verify", "greedy", "--temp", "0"}), "");
  // Their files may be beside the model.
  for (const char* name : {"standalone", "eagle", "ngram,standalone"})
    EXPECT_EQ(MessageOfGenerate({"-m", "a", "-p", "x", "--spec-type", name}), "") << name;
  for (const char* name : {"ngram", "suffix", "ngram,suffix"})
    EXPECT_NE(MessageOfGenerate({"-m", "a", "-p", "x", "-md", "b", "--spec-type", name}), "")
        << name;
  EXPECT_EQ(
      MessageOfGenerate({"-m", "a", "-p", "x", "-md", "b", "--spec-type", "ngram,standalone"}), "");
  EXPECT_NE(MessageOfGenerate({"-m", "a", "-p", "x", "--json", "--trace"}), "");
  EXPECT_NE(MessageOfGenerate({"-m", "a", "-p", "x", "--logprobs", "2"}), "");
  EXPECT_NE(MessageOfGenerate({"-m", "a", "-p", "x", "-n", "2", "--min-tokens", "3"}), "");
}

TEST(GenerateFlags, TheBundledModelsAreLookedForWhereNoneIsNamed) {
  ASSERT_EQ(setenv("FORETOKEN_MODELS", "/no/such/folder", 1), 0);
  EXPECT_EQ(MessageOfGenerate({"-p", "x"}).find("FORETOKEN_MODELS: /no/such/folder"), 0u);
  EXPECT_EQ(MessageOfGenerate({"-m", "a", "-p", "x"}), "");
  unsetenv("FORETOKEN_MODELS");
}

TEST(GenerateFlags, AnEmptyPromptIsAPrompt) {
  GenerateSettings settings;
  EXPECT_EQ(Read(settings, {"-m", "a", "-p", ""}), "");
  EXPECT_EQ(settings.prompt, "");
}

TEST(GenerateFlags, TheDraftersTemperatureKeepsTheFilters) {
  GenerateSettings settings;
  ASSERT_EQ(
      Read(settings, {"-m", "a", "-md", "b", "-p", "x", "--draft-temp", "0.1", "--top-k", "9"}),
      "");
  ASSERT_TRUE(settings.request.speculative.draft_sampling);
  EXPECT_FLOAT_EQ(settings.request.speculative.draft_sampling->temperature, 0.1f);
  EXPECT_EQ(settings.request.speculative.draft_sampling->top_k, 9);
  EXPECT_FLOAT_EQ(settings.request.sampling.temperature, 0.8f);
}

TEST(GenerateFlags, SeedsAreRandomUnlessGiven) {
  GenerateSettings first, second, third;
  ASSERT_EQ(Read(first, {"-m", "a", "-p", "x", "-s", "42"}), "");
  EXPECT_EQ(first.request.seed, 42u);
  ASSERT_EQ(Read(second, {"-m", "a", "-p", "x"}), "");
  ASSERT_EQ(Read(third, {"-m", "a", "-p", "x", "-s", "-1"}), "");
  EXPECT_NE(second.request.seed, third.request.seed);
}

}  // namespace
}  // namespace foretoken::settings
