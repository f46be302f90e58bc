// SPDX-License-Identifier: Apache-2.0
#include "train/text/sample.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <random>
#include <set>

#include "base/failure_testing.h"
#include "base/files/whole_file_testing.h"
#include "fixtures/tiny_model.h"
#include "train/text/documents.h"
#include "train/written_testing.h"

namespace foretoken::train {
namespace {

std::vector<std::string> Lines(int n, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::string> lines;
  for (int i = 0; i < n; ++i) {
    std::string line = "line " + std::to_string(1000 + i);
    for (int k = 0; k < 6; ++k)
      line += std::array{" the", " one", " fox", " met", " hen"}[random() % 5];
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string Joined(const std::vector<std::string>& lines, const std::string& between) {
  std::string text;
  for (const std::string& line : lines) text += line + between;
  return text;
}

SampleOptions SamplingOptions(const std::string& name) {
  static const std::string model = fixtures::WriteTinyModel(
      TestFolder(), {.seed = 8, .dim = 32, .ff = 48, .context_length = 64});
  SampleOptions o;
  o.model = model;
  o.text = {WriteText("stories", Joined(Lines(200, 1), "\n<|endoftext|>\n"))};
  o.out = TestFolder() + "/" + name;
  o.tokens = 700, o.new_tokens = 30, o.prompt_tokens = 8, o.threads = 1;
  return o;
}

TEST(Samples, ContinueBeginningsOfDocuments) {
  const SampleOptions o = SamplingOptions("stories.out");
  ASSERT_TRUE(Works(WriteSamples(o)));
  const auto documents = Got(ReadDocuments(o.out));
  EXPECT_GE(documents.size(), 700 / 30);
  for (const std::string& document : documents)
    EXPECT_TRUE(document.starts_with("line 1")) << document;
  EXPECT_FALSE(std::filesystem::exists(o.out + ".part"));
  EXPECT_FALSE(std::filesystem::exists(o.out + ".new"));
}

TEST(Samples, ContinueLinesOfDocumentsThatAreLong) {
  SampleOptions o = SamplingOptions("book.out");
  o.text = {WriteText("book", Joined(Lines(2000, 2), "\n"))};
  ASSERT_TRUE(WriteSamples(o));
  const std::string book = WholeFile(o.text[0]);
  int from_first = 0;
  const auto documents = Got(ReadDocuments(o.out));
  for (const std::string& document : documents) {
    EXPECT_TRUE(document.starts_with("line ")) << document;
    EXPECT_NE(book.find(document.substr(0, 8)), std::string::npos) << document;
    from_first += document.starts_with("line 100");
  }
  EXPECT_LE(from_first, 3);
}

TEST(Samples, OfASeedAreTheSameWhateverRunsThem) {
  SampleOptions o = SamplingOptions("seed1");
  ASSERT_TRUE(WriteSamples(o));
  const std::string wanted = WholeFile(o.out);
  o.out = TestFolder() + "/seed2", o.threads = 2;
  ASSERT_TRUE(WriteSamples(o));
  EXPECT_EQ(WholeFile(o.out), wanted);
  o.out = TestFolder() + "/seed3", o.tokens = 200;
  ASSERT_TRUE(WriteSamples(o));
  EXPECT_LT(WholeFile(o.out).size(), wanted.size());
  EXPECT_TRUE(wanted.starts_with(WholeFile(o.out))) << "fewer are the first ones of more";
  o.out = TestFolder() + "/seed4", o.seed = 2;
  ASSERT_TRUE(WriteSamples(o));
  EXPECT_FALSE(wanted.starts_with(WholeFile(o.out)));
}

TEST(Samples, OfOnePromptDiffer) {
  SampleOptions o = SamplingOptions("one_prompt");
  o.text = {WriteText("one", "fox met hen")};
  ASSERT_TRUE(WriteSamples(o));
  const auto documents = Got(ReadDocuments(o.out));
  EXPECT_EQ(std::set<std::string>(documents.begin(), documents.end()).size(), documents.size());
}

TEST(Samples, GoOnWhereAKilledRunWas) {
  const SampleOptions whole = SamplingOptions("whole");
  ASSERT_TRUE(WriteSamples(whole));
  // The files of an unfinished run: the settings, samples with their tokens, and an incomplete
  // sample. The numbers are made up, to show that the samples were not made again.
  const std::string settings = WholeFile(whole.out + ".settings"),
                    line = settings.substr(0, settings.find('\n') + 1);
  const SampleOptions o = SamplingOptions("killed");
  WriteText("killed.part", line + "one\n<|endoftext|> 300\ntwo\n\nlines\n<|endoftext|> 399\nthr");
  ASSERT_TRUE(WriteSamples(o));
  const auto documents = ReadDocuments(o.out);
  ASSERT_EQ(documents->size(), 3) << "one token was missing";
  EXPECT_EQ((*documents)[0], "one");
  EXPECT_EQ((*documents)[1], "two\n\nlines");
  EXPECT_EQ((*documents)[2], (*ReadDocuments(whole.out))[2]);
  // Stopped twice: while a sample was being written, and before the file had its name.
  const SampleOptions twice = SamplingOptions("twice");
  WriteText("twice.part", line + "thr");
  std::filesystem::create_directory(twice.out);
  EXPECT_FALSE(WriteSamples(twice));
  std::filesystem::remove(twice.out);
  ASSERT_TRUE(WriteSamples(twice));
  EXPECT_EQ(WholeFile(twice.out), WholeFile(whole.out));
  // From other settings.
  const SampleOptions other = SamplingOptions("other");
  WriteText("other.part", "samples of something else\none\n<|endoftext|> 300\n");
  ASSERT_TRUE(WriteSamples(other));
  EXPECT_EQ(WholeFile(other.out), WholeFile(whole.out));
}

TEST(Samples, ThatAreThereAreKeptIfTheyWereMadeSo) {
  SampleOptions o = SamplingOptions("kept");
  ASSERT_TRUE(WriteSamples(o));
  const std::string made = WholeFile(o.out), mark = std::string(made.size(), 'x');
  WriteText("kept", mark);
  ASSERT_TRUE(WriteSamples(o));
  EXPECT_EQ(WholeFile(o.out), mark) << "left alone";
  WriteText("kept", mark + "more");
  ASSERT_TRUE(WriteSamples(o));
  EXPECT_EQ(WholeFile(o.out), made) << "of another length: made anew";
  o.temperature = 0.2;
  ASSERT_TRUE(WriteSamples(o));
  EXPECT_NE(WholeFile(o.out), made);
}

TEST(Samples, AreRefusedWhereTheyCannotBeMade) {
  const auto refusal = [](const std::function<void(SampleOptions&)>& change) {
    SampleOptions o = SamplingOptions("refused");
    change(o);
    const auto status = WriteSamples(o);
    EXPECT_FALSE(status);
    EXPECT_FALSE(std::filesystem::exists(TestFolder() + "/refused"));
    return status ? Error{} : status.error();
  };
  const auto contains = [](const Error& error, const char* words) {
    EXPECT_NE(error.message.find(words), std::string::npos) << error.message;
  };
  contains(refusal([](SampleOptions& o) { o.new_tokens = 56; }), "context of 64");
  contains(refusal([](SampleOptions& o) { o.new_tokens = 0, o.prompt_tokens = 63; }),
           "context of 64");
  contains(refusal([](SampleOptions& o) { o.temperature = 2.5; }), "temperature: 2.5");
  contains(refusal([](SampleOptions& o) { o.text.clear(); }), "text: none");
  contains(refusal([](SampleOptions& o) { o.text = {o.model}; }), "is not text");
  contains(refusal([](SampleOptions& o) { o.tokens = 0; }), "must be positive");
  contains(refusal([](SampleOptions& o) { o.model = "/no/such.gguf"; }), "/no/such.gguf");
  contains(refusal([](SampleOptions& o) { o.out = TestFolder() + "/none/out"; }), "/none/out");
}

}  // namespace
}  // namespace foretoken::train
