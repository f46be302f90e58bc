// SPDX-License-Identifier: Apache-2.0
// Feeds bytes to the GGUF parser and reads all that a file which opens offers. Needs no corpus: the
// mutator starts from a small valid file that holds every value type. Fuzz it with -max_len=4096 or
// more and, if you like, -malloc_limit_mb=1.
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/check.h"
#include "formats/gguf.h"
#include "formats/gguf_writer.h"

namespace {

using namespace foretoken::formats;

const std::vector<std::byte>& Seed() {
  static const std::vector<std::byte> seed = [] {
    using Ints = std::vector<std::int64_t>;
    const std::vector<std::byte> data(144);
    GgufWriter writer;
    for (const GgufType type : {GgufType::kUint8, GgufType::kInt16, GgufType::kUint32,
                                GgufType::kUint64, GgufType::kInt64, GgufType::kBool})
      writer.SetAs("a" + std::to_string(static_cast<int>(type)), type, Ints{0, 1, 1});
    writer.SetAs("b", GgufType::kInt8, std::int64_t{-1});
    writer.SetAs("f", GgufType::kFloat64, 0.5);
    writer.Set("g", 0.5);
    writer.Set("t", std::string("text"));
    writer.Set("s", std::vector<std::string>{"x", "", "yz"});
    writer.Set("u", true);
    writer.Set("general.alignment", std::int64_t{32});
    const auto add = [&](const char* name, std::uint32_t type, Ints shape, std::size_t bytes) {
      writer.AddTensor(name, type, shape, std::span(data).first(bytes));
    };
    add("p", 0, {3, 2, 2}, 48);
    add("q", 8, {32, 2}, 68);
    add("r", 12, {256}, 144);
    auto bytes = writer.Bytes();
    FORETOKEN_CHECK(bytes.has_value());
    return std::move(*bytes);
  }();
  return seed;
}

std::uint64_t sink = 0;

}  // namespace

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned) {
  if (size >= 32 || max_size < Seed().size()) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(data, Seed().data(), Seed().size());
  return Seed().size();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = ParseGguf({reinterpret_cast<const std::byte*>(data), size}, "fuzz.gguf");
  if (!file) {
    FORETOKEN_CHECK(file.error().message.find('\n') == std::string::npos);
    return 0;
  }
  for (const TensorView& tensor : file->tensors) {
    FORETOKEN_CHECK(tensor.n_values() > 0 && !tensor.data.empty());
    for (const std::byte b : tensor.data) sink += std::to_integer<std::uint64_t>(b);
  }
  for (const auto& [key, value] : file->metadata.all()) {
    sink += key.size() + value.index();
    if (const auto* text = file->metadata.String(key)) sink += std::hash<std::string>{}(*text);
    if (const auto* texts = file->metadata.Strings(key))
      for (const std::string& text : *texts) sink += std::hash<std::string>{}(text);
  }
  return 0;
}
