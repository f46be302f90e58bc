// SPDX-License-Identifier: Apache-2.0
// Variants of loading that must not change the text: tiles kept from an earlier start, and a draft
// model's reduced output head.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>

#include "fixtures/engines_testing.h"
#include "fixtures/tiny_model.h"
#include "foretoken/tools/model_file.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

Request LoadedPrompt(float temperature) {
  Request r;
  r.prompt = "one day the little dog and the cat";
  r.max_new_tokens = 40;
  r.sampling.temperature = temperature;
  r.seed = 5;
  r.ignore_eos = true;
  r.logprobs = 2;
  return r;
}

Completion GenerateFrom(const EngineOptions& options, float temperature = 0) {
  return Generated(*OpenEngine(options), LoadedPrompt(temperature));
}

// A mixture whose metadata and tensors do not fit together is an error that names the tensor.
TEST(LoadingMixtures, RefusesTensorsThatTheMetadataDoNotAskFor) {
  fixtures::TinyModelOptions model{.arch = "qwen3moe", .seed = 62, .n_experts = 6};
  const std::string folder = fixtures::TemporaryFolder();
  for (const auto& [key, value, named] :
       {std::tuple("expert_count", 5, "ffn_gate_inp"),
        std::tuple("expert_count", 7, "ffn_gate_inp"),
        std::tuple("expert_feed_forward_length", 16, "ffn_gate_exps"),
        std::tuple("expert_feed_forward_length", 64, "ffn_gate_exps"),
        std::tuple("leading_dense_block_count", 1, "ffn_gate"),
        std::tuple("expert_used_count", 7, "expert_used_count"),
        std::tuple("expert_used_count", 0, "expert_used_count"),
        std::tuple("expert_count", 0, "expert_count")}) {
    model.false_keys = {{key, value}};
    EXPECT_TRUE(Fails(Engine::Open({.model = fixtures::WriteTinyModel(folder, model)}),
                      ErrorCode::kInvalidFile, named));
  }
  model.false_keys = {};
  EXPECT_TRUE(Engine::Open({.model = fixtures::WriteTinyModel(folder, model)}));
}

class KeptTiles : public testing::Test {
 protected:
  KeptTiles()
      : folder_(fixtures::TemporaryFolder()),
        model_(fixtures::WriteTinyModel(
            folder_, {.seed = 61, .weight_type = tensor::DType::kQ4_0, .file_name = "m.gguf"})) {}

  EngineOptions Options(const std::string& cache) const {
    return {
        .model = model_, .speculative = {.method = "none"}, .threads = 2, .repack_cache = cache};
  }
  std::string cache() const { return folder_ + "/cache"; }
  std::vector<fs::path> Kept() const {
    std::vector<fs::path> files;
    if (fs::exists(cache()))
      for (const auto& entry : fs::directory_iterator(cache())) files.push_back(entry.path());
    return files;
  }
  // Differs for every file that existed at the same time as its successor.
  ino_t FileNumber() const {
    struct stat info {};
    EXPECT_EQ(stat(Kept().at(0).c_str(), &info), 0);
    return info.st_ino;
  }
  // Checks the text of an engine whose weights must be right whatever the folder contains.
  void ExpectTheText() {
    ExpectSame(GenerateFrom(Options(cache())), expected_);
    EXPECT_EQ(Kept().size(), 1u);
  }

  std::string folder_, model_;
  Completion expected_ = GenerateFrom(Options("off"));
};

TEST_F(KeptTiles, GiveTheSameText) {
  ExpectTheText();
  const ino_t first = FileNumber();
  ExpectTheText();
  EXPECT_EQ(FileNumber(), first) << "made anew";
}

TEST_F(KeptTiles, AreMadeAnewWhenTheModelChanges) {
  ExpectTheText();
  const auto old = fs::file_size(Kept().at(0));
  fixtures::WriteTinyModel(
      folder_, {.seed = 62, .weight_type = tensor::DType::kQ4_0, .file_name = "m.gguf"});
  expected_ = GenerateFrom(Options("off"));
  ExpectTheText();
  EXPECT_EQ(fs::file_size(Kept().at(0)), old) << "one model's tiles are as large as the other's";
}

TEST_F(KeptTiles, AreMadeAnewWhenTheModelsTimeChanges) {
  ExpectTheText();
  const ino_t first = FileNumber();
  fs::last_write_time(model_, fs::last_write_time(model_) + std::chrono::seconds(2));
  ExpectTheText();
  EXPECT_NE(FileNumber(), first);
}

TEST_F(KeptTiles, AreMadeAnewWhenTheyAreDamaged) {
  ExpectTheText();
  const fs::path file = Kept().at(0);
  for (const std::uintmax_t at :
       {std::uintmax_t{9}, std::uintmax_t{5000}, fs::file_size(file) - 1}) {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(static_cast<std::streamoff>(at));
    stream.put('\x55');
    stream.close();
    ExpectTheText();
  }
  fs::resize_file(file, 5000);
  ExpectTheText();
}

TEST_F(KeptTiles, AreDoneWithoutWhereTheFolderCannotBeMade) {
  std::ofstream(folder_ + "/file") << "in the way";
  const auto engine = OpenEngine(Options(folder_ + "/file/cache"));
  ASSERT_EQ(engine->summary().notices.size(), 1u);
  EXPECT_TRUE(Says(engine->summary().notices[0], "the next start repacks the weights again"));
  EXPECT_EQ(Generated(*engine, LoadedPrompt(0)).token_ids, expected_.token_ids);
}

// Another model's file, which takes 1.5 GB of names and no disk.
TEST_F(KeptTiles, TakeNoMoreThanTheGigabytesThatTheyMay) {
  EngineOptions options = Options(cache());
  const fs::path old = cache() + "/old-0123456789abcdef.tiles";
  for (const int most : {0, 2, 1}) {
    fs::remove_all(cache());
    fs::create_directory(cache());
    std::ofstream(old) << "FTKTILES";
    fs::resize_file(old, 1'500'000'000);
    options.repack_cache_gb = most;
    OpenEngine(options);
    EXPECT_EQ(fs::exists(old), most != 1) << most;
    EXPECT_EQ(Kept().size(), most == 1 ? 1u : 2u);
  }
  options.repack_cache_gb = -1;
  EXPECT_TRUE(
      Fails(Engine::Open(options), ErrorCode::kInvalidArgument, "gigabytes of repacked weights"));
}

// What is told while an engine opens.
struct Seen {
  std::string step;
  std::int64_t bytes, total_bytes;
};

TEST_F(KeptTiles, TellHowFarLoadingIs) {
  for (const char* const step : {"repacking", "reading kept weights"}) {
    std::vector<Seen> seen;
    std::int64_t memory = 0;
    EngineOptions options = Options(cache());
    options.on_load_progress = [&](const LoadProgress& progress) {
      if (seen.empty()) memory = progress.memory.dense;
      EXPECT_EQ(progress.what, model_);
      EXPECT_GT(progress.available_bytes, 0);
      EXPECT_FALSE(progress.experts_paged);
      seen.push_back({std::string(progress.step), progress.bytes, progress.total_bytes});
      return true;
    };
    const auto engine = OpenEngine(options);
    ASSERT_GE(seen.size(), 2u);
    EXPECT_EQ(seen.front().step, "planning");
    EXPECT_EQ(seen.front().bytes, 0);
    EXPECT_EQ(seen.back().step, step);
    EXPECT_EQ(seen.back().total_bytes, engine->summary().target.weight_bytes);
    EXPECT_GE(seen.back().bytes, seen.back().total_bytes - 64);
    for (std::size_t i = 2; i < seen.size(); ++i) EXPECT_GT(seen[i].bytes, seen[i - 1].bytes);
    // What was said before anything was loaded holds (vectors are not among the tiles).
    EXPECT_EQ(engine->summary().memory.dense, memory);
    EXPECT_NEAR(static_cast<double>(memory),
                static_cast<double>(engine->summary().target.weight_bytes), 8192);
    EXPECT_GT(engine->summary().memory.scratch, 0);
    EXPECT_GT(engine->summary().memory.embedding, 0);
    EXPECT_EQ(engine->summary().memory.cache, engine->summary().target.cache_bytes);
  }
}

TEST_F(KeptTiles, LoadingStopsWhereTheProgramSaysSo) {
  const auto open_until = [this](std::string_view step) {
    EngineOptions options = Options(cache());
    options.on_load_progress = [step](const LoadProgress& progress) {
      return progress.step != step;
    };
    EXPECT_TRUE(Fails(Engine::Open(options), ErrorCode::kStopped)) << step;
  };
  open_until("planning");
  open_until("repacking");
  EXPECT_TRUE(Kept().empty()) << "an unfinished file is kept";
  ExpectTheText();
  const ino_t first = FileNumber();
  open_until("reading kept weights");
  ExpectTheText();
  EXPECT_EQ(FileNumber(), first);
}

// Bytes of a line of /proc/self/status.
std::int64_t OfStatus(const std::string& name) {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;)
    if (std::int64_t kib = 0; word == name + ":" && file >> kib) return kib * 1024;
  return 0;
}

// Runs in a process of its own, because the mark of the most memory is never lowered.
int OpenInChild(const EngineOptions& options, std::int64_t most_bytes) {
  const pid_t child = fork();
  if (child == 0) {
    const std::int64_t before = OfStatus("VmRSS");
    const auto engine = Engine::Open(options);
    if (!engine || before == 0) _exit(2);
    const std::int64_t peak = OfStatus("VmHWM") - before;
    const bool whole = peak > (*engine)->summary().target.weight_bytes;
    if (peak > most_bytes)
      std::fprintf(stderr, "peak %lld of %lld\n", static_cast<long long>(peak),
                   static_cast<long long>(most_bytes));
    _exit(peak > most_bytes ? 1 : whole ? 0 : 3);
  }
  int status = -1;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status)
                                                                               : -1;
}

// Nothing is in memory twice: the tiles, one tensor of the file, and little else.
TEST(LoadingMemory, NeverExceedsTheTilesAndOneTensor) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer has memory of its own";
#endif
  const std::string folder = fixtures::TemporaryFolder();
  constexpr std::int64_t kDim = 1024, kWidth = 2816, kMiB = 1 << 20;
  EngineOptions options{
      .model = fixtures::WriteTinyModel(
          folder,
          {.seed = 64, .n_layers = 5, .dim = kDim, .ff = kWidth, .n_heads = 16, .n_kv_heads = 8}),
      .speculative = {.method = "none"},
      .threads = 2};
  const auto file_bytes = static_cast<std::int64_t>(fs::file_size(options.model));
  ASSERT_GT(file_bytes, 200 * kMiB);
  const std::int64_t most = file_bytes + 4 * kDim * kWidth + 24 * kMiB;
  options.repack_cache = "off";
  EXPECT_EQ(OpenInChild(options, most), 0) << "into memory";
  options.repack_cache = folder + "/cache";
  EXPECT_EQ(OpenInChild(options, most), 0) << "into a file";
  EXPECT_EQ(OpenInChild(options, most), 0) << "from a kept file";
}

class ReducedHead : public testing::Test {
 protected:
  ReducedHead() {
    const std::string folder = fixtures::TemporaryFolder();
    fixtures::TinyModelOptions options{.seed = 63, .weight_type = tensor::DType::kQ8_0};
    options_.model = fixtures::WriteTinyModel(folder, options);
    options.noise = 0.1;
    options_.draft_model = fixtures::WriteTinyModel(folder, options);
    options_.threads = 1;
    options_.speculative.method = "standalone";
    options_.speculative.controller = "fixed";
    sample_ = folder + "/sample.txt";
  }
  Completion Reduced(int n, float temperature, const std::string& sample = "") {
    EngineOptions options = options_;
    options.speculative.draft_vocabulary = n;
    options.speculative.draft_vocabulary_sample = sample;
    return GenerateFrom(options, temperature);
  }
  Completion Plain() {
    EngineOptions options = options_;
    options.speculative.method = "none";
    options.draft_model.clear();
    return GenerateFrom(options);
  }

  EngineOptions options_;
  std::string sample_;
};

TEST_F(ReducedHead, KeepsTheTextOfPlainDecoding) {
  const Completion plain = Plain();
  for (const int n : {1, 17, 100, 300, 5000}) {
    const Completion reduced = Reduced(n, 0);
    EXPECT_EQ(reduced.token_ids, plain.token_ids) << n;
    EXPECT_GT(reduced.speculation.drafted, 0) << n;
  }
}

TEST_F(ReducedHead, DraftsAsTheWholeHeadWhereItHoldsAll) {
  for (const float temperature : {0.0f, 0.8f}) {
    const Completion whole = Reduced(0, temperature), same = Reduced(320, temperature);
    EXPECT_EQ(same.token_ids, whole.token_ids);
    EXPECT_EQ(same.speculation.accepted, whole.speculation.accepted);
  }
}

TEST_F(ReducedHead, DraftsOnlyTokensThatItHas) {
  // The sample is the text itself, so nearly everything that the whole head drafted right can still
  // be drafted (the same characters may be other tokens).
  const Completion whole = Reduced(0, 0);
  std::ofstream(sample_) << whole.text;
  const std::set<std::int32_t> distinct(whole.token_ids.begin(), whole.token_ids.end());
  const Completion reduced = Reduced(static_cast<int>(distinct.size()) + 40, 0, sample_);
  EXPECT_EQ(reduced.token_ids, whole.token_ids);
  EXPECT_GE(reduced.speculation.accepted, whole.speculation.accepted * 2 / 3);
  // With one token, an end, almost nothing is accepted.
  EXPECT_LT(Reduced(1, 0).speculation.accepted, whole.speculation.accepted / 4);
}

TEST_F(ReducedHead, IsRefusedWhereThereIsNoDraftModel) {
  EngineOptions options = options_;
  options.speculative = {.method = "ngram", .draft_vocabulary = 10};
  options.draft_model.clear();
  EXPECT_TRUE(Fails(Engine::Open(options), ErrorCode::kInvalidArgument, "draft_vocabulary"));
}

TEST_F(ReducedHead, NamesASampleThatIsNotThere) {
  EngineOptions options = options_;
  options.speculative.draft_vocabulary = 10;
  options.speculative.draft_vocabulary_sample = "/nowhere/sample.txt";
  EXPECT_TRUE(Fails(Engine::Open(options), "/nowhere/sample.txt"));
}

// ---- Files that quantize wrote ------------------------------------------------------------------

TEST(QuantizedFile, Runs) {
  const std::string folder = fixtures::TemporaryFolder();
  const QuantizeOptions options{
      .input = fixtures::WriteTinyModel(folder, {.n_layers = 8, .dim = 256, .ff = 256}),
      .output = folder + "/out.gguf",
      .type = "Q4_K_M",
      .threads = 1};
  Got(QuantizeFile(options));
  const auto engine = OpenEngine({.model = options.output, .threads = 1});
  EXPECT_FALSE(Generated(*engine, {.prompt = "once upon", .max_new_tokens = 4}).token_ids.empty());
}

}  // namespace
}  // namespace foretoken
