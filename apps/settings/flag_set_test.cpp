// SPDX-License-Identifier: Apache-2.0
#include "settings/flag_set.h"

#include <gtest/gtest.h>

#include "settings/help_text.h"
#include "settings/setters.h"

namespace foretoken::settings {
namespace {

struct Target {
  std::string model, draft;
  int k = 4;
  bool json = false;
  std::vector<std::string> stops, files;

  FlagSet Flags() {
    FlagSet flags("verb", "Does a thing.");
    flags.Add(
        {"Some",
         {{{"-m", "--model"}, "PATH", "a model", StoreText(model)},
          {{"-md", "--model-draft"}, "PATH", "a draft", StoreText(draft)},
          {{"-n", "--num-speculative-tokens", "--gamma"}, "K", "how many", StoreInteger(k, 0, 64)},
          {{"--json"}, "", "as JSON", StoreTrue(json)},
          {{"--stop"},
           "TEXT",
           "ends",
           [this](const std::string& text) -> Status {
             stops.push_back(text);
             return {};
           },
           true}}});
    flags.AddAbsent("--chat", "use generate");
    return flags;
  }
};

std::string MessageOfFlags(const FlagSet& flags, const std::vector<std::string>& arguments) {
  const auto outcome = flags.Parse(arguments);
  return outcome ? "" : outcome.error().message;
}

TEST(FlagSet, ReadsLongShortAndOneDashNames) {
  Target target;
  ASSERT_TRUE(target.Flags().Parse({"-m", "a.gguf", "-md", "b.gguf", "--gamma=7", "--json"}));
  EXPECT_EQ(target.model, "a.gguf");
  EXPECT_EQ(target.draft, "b.gguf");
  EXPECT_EQ(target.k, 7);
  EXPECT_TRUE(target.json);
}

TEST(FlagSet, KeepsValuesThatLookLikeFlagsListsOrNothing) {
  Target target;
  ASSERT_TRUE(target.Flags().Parse(
      {"--stop", "--json", "--stop", "-md", "--stop", "[a,b]", "--stop", "", "--stop", "a,b c"}));
  EXPECT_EQ(target.stops, (std::vector<std::string>{"--json", "-md", "[a,b]", "", "a,b c"}));
  EXPECT_FALSE(target.json);
}

TEST(FlagSet, TheLastOfARepeatedFlagWinsByWhateverName) {
  Target target;
  ASSERT_TRUE(target.Flags().Parse({"--gamma", "3", "-n", "5"}));
  EXPECT_EQ(target.k, 5);
  ASSERT_TRUE(target.Flags().Parse({"-n", "5", "--num-speculative-tokens=7", "--gamma", "3"}));
  EXPECT_EQ(target.k, 3);
  ASSERT_TRUE(target.Flags().Parse({"--gamma", "3", "-n6"}));
  EXPECT_EQ(target.k, 6);
  // A wrong value is an error even if a later value would count.
  EXPECT_EQ(MessageOfFlags(target.Flags(), {"--gamma", "65", "-n", "5"}),
            "--gamma: 65 is not in [0, 64]; give a value in that range");
}

TEST(FlagSet, TakesWhatFollowsTwoDashesForArguments) {
  Target target;
  FlagSet flags = target.Flags();
  flags.SetPositional("FILE", [&target](const std::string& text) -> Status {
    target.files.push_back(text);
    return {};
  });
  ASSERT_TRUE(flags.Parse({"--json", "--", "-md", "--stop"}));
  EXPECT_EQ(target.files, (std::vector<std::string>{"-md", "--stop"}));
  EXPECT_TRUE(target.stops.empty());
}

TEST(FlagSet, RefusesAValueForASwitch) {
  Target target;
  EXPECT_EQ(MessageOfFlags(target.Flags(), {"--json=false"}),
            "--json: it takes no value; leave =false out");
}

TEST(FlagSet, AcceptsHarmlessFlagsOfOthersAndNamesThem) {
  Target target;
  FlagSet flags = target.Flags();
  using Takes = ForeignFlag::Takes;
  flags.AddForeign({{{"-cb"}, Takes::kNothing, ""},
                    {{"-b", "--batch-size"}, Takes::kValue, ""},
                    {{"-fa"}, Takes::kSwitchValue, ""},
                    {{"-ngl"}, Takes::kValue, "there is no GPU; leave it out", "0"}});
  const auto parsed = flags.Parse({"-cb", "-b", "512", "-fa", "-m", "x", "-fa", "on", "-ngl", "0",
                                   "--batch-size=7", "--gamma", "3"});
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->without_effect, (std::vector<std::string>{"-cb", "-b 512", "-fa", "-fa on",
                                                              "-ngl 0", "--batch-size 7"}));
  EXPECT_EQ(target.model, "x");
  EXPECT_EQ(target.k, 3);
  EXPECT_EQ(MessageOfFlags(flags, {"-ngl", "9"}),
            "-ngl: no such flag; there is no GPU; leave it out");
}

TEST(FlagSet, NamesTheNearestKnownFlag) {
  Target target;
  EXPECT_EQ(MessageOfFlags(target.Flags(), {"--modle", "x"}),
            "--modle: no such flag; did you mean --model?");
  EXPECT_EQ(MessageOfFlags(target.Flags(), {"--completely-different=3"}),
            "--completely-different: no such flag; see --help-all");
  EXPECT_EQ(MessageOfFlags(target.Flags(), {"--chat"}), "--chat: no such flag; use generate");
}

TEST(FlagSet, RefusesClustersThatAreNoFlag) {
  Target target;
  EXPECT_NE(MessageOfFlags(target.Flags(), {"-ngl", "99"}), "");
  ASSERT_TRUE(target.Flags().Parse({"-n5"}));
  EXPECT_EQ(target.k, 5);
}

TEST(FlagSet, PutsTheNameBeforeAnErrorOfTheValue) {
  Target target;
  EXPECT_EQ(MessageOfFlags(target.Flags(), {"--gamma", "65"}),
            "--gamma: 65 is not in [0, 64]; give a value in that range");
  EXPECT_EQ(MessageOfFlags(target.Flags(), {"--gamma"}),
            "--gamma: its value is missing; see --help");
  EXPECT_EQ(MessageOfFlags(target.Flags(), {"-md"}), "-md: its value is missing; see --help");
}

TEST(FlagSet, RefusesArgumentsWithoutAFlagUnlessTheVerbTakesThem) {
  Target target;
  FlagSet flags = target.Flags();
  EXPECT_NE(MessageOfFlags(flags, {"stray"}), "");
  flags.SetPositional("FILE", [&target](const std::string& text) -> Status {
    target.files.push_back(text);
    return {};
  });
  ASSERT_TRUE(flags.Parse({"a", "--json", "-"}));
  EXPECT_EQ(target.files, (std::vector<std::string>{"a", "-"}));
}

TEST(FlagSet, HelpWinsOverErrorsAndNamesEveryFlag) {
  Target target;
  const FlagSet flags = target.Flags();
  const auto outcome = flags.Parse({"--gamma", "3", "--help"});
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->outcome, ParseOutcome::kHelp);
  EXPECT_EQ(target.k, 4);
  for (const char* name : {"-m, --model PATH", "-md, --model-draft", "--stop TEXT", "--json"})
    EXPECT_NE(HelpText(flags, {}).find(name), std::string::npos) << name;
}

TEST(HelpText, IsShortWhereThereAreEssentialFlagsAndWholeOnDemand) {
  Target target;
  FlagSet flags = target.Flags();
  flags.SetEssential({"--model", "--gamma"});
  const std::string brief = HelpText(flags, {.width = 80, .all = false});
  EXPECT_NE(brief.find("-m, --model PATH"), std::string::npos);
  EXPECT_NE(brief.find("-n, --num-speculative-tokens K"), std::string::npos);
  EXPECT_EQ(brief.find("--gamma"), std::string::npos) << "one long name is enough";
  EXPECT_EQ(brief.find("--stop"), std::string::npos);
  EXPECT_NE(brief.find("all 5 flags"), std::string::npos);
  const std::string all = HelpText(flags, {.width = 80, .all = true});
  for (const char* name : {"--gamma", "--stop", "--json"})
    EXPECT_NE(all.find(name), std::string::npos) << name;
}

TEST(HelpText, ExplainsBrieflyWhereItIsShort) {
  FlagSet flags("verb", "Does something.");
  const Setter none = [](const std::string&) { return Status(); };
  flags.Add({"Group",
             {{{"--type"}, "NAME", "the whole story", none, false, {}, "a word"},
              {{"--other"}, "", "another", none}}});
  EXPECT_NE(HelpText(flags, {}).find("the whole story"), std::string::npos)
      << "all flags are shown";
  flags.SetEssential({"--type"});
  EXPECT_NE(HelpText(flags, {}).find("a word"), std::string::npos);
  EXPECT_EQ(HelpText(flags, {}).find("the whole story"), std::string::npos);
  EXPECT_NE(HelpText(flags, {.all = true}).find("the whole story"), std::string::npos);
}

TEST(HelpText, BreaksCommandsSoThatTheyCanBePasted) {
  Target target;
  FlagSet flags = target.Flags();
  flags.SetExamples({"foretoken verb --model a.gguf --stop \"two words\" --json --gamma 3"});
  EXPECT_NE(HelpText(flags, {.width = 50, .all = false})
                .find("  foretoken verb --model a.gguf --stop \\\n"
                      "      \"two words\" --json --gamma 3\n"),
            std::string::npos)
      << HelpText(flags, {.width = 50, .all = false});
}

}  // namespace
}  // namespace foretoken::settings
