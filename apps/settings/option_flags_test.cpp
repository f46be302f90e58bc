// SPDX-License-Identifier: Apache-2.0
#include "settings/option_flags.h"

#include <gtest/gtest.h>

#include <set>

#include "settings/generate_flags.h"

namespace foretoken::settings {
namespace {

TEST(OptionFlags, StandWhereTheLibraryNamesAnOption) {
  EXPECT_EQ(InFlags("prompt: 9 tokens do not fit; raise EngineOptions::context_size"),
            "prompt: 9 tokens do not fit; raise --ctx-size");
  EXPECT_EQ(InFlags("give EngineOptions::draft_model, or leave SpeculativeOptions::method out"),
            "give --model-draft, or leave --spec-type out");
  EXPECT_EQ(InFlags("a profile (SpeculativeOptions::profile); ChatOptions::template_text"),
            "a profile (--profile); --chat-template-file");
}

TEST(OptionFlags, AreTakenForWholeNamesOnly) {
  EXPECT_EQ(InFlags("EngineOptions::repack_cache, EngineOptions::repack_cache_gb"),
            "--repack-cache, --repack-cache-gb");
  EXPECT_EQ(InFlags("EngineOptions::model, EngineOptions::models"),
            "--model, EngineOptions::models");
  EXPECT_EQ(InFlags("context_size of a::b"), "context_size of a::b");
}

TEST(OptionFlags, HaveOneOptionEach) {
  GenerateSettings settings;
  const FlagSet flags = GenerateFlags(settings);
  std::set<std::string> options;
  for (const FlagGroup& group : flags.groups())
    for (const Flag& flag : group.flags) {
      if (flag.option.empty()) continue;
      EXPECT_TRUE(options.insert(flag.option).second) << flag.option;
    }
  EXPECT_GE(options.size(), 15U);
}

TEST(OptionFlags, SetMembersOfTheEngine) {
  EngineOptions options;
  const Flag flag = EngineFlag("max_sequences", options);
  EXPECT_TRUE(flag.set("256"));
  EXPECT_EQ(options.max_sequences, 256);
  EXPECT_FALSE(flag.set("257"));
  EXPECT_TRUE(EngineFlag("cache_type_k", options).set("q8_0"));
  EXPECT_EQ(options.cache_type_k, CacheType::kQ8_0);
  EXPECT_FALSE(EngineFlag("record", options).set(""));
  EXPECT_TRUE(EngineFlag("cache_file", options).set(""));
}

}  // namespace
}  // namespace foretoken::settings
