// SPDX-License-Identifier: Apache-2.0
// Files are not trusted: the work to read them, and the size of the result, must grow no faster
// than their size.
#include "base/growth_testing.h"

#include <fmt/format.h>

#include <cstring>
#include <filesystem>

#include "formats/gguf.h"
#include "formats/gguf_writer.h"
#include "formats/huggingface/json_file.h"
#include "formats/huggingface/safetensors.h"
#include "formats/huggingface/tokenizer.h"
#include "formats/settings_file.h"

namespace foretoken::formats {
namespace {

// A file with `size` / 32 repetitions of what `add` adds.
std::vector<std::byte> FileOf(std::size_t size,
                              const std::function<void(GgufWriter&, std::size_t)>& add) {
  GgufWriter writer;
  add(writer, size / 32);
  auto bytes = writer.Bytes();
  EXPECT_TRUE(bytes) << bytes.error().message;
  return *std::move(bytes);
}

TEST(FileGrowth, GgufFiles) {
  const std::pair<const char*, std::function<void(GgufWriter&, std::size_t)>> kFiles[] = {
      {"strings",
       [](GgufWriter& w, std::size_t n) { w.Set("a", std::vector<std::string>(n, "abc")); }},
      {"empty strings",
       [](GgufWriter& w, std::size_t n) { w.Set("a", std::vector<std::string>(4 * n)); }},
      {"integers",
       [](GgufWriter& w, std::size_t n) { w.Set("a", std::vector<std::int64_t>(8 * n, 7)); }},
      {"floats", [](GgufWriter& w, std::size_t n) { w.Set("a", std::vector<double>(8 * n, 7)); }},
      {"a text", [](GgufWriter& w, std::size_t n) { w.Set("a", std::string(32 * n, 'x')); }},
      {"keys",
       [](GgufWriter& w, std::size_t n) {
         for (std::size_t i = 0; i < n; ++i) w.Set(fmt::format("key.{:08}", i), std::int64_t{1});
       }},
      {"tensors", [](GgufWriter& w, std::size_t n) {
         const std::int64_t shape[] = {8};
         static const std::vector<std::byte> data(32);  // the writer reads it when the file is made
         for (std::size_t i = 0; i < n; ++i)
           w.AddTensor(fmt::format("tensor.{:08}", i), 0, shape, data);
       }}};
  for (const auto& [name, add] : kFiles)
    ExpectLinear(name, {1 << 13, 1 << 15}, [&](std::size_t size) {
      return [file = FileOf(size, add)] { EXPECT_TRUE(ParseGguf(file, "a.gguf")); };
    });
}

// config.json, tokenizer.json and the headers of safetensors files: objects that stand beside each
// other, in objects and in lists, also where a name is given twice.
TEST(FileGrowth, JsonFiles) {
  using huggingface::ParseObject;
  const auto named = [](std::size_t size, std::string_view value) {
    std::string text = "{";
    for (std::size_t i = 0; text.size() < size; ++i) text += fmt::format("\"{:06}\":{},", i, value);
    return text;
  };
  constexpr Sizes kSizes = {1 << 12, 1 << 15};
  for (const char* const value : {"{}", "[]", "1", R"({"a":[{}]})", R"("x")"})
    ExpectLinear(fmt::format("members {}", value), kSizes, [&](std::size_t size) {
      return
          [text = named(size, value) + R"("z":1})"] { EXPECT_TRUE(ParseObject(text, "a.json")); };
    });
  ExpectLinear("a name twice", kSizes, [&](std::size_t size) {
    return [text = named(size, "{}") + R"("z":{},"z":{}})"] {
      EXPECT_FALSE(ParseObject(text, "a.json"));
    };
  });
  for (const char* const part : {"{},", R"({"a":{}},)", "[{}],", "{},[],", R"("x",)"})
    for (const char* const front : {R"({"a":[)", R"({"a":{"b":[)"})
      ExpectLinear(fmt::format("'{}' behind '{}'", part, front), kSizes, [&](std::size_t size) {
        const bool inner = std::string_view(front).size() > 6;
        return [text = front + Repeated(part, size) + (inner ? "0]}}" : "0]}")] {
          EXPECT_TRUE(ParseObject(text, "a.json"));
        };
      });
}

TEST(FileGrowth, SafetensorsFiles) {
  ExpectLinear("tensors", {1 << 12, 1 << 15}, [](std::size_t size) {
    std::string header = "{";
    std::size_t n = 0;
    for (; header.size() < size; ++n)
      header += fmt::format(R"({}"{:06}":{{"dtype":"U8","shape":[1],"data_offsets":[{},{}]}})",
                            n == 0 ? "" : ",", n, n, n + 1);
    header += "}";
    std::vector<std::byte> bytes(sizeof(std::uint64_t) + header.size() + n);
    const std::uint64_t length = header.size();
    std::memcpy(bytes.data(), &length, sizeof length);
    std::memcpy(bytes.data() + sizeof length, header.data(), header.size());
    return [bytes] { EXPECT_TRUE(huggingface::ParseSafetensors(bytes, "a.safetensors")); };
  });
}

TEST(FileGrowth, TokenizersOfFolders) {
  ExpectLinear("added tokens", {1 << 12, 1 << 15}, [](std::size_t size) {
    std::string vocab, added;
    std::size_t n = 0;
    for (; vocab.size() + added.size() < size; ++n) {
      vocab += fmt::format(R"({}"v{:06}":{})", n == 0 ? "" : ",", n, 2 * n);
      added += fmt::format(R"({}{{"id":{},"content":"a{:06}","special":false}})", n == 0 ? "" : ",",
                           2 * n + 1, n);
    }
    const std::string folder =
        (std::filesystem::path(testing::TempDir()) / fmt::format("growth{}", size)).string();
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/tokenizer.json")
        << R"({"model":{"type":"BPE","byte_fallback":true,"merges":[],"vocab":{)" << vocab
        << R"(}},"added_tokens":[)" << added << "]}";
    return [folder] {
      Metadata metadata;
      const auto read = huggingface::ReadTokenizer(folder, Json::object(), 4, metadata);
      EXPECT_TRUE(read) << (read ? "" : read.error().message);
    };
  });
}

TEST(FileGrowth, SettingsFiles) {
  constexpr const char* kParts[] = {"[", "{",  "a: ", "- ",   "? ",  "\n",    " ",   "a\n",
                                    "'", "\"", "#",   "&a ",  "*a ", "!!",    "|\n", ">\n",
                                    ":", ",",  "[a,", "{a: ", "%",   "---\n", "\t",  "\\"};
  for (const char* const part : kParts)
    for (const char* const front : {"", "a: ", "a: ["})
      ExpectLinear(fmt::format("'{}' behind '{}'", part, front), {3 << 9, 12 << 9},
                   [&](std::size_t size) {
                     return [text = front + Repeated(part, size)] {
                       [[maybe_unused]] const auto settings = ParseSettings(text, "a.yaml", "");
                     };
                   });
  ExpectLinear("keys", {3 << 9, 12 << 9}, [](std::size_t size) {
    std::string text;
    for (std::size_t i = 0; text.size() < size; ++i) text += fmt::format("key{}: 1\n", i);
    return [text] { EXPECT_TRUE(ParseSettings(text, "a.yaml", "")); };
  });
  ExpectLinear("lists", {3 << 9, 12 << 9}, [](std::size_t size) {
    return [text = "a: [" + Repeated("[1,2],", size) + "1]"] {
      EXPECT_TRUE(ParseSettings(text, "a.yaml", ""));
    };
  });
}

// A long key before many short ones would be repeated in each of their names.
TEST(FileGrowth, SettingsAreNoLargerThanTheirFile) {
  std::string text = std::string(1000, 'k') + ": {";
  for (int i = 0; i < 3000; ++i) text += fmt::format("a{}: 1, ", i);
  const auto settings = ParseSettings(text + "}", "a.yaml", "");
  std::size_t bytes = 0;
  if (settings)
    for (const Setting& setting : *settings) bytes += setting.key.size() + setting.text.size();
  EXPECT_LE(bytes, 4 * text.size());
}

}  // namespace
}  // namespace foretoken::formats
