// SPDX-License-Identifier: Apache-2.0
// Damaged and malicious GGUF files: each gives an Error or opens; none crashes, and none makes the
// parser take much memory.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>
#include <random>

#include "base/failure_testing.h"
#include "fixtures/tiny_model.h"
#include "formats/checkpoint.h"
#include "formats/gguf.h"

// ---- Every allocation of this program is counted -----------------------------------------------

namespace {
std::atomic<std::size_t> live_bytes{0};
std::atomic<std::size_t> peak_bytes{0};

// Null: there is no memory.
void* Allocate(std::size_t size) {
  void* p = std::malloc(size == 0 ? 1 : size);
  if (p == nullptr) return nullptr;
  const std::size_t live = live_bytes.fetch_add(malloc_usable_size(p)) + malloc_usable_size(p);
  std::size_t peak = peak_bytes.load();
  while (live > peak && !peak_bytes.compare_exchange_weak(peak, live)) {
  }
  return p;
}

void* AllocateOrThrow(std::size_t size) {
  if (void* p = Allocate(size)) return p;
  throw std::bad_alloc();
}

void Free(void* p) {
  if (p != nullptr) live_bytes.fetch_sub(malloc_usable_size(p));
  std::free(p);
}
}  // namespace

void* operator new(std::size_t size) {
  return AllocateOrThrow(size);
}
void* operator new[](std::size_t size) {
  return AllocateOrThrow(size);
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return Allocate(size);
}
void operator delete(void* p) noexcept {
  Free(p);
}
void operator delete[](void* p) noexcept {
  Free(p);
}
void operator delete(void* p, std::size_t) noexcept {
  Free(p);
}
void operator delete[](void* p, std::size_t) noexcept {
  Free(p);
}

namespace foretoken::formats {
namespace {

using Bytes = std::vector<std::byte>;

// Reads everything that an opened file offers; sanitizers then find a span beyond the bytes.
void Touch(const GgufFile& file, std::span<const std::byte> bytes) {
  for (const TensorView& tensor : file.tensors) {
    ASSERT_GE(tensor.data.data(), bytes.data());
    ASSERT_LE(tensor.data.data() + tensor.data.size(), bytes.data() + bytes.size());
    ASSERT_FALSE(tensor.data.empty());
    ASSERT_GT(tensor.n_values(), 0);
  }
}

// Parses an exact copy of the bytes and checks the rule of this test file. True if it opened.
bool OpensOrFails(std::span<const std::byte> hostile) {
  const Bytes bytes(hostile.begin(), hostile.end());
  const std::size_t before = live_bytes.load();
  peak_bytes.store(before);
  const auto file = ParseGguf(bytes, "x.gguf");
  constexpr std::size_t kMessages = 4096;  // for an error message, whatever the size of the file
  EXPECT_LE(peak_bytes.load() - before, 16 * bytes.size() + kMessages);
  if (file) {
    Touch(*file, bytes);
    return true;
  }
  const std::string& message = file.error().message;
  EXPECT_TRUE(message.starts_with("x.gguf: ")) << message;
  EXPECT_NE(message.find("; "), std::string::npos) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  EXPECT_LT(message.size(), 500u) << message;
  return false;
}

Bytes ValidFile() {
  return fixtures::TinyModelBytes({});
}

std::size_t HeaderBytes(const Bytes& bytes) {
  const auto file = ParseGguf(bytes, "valid.gguf").value();
  return static_cast<std::size_t>(file.tensors[0].data.data() - bytes.data());
}

TEST(HostileGguf, EveryTruncationIsAnError) {
  const Bytes bytes = ValidFile();
  ASSERT_TRUE(OpensOrFails(bytes));
  for (std::size_t size = 0; size < 2048; ++size)
    EXPECT_FALSE(OpensOrFails(std::span(bytes).first(size))) << size;
  for (std::size_t size = 4096; size < bytes.size(); size += 4096)
    EXPECT_FALSE(OpensOrFails(std::span(bytes).first(size))) << size;
  EXPECT_FALSE(OpensOrFails(std::span(bytes).first(bytes.size() - 1)));
}

TEST(HostileGguf, ATruncatedFileOnDiskNamesTheTensorAndTheAdvice) {
  const Bytes bytes = ValidFile();
  const std::string path = fixtures::TemporaryFolder() + "/short.gguf";
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size() - 4096));
  const auto result = OpenCheckpoint(path);
  ASSERT_FALSE(result.has_value());
  EXPECT_NE(result.error().message.find(
                "short.gguf: tensor output.weight: data ends beyond the file (offset "),
            std::string::npos)
      << result.error().message;
  EXPECT_NE(result.error().message.find("the file is truncated, fetch it again"),
            std::string::npos);
}

TEST(HostileGguf, RandomBytesInTheHeaderGiveAnErrorOrOpen) {
  Bytes bytes = ValidFile();
  const std::size_t header = HeaderBytes(bytes);
  std::mt19937 random(1);
  int opened = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::size_t at = random() % header;
    const std::byte old = bytes[at];
    bytes[at] = static_cast<std::byte>(random());
    opened += OpensOrFails(bytes) ? 1 : 0;
    bytes[at] = old;
  }
  EXPECT_GT(opened, 100);  // many bytes belong to token texts and scores
  EXPECT_LT(opened, 1990);
}

TEST(HostileGguf, RandomWordsOfExtremeValuesGiveAnErrorOrOpen) {
  const Bytes valid = ValidFile();
  const std::size_t header = HeaderBytes(valid);
  const std::uint64_t extremes[] = {0,
                                    1,
                                    ~std::uint64_t{0},
                                    std::uint64_t{1} << 63,
                                    (std::uint64_t{1} << 63) - 1,
                                    std::uint64_t{1} << 32,
                                    0xFFFFFFFF,
                                    0x80000000};
  std::mt19937 random(2);
  for (int i = 0; i < 2000; ++i) {
    Bytes bytes = valid;
    std::memcpy(&bytes[random() % (header - 8)], &extremes[random() % 8], 8);
    OpensOrFails(bytes);
  }
}

// ---- Each rule of the format, broken once ------------------------------------------------------

// A header written by hand, so that it can say anything.
class Raw {
 public:
  static Raw Counts(std::uint64_t n_tensors, std::uint64_t n_keys, std::uint32_t version = 3) {
    Raw raw;
    raw.Text("GGUF").U32(version).U64(n_tensors).U64(n_keys);
    return raw;
  }
  Raw& Text(std::string_view text) { return Append(text.data(), text.size()); }
  Raw& U8(int x) { return Append(&x, 1); }
  Raw& U32(std::uint32_t x) { return Append(&x, 4); }
  Raw& U64(std::uint64_t x) { return Append(&x, 8); }
  Raw& String(std::string_view text) { return U64(text.size()).Text(text); }
  Raw& Key(std::string_view key, GgufType type) {
    return String(key).U32(static_cast<std::uint32_t>(type));
  }
  Raw& Array(std::string_view key, std::uint32_t type, std::uint64_t count) {
    return Key(key, GgufType::kArray).U32(type).U64(count);
  }
  Raw& Tensor(std::string_view name, const std::vector<std::uint64_t>& shape, std::uint32_t type,
              std::uint64_t offset) {
    String(name).U32(static_cast<std::uint32_t>(shape.size()));
    for (const std::uint64_t size : shape) U64(size);
    return U32(type).U64(offset);
  }
  Raw& Data(std::size_t n) {
    bytes_.resize((bytes_.size() + 31) / 32 * 32 + n);
    return *this;
  }
  const Bytes& bytes() const { return bytes_; }

 private:
  Raw& Append(const void* data, std::size_t n) {
    const auto* p = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), p, p + n);
    return *this;
  }
  Bytes bytes_;
};

struct Case {
  Bytes bytes;
  std::string expected;
};

void ExpectErrors(const std::vector<Case>& cases, ErrorCode code = ErrorCode::kInvalidFile) {
  for (const Case& c : cases) {
    EXPECT_FALSE(OpensOrFails(c.bytes)) << c.expected;
    EXPECT_TRUE(Fails(ParseGguf(c.bytes, "x.gguf"), code, c.expected));
  }
}

constexpr std::uint64_t kHuge = std::uint64_t{1} << 63;

Raw OneKey() {
  return Raw::Counts(0, 1);
}
Raw OneTensor() {
  return Raw::Counts(1, 0);
}
Raw TwoTensors() {
  return Raw::Counts(2, 0);
}
const std::string kPad(64,
                       'p');  // so that a count of 1 passes the check against the bytes that follow

TEST(HostileGguf, RefusesOtherVersionsAndByteOrders) {
  ExpectErrors({{Raw::Counts(0, 0, 1).bytes(),
                 "GGUF version 1 (known: 2 and 3); convert the original model again"},
                {Raw::Counts(0, 0, 0).bytes(), "GGUF version 0"},
                {Raw::Counts(0, 0, 4).bytes(), "GGUF version 4"},
                {Raw::Counts(0, 0, 0x03000000).bytes(),
                 "a big-endian GGUF file; convert it to little-endian"}},
               ErrorCode::kUnsupported);
}

TEST(HostileGguf, RefusesABadHeader) {
  ExpectErrors(
      {{Raw().Text("GGML").bytes(), "does not begin with \"GGUF\""},
       {Raw().Text("GG").bytes(), "header: the file ends here (at byte 0 of 2)"},
       {Raw::Counts(kHuge, 0).bytes(), "9223372036854775808 tensors do not fit into the 0 bytes"},
       {Raw::Counts(0, kHuge).bytes(), "9223372036854775808 keys do not fit into the 0 bytes"},
       {Raw::Counts(~0ull, ~0ull).Text(kPad).bytes(), "keys do not fit into the 64 bytes"},
       {Raw::Counts(2, 1).Array("k", 0, 64).Data(64).bytes(), "2 tensors do not fit into the"}});
}

TEST(HostileGguf, RefusesBadKeys) {
  ExpectErrors(
      {{OneKey().U64(kHuge).Text(kPad).bytes(), "key 1 of 1: the file ends here"},
       {OneKey().U64(65).Text(kPad).bytes(), "key 1 of 1: the file ends here"},
       {OneKey().String("").Text(kPad).bytes(), "key 1 of 1: its name is empty"},
       {OneKey().String(std::string(65536, 'k')).U32(7).U8(1).bytes(),
        "its name is longer than 65535 bytes"},
       {OneKey().String("a\xC0\x80").Text(kPad).bytes(), "its name is not valid UTF-8"},
       {OneKey().String("a\xED\xA0\x80").Text(kPad).bytes(), "its name is not valid UTF-8"},
       {OneKey().String("a\xF4\x90\x80\x80").Text(kPad).bytes(), "its name is not valid UTF-8"},
       {OneKey().String("a\xE2\x96").Text(kPad).bytes(), "its name is not valid UTF-8"},
       {OneKey().String(std::string_view("a\0b", 3)).Text(kPad).bytes(),
        "its name contains a NUL byte"},
       {Raw::Counts(0, 2)
            .Key("k", GgufType::kBool)
            .U8(1)
            .Key("k", GgufType::kBool)
            .U8(1)
            .Text(kPad)
            .bytes(),
        "key k: occurs twice"},
       {OneKey().String("a\nb").U32(99).Text(kPad).bytes(),
        "key a\\nb: value type 99 does not exist"}});
}

TEST(HostileGguf, AcceptsTheLongestKey) {
  EXPECT_TRUE(OpensOrFails(OneKey().String(std::string(65535, 'k')).U32(7).U8(1).bytes()));
}

TEST(HostileGguf, RefusesBadValues) {
  ExpectErrors(
      {{OneKey().Key("key", GgufType::kUint32).U8(1).U8(1).bytes(), "key key: the file ends here"},
       {OneKey().Key("k", GgufType::kBool).U8(2).Text(kPad).bytes(),
        "key k: a bool that is neither 0 nor 1"},
       {OneKey().Key("k", GgufType::kUint64).U64(kHuge).bytes(),
        "key k: an unsigned value above 2^63 - 1"},
       {OneKey().Key("k", GgufType::kString).U64(kHuge).bytes(), "key k: the file ends here"},
       {OneKey().Key("k", GgufType::kString).U64(5).Text("abcd").bytes(),
        "key k: the file ends here"}});
}

TEST(HostileGguf, RefusesBadArrays) {
  ExpectErrors(
      {{OneKey().Array("k", 0, kHuge).Text(kPad).bytes(),
        "9223372036854775808 elements do not fit into the 64"},
       {OneKey().Array("k", 10, kHuge / 4).Text(kPad).bytes(), "elements do not fit into the 64"},
       {OneKey().Array("k", 8, kHuge / 4).Text(kPad).bytes(), "elements do not fit into the 64"},
       {OneKey().Array("k", 6, 17).Text(kPad).bytes(), "17 elements do not fit into the 64"},
       {OneKey().Array("k", 13, 1).Text(kPad).bytes(), "key k: element type 13 does not exist"},
       {OneKey().Array("k", 7, 2).U8(1).U8(2).bytes(), "key k[1]: a bool that is neither 0 nor 1"},
       {OneKey().Array("k", 10, 1).U64(kHuge).bytes(),
        "key k[0]: an unsigned value above 2^63 - 1"},
       {OneKey().Array("k", 8, 2).String("a").U64(9).bytes(), "key k[1]: the file ends here"}});
  ExpectErrors({{OneKey().Array("k", 9, 1).Array("", 0, 0).bytes(), "key k: an array of arrays"}},
               ErrorCode::kUnsupported);
}

TEST(HostileGguf, RefusesBadAlignments) {
  const auto with = [](std::uint32_t alignment) {
    return OneKey().Key("general.alignment", GgufType::kUint32).U32(alignment).Text(kPad).bytes();
  };
  ExpectErrors({{with(0), "key general.alignment: 0 is not a power of two"},
                {with(4), "4 is not a power of two from 8"},
                {with(48), "48 is not a power of two"},
                {with(0x80000000), "2147483648 is not a power of two"},
                {OneKey().Key("general.alignment", GgufType::kString).String("32").bytes(),
                 "not a power of two"}});
  EXPECT_TRUE(OpensOrFails(with(8)));
  EXPECT_TRUE(OpensOrFails(with(1 << 30)));
}

TEST(HostileGguf, RefusesBadTensorNamesAndShapes) {
  ExpectErrors(
      {{OneTensor().U64(kHuge).Text(kPad).bytes(), "tensor 1 of 1: the file ends here"},
       {OneTensor().Tensor("", {1}, 0, 0).Text(kPad).bytes(), "tensor 1 of 1: its name is empty"},
       {OneTensor().Tensor("\xFF", {1}, 0, 0).Text(kPad).bytes(),
        "tensor 1 of 1: its name is not valid UTF-8"},
       {OneTensor().Tensor("t", {}, 0, 0).Data(64).bytes(),
        "tensor t: 0 dimensions (1 to 4 are possible)"},
       {OneTensor().Tensor("t", {1, 1, 1, 1, 1}, 0, 0).Data(64).bytes(), "tensor t: 5 dimensions"},
       {OneTensor().String("t").U32(~0u).Text(kPad).bytes(), "tensor t: 4294967295 dimensions"},
       {OneTensor().Tensor("t", {1, 0}, 0, 0).Data(64).bytes(), "tensor t: dimension 1 is 0"},
       {OneTensor().Tensor("t", {kHuge}, 0, 0).Data(64).bytes(),
        "tensor t: dimension 0 is 9223372036854775808"},
       {OneTensor().Tensor("t", {kHuge / 2, 4}, 0, 0).Data(64).bytes(),
        "multiply to more than 2^63 values"},
       {OneTensor().Tensor("t", {1ull << 32, 1ull << 32, 1ull << 32, 2}, 0, 0).Data(64).bytes(),
        "more than 2^63 values"},
       {OneTensor().Tensor("t", {kHuge / 2, 1}, 0, 0).Data(64).bytes(),
        "multiply to more than 2^63 bytes"},
       {OneTensor().Tensor("t", {33}, 8, 0).Data(64).bytes(),
        "tensor t: row length 33 is not a multiple of the 32 values in a block of Q8_0"},
       {TwoTensors().Tensor("t", {1}, 0, 0).Tensor("t", {1}, 0, 32).Data(64).bytes(),
        "tensor t: occurs twice"}});
}

TEST(HostileGguf, RefusesRowsAndDataThatTheBlocksOfATypeDoNotFit) {
  for (const tensor::DTypeInfo& info : tensor::AllDTypes()) {
    const auto type = static_cast<std::uint32_t>(info.type);
    const auto values = static_cast<std::uint64_t>(info.block_values);
    const auto with = [&](std::uint64_t row, std::size_t data_bytes) {
      return OneTensor().Tensor("blk.0.x", {row, 2}, type, 0).Data(data_bytes).bytes();
    };
    const auto bytes = static_cast<std::size_t>(2 * info.block_bytes);
    EXPECT_TRUE(OpensOrFails(with(values, bytes))) << info.name;
    ExpectErrors({{with(values, bytes - 1), "tensor blk.0.x: data ends beyond the file"}});
    if (values == 1) continue;
    for (const std::uint64_t row :
         {values - 1, values + 1, values / 2, 3 * values - 32, std::uint64_t{1}})
      if (row % values != 0)
        ExpectErrors(
            {{with(row, 4 * bytes),
              fmt::format("tensor blk.0.x: row length {} is not a multiple of the {} values "
                          "in a block of {}",
                          row, values, info.name)}});
  }
}

TEST(HostileGguf, RefusesUnknownTensorTypesByName) {
  ExpectErrors({{OneTensor().Tensor("blk.0.x", {32}, 77, 0).Data(64).bytes(),
                 "tensor blk.0.x: its number type 77 is unknown"},
                {OneTensor().Tensor("blk.0.x", {32}, 4, 0).Data(64).bytes(),
                 "tensor blk.0.x: its number type 4"}},
               ErrorCode::kUnsupported);
}

TEST(HostileGguf, RefusesTensorDataOutOfPlace) {
  ExpectErrors({{OneTensor().Tensor("t", {8}, 0, 1).Data(64).bytes(),
                 "tensor t: its offset 1 is not a multiple of the alignment 32"},
                {OneTensor().Tensor("t", {17}, 0, 0).Data(64).bytes(),
                 "tensor t: data ends beyond the file (offset 0 from byte 64, 68 bytes, file 128); "
                 "the file is truncated"},
                {OneTensor().Tensor("t", {8}, 0, 64).Data(64).bytes(),
                 "tensor t: data ends beyond the file (offset 64"},
                {OneTensor().Tensor("t", {8}, 0, ~std::uint64_t{31}).Data(64).bytes(),
                 "tensor t: data ends beyond the file"},
                {OneTensor().Tensor("t", {1}, 0, 0).bytes(), "tensor t: data ends beyond the file"},
                {TwoTensors().Tensor("b", {9}, 0, 0).Tensor("a", {1}, 0, 32).Data(64).bytes(),
                 "tensor a: its data overlap those of tensor b"},
                {TwoTensors().Tensor("b", {1}, 0, 32).Tensor("a", {1}, 0, 32).Data(64).bytes(),
                 "its data overlap those of"}});
}

TEST(HostileGguf, ShowsOverlongNamesShortened) {
  const Bytes bytes = OneTensor().Tensor(std::string(5000, 'n'), {1}, 0, 1).Data(64).bytes();
  ExpectErrors({{bytes, "tensor " + std::string(80, 'n') + "...: its offset 1"}});
}

TEST(HostileGguf, AcceptsGapsAndAnyOrderOfData) {
  EXPECT_TRUE(
      OpensOrFails(TwoTensors().Tensor("b", {1}, 0, 96).Tensor("a", {8}, 0, 32).Data(100).bytes()));
}

TEST(HostileGguf, AcceptsAFileWithoutTensorsAndWithoutPadding) {
  EXPECT_TRUE(OpensOrFails(OneKey().Key("k", GgufType::kBool).U8(1).bytes()));
}

}  // namespace
}  // namespace foretoken::formats
