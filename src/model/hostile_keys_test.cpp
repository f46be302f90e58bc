// SPDX-License-Identifier: Apache-2.0
// Every key that a configuration is read from, in every architecture: a value of a wrong kind or out
// of range is an error with the key's name. The keys are those that the sources name.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <map>
#include <regex>
#include <set>

#include "base/files/whole_file_testing.h"
#include "fixtures/tiny_model.h"
#include "model/arch/registry.h"
#include "model/damaged_file_testing.h"

namespace foretoken::model {
namespace {

using formats::MetadataValue;
using Values = std::vector<MetadataValue>;
using Keys = std::map<std::string, std::set<std::string>>;  // the functions that read each key

// The keys that src/model/arch names in calls of a MetadataReader.
const Keys& AllKeys() {
  static const Keys keys = [] {
    Keys found;
    // A call of the reader, a call that is given the reader, or a name for a key.
    const std::regex call(R"re(read\.(\w+)\(\s*"([a-z][\w.]*)")re"),
        given(R"re(\bread,\s*()"([a-z][\w.]*)")re"),
        named(R"re(string_view k()\w+ = "([a-z]\w+\.[\w.]*)")re");
    const std::filesystem::path folder =
        std::filesystem::path(FORETOKEN_SOURCE_DIR) / "src/model/arch";
    for (const auto& file : std::filesystem::recursive_directory_iterator(folder)) {
      if (file.path().extension() != ".cpp") continue;
      const std::string text = WholeFile(file.path());
      for (const std::regex& form : {call, given, named})
        for (std::sregex_iterator at(text.begin(), text.end(), form), end; at != end; ++at) {
          const std::string how = (*at)[1].str();
          if (how != "Key") found[(*at)[2].str()].insert(how.empty() ? "Int" : how);
        }
    }
    return found;
  }();
  return keys;
}

constexpr std::int64_t kHuge = std::int64_t{1} << 62;
const MetadataValue kTexts = std::vector<std::string>{"8", "8"};  // no key is read as this

// Values that a key which is read by these functions cannot have.
Values BadValues(const std::set<std::string>& how) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Values bad = {kTexts, std::vector<double>{8, 8}};
  const auto add = [&](const Values& more) { bad.insert(bad.end(), more.begin(), more.end()); };
  if (how.contains("String")) {
    add({std::int64_t{1}, 1.0, true, std::string("?"), std::string("a\nb"), std::string()});
    return bad;
  }
  bad.emplace_back(std::string("8"));
  if (how.contains("Positive") || how.contains("NotNegative")) {
    add({-1.0, std::nan(""), infinity, -infinity, 1e300, std::int64_t{-1}, kHuge,
         std::vector<std::int64_t>{1, 1}});
    if (how.contains("Positive")) add({0.0, std::int64_t{0}});
    return bad;
  }
  if (how.contains("Bool")) {
    add({std::int64_t{1}, std::int64_t{2}, 1.0, std::vector<std::int64_t>{1}});
    return bad;
  }
  add({std::int64_t{-1}, -kHuge, kHuge, 8.0, std::nan(""), infinity});
  // Where a key is read as a plain number first, 0 says that there is nothing of its kind.
  if (!how.contains("Int")) bad.emplace_back(std::int64_t{0});
  const bool is_list = how.contains("SizesByLayer") || how.contains("Ints");
  if (is_list || how.contains("Int")) bad.emplace_back(std::vector<std::int64_t>{});
  if (how.contains("SizesByLayer"))
    add({std::vector<std::int64_t>(100, -1), std::vector<std::int64_t>(100, kHuge)});
  return bad;
}

// A whole model of the architecture, or a drafter that reads features.
struct Case {
  std::string name, architecture;
  bool head = false;
};

std::vector<Case> Cases() {
  std::vector<Case> cases = {{"mixtral", "llama"},
                             {"EAGLE-3", "eagle3", true},
                             {"assistant", "gemma4-assistant", true},
                             {"DFlash", "dflash", true},
                             {"DFlash 2", "dflash", true}};
  for (const ArchitectureInfo* info : AllArchitectures())
    cases.push_back({std::string(info->name), std::string(info->name)});
  return cases;
}

std::vector<std::byte> BytesOf(const Case& of) {
  if (!of.head) return fixtures::TinyModelBytes(fixtures::SmallestOf(of.name));
  fixtures::TinyHeadOptions head = {.target = {.seed = 5}, .eagle = true};
  if (of.name == "assistant")
    head = {.target = fixtures::SmallestOf("gemma4"), .assistant = true, .n_blocks = 2};
  if (of.name == "DFlash")
    head = {.target = {.seed = 5}, .block = true, .window = 12, .transition_rank = 16};
  if (of.name == "DFlash 2")
    head = {.target = {.seed = 5}, .block = true, .window = 12, .taps = 2, .n_candidates = 4};
  const std::string text = WholeFile(fixtures::WriteTinyHead(fixtures::TemporaryFolder(), head));
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

class HostileKeys : public testing::TestWithParam<Case> {
 protected:
  HostileKeys() : file_(BytesOf(GetParam())) {
    // The smaller networks of EXAONE 4 have no windows.
    if (GetParam().name == "exaone4")
      file_.file.metadata.Set("exaone4.block_count", std::int64_t{64});
  }

  std::string Key(const std::string& key) const { return GetParam().architecture + "." + key; }

  // The error that reading gives with these metadata; empty if there is none.
  std::string ErrorWith(formats::Metadata metadata) {
    std::swap(file_.file.metadata, metadata);
    const auto config =
        GetParam().head ? HeadConfigFromFile(file_) : ConfigFromMetadata(file_.metadata());
    std::swap(file_.file.metadata, metadata);
    return config ? "" : config.error().message;
  }
  std::string ErrorWith(const std::string& key, MetadataValue value) {
    formats::Metadata metadata = file_.metadata();
    metadata.Set(Key(key), std::move(value));
    return ErrorWith(metadata);
  }
  std::string ErrorWithout(const std::string& key) {
    formats::Metadata metadata;
    for (const auto& [name, value] : file_.metadata().all())
      if (name != Key(key)) metadata.Set(name, value);
    return ErrorWith(metadata);
  }
  bool Reads(const std::string& key) { return !ErrorWith(key, kTexts).empty(); }

  DamagedFile file_;
};

TEST_P(HostileKeys, AreErrorsWithTheirNames) {
  ASSERT_EQ(ErrorWith(file_.metadata()), "");
  int n_read = 0;
  for (const auto& [key, how] : AllKeys()) {
    if (!Reads(key)) continue;
    ++n_read;
    const Values bad = BadValues(how);
    for (std::size_t i = 0; i < bad.size(); ++i) {
      const std::string message = ErrorWith(key, bad[i]);
      EXPECT_TRUE(message.starts_with(Key(key)) ||
                  message.find(Key(key) + ":") != std::string::npos)
          << key << ", value " << i << ": " << message;
      EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    }
  }
  EXPECT_GE(n_read, GetParam().head ? 20 : 22);
}

// Without one of these keys no configuration is made; the others have a default.
TEST_P(HostileKeys, ThatAreNeededAreMissed) {
  std::set<std::string> needed = {"block_count", "context_length", "embedding_length",
                                  "feed_forward_length", "attention.head_count"};
  if (GetParam().name == "EAGLE-3") needed.insert({"target_hidden_size", "target_layers"});
  if (GetParam().name == "assistant") needed.insert("embedding_length_out");
  if (GetParam().architecture == "dflash") needed.insert("target_layers");
  if (GetParam().name == "DFlash 2")
    needed.insert({"conv_kernel_size", "conv_group_size", "selector_top_k", "selector_rank"});
  if (Reads("expert_used_count")) {
    needed.insert("expert_used_count");
    // Without that key, these are networks without experts.
    const std::set<std::string> dense = {"mixtral", "gemma4", "granitehybrid"};
    if (!dense.contains(GetParam().name)) needed.insert("expert_count");
  }
  if (Reads("attention.kv_lora_rank"))
    needed.insert({"attention.kv_lora_rank", "attention.value_length_mla", "rope.dimension_count"});
  if (Reads("ssm.state_size"))
    needed.insert({"ssm.conv_kernel", "ssm.state_size", "ssm.group_count", "ssm.inner_size",
                   "ssm.time_step_rank"});
  if (Reads("shortconv.l_cache")) needed.insert("shortconv.l_cache");
  for (const auto& [key, how] : AllKeys()) {
    const std::string message = ErrorWithout(key);
    if (needed.contains(key))
      EXPECT_TRUE(message.starts_with(Key(key) + ": ")) << key << ": " << message;
    else if (key.find("key_length") != std::string::npos)  // the length of the values remains
      EXPECT_TRUE(message.empty() || message.find("value_length") != std::string::npos) << message;
    else
      EXPECT_EQ(message, "") << key;
  }
}

INSTANTIATE_TEST_SUITE_P(Files, HostileKeys, testing::ValuesIn(Cases()), [](const auto& of) {
  std::string name = of.param.name;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return std::isalnum(c) == 0; }, '_');
  return name;
});

TEST(KeysOfArchitectures, AreReadBySomeArchitecture) {
  std::set<std::string> read;
  for (const Case& of : Cases()) {
    DamagedFile file(BytesOf(of));
    if (of.name == "exaone4") file.file.metadata.Set("exaone4.block_count", std::int64_t{64});
    for (const auto& [key, how] : AllKeys()) {
      const auto whole = file.file.metadata;
      file.file.metadata.Set(of.architecture + "." + key, kTexts);
      const auto config = of.head ? HeadConfigFromFile(file) : ConfigFromMetadata(file.metadata());
      if (!config) read.insert(key);
      file.file.metadata = whole;
    }
  }
  EXPECT_GE(AllKeys().size(), 50u);
  for (const auto& [key, how] : AllKeys())
    EXPECT_TRUE(read.contains(key)) << key << ": fixtures::SmallestOf makes no file that has it";
}

}  // namespace
}  // namespace foretoken::model
