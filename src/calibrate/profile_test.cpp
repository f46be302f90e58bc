// SPDX-License-Identifier: Apache-2.0
#include "foretoken/tools/profile.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>

#include "base/failure_testing.h"
#include "fixtures/tiny_model.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

class ProfileFiles : public testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text) const {
    const std::string path = (folder_ / name).string();
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  std::string At(const std::string& name) const { return (folder_ / name).string(); }
  int NumberOfFiles() const {
    return static_cast<int>(std::distance(fs::directory_iterator(folder_), {}));
  }

  const fs::path folder_ = fixtures::TemporaryFolder();
};

Profile Example() {
  Profile profile;
  profile.machine = {"A \"quick\" processor", "avx512", 2};
  profile.target = {"target.gguf", 123'456'789'012, 0xfedcba9876543210};
  profile.passes = {{0, 1, 100.25}, {0, 2, 110}, {512, 1, 120}, {512, 2, 131.5}};
  profile.drafts = {{"standalone", {"draft.gguf", 1000, 7}, 12.5}, {"ngram", {}, 0}};
  profile.rest_us = 3.5;
  profile.recommendation = {"standalone", "draft.gguf", 3, "cost-model", 1.42};
  return profile;
}

// Its target drafts for itself, with copies of two kinds.
Profile ExampleOfCopies() {
  Profile profile = Example();
  profile.drafts = {{"self", profile.target, 20, "Q2_K"},
                    {"self", profile.target, 30, "Q3_K,Q4_K"}};
  profile.recommendation = {"self", "", 4, "fixed", 1.5, "Q3_K,Q4_K"};
  return profile;
}

std::string Replaced(const std::string& from, const std::string& to) {
  std::string text = Example().ToText();
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

// The message, or "" where it is taken.
std::string Refusal(const std::string& text) {
  const auto profile = Profile::Parse(text);
  if (profile) return "";
  EXPECT_EQ(profile.error().code, ErrorCode::kInvalidFile);
  return profile.error().message;
}

TEST_F(ProfileFiles, ComeBackAsTheyWereSaved) {
  const std::string path = At("a.json");
  ASSERT_TRUE(Example().Save(path));
  const auto profile = Got(Profile::Load(path));
  EXPECT_EQ(profile.ToText(), Example().ToText());
  EXPECT_EQ(profile.target.hash, 0xfedcba9876543210);
  EXPECT_EQ(profile.passes[3].us, 131.5);
  EXPECT_EQ(profile.drafts[1].model.bytes, 0);
  EXPECT_EQ(profile.recommendation.num_speculative_tokens, 3);
  EXPECT_EQ(NumberOfFiles(), 1);
}

TEST_F(ProfileFiles, AreReplacedWholeOrNotAtAll) {
  const std::string path = Write("a.json", "what was there before");
  Profile broken = Example();
  broken.rest_us = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(Fails(broken.Save(path), ErrorCode::kInvalidArgument));
  std::string text;
  std::getline(std::ifstream(path), text);
  EXPECT_EQ(text, "what was there before");
  ASSERT_TRUE(Example().Save(path));
  EXPECT_TRUE(Profile::Load(path));
  EXPECT_EQ(NumberOfFiles(), 1);
  EXPECT_EQ(Example().Save(At("no/such/folder.json")).error().code, ErrorCode::kIo);
  fs::create_directories(At("folder"));
  EXPECT_EQ(Example().Save(At("folder")).error().code, ErrorCode::kIo);
  EXPECT_EQ(NumberOfFiles(), 2);
}

TEST_F(ProfileFiles, NameThemselvesInErrors) {
  EXPECT_EQ(Profile::Load(At("none.json")).error().code, ErrorCode::kNotFound);
  const std::string path = Write("bad.json", "{}");
  EXPECT_TRUE(Profile::Load(path).error().message.starts_with(path));
  const std::string large = Write("large.json", std::string((1 << 20) + 1, ' '));
  EXPECT_EQ(Profile::Load(large).error().code, ErrorCode::kInvalidFile);
}

TEST(ProfileText, MustBeOneOfThese) {
  EXPECT_EQ(Refusal(Example().ToText()), "");
  for (const char* text : {"", "{", "[]", "1", "null", "{}", "\xff", "{\"a\": 1}"})
    EXPECT_NE(Refusal(text), "") << text;
  EXPECT_NE(Refusal(std::string(500'000, '[')), "");
  EXPECT_NE(Refusal(std::string(250'000, '[') + std::string(250'000, ']')), "");
  EXPECT_NE(Refusal(Example().ToText() + "x"), "");
}

TEST(ProfileText, HasEveryFieldOnceAndNoOther) {
  const std::string text = Example().ToText();
  for (std::size_t at = text.find('"'); at != std::string::npos; at = text.find('"', at + 1)) {
    const std::size_t end = text.find('"', at + 1);
    if (end != std::string::npos && text.compare(end, 2, "\":") == 0) {
      std::string renamed = text;
      renamed.insert(end, "_");
      EXPECT_NE(Refusal(renamed), "") << renamed.substr(at, end - at + 2);
    }
  }
  EXPECT_NE(Refusal(Replaced("\"rest_us\": 3.5", "\"rest_us\": 3.5, \"more\": 1")), "");
}

TEST(ProfileText, TellsCopiesOfTheTargetApart) {
  const auto profile = Got(Profile::Parse(ExampleOfCopies().ToText()));
  EXPECT_EQ(profile.ToText(), ExampleOfCopies().ToText());
  EXPECT_EQ(profile.recommendation.self_draft, "Q3_K,Q4_K");
  ASSERT_NE(profile.DraftOf("self", &profile.target, "Q3_K,Q4_K"), nullptr);
  EXPECT_EQ(profile.DraftOf("self", &profile.target, "Q3_K,Q4_K")->us, 30);
  EXPECT_EQ(profile.DraftOf("self", &profile.target, "Q4_0"), nullptr);
  EXPECT_EQ(profile.DraftOf("self", &profile.target), nullptr);
  Profile twice = ExampleOfCopies();
  twice.drafts[1].self_draft = "Q2_K";
  EXPECT_EQ(Refusal(twice.ToText()),
            "drafts: 'self' is there twice; write a new one with foretoken tune");
  std::string renamed = ExampleOfCopies().ToText();
  renamed.insert(renamed.find("self_draft"), "_");
  EXPECT_NE(Refusal(renamed), "");
}

TEST(ProfileText, RefusesValuesOutOfRange) {
  const struct {
    const char *from, *to, *named;
  } cases[] = {
      {"\"foretoken_profile\": 1", "\"foretoken_profile\": 2", "foretoken_profile"},
      {"\"threads\": 2", "\"threads\": 0", "machine.threads"},
      {"\"threads\": 2", "\"threads\": 2.5", "machine.threads"},
      {"\"threads\": 2", "\"threads\": 99999999999999999999", "machine.threads"},
      {"\"threads\": 2", "\"threads\": 18446744073709551615", "machine.threads"},
      {"\"isa\": \"avx512\"", "\"isa\": 7", "machine.isa"},
      {"123456789012", "-1", "target.bytes"},
      {"fedcba9876543210", "fedcba987654321", "target.hash"},
      {"fedcba9876543210", "fedcba987654321g", "target.hash"},
      {"100.25", "0", "passes[0].us"},
      {"100.25", "-1", "passes[0].us"},
      {"100.25", "1e300", "passes[0].us"},
      {"100.25", "1e999", "profile"},
      {"100.25", "null", "passes[0].us"},
      {"100.25", "\"1\"", "passes[0].us"},
      {"\"rows\": 1", "\"rows\": 5000", "passes[0].rows"},
      {"\"rows\": 1", "\"rows\": 3", "passes"},
      {"\"context\": 512", "\"context\": 0", "passes"},
      {"\"context\": 0", "\"context\": -1", "passes[0].context"},
      {"12.5", "-0.5", "drafts[0].us"},
      {"\"method\": \"ngram\"", "\"method\": null", "drafts[1].method"},
      {"\"model\": null", "\"model\": []", "drafts[1].model"},
      {"\"rest_us\": 3.5", "\"rest_us\": NaN", "profile"},
      {"\"num_speculative_tokens\": 3", "\"num_speculative_tokens\": 65", "recommendation"},
  };
  for (const auto& c : cases) {
    const std::string refusal = Refusal(Replaced(c.from, c.to));
    EXPECT_TRUE(refusal.starts_with(c.named)) << c.to << " gave: " << refusal;
    EXPECT_NE(refusal.find("; "), std::string::npos);
  }
  Profile profile = Example();
  profile.machine.cpu = std::string(5000, 'x');
  EXPECT_NE(Refusal(profile.ToText()), "");
  profile = Example();
  profile.passes.assign(2000, {0, 1, 1.0});
  EXPECT_NE(Refusal(profile.ToText()), "");
  profile.passes.clear();
  EXPECT_NE(Refusal(profile.ToText()), "");
  profile = Example();
  profile.drafts.push_back(profile.drafts.front());
  EXPECT_NE(Refusal(profile.ToText()), "");
}

TEST(ProfileText, SurvivesEveryCut) {
  const std::string text = Example().ToText();
  for (std::size_t n = 0; n + 2 < text.size(); ++n) EXPECT_NE(Refusal(text.substr(0, n)), "") << n;
}

TEST(ProfileMatch, SaysWhyNot) {
  const Profile profile = Example();
  EXPECT_EQ(profile.WhyNot(profile.machine, profile.target), "");
  ProfileMachine here = profile.machine;
  here.threads = 4;
  EXPECT_NE(profile.WhyNot(here, profile.target).find("4 threads"), std::string::npos);
  ProfileModel model = profile.target;
  model.hash ^= 1;
  EXPECT_NE(profile.WhyNot(profile.machine, model).find("target.gguf"), std::string::npos);
  model = profile.target;
  model.file = "renamed.gguf";
  EXPECT_EQ(profile.WhyNot(profile.machine, model), "");
}

TEST(ProfileMatch, KnowsDraftsByMethodAndFile) {
  const Profile profile = Example();
  const ProfileModel draft = {"moved.gguf", 1000, 7}, other = {"draft.gguf", 1000, 8};
  ASSERT_NE(profile.DraftOf("standalone", &draft), nullptr);
  EXPECT_EQ(profile.DraftOf("standalone", &draft)->us, 12.5);
  EXPECT_EQ(profile.DraftOf("standalone", &other), nullptr);
  EXPECT_EQ(profile.DraftOf("standalone", nullptr), nullptr);
  EXPECT_NE(profile.DraftOf("ngram", nullptr), nullptr);
  EXPECT_EQ(profile.DraftOf("ngram", &draft), nullptr);
}

TEST_F(ProfileFiles, TellModelsApartByBeginningMiddleAndEnd) {
  std::string bytes(5 << 20, 'x');
  const auto of = [&] { return ProfileModel::Of(Write("m.gguf", bytes)).value(); };
  const ProfileModel first = of();
  EXPECT_EQ(first.file, "m.gguf");
  EXPECT_EQ(first.bytes, 5 << 20);
  EXPECT_TRUE(first.Same(of()));
  for (const std::size_t at : {std::size_t{9}, bytes.size() / 2, bytes.size() - 1}) {
    bytes[at] = 'y';
    EXPECT_FALSE(first.Same(of())) << at;
    bytes[at] = 'x';
  }
  bytes.push_back('x');
  EXPECT_FALSE(first.Same(of()));
  EXPECT_TRUE(ProfileModel::Of(Write("small.gguf", "ab")));
  EXPECT_FALSE(ProfileModel::Of(At("none.gguf")));
}

}  // namespace
}  // namespace foretoken
