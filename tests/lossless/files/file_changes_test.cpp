// SPDX-License-Identifier: Apache-2.0
// Model files and kept tiles that are changed between two starts, or while an engine reads them.
// Answers are those of the file, or there is an error that names it; the process continues.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "fixtures/engines_testing.h"
#include "fixtures/tiny_model.h"
#include "foretoken/tools/model_file.h"
#include "formats/checkpoint.h"
#include "formats/gguf_writer.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;
using Tokens = std::vector<std::int32_t>;

std::string Bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Overwrites part of the file, and restores its old times if `keep_time`.
void WriteInto(const std::string& path, std::size_t at, const std::string& bytes, bool keep_time) {
  struct stat status {};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  usleep(20'000);  // a tick of the file system's clock
  const int fd = open(path.c_str(), O_WRONLY);
  ASSERT_EQ(pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(at)),
            static_cast<ssize_t>(bytes.size()));
  const struct timespec times[2] = {status.st_atim, status.st_mtim};
  if (keep_time) ASSERT_EQ(futimens(fd, times), 0);
  close(fd);
}

// Where a tensor's data begin in the file.
std::size_t PlaceOf(const std::string& path, const char* tensor, std::size_t* size) {
  const auto file = formats::OpenCheckpoint(path);
  const auto data = (*file)->Find(tensor)->data;
  *size = data.size();
  return Bytes(path).find(std::string(reinterpret_cast<const char*>(data.data()), data.size()));
}

class FileChanges : public testing::Test {
 protected:
  FileChanges() : folder_(fixtures::TemporaryFolder()), model_(Model(71, "m.gguf")) {}

  std::string Model(std::uint64_t seed, const std::string& name, double noise = 0) const {
    return fixtures::WriteTinyModel(folder_, {.seed = seed,
                                              .dim = 256,
                                              .ff = 512,
                                              .weight_type = tensor::DType::kQ8_0,
                                              .noise = noise,
                                              .file_name = name});
  }
  EngineOptions Options(bool kept) const {
    EngineOptions options;
    options.model = model_;
    options.draft_model = draft_;
    options.speculative.method = draft_.empty() ? "none" : "standalone";
    if (!draft_.empty()) {  // drafts in every round, whatever they cost
      options.speculative.controller = "fixed";
      options.speculative.num_speculative_tokens = 4;
    }
    options.threads = 2;
    options.repack_cache = kept ? folder_ + "/cache" : "off";
    return options;
  }
  std::unique_ptr<Engine> Open(bool kept = true) const { return OpenEngine(Options(kept)); }
  static Request Prompt() {
    Request r;
    r.prompt = "one day the little dog and the cat";
    r.max_new_tokens = 60;
    r.sampling.temperature = 0;
    r.ignore_eos = true;
    return r;
  }
  Tokens Text(bool kept = true) const { return Open(kept)->Generate(Prompt())->token_ids; }
  std::vector<fs::path> Kept() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder_ + "/cache"))
      files.push_back(entry.path());
    return files;
  }
  std::string KeptOf(const std::string& model) const {
    for (const fs::path& file : Kept())
      if (file.filename().string().starts_with(fs::path(model).stem().string() + "-")) return file;
    return "";
  }

  std::string folder_, model_, draft_;
};

// ---- Between two starts ------------------------------------------------------------------------

TEST_F(FileChanges, AnotherModelUnderTheSameNameTimeAndSizeGivesItsOwnText) {
  const Tokens first = Text();
  const std::string other = Bytes(Model(72, "other.gguf"));
  ASSERT_EQ(other.size(), fs::file_size(model_));
  WriteInto(model_, 0, other, true);
  const Tokens now = Text();
  EXPECT_NE(now, first);
  EXPECT_EQ(now, Text(false));
}

// The background check finds what the samples in the key do not cover.
TEST_F(FileChanges, ASmallChangeUnderTheSameTimeIsFoundInTheBackground) {
  Text();
  const std::string kept = KeptOf(model_);
  std::size_t size = 0;
  const std::size_t at = PlaceOf(model_, "blk.0.ffn_up.weight", &size);
  ASSERT_GT(size, std::size_t{100'000});
  WriteInto(model_, at + size / 6, std::string(64, '\x11'), true);
  const auto engine = Open();
  Status status;
  for (int i = 0; i < 24'000 && status; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    status = engine->FileStatus();
  }
  ASSERT_FALSE(status) << "not found within two minutes";
  EXPECT_EQ(status.error().code, ErrorCode::kIo);
  EXPECT_TRUE(Says(status.error().message, model_ + ": its data are not those"));
  EXPECT_FALSE(fs::exists(kept));
  EXPECT_FALSE(engine->Generate(Prompt()));
  EXPECT_EQ(Text(), Text(false)) << "the next start has the file's own text";
}

TEST_F(FileChanges, AnUnchangedModelPassesTheReadingInTheBackground) {
  Text();
  const auto engine = Open();
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  EXPECT_TRUE(engine->FileStatus());
  EXPECT_TRUE(engine->Generate(Prompt()));
  EXPECT_EQ(Kept().size(), 1u);
}

// ---- While an engine reads them ----------------------------------------------------------------

enum class Which { kModel, kTiles, kNewTiles, kDraft, kDraftTiles };
enum class Change { kCutShort, kWrittenOver, kWrittenOverWithItsTime };

class FileChangesInUse : public FileChanges,
                         public testing::WithParamInterface<std::tuple<Which, Change>> {
 protected:
  FileChangesInUse() { draft_ = Model(71, "d.gguf", 0.1); }

  // The file, and the beginning of the part that passes read.
  std::string Path() const {
    const Which which = std::get<0>(GetParam());
    if (which == Which::kModel) return model_;
    if (which == Which::kDraft) return draft_;
    return KeptOf(which == Which::kDraftTiles ? draft_ : model_);
  }
  void ChangeIt() const {
    const std::string path = Path();
    const bool tiles = path.ends_with(".tiles");
    std::size_t at = 4096, size = fs::file_size(path) - 4096;
    if (!tiles) at = PlaceOf(path, "token_embd.weight", &size);
    if (std::get<1>(GetParam()) == Change::kCutShort) return fs::resize_file(path, 4096);
    WriteInto(path, at, std::string(size, '\x11'),
              std::get<1>(GetParam()) == Change::kWrittenOverWithItsTime);
  }
};

TEST_P(FileChangesInUse, EndRequestsWithAnErrorAndCommitNothingOfThem) {
  const Tokens wanted = Text(false);
  if (std::get<0>(GetParam()) != Which::kNewTiles) Text();  // keeps the tiles
  const auto engine = Open();
  Tokens told;
  const auto completion = engine->Generate(Prompt(), [&](const RoundEvent& round) {
    const bool before = told.size() < 10;
    for (const TokenEvent& event : round.events) told.push_back(event.id);
    if (before && told.size() >= 10) ChangeIt();
    return true;
  });
  ASSERT_FALSE(completion) << "it ended as if nothing were wrong";
  EXPECT_EQ(completion.error().code, ErrorCode::kIo);
  EXPECT_TRUE(Begins(completion.error().message, Path() + ": "));
  ASSERT_GE(told.size(), 10u);
  ASSERT_LE(told.size(), wanted.size());
  EXPECT_TRUE(std::equal(told.begin(), told.end(), wanted.begin())) << "a token of bad pages";
  // From now on it accepts no requests.
  EXPECT_EQ(MessageOf(engine->Begin(Prompt())), completion.error().message);
  EXPECT_FALSE(engine->FileStatus());
  EXPECT_FALSE(engine->Score(Tokens{1, 2, 3}));
}

std::string NameOf(const testing::TestParamInfo<std::tuple<Which, Change>>& info) {
  static const char* const kWhich[] = {"Model", "Tiles", "NewTiles", "Draft", "DraftTiles"};
  static const char* const kChange[] = {"CutShort", "WrittenOver", "WrittenOverWithItsTime"};
  return std::string(kWhich[static_cast<int>(std::get<0>(info.param))]) +
         kChange[static_cast<int>(std::get<1>(info.param))];
}
INSTANTIATE_TEST_SUITE_P(All, FileChangesInUse,
                         testing::Combine(testing::Values(Which::kModel, Which::kTiles,
                                                          Which::kNewTiles, Which::kDraft,
                                                          Which::kDraftTiles),
                                          testing::Values(Change::kCutShort, Change::kWrittenOver,
                                                          Change::kWrittenOverWithItsTime)),
                         NameOf);

TEST_F(FileChanges, EndWaitingRequestsToo) {
  EngineOptions options = Options(true);
  options.max_sequences = 1;
  auto engine = *Engine::Open(options);
  std::vector<Ticket> tickets;
  for (int i = 0; i < 3; ++i) tickets.push_back(*engine->Begin(Prompt()));
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(engine->Step());
  fs::resize_file(model_, 4096);
  while (engine->Step()) continue;
  for (const Ticket ticket : tickets) {
    const auto completion = engine->Take(ticket);
    ASSERT_TRUE(completion);
    EXPECT_EQ(completion->finish_reason, FinishReason::kError);
    ASSERT_TRUE(completion->error);
    EXPECT_TRUE(Begins(completion->error->message, model_ + ": "));
  }
  EXPECT_EQ(engine->load().running + engine->load().waiting, 0);
}

TEST_F(FileChanges, ChangesBetweenRequestsAreNoticedByTheNextOne) {
  auto engine = Open();
  ASSERT_TRUE(engine->Generate(Prompt()));
  EXPECT_TRUE(engine->FileStatus());
  WriteInto(model_, 100, "x", false);
  EXPECT_FALSE(engine->FileStatus());
  EXPECT_TRUE(Begins(MessageOf(engine->Generate(Prompt())), model_ + ": the file was changed"));
}

// The right way to replace a file: the engine continues with the old one.
TEST_F(FileChanges, AFileInPlaceOfTheOldOneChangesNothing) {
  const Tokens wanted = Text();
  auto engine = Open();
  fs::rename(Model(72, "other.gguf"), model_);
  fs::remove(Kept().at(0));
  EXPECT_EQ(engine->Generate(Prompt())->token_ids, wanted);
  EXPECT_TRUE(engine->FileStatus());
}

// ---- Messages with hostile names ----------------------------------------------------------------

TEST_F(FileChanges, MessagesRepeatTheTextOfAFileInBriefAndOnOneLine) {
  const auto file = formats::OpenCheckpoint(model_);
  const std::string bytes = Bytes(model_), text = "\x1b[2J\n" + std::string(70'000, 'x');
  for (const char* key : {"general.architecture", "tokenizer.ggml.model", "llama.rope.scaling.type",
                          "tokenizer.chat_template"}) {
    formats::GgufWriter writer;
    writer.CopyKeys(std::as_bytes(std::span(bytes)));
    // Any text is a template, so this one has a tag that is none.
    const bool chat_template = std::string_view(key) == "tokenizer.chat_template";
    writer.Set(key, chat_template ? "{% " + text.substr(4) + " %}" : text);
    for (const auto& t : (*file)->tensors())
      writer.AddTensor(t.name, t.ggml_type,
                       std::span(t.shape).first(static_cast<std::size_t>(t.n_dims)), t.data);
    const std::string path = folder_ + "/long.gguf";
    ASSERT_TRUE(writer.Write(path));
    const auto engine = Engine::Open({.model = path, .repack_cache = "off"});
    const std::vector<ChatMessage> messages = {{.role = "user", .content = "a"}};
    const std::string why =
        engine ? MessageOf((*engine)->FormatChat(messages, {})) : MessageOf(engine);
    EXPECT_NE(why, "") << key;
    EXPECT_LT(why.size(), 500u) << key;
    EXPECT_EQ(why.find_first_of("\n\x1b"), why.npos) << key;
  }
}

}  // namespace
}  // namespace foretoken
