// SPDX-License-Identifier: Apache-2.0
#include "formats/gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <numeric>
#include <type_traits>

#include "base/utf8.h"

namespace foretoken::formats {

static_assert(std::endian::native == std::endian::little,
              "GGUF values are copied as they lie in the file");

namespace {

constexpr std::string_view kFetchAgain = "the file is damaged, fetch it again";
constexpr std::string_view kTruncated = "the file is truncated, fetch it again";
constexpr std::uint64_t kMaxAlignment = std::uint64_t{1} << 30;
// The format's own rule. It also makes f32 data readable in place.
constexpr std::uint64_t kMinAlignment = 8;
// The least bytes that a key with its value, or a tensor's entry, can take.
constexpr std::uint64_t kMinKeyBytes = 8 + 1 + 4 + 1;
constexpr std::uint64_t kMinTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;

// Reads the bytes of the header in order. Each read either fits or fails; nothing past the end is
// touched.
class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::size_t at() const { return at_; }
  std::size_t remaining() const { return bytes_.size() - at_; }
  const std::byte* here() const { return bytes_.data() + at_; }
  void Skip(std::size_t n) { at_ += n; }

  template <typename T>
  [[nodiscard]] bool Read(T* out) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (remaining() < sizeof(T)) return false;
    std::memcpy(out, here(), sizeof(T));
    at_ += sizeof(T);
    return true;
  }

  [[nodiscard]] bool ReadString(std::string_view* out) {
    std::uint64_t size = 0;
    if (!Read(&size) || size > remaining()) return false;
    *out = {reinterpret_cast<const char*>(here()), static_cast<std::size_t>(size)};
    at_ += static_cast<std::size_t>(size);
    return true;
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
};

std::optional<std::size_t> WidthOf(GgufType type) {
  switch (type) {
    case GgufType::kUint8:
    case GgufType::kInt8:
    case GgufType::kBool:
      return 1;
    case GgufType::kUint16:
    case GgufType::kInt16:
      return 2;
    case GgufType::kUint32:
    case GgufType::kInt32:
    case GgufType::kFloat32:
      return 4;
    case GgufType::kUint64:
    case GgufType::kInt64:
    case GgufType::kFloat64:
      return 8;
    case GgufType::kString:
    case GgufType::kArray:
      break;
  }
  return std::nullopt;
}

template <typename From, typename To>
To LoadAs(const std::byte* p) {
  From value;
  std::memcpy(&value, p, sizeof(From));
  return static_cast<To>(value);
}

std::int64_t LoadInt(GgufType type, const std::byte* p) {
  switch (type) {
    case GgufType::kUint8:
    case GgufType::kBool:
      return LoadAs<std::uint8_t, std::int64_t>(p);
    case GgufType::kInt8:
      return LoadAs<std::int8_t, std::int64_t>(p);
    case GgufType::kUint16:
      return LoadAs<std::uint16_t, std::int64_t>(p);
    case GgufType::kInt16:
      return LoadAs<std::int16_t, std::int64_t>(p);
    case GgufType::kUint32:
      return LoadAs<std::uint32_t, std::int64_t>(p);
    case GgufType::kInt32:
      return LoadAs<std::int32_t, std::int64_t>(p);
    default:
      return LoadAs<std::int64_t, std::int64_t>(p);
  }
}

double LoadFloat(GgufType type, const std::byte* p) {
  return type == GgufType::kFloat32 ? LoadAs<float, double>(p) : LoadAs<double, double>(p);
}

bool IsFloat(GgufType type) {
  return type == GgufType::kFloat32 || type == GgufType::kFloat64;
}

// Why an integer loaded by LoadInt is not acceptable for its type.
std::string_view WhyBadInt(GgufType type, std::int64_t value) {
  if (type == GgufType::kUint64 && value < 0) return "an unsigned value above 2^63 - 1";
  if (type == GgufType::kBool && value > 1) return "a bool that is neither 0 nor 1";
  return {};
}

class Parser {
 public:
  Parser(std::span<const std::byte> bytes, const std::string& path)
      : bytes_(bytes), cursor_(bytes), path_(path) {}

  Result<GgufFile> Parse() {
    FORETOKEN_CHECK_OK(ParseCounts());
    FORETOKEN_CHECK_OK(ParseKeys());
    FORETOKEN_CHECK_OK(ParseTensors());
    FORETOKEN_CHECK_OK(PlaceTensors());
    FORETOKEN_CHECK_OK(CheckNamesDiffer());
    FORETOKEN_CHECK_OK(CheckNoOverlap());
    return std::move(result_);
  }

 private:
  auto Bad(std::string_view place, std::string_view why, std::string_view advice,
           ErrorCode code = ErrorCode::kInvalidFile) const {
    return Fail(code, fmt::format("{}: {}: {}; {}", path_, place, why, advice));
  }
  auto EndsInside(std::string_view place) const {
    return Bad(place,
               fmt::format("the file ends here (at byte {} of {})", cursor_.at(), bytes_.size()),
               kTruncated);
  }

  Status ParseCounts();
  Status ParseKeys();
  Result<MetadataValue> ParseValue(GgufType type, const std::string& place);
  Result<MetadataValue> ParseArray(const std::string& place);
  Status CheckArrayFits(const std::string& place, std::uint64_t count,
                        std::size_t least_bytes) const;
  Status ParseTensors();
  Status ParseTensor(std::uint64_t index);
  Status FindAlignment();
  Status PlaceTensors();
  Status CheckNamesDiffer() const;
  Status CheckNoOverlap() const;

  std::span<const std::byte> bytes_;
  Cursor cursor_;
  const std::string& path_;
  std::uint64_t n_tensors_ = 0;
  std::uint64_t n_keys_ = 0;
  std::uint64_t alignment_ = kGgufDefaultAlignment;
  std::vector<std::uint64_t> offsets_;  // of the tensors, from the start of the data
  GgufFile result_;
};

Status Parser::ParseCounts() {
  std::array<char, 4> magic{};
  if (!cursor_.Read(&magic)) return EndsInside("header");
  if (std::string_view(magic.data(), magic.size()) != kGgufMagic)
    return Bad("header", "the file does not begin with \"GGUF\"", "name a GGUF file");
  if (!cursor_.Read(&result_.version)) return EndsInside("header");
  const std::uint32_t version = result_.version;
  if (version != 0 && (version & 0xFFFF) == 0)
    return Bad("header", "a big-endian GGUF file", "convert it to little-endian",
               ErrorCode::kUnsupported);
  if (version < 2 || version > 3) {
    return Bad("header", fmt::format("GGUF version {} (known: 2 and 3)", version),
               version < 2 ? "convert the original model again" : "a newer foretoken may read it",
               ErrorCode::kUnsupported);
  }
  if (!cursor_.Read(&n_tensors_) || !cursor_.Read(&n_keys_)) return EndsInside("header");
  const std::uint64_t rest = cursor_.remaining();
  if (n_keys_ > rest / kMinKeyBytes)
    return Bad("header",
               fmt::format("{} keys do not fit into the {} bytes that follow", n_keys_, rest),
               kFetchAgain);
  if (n_tensors_ > rest / kMinTensorBytes) {
    return Bad("header",
               fmt::format("{} tensors do not fit into the {} bytes that follow", n_tensors_, rest),
               kFetchAgain);
  }
  return {};
}

Status Parser::ParseKeys() {
  for (std::uint64_t i = 0; i < n_keys_; ++i) {
    const std::string number = fmt::format("key {} of {}", i + 1, n_keys_);
    std::string_view key;
    if (!cursor_.ReadString(&key)) return EndsInside(number);
    if (const auto why = WhyBadName(key); !why.empty())
      return Bad(number, fmt::format("its name {}", why), kFetchAgain);
    const std::string place = fmt::format("key {}", Shown(key));
    if (result_.metadata.Find(key) != nullptr) return Bad(place, "occurs twice", kFetchAgain);
    std::uint32_t type = 0;
    if (!cursor_.Read(&type)) return EndsInside(place);
    FORETOKEN_TRY(MetadataValue value, ParseValue(static_cast<GgufType>(type), place));
    result_.metadata.Set(std::string(key), std::move(value));
  }
  return FindAlignment();
}

Result<MetadataValue> Parser::ParseValue(GgufType type, const std::string& place) {
  if (type == GgufType::kArray) return ParseArray(place);
  if (type == GgufType::kString) {
    std::string_view text;
    if (!cursor_.ReadString(&text)) return EndsInside(place);
    return std::string(text);
  }
  const std::optional<std::size_t> width = WidthOf(type);
  if (!width) {
    return Bad(place, fmt::format("value type {} does not exist", static_cast<std::uint32_t>(type)),
               kFetchAgain);
  }
  if (cursor_.remaining() < *width) return EndsInside(place);
  const std::byte* p = cursor_.here();
  cursor_.Skip(*width);
  if (IsFloat(type)) return LoadFloat(type, p);
  const std::int64_t value = LoadInt(type, p);
  if (const auto why = WhyBadInt(type, value); !why.empty()) return Bad(place, why, kFetchAgain);
  if (type == GgufType::kBool) return value == 1;
  return value;
}

Status Parser::CheckArrayFits(const std::string& place, std::uint64_t count,
                              std::size_t least_bytes) const {
  if (count <= cursor_.remaining() / least_bytes) return {};
  return Bad(place,
             fmt::format("{} elements do not fit into the {} bytes that follow", count,
                         cursor_.remaining()),
             kTruncated);
}

Result<MetadataValue> Parser::ParseArray(const std::string& place) {
  std::uint32_t type_number = 0;
  std::uint64_t count = 0;
  if (!cursor_.Read(&type_number) || !cursor_.Read(&count)) return EndsInside(place);
  const auto type = static_cast<GgufType>(type_number);
  if (type == GgufType::kArray)
    return Bad(place, "an array of arrays", "remove the key: foretoken reads none such",
               ErrorCode::kUnsupported);
  if (type == GgufType::kString) {
    FORETOKEN_CHECK_OK(CheckArrayFits(place, count, sizeof(std::uint64_t)));
    std::vector<std::string> strings;
    strings.reserve(count);
    for (std::uint64_t i = 0; i < count; ++i) {
      std::string_view text;
      if (!cursor_.ReadString(&text)) return EndsInside(fmt::format("{}[{}]", place, i));
      strings.emplace_back(text);
    }
    return Result<MetadataValue>(std::move(strings));
  }
  const std::optional<std::size_t> width = WidthOf(type);
  if (!width)
    return Bad(place, fmt::format("element type {} does not exist", type_number), kFetchAgain);
  FORETOKEN_CHECK_OK(CheckArrayFits(place, count, *width));
  const std::byte* p = cursor_.here();
  cursor_.Skip(static_cast<std::size_t>(count) * *width);
  if (IsFloat(type)) {
    std::vector<double> floats(count);
    for (std::size_t i = 0; i < count; ++i) floats[i] = LoadFloat(type, p + i * *width);
    return Result<MetadataValue>(std::move(floats));
  }
  std::vector<std::int64_t> ints(count);
  for (std::size_t i = 0; i < count; ++i) {
    ints[i] = LoadInt(type, p + i * *width);
    if (const auto why = WhyBadInt(type, ints[i]); !why.empty())
      return Bad(fmt::format("{}[{}]", place, i), why, kFetchAgain);
  }
  return Result<MetadataValue>(std::move(ints));
}

Status Parser::FindAlignment() {
  constexpr std::string_view kKey = "general.alignment";
  if (result_.metadata.Find(kKey) == nullptr) return {};
  const std::int64_t value = result_.metadata.Int(kKey).value_or(0);
  const auto alignment = static_cast<std::uint64_t>(value);
  if (value <= 0 || !std::has_single_bit(alignment) || alignment < kMinAlignment ||
      alignment > kMaxAlignment) {
    return Bad(fmt::format("key {}", kKey),
               fmt::format("{} is not a power of two from {} to 2^30", value, kMinAlignment),
               kFetchAgain);
  }
  alignment_ = alignment;
  return {};
}

Status Parser::ParseTensors() {
  if (n_tensors_ > cursor_.remaining() / kMinTensorBytes) {
    return Bad("header",
               fmt::format("{} tensors do not fit into the {} bytes that follow", n_tensors_,
                           cursor_.remaining()),
               kTruncated);
  }
  result_.tensors.reserve(n_tensors_);
  offsets_.reserve(n_tensors_);
  for (std::uint64_t i = 0; i < n_tensors_; ++i) FORETOKEN_CHECK_OK(ParseTensor(i));
  return {};
}

Status Parser::ParseTensor(std::uint64_t index) {
  const std::string number = fmt::format("tensor {} of {}", index + 1, n_tensors_);
  std::string_view name;
  if (!cursor_.ReadString(&name)) return EndsInside(number);
  if (const auto why = WhyBadName(name); !why.empty())
    return Bad(number, fmt::format("its name {}", why), kFetchAgain);
  const std::string place = fmt::format("tensor {}", Shown(name));
  std::uint32_t n_dims = 0;
  if (!cursor_.Read(&n_dims)) return EndsInside(place);
  if (n_dims < 1 || n_dims > 4)
    return Bad(place, fmt::format("{} dimensions (1 to 4 are possible)", n_dims), kFetchAgain);

  TensorView tensor;
  tensor.n_dims = static_cast<int>(n_dims);
  tensor.shape.fill(1);
  for (std::uint32_t d = 0; d < n_dims; ++d) {
    std::uint64_t size = 0;
    if (!cursor_.Read(&size)) return EndsInside(place);
    if (size == 0 || size > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      return Bad(place, fmt::format("dimension {} is {}", d, size), kFetchAgain);
    tensor.shape[d] = static_cast<std::int64_t>(size);
  }
  std::uint64_t offset = 0;
  if (!cursor_.Read(&tensor.ggml_type) || !cursor_.Read(&offset)) return EndsInside(place);
  tensor.name = name;
  result_.tensors.push_back(std::move(tensor));
  offsets_.push_back(offset);
  return {};
}

Status Parser::PlaceTensors() {
  const std::uint64_t file_bytes = bytes_.size();
  const std::uint64_t data_begin = (cursor_.at() + alignment_ - 1) / alignment_ * alignment_;
  for (std::size_t i = 0; i < result_.tensors.size(); ++i) {
    TensorView& tensor = result_.tensors[i];
    const std::string place = fmt::format("tensor {}", Shown(tensor.name));
    const auto size = GgmlTensorBytes(tensor.ggml_type, tensor.shape);
    if (!size) {
      const bool unknown = !FindGgmlBlock(tensor.ggml_type);
      return Bad(
          place, size.error().message,
          unknown ? "a newer foretoken may know the type, or the file is damaged" : kFetchAgain,
          size.error().code);
    }
    if (offsets_[i] % alignment_ != 0) {
      return Bad(place,
                 fmt::format("its offset {} is not a multiple of the alignment {}", offsets_[i],
                             alignment_),
                 kFetchAgain);
    }
    const auto bytes = static_cast<std::uint64_t>(*size);
    if (data_begin > file_bytes || offsets_[i] > file_bytes - data_begin ||
        bytes > file_bytes - data_begin - offsets_[i]) {
      return Bad(
          place,
          fmt::format("data ends beyond the file (offset {} from byte {}, {} bytes, file {})",
                      offsets_[i], data_begin, bytes, file_bytes),
          kTruncated);
    }
    tensor.data = bytes_.subspan(data_begin + offsets_[i], bytes);
  }
  return {};
}

Status Parser::CheckNamesDiffer() const {
  std::vector<std::string_view> names;
  names.reserve(result_.tensors.size());
  for (const TensorView& tensor : result_.tensors) names.emplace_back(tensor.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return {};
  return Bad(fmt::format("tensor {}", Shown(*twice)), "occurs twice", kFetchAgain);
}

Status Parser::CheckNoOverlap() const {
  std::vector<std::size_t> order(result_.tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return offsets_[a] < offsets_[b]; });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const TensorView& before = result_.tensors[order[i - 1]];
    const TensorView& tensor = result_.tensors[order[i]];
    if (before.data.data() + before.data.size() > tensor.data.data()) {
      return Bad(fmt::format("tensor {}", Shown(tensor.name)),
                 fmt::format("its data overlap those of tensor {}", Shown(before.name)),
                 kFetchAgain);
    }
  }
  return {};
}

}  // namespace

std::string_view WhyBadName(std::string_view name) {
  if (name.empty()) return "is empty";
  if (name.size() > kGgufMaxNameBytes) return "is longer than 65535 bytes";
  for (std::size_t at = 0; at < name.size();) {
    if (name[at] == '\0') return "contains a NUL byte";
    const Utf8Character c = ReadUtf8(name.substr(at));
    if (!c.valid()) return "is not valid UTF-8";
    at += c.size;
  }
  return {};
}

std::optional<GgmlBlock> FindGgmlBlock(std::uint32_t ggml_type) {
  if (const auto* known = tensor::FindDType(ggml_type))
    return GgmlBlock{known->block_values, known->block_bytes};
  switch (ggml_type) {
    case 9:
      return GgmlBlock{32, 36};  // Q8_1
    case 10:
      return GgmlBlock{256, 84};  // Q2_K
    case 11:
      return GgmlBlock{256, 110};  // Q3_K
    case 15:
      return GgmlBlock{256, 292};  // Q8_K
    case 16:
      return GgmlBlock{256, 66};  // IQ2_XXS
    case 17:
      return GgmlBlock{256, 74};  // IQ2_XS
    case 18:
      return GgmlBlock{256, 98};  // IQ3_XXS
    case 19:
      return GgmlBlock{256, 50};  // IQ1_S
    case 20:
      return GgmlBlock{32, 18};  // IQ4_NL
    case 21:
      return GgmlBlock{256, 110};  // IQ3_S
    case 22:
      return GgmlBlock{256, 82};  // IQ2_S
    case 23:
      return GgmlBlock{256, 136};  // IQ4_XS
    case 24:
      return GgmlBlock{1, 1};  // I8
    case 25:
      return GgmlBlock{1, 2};  // I16
    case 26:
      return GgmlBlock{1, 4};  // I32
    case 27:
      return GgmlBlock{1, 8};  // I64
    case 28:
      return GgmlBlock{1, 8};  // F64
    case 29:
      return GgmlBlock{256, 56};  // IQ1_M
    case 34:
      return GgmlBlock{256, 54};  // TQ1_0
    case 35:
      return GgmlBlock{256, 66};  // TQ2_0
    case 39:
      return GgmlBlock{32, 17};  // MXFP4
    case 40:
      return GgmlBlock{64, 36};  // NVFP4
    default:
      return std::nullopt;
  }
}

Result<std::int64_t> GgmlTensorBytes(std::uint32_t ggml_type, std::span<const std::int64_t> shape) {
  const std::optional<GgmlBlock> block = FindGgmlBlock(ggml_type);
  if (!block)
    return Fail(ErrorCode::kUnsupported, fmt::format("its number type {} is unknown", ggml_type));
  const std::int64_t row = shape.empty() ? 0 : shape[0];
  if (row % block->values != 0) {
    return Fail(ErrorCode::kInvalidFile,
                fmt::format("row length {} is not a multiple of the {} values in a block of {}",
                            row, block->values, tensor::GgmlTypeName(ggml_type)));
  }
  std::int64_t values = 1;
  for (const std::int64_t size : shape) {
    if (size < 1) return Fail(ErrorCode::kInvalidFile, fmt::format("a dimension is {}", size));
    if (__builtin_mul_overflow(values, size, &values))
      return Fail(ErrorCode::kInvalidFile, "its dimensions multiply to more than 2^63 values");
  }
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(values / block->values, block->bytes, &bytes))
    return Fail(ErrorCode::kInvalidFile, "its dimensions multiply to more than 2^63 bytes");
  return bytes;
}

Result<GgufFile> ParseGguf(std::span<const std::byte> bytes, const std::string& path) {
  return Parser(bytes, path).Parse();
}

}  // namespace foretoken::formats
