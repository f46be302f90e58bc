// SPDX-License-Identifier: Apache-2.0
// Every key of a vocabulary, in every family: a value of a wrong kind is an error with the key's
// name, and any value of the right kind gives an error or a tokenizer that encodes.
#include "text/tokenizer/vocabulary_keys.h"

#include <cmath>
#include <limits>
#include <regex>
#include <set>

#include "base/files/whole_file_testing.h"
#include "text/tokenizer/test_vocabulary.h"

namespace foretoken::text {
namespace {

using formats::Metadata;
using formats::MetadataValue;

constexpr std::int64_t kHuge = std::int64_t{1} << 62;

std::vector<Metadata> Families() {
  const std::vector<TestToken> tokens = {{"<unk>", 0, 2}, {"</s>", 0, 3}, {"<s>", 0, 3},
                                         {"▁", -1},       {"a", -2},      {"b", -3},
                                         {"ab", -4},      {"##b", -5}};
  std::vector<Metadata> all = {SpmMetadata({{"▁", -1}, {"ab", -2}}),
                               GptMetadata("gpt-2", {"a b", "ab c"}), MakeMetadata("t5", tokens),
                               MakeMetadata("bert", tokens)};
  all.push_back(SpmMetadata({{"a"}, {"b"}, {"ab"}}));
  all.back().Set("tokenizer.ggml.model", std::string("gemma4"));
  all.back().Set("tokenizer.ggml.merges", std::vector<std::string>{"a b"});
  return all;
}

// One value of each kind.
const std::vector<std::pair<KeyKind, MetadataValue>>& Kinds() {
  static const std::vector<std::pair<KeyKind, MetadataValue>> kinds = {
      {KeyKind::kText, std::string("a")},
      {KeyKind::kFlag, true},
      {KeyKind::kId, std::int64_t{1}},
      {KeyKind::kTexts, std::vector<std::string>{"a"}},
      {KeyKind::kNumbers, std::vector<double>{1}},
      {KeyKind::kIds, std::vector<std::int64_t>{1}}};
  return kinds;
}

TEST(VocabularyKeys, OfAWrongKindAreErrorsWithTheirNames) {
  for (const Metadata& good : Families()) {
    ASSERT_TRUE(Tokenizer::Load(good));
    for (const VocabularyKey& key : AllVocabularyKeys())
      for (const auto& [kind, value] : Kinds()) {
        if (kind == key.kind || (key.kind == KeyKind::kId && kind == KeyKind::kFlag)) continue;
        Metadata bad = good;
        bad.Set(std::string(key.name), value);
        const auto tokenizer = Tokenizer::Load(bad);
        ASSERT_FALSE(tokenizer) << key.name;
        EXPECT_EQ(tokenizer.error().code, ErrorCode::kInvalidFile);
        EXPECT_TRUE(tokenizer.error().message.starts_with("tokenizer: " + std::string(key.name)))
            << tokenizer.error().message;
      }
  }
}

// Values of the right kind that a file should not have.
std::vector<MetadataValue> HostileValues(KeyKind kind, std::size_t n_tokens) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const auto ids = [](std::size_t n, std::int64_t value) {
    return std::vector<std::int64_t>(n, value);
  };
  switch (kind) {
    case KeyKind::kText:
      return {std::string(), std::string("\xff\n"), std::string(100'000, '{')};
    case KeyKind::kFlag:
      return {true, false};
    case KeyKind::kId:
      return {std::int64_t{-1}, kHuge, -kHuge, std::int64_t{0xFFFFFFFF},
              static_cast<std::int64_t>(n_tokens)};
    case KeyKind::kTexts:
      return {std::vector<std::string>{}, std::vector<std::string>(n_tokens),
              std::vector<std::string>(n_tokens, "a"), std::vector<std::string>(n_tokens, "\xff "),
              std::vector<std::string>(n_tokens + 9, std::string(5000, ' '))};
    case KeyKind::kNumbers:
      return {std::vector<double>{},
              std::vector<double>(n_tokens, kInf),
              std::vector<double>(n_tokens, -kInf),
              std::vector<double>(n_tokens, std::nan("")),
              std::vector<double>(n_tokens - 1),
              std::vector<double>(n_tokens + 1, 1e300)};
    case KeyKind::kIds:
      return {ids(0, 0),
              ids(n_tokens, -1),
              ids(n_tokens, kHuge),
              ids(n_tokens - 1, 1),
              ids(n_tokens + 1, 6),
              ids(n_tokens, 4)};
  }
  return {};
}

TEST(VocabularyKeys, OfAnyValueGiveAnErrorOrATokenizer) {
  const std::string text = "ab <s> \xff b\nabc";
  for (const Metadata& good : Families()) {
    const std::size_t n_tokens = good.Strings("tokenizer.ggml.tokens")->size();
    for (const VocabularyKey& key : AllVocabularyKeys())
      for (const MetadataValue& value : HostileValues(key.kind, n_tokens)) {
        Metadata metadata = good;
        metadata.Set(std::string(key.name), value);
        const auto tokenizer = Tokenizer::Load(metadata);
        if (!tokenizer) {
          EXPECT_TRUE(tokenizer.error().message.starts_with("tokenizer: "));
          EXPECT_EQ(tokenizer.error().message.find('\n'), std::string::npos);
          continue;
        }
        const auto tokens =
            (*tokenizer)->Encode(text, {.add_special = true, .parse_special = true});
        for (const Token token : tokens)
          ASSERT_TRUE(token >= 0 && token < (*tokenizer)->vocabulary_size()) << key.name;
        (*tokenizer)->Decode(tokens);
      }
  }
}

TEST(VocabularyKeys, ThatAreMissingHaveADefaultOrAreMissed) {
  for (const Metadata& good : Families())
    for (const VocabularyKey& key : AllVocabularyKeys()) {
      Metadata metadata;
      for (const auto& [name, value] : good.all())
        if (name != key.name) metadata.Set(name, value);
      const bool had = good.Find(key.name) != nullptr;
      const bool needed =
          had && (key.name == "tokenizer.ggml.model" || key.name == "tokenizer.ggml.tokens" ||
                  key.name == "tokenizer.ggml.merges");
      const auto tokenizer = Tokenizer::Load(metadata);
      EXPECT_EQ(tokenizer.has_value(), !needed) << key.name;
      if (tokenizer) continue;
      EXPECT_TRUE(tokenizer.error().message.starts_with("tokenizer: " + std::string(key.name)));
    }
}

// What the sources read is in the table.
TEST(VocabularyKeys, AreAllThatTheSourcesName) {
  std::set<std::string, std::less<>> known;
  for (const VocabularyKey& key : AllVocabularyKeys()) known.emplace(key.name);
  const std::regex whole(R"re("((?:tokenizer\.ggml|foretoken\.tokenizer)\.[\w.]+)")re"),
      flag(R"re(stated\("([\w.]+)")re"), id(R"re(read\("([\w.]+)")re");
  int n = 0;
  const auto root = std::filesystem::path(FORETOKEN_SOURCE_DIR) / "src/text/tokenizer";
  for (const auto& file : std::filesystem::directory_iterator(root)) {
    if (file.path().extension() != ".cpp" || file.path().stem().string().ends_with("_test"))
      continue;
    const std::string text = WholeFile(file.path());
    const auto expect = [&](const std::regex& form, const char* before, const char* behind) {
      for (std::sregex_iterator at(text.begin(), text.end(), form), end; at != end; ++at, ++n) {
        const std::string name = before + (*at)[1].str() + behind;
        EXPECT_TRUE(name.ends_with('.') || known.contains(name)) << name;
      }
    };
    expect(whole, "", "");
    if (file.path().filename() != "vocabulary.cpp") continue;
    expect(flag, "tokenizer.ggml.", "");
    expect(id, "tokenizer.ggml.", "_token_id");
  }
  EXPECT_GT(n, 40);
}

}  // namespace
}  // namespace foretoken::text
