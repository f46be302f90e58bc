// SPDX-License-Identifier: Apache-2.0
#include "settings/flag_set.h"

#include <gtest/gtest.h>

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

std::string MessageOf(const FlagSet& flags, const std::vector<std::string>& arguments) {
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

TEST(FlagSet, NamesBothAliasesThatDisagree) {
  Target target;
  EXPECT_EQ(MessageOf(target.Flags(), {"--gamma", "3", "-n", "5"}),
            "-n 5 and --gamma 3: two names of one thing with different values; keep one");
  EXPECT_EQ(MessageOf(target.Flags(), {"-n", "3", "-n", "5"}),
            "-n: given twice, as 3 and as 5; keep one");
  EXPECT_EQ(MessageOf(target.Flags(), {"--gamma", "3", "-n", "3"}), "");
}

TEST(FlagSet, NamesTheNearestKnownFlag) {
  Target target;
  EXPECT_EQ(MessageOf(target.Flags(), {"--modle", "x"}),
            "--modle: no such flag; did you mean --model?");
  EXPECT_EQ(MessageOf(target.Flags(), {"--completely-different=3"}),
            "--completely-different: no such flag; see --help");
  EXPECT_EQ(MessageOf(target.Flags(), {"--chat"}), "--chat: not in this version; use generate");
}

TEST(FlagSet, RefusesClustersThatAreNoFlag) {
  Target target;
  EXPECT_NE(MessageOf(target.Flags(), {"-ngl", "99"}), "");
  ASSERT_TRUE(target.Flags().Parse({"-n5"}));
  EXPECT_EQ(target.k, 5);
}

TEST(FlagSet, PutsTheNameBeforeAnErrorOfTheValue) {
  Target target;
  EXPECT_EQ(MessageOf(target.Flags(), {"--gamma", "65"}),
            "--gamma: 65 is not in [0, 64]; give a value in that range");
  EXPECT_EQ(MessageOf(target.Flags(), {"--gamma"}), "--gamma: its value is missing; see --help");
}

TEST(FlagSet, RefusesArgumentsWithoutAFlagUnlessTheVerbTakesThem) {
  Target target;
  FlagSet flags = target.Flags();
  EXPECT_NE(MessageOf(flags, {"stray"}), "");
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
  EXPECT_EQ(*outcome, ParseOutcome::kHelp);
  EXPECT_EQ(target.k, 4);
  for (const char* name : {"-m, --model PATH", "-md, --model-draft", "--stop TEXT", "--json"}) {
    EXPECT_NE(flags.Help().find(name), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace foretoken::settings
