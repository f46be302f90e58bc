// SPDX-License-Identifier: Apache-2.0
// Texts that are kept in files of their own: what comes back to another engine, to whom, and which files are
// refused.
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/failure_testing.h"
#include "base/files/whole_file_testing.h"
#include "fixtures/kept_texts_testing.h"

namespace foretoken {
namespace {

class SlotFiles : public KeptTexts {
 protected:
  SlotFiles() : KeptTexts(29) { mkdir(slots.c_str(), 0700); }

  EngineOptions Options() const {
    EngineOptions options = PlainOptions();
    options.max_sequences = 2;
    options.slot_folder = slots;
    return options;
  }
  static Request Ask(int n_tokens, int slot = -1, const std::string& salt = "", int first = 3) {
    Request request =
        LongRequest(n_tokens, salt, [&](int i) { return 3 + (first + i * 7 + i / 11) % 250; });
    request.slot = slot;
    return request;
  }
  std::string Path(const std::string& name) const { return slots + "/" + name; }
  std::string BytesOf(const std::string& name) const { return WholeFile(Path(name)); }
  void Put(const std::string& name, const std::string& bytes, unsigned mode = 0600) const {
    unlink(Path(name).c_str());
    std::ofstream(Path(name), std::ios::binary) << bytes;
    chmod(Path(name).c_str(), mode);
  }
  static std::string WhyNot(Engine& engine, const std::string& name, const std::string& salt = "") {
    return MessageOf(engine.RestoreSlot(0, name, salt));
  }
  int FilesInFolder() const {
    int n = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(slots)) ++n;
    return n;
  }

  std::string slots = folder + "/slots";
};

TEST_P(SlotFiles, AnotherEngineReadsWhatIsNew) {
  const Completion wanted = Generated(*OpenEngine(Options()), Ask(300));
  SlotCounts saved;
  {
    const auto engine = OpenEngine(Options());
    EXPECT_EQ(Generated(*engine, Ask(300)).slot, 0);
    saved = Got(engine->SaveSlot(0, "one"));
    EXPECT_EQ(saved.tokens, 311);  // the last token of the answer has not been read
    EXPECT_EQ(saved.bytes, static_cast<std::int64_t>(BytesOf("one").size()));
  }
  const auto engine = OpenEngine(Options());
  const auto restored = Got(engine->RestoreSlot(1, "one"));
  EXPECT_EQ(restored.tokens, saved.tokens);
  EXPECT_EQ(restored.bytes, saved.bytes);
  const Completion again = Generated(*engine, Ask(300));
  ExpectSame(again, wanted);
  EXPECT_EQ(again.timings.cached_prompt_tokens, Known(300));
  // The slot has the text, as if it had ended there.
  EXPECT_EQ(engine->SaveSlot(1, "two")->tokens, 311);
  EXPECT_EQ(FilesInFolder(), 2);
}

TEST_P(SlotFiles, ARequestNamesItsSlot) {
  const auto engine = OpenEngine(Options());
  EXPECT_EQ(Generated(*engine, Ask(200, 1)).slot, 1);
  EXPECT_EQ(Generated(*engine, Ask(100, 0, "", 90)).slot, 0);
  EXPECT_EQ(engine->SaveSlot(1, "long")->tokens, 211);
  EXPECT_EQ(engine->SaveSlot(0, "short")->tokens, 111);
  EXPECT_TRUE(MessageOf(engine->Generate(Ask(10, 2))).starts_with("slot: there is no 2"));
}

TEST_P(SlotFiles, ServeTheSameSaltOnly) {
  {
    const auto engine = OpenEngine(Options());
    Generated(*engine, Ask(300, 0, "ann"));
    EXPECT_EQ(engine->SaveSlot(0, "x", "bob").error().code, ErrorCode::kNotFound);
    EXPECT_EQ(engine->SaveSlot(0, "x").error().code, ErrorCode::kNotFound);
    EXPECT_EQ(*engine->EraseSlot(0, "bob"), 0);
    EXPECT_EQ(FilesInFolder(), 0);
    ASSERT_TRUE(engine->SaveSlot(0, "x", "ann"));
    Generated(*engine, Ask(300, 0, "bob"));
    const std::string before = BytesOf("x");
    EXPECT_EQ(engine->SaveSlot(0, "x", "bob").error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(BytesOf("x"), before);
  }
  const auto engine = OpenEngine(Options());
  EXPECT_NE(WhyNot(*engine, "x", "bob").find("another client saved it"), std::string::npos);
  EXPECT_EQ(engine->RestoreSlot(0, "x").error().code, ErrorCode::kMismatch);
  ASSERT_EQ(WhyNot(*engine, "x", "ann"), "");
  EXPECT_EQ(Generated(*engine, Ask(300, 1, "bob")).timings.cached_prompt_tokens, 0);
  EXPECT_EQ(Generated(*engine, Ask(300, 1)).timings.cached_prompt_tokens, 0);
  EXPECT_EQ(Generated(*engine, Ask(300, 1, "ann")).timings.cached_prompt_tokens, Known(300));
}

TEST_P(SlotFiles, WhatIsErasedIsReadAgain) {
  for (const bool with_file : {false, true}) {
    EngineOptions options = Options();
    if (with_file) options.cache_file = folder + "/blocks", options.cache_file_mb = 64;
    {
      const auto engine = OpenEngine(options);
      Generated(*engine, Ask(300, 0));
      if (with_file) ASSERT_TRUE(engine->KeepCache());
      EXPECT_EQ(*engine->EraseSlot(0), 311);
      EXPECT_EQ(*engine->EraseSlot(0), 0);
      EXPECT_EQ(engine->SaveSlot(0, "none").error().code, ErrorCode::kNotFound);
      EXPECT_EQ(Generated(*engine, Ask(300, 0)).timings.cached_prompt_tokens, 0);
      // What another text begins with stays.
      Request longer = Ask(300, 1);
      for (int i = 100; i < 300; ++i) longer.prompt_tokens[static_cast<std::size_t>(i)] = 9;
      Generated(*engine, longer);
      EXPECT_LE(*engine->EraseSlot(1), 312 - 96);
      if (!Recurrent())
        EXPECT_EQ(Generated(*engine, Ask(300, 0)).timings.cached_prompt_tokens, Known(300));
      EXPECT_GT(*engine->EraseSlot(0), 0);
    }
    EXPECT_EQ(Generated(*OpenEngine(options), Ask(300)).timings.cached_prompt_tokens, 0);
  }
}

TEST_P(SlotFiles, NamesArePlain) {
  const auto engine = OpenEngine(Options());
  Generated(*engine, Ask(40, 0));
  for (const std::string name :
       {"", ".", "..", "a/b", "/a", "../a", "a..b", ".a", "a\n", "a\\b", "a\x7f"}) {
    EXPECT_EQ(engine->SaveSlot(0, name).error().code, ErrorCode::kInvalidArgument) << name;
    EXPECT_EQ(engine->RestoreSlot(0, name).error().code, ErrorCode::kInvalidArgument) << name;
  }
  EXPECT_EQ(engine->SaveSlot(0, std::string("a\0b", 3)).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(engine->SaveSlot(0, std::string(201, 'a')).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(engine->SaveSlot(2, "a").error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(engine->SaveSlot(-1, "a").error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(engine->RestoreSlot(0, "a").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(FilesInFolder(), 0);
  EXPECT_TRUE(engine->SaveSlot(0, std::string(200, 'a')));
  EXPECT_TRUE(engine->SaveSlot(0, "a b"));
}

TEST_P(SlotFiles, FilesThatAreNotWholeAreRefused) {
  const auto engine = OpenEngine(Options());
  Generated(*engine, Ask(300, 0));
  ASSERT_TRUE(engine->SaveSlot(0, "good"));
  const std::string good = BytesOf("good");
  engine->EraseSlot(0).value();
  Put("empty", "");
  EXPECT_NE(WhyNot(*engine, "empty").find("no file of cache blocks"), std::string::npos);
  Put("foreign", "GGUF" + std::string(9000, 'x'));
  EXPECT_NE(WhyNot(*engine, "foreign").find("no file of cache blocks"), std::string::npos);
  for (const std::size_t cut :
       {std::size_t{100}, std::size_t{4096}, good.size() / 2, good.size() - 1}) {
    Put("torn", good.substr(0, cut));
    EXPECT_NE(WhyNot(*engine, "torn"), "") << cut;
  }
  Put("long", good + "x");
  EXPECT_NE(WhyNot(*engine, "long"), "");
#if !defined(_WIN32)  // it has no such files
  Put("open", good, 0666);
  EXPECT_NE(WhyNot(*engine, "open"), "");
  symlink(Path("good").c_str(), Path("link").c_str());
  EXPECT_NE(WhyNot(*engine, "link"), "");
  mkfifo(Path("pipe").c_str(), 0600);
  EXPECT_NE(WhyNot(*engine, "pipe"), "");
#endif
  // Any byte but those behind the head, which say nothing.
  for (std::size_t at = 0; at < good.size();
       at += at < 120 || at > 4096 ? 1 + good.size() / 701 : 1000) {
    if (at >= 120 && at < 4096) continue;
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x40);
    Put("bad", bad);
    EXPECT_NE(WhyNot(*engine, "bad"), "") << at;
    engine->EraseSlot(0).value();
  }
  ASSERT_EQ(WhyNot(*engine, "good"), "");
  // Saving goes through no link, and replaces no file that is another's.
  for (const std::string name : {"foreign", "empty"})
    EXPECT_EQ(engine->SaveSlot(0, name).error().code, ErrorCode::kInvalidArgument) << name;
#if !defined(_WIN32)
  for (const std::string name : {"link", "pipe"})
    EXPECT_EQ(engine->SaveSlot(0, name).error().code, ErrorCode::kInvalidArgument) << name;
#endif
  EXPECT_TRUE(engine->SaveSlot(0, "good"));
  EXPECT_EQ(BytesOf("good"), good);
}

TEST_P(SlotFiles, OfAnotherModelOrForALongerContextAreRefused) {
  {
    const auto engine = OpenEngine(Options());
    Generated(*engine, Ask(600, 0));
    ASSERT_TRUE(engine->SaveSlot(0, "x"));
  }
  EngineOptions other = Options();
  other.cache_type_k = CacheType::kF32;
  EXPECT_NE(WhyNot(*OpenEngine(other), "x").find("of another model, or of other settings"),
            std::string::npos);
  EngineOptions shorter = Options();
  shorter.context_size = 512;
  EXPECT_EQ(OpenEngine(shorter)->RestoreSlot(0, "x").error().code, ErrorCode::kTooLarge);
  EngineOptions small = Options();
  small.cache_tokens = 512;
  EXPECT_EQ(OpenEngine(small)->RestoreSlot(0, "x").error().code, ErrorCode::kTooLarge);
}

#if !defined(_WIN32)  // it limits no files
TEST_P(SlotFiles, AFullDiskLeavesNoFile) {
  const auto engine = OpenEngine(Options());
  Generated(*engine, Ask(300, 0));
  ASSERT_TRUE(engine->SaveSlot(0, "x"));
  const std::string before = BytesOf("x");
  Generated(*engine, Ask(400, 0));
  rlimit limit = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit small = {.rlim_cur = 8192, .rlim_max = limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto again = engine->SaveSlot(0, "x"), other = engine->SaveSlot(0, "y");
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  EXPECT_EQ(again.error().code, ErrorCode::kIo);
  EXPECT_EQ(other.error().code, ErrorCode::kIo);
  EXPECT_EQ(FilesInFolder(), 1);
  EXPECT_EQ(BytesOf("x"), before);
  EXPECT_TRUE(engine->SaveSlot(0, "y"));
}
#endif

TEST_P(SlotFiles, TakeNoMoreThanTheirLimit) {
  EngineOptions options = Options();
  options.cache_file_mb = 1;
  const auto engine = OpenEngine(options);
  Generated(*engine, Ask(300, 0));
  const std::int64_t bytes = engine->SaveSlot(0, "x")->bytes;
  Put("theirs", std::string(static_cast<std::size_t>(1'000'000 - 2 * bytes), 'x'));
  EXPECT_TRUE(engine->SaveSlot(0, "y"));
  EXPECT_TRUE(engine->SaveSlot(0, "y"));  // takes the place of the last one
  EXPECT_EQ(engine->SaveSlot(0, "z").error().code, ErrorCode::kTooLarge);
}

TEST_P(SlotFiles, NeedAFolderThatIsOurs) {
  EngineOptions options = Options();
  options.slot_folder.clear();
  EXPECT_EQ(OpenEngine(options)->SaveSlot(0, "x").error().code, ErrorCode::kUnsupported);
  for (const std::string& bad : {folder + "/none", model}) {
    options.slot_folder = bad;
    EXPECT_EQ(Engine::Open(options).error().code, ErrorCode::kInvalidArgument);
  }
#if !defined(_WIN32)  // nobody asks who else may write there
  chmod(slots.c_str(), 0777);
  EXPECT_EQ(Engine::Open(Options()).error().code, ErrorCode::kInvalidArgument);
  chmod(slots.c_str(), 0700);
#endif
  options = Options();
  options.prefix_cache = false;
  EXPECT_EQ(Engine::Open(options).error().code, ErrorCode::kInvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(Networks, SlotFiles, KeptNetworks(), KeptNetworkName);

}  // namespace
}  // namespace foretoken
