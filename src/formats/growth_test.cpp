// SPDX-License-Identifier: Apache-2.0
// Files are not trusted: the work to read them, and the size of the result, must grow no faster
// than their size.
#include "base/growth_testing.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "formats/gguf.h"
#include "formats/gguf_writer.h"
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
    ExpectLinear(name, {1 << 15, 1 << 17}, [&](std::size_t size) {
      return [file = FileOf(size, add)] { EXPECT_TRUE(ParseGguf(file, "a.gguf")); };
    });
}

TEST(FileGrowth, SettingsFiles) {
  constexpr const char* kParts[] = {"[", "{",  "a: ", "- ",   "? ",  "\n",    " ",   "a\n",
                                    "'", "\"", "#",   "&a ",  "*a ", "!!",    "|\n", ">\n",
                                    ":", ",",  "[a,", "{a: ", "%",   "---\n", "\t",  "\\"};
  for (const char* const part : kParts)
    for (const char* const front : {"", "a: ", "a: ["})
      ExpectLinear(fmt::format("'{}' behind '{}'", part, front), {3 << 10, 12 << 10},
                   [&](std::size_t size) {
                     return [text = front + Repeated(part, size)] {
                       [[maybe_unused]] const auto settings = ParseSettings(text, "a.yaml", "");
                     };
                   });
  ExpectLinear("keys", {3 << 10, 12 << 10}, [](std::size_t size) {
    std::string text;
    for (std::size_t i = 0; text.size() < size; ++i) text += fmt::format("key{}: 1\n", i);
    return [text] { EXPECT_TRUE(ParseSettings(text, "a.yaml", "")); };
  });
  ExpectLinear("lists", {3 << 10, 12 << 10}, [](std::size_t size) {
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
