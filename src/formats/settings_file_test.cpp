// SPDX-License-Identifier: Apache-2.0
#include "formats/settings_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/failure_testing.h"
#include "fixtures/tiny_model.h"

namespace foretoken::formats {
namespace {

// "key=text@line key=text@line", or the error's message.
std::string Parsed(const std::string& text, std::string_view section = "s") {
  const auto settings = ParseSettings(text, "f.yaml", section);
  if (!settings) return settings.error().message;
  std::string out;
  for (const Setting& setting : *settings)
    out += (out.empty() ? "" : " ") + setting.key + "=" + setting.text + "@" +
           std::to_string(setting.line);
  return out;
}

TEST(SettingsFile, ReadsYamlAndJsonAlike) {
  EXPECT_EQ(Parsed("# a comment\ns:\n  a: 4\n  b: [x, y]\n  c: {d: 1, e: on}\n"),
            "a=4@3 b=[x,y]@4 c.d=1@5 c.e=on@5");
  EXPECT_EQ(Parsed("{\"s\": {\"a\": 4,\n \"b\": [\"x\", \"y\"], \"c\": {\"d\":1,\"e\":\"on\"}}}"),
            "a=4@1 b=[x,y]@2 c.d=1@2 c.e=on@2");
  EXPECT_EQ(Parsed("s:\n  t:\n    - [1, 4, 8]\n    - [5, 8, 2]\n"), "t=[[1,4,8],[5,8,2]]@3");
}

TEST(SettingsFile, KeepsScalarsAsTheyAreWritten) {
  EXPECT_EQ(Parsed("s: {a: 4.50, b: \"4\", c: ~, d: , e: '', f: 'a: b'}"),
            "a=4.50@1 b=4@1 c=null@1 d=null@1 e=@1 f=a: b@1");
}

TEST(SettingsFile, ReadsTheSectionAlone) {
  const std::string text = "server:\n  port: [1, {deep: 2}]\ns:\n  a: 1\nrest: [1]\n";
  EXPECT_EQ(Parsed(text), "a=1@4");
  EXPECT_EQ(Parsed(text, "absent"), "f.yaml: it has no section 'absent'; choose one of server, s");
  EXPECT_EQ(Parsed("a: 1\nb: {c: 2}\n", ""), "a=1@1 b.c=2@2");
  EXPECT_EQ(Parsed("s:\n"), "");
  EXPECT_EQ(Parsed("s: {}\n"), "");
  EXPECT_EQ(Parsed("", ""), "");
  EXPECT_EQ(Parsed("# nothing\n"),
            "f.yaml: it has no section 's'; write 's:' in a line of its own, and the settings "
            "below it, indented");
  EXPECT_EQ(Parsed("gamma: 4\nlist: [1]\n"),
            "f.yaml: it has no section 's'; write 's:' in a line of its own, and the settings "
            "below it, indented");
  EXPECT_EQ(Parsed("gamma: 4\nt: {gamma: 4}\n"), "f.yaml: it has no section 's'; choose one of t");
}

TEST(SettingsFile, RefusesWhatCouldBeMeantTwoWays) {
  EXPECT_EQ(Parsed("s:\n  a: 1\n  a: 2\n"), "f.yaml: line 3: key 'a' stands twice; keep one");
  EXPECT_EQ(Parsed("s: {a: 1}\ns: {a: 1}\n"), "f.yaml: line 2: key 's' stands twice; keep one");
  EXPECT_EQ(Parsed("s: 3"), "f.yaml: line 1: section 's' has a value; it holds keys");
  EXPECT_EQ(Parsed("s: [1]"), "f.yaml: line 1: a list stands here; write keys and values");
  EXPECT_EQ(Parsed("- 1"), "f.yaml: line 1: a list stands here; write keys and values");
  EXPECT_EQ(Parsed("word"), "f.yaml: line 1: a single value stands here; write keys and values");
  for (const char* nested : {"s: {a: [{b: {c: 1}}]}", "s: {a: [{b: [1]}]}"})
    EXPECT_EQ(Parsed(nested), "f.yaml: line 1: a map in a list holds values only; write them flat");
  EXPECT_EQ(Parsed("s: {a: [{b: 1, b: 2}]}"), "f.yaml: line 1: key 'b' stands twice; keep one");
  EXPECT_EQ(Parsed("s:\n  ? [1]\n  : 2\n"),
            "f.yaml: line 2: a key is not a string; write key: value");
  EXPECT_EQ(Parsed("s: {a: 1}\n---\ns: {a: 2}\n"), "f.yaml: it holds several documents; keep one");
}

TEST(SettingsFile, RefusesWhatCouldGrow) {
  EXPECT_EQ(Parsed("s:\n  a: &x 1\n  b: *x\n"),
            "f.yaml: line 2: an anchor (&name) stands here; write values out where they are used");
  EXPECT_EQ(Parsed("s: !!python/object:os.system {a: 1}"),
            "f.yaml: line 1: the tag 'tag:yaml.org,2002:python/object:os.system' stands here; "
            "leave it out");
  std::string deep;
  for (int i = 0; i < 16; ++i) deep += "{a: ";
  EXPECT_NE(Parsed("s: " + deep + "1" + std::string(16, '}')).find("nested more than 16 deep"),
            std::string::npos);
  EXPECT_NE(
      Parsed("s: {a: " + std::string(20000, '[') + std::string(20000, ']') + "}").find("line 1"),
      std::string::npos);
  const auto large = ParseSettings(std::string(kMaxSettingsBytes + 1, ' '), "f.yaml", "");
  ASSERT_TRUE(Fails(large, ErrorCode::kTooLarge));
  EXPECT_EQ(large.error().message,
            "f.yaml: it has more than 65536 bytes; settings are a few lines");
}

TEST(SettingsFile, MessagesStayOnOneLine) {
  for (const std::string& text :
       {std::string("s: {a: 1"), std::string("s: {\"a\\nb\": 1, \"a\\nb\": 2}"),
        std::string("s:\n\ta: 1"), std::string("s: \0", 4), std::string("\xFF\xFE\x00s", 4),
        std::string("%TAG ! x\n---\ns: !y {}")}) {
    const auto settings = ParseSettings(text, "f.yaml", "s");
    ASSERT_FALSE(settings) << text;
    const std::string& message = settings.error().message;
    EXPECT_EQ(message.find("f.yaml: line "), 0u) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    EXPECT_NE(message.find("; "), std::string::npos) << message;
  }
}

TEST(SettingsFile, FilesThatCannotBeReadAreNamed) {
  const std::string folder = fixtures::TemporaryFolder();
  EXPECT_TRUE(Fails(ReadSettings(folder + "/none.yaml", "s"), ErrorCode::kNotFound,
                    "none.yaml: no such file"));
  EXPECT_TRUE(Fails(ReadSettings(folder, "s"), ErrorCode::kInvalidFile));
  ASSERT_TRUE(std::ofstream(folder + "/f.yaml") << "s: {a: 1}\n");
  const auto settings = Got(ReadSettings(folder + "/f.yaml", "s"));
  EXPECT_EQ(settings.at(0).text, "1");
}

}  // namespace
}  // namespace foretoken::formats
