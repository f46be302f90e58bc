// SPDX-License-Identifier: Apache-2.0
#include "formats/huggingface/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "formats/huggingface/json_file.h"

namespace foretoken::formats::huggingface {

namespace {

constexpr std::uint64_t kMostHeaderBytes = 100'000'000;  // the format's own limit
constexpr std::size_t kMostDimensions = 8;

struct Dtype {
  std::string_view name;
  std::int64_t bytes;
};
constexpr Dtype kDtypes[] = {{"BOOL", 1},    {"U8", 1},  {"I8", 1},  {"F8_E5M2", 1}, {"F8_E4M3", 1},
                             {"F8_E8M0", 1}, {"I16", 2}, {"U16", 2}, {"F16", 2},     {"BF16", 2},
                             {"I32", 4},     {"U32", 4}, {"F32", 4}, {"F64", 8},     {"I64", 8},
                             {"U64", 8},     {"C64", 8}};

// Where a tensor's data lie, counted from the end of the header.
struct Range {
  std::uint64_t begin = 0, end = 0;
};

class Parser {
 public:
  Parser(std::span<const std::byte> bytes, const std::string& path) : bytes_(bytes), path_(path) {}

  Result<std::vector<SafeTensor>> Parse() {
    FORETOKEN_TRY(const Json header, ReadHeader());
    for (const auto& [name, value] : header.members()) {
      if (name == "__metadata__") continue;
      auto tensor = ReadTensor(name, value);
      if (!tensor) return Fail(std::move(tensor).error());
    }
    FORETOKEN_CHECK_OK(CheckRanges());
    return Ordered();
  }

 private:
  tl::unexpected<Error> Bad(std::string_view name, std::string_view why) const {
    const std::string place = name.empty() ? "" : fmt::format(" tensor {}:", Shown(name));
    return Fail(ErrorCode::kInvalidFile,
                fmt::format("{}:{} {}; {}", path_, place, why, kFetchAgain));
  }

  Result<Json> ReadHeader() {
    std::uint64_t size = 0;
    if (bytes_.size() < sizeof size)
      return Bad("", fmt::format("{} bytes are too few for a safetensors file", bytes_.size()));
    std::memcpy(&size, bytes_.data(), sizeof size);
    const std::uint64_t rest = bytes_.size() - sizeof size;
    if (size > kMostHeaderBytes || size > rest)
      return Bad(
          "", fmt::format("a header of {} bytes does not fit into the {} that follow", size, rest));
    data_ = bytes_.subspan(sizeof size + size);
    return ParseObject({reinterpret_cast<const char*>(bytes_.data()) + sizeof size, size}, path_,
                       {.most_bytes = kMostHeaderBytes, .most_depth = 3});
  }

  Status ReadTensor(const std::string& name, const Json& value) {
    const JsonFields fields(value, fmt::format("{}: tensor {}", path_, Shown(name)));
    SafeTensor tensor{.name = name, .dtype = {}, .shape = {}, .data = {}};
    FORETOKEN_TRY(const auto dtype, fields.String("dtype"));
    if (!dtype) return fields.Bad("dtype", "it is missing");
    tensor.dtype = *dtype;
    const auto* known = std::find_if(std::begin(kDtypes), std::end(kDtypes),
                                     [&](const Dtype& row) { return row.name == *dtype; });
    if (known == std::end(kDtypes))
      return fields.Unsupported("dtype", fmt::format("{} is not known", Shown(*dtype)),
                                "fetch the model in BF16, F16 or F32");
    FORETOKEN_TRY(const auto shape, Numbers(fields, "shape"));
    if (shape.size() > kMostDimensions) return fields.Bad("shape", "it has too many dimensions");
    std::int64_t bytes = known->bytes;
    for (const std::uint64_t size : shape) {
      tensor.shape.push_back(static_cast<std::int64_t>(size));
      if (tensor.shape.back() < 0 || __builtin_mul_overflow(bytes, tensor.shape.back(), &bytes))
        return fields.Bad("shape", "its dimensions multiply to more than 2^63 bytes");
    }
    FORETOKEN_TRY(const auto offsets, Numbers(fields, "data_offsets"));
    if (offsets.size() != 2) return fields.Bad("data_offsets", "it is not a list of two numbers");
    const Range range{offsets[0], offsets[1]};
    if (range.begin > range.end || range.end > data_.size())
      return fields.Bad("data_offsets", fmt::format("{} to {} are not within the {} bytes of data",
                                                    range.begin, range.end, data_.size()));
    if (range.end - range.begin != static_cast<std::uint64_t>(bytes))
      return fields.Bad("data_offsets",
                        fmt::format("{} bytes for a tensor of {}", range.end - range.begin, bytes));
    tensor.data = data_.subspan(range.begin, range.end - range.begin);
    tensors_.push_back(std::move(tensor));
    ranges_.push_back(range);
    return {};
  }

  Result<std::vector<std::uint64_t>> Numbers(const JsonFields& fields, std::string_view name) {
    FORETOKEN_TRY(const Json* list, fields.List(name));
    if (list == nullptr) return fields.Bad(name, "it is missing");
    std::vector<std::uint64_t> numbers;
    for (const Json& value : *list) {
      const auto number = value.natural();
      if (!number)
        return fields.Bad(name, "it holds something that is not a whole number from 0 on");
      numbers.push_back(*number);
    }
    return numbers;
  }

  // The tensors, in the order of their data, cover it exactly.
  Status CheckRanges() {
    order_.resize(ranges_.size());
    for (std::size_t i = 0; i < order_.size(); ++i) order_[i] = i;
    std::sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
      return std::pair(ranges_[a].begin, ranges_[a].end) <
             std::pair(ranges_[b].begin, ranges_[b].end);
    });
    std::uint64_t at = 0;
    for (const std::size_t i : order_) {
      if (ranges_[i].begin < at) return Bad(tensors_[i].name, "its data overlap another tensor's");
      if (ranges_[i].begin > at)
        return Bad(tensors_[i].name, fmt::format("the {} bytes before it belong to no tensor",
                                                 ranges_[i].begin - at));
      at = ranges_[i].end;
    }
    if (at != data_.size())
      return Bad("", fmt::format("the last {} bytes belong to no tensor", data_.size() - at));
    return {};
  }

  std::vector<SafeTensor> Ordered() {
    std::vector<SafeTensor> ordered;
    for (const std::size_t i : order_) ordered.push_back(std::move(tensors_[i]));
    return ordered;
  }

  std::span<const std::byte> bytes_, data_;
  const std::string& path_;
  std::vector<SafeTensor> tensors_;
  std::vector<Range> ranges_;
  std::vector<std::size_t> order_;
};

}  // namespace

std::int64_t SafeTensor::n_values() const {
  std::int64_t n = 1;
  for (const std::int64_t size : shape) n *= size;
  return n;
}

Result<std::vector<SafeTensor>> ParseSafetensors(std::span<const std::byte> bytes,
                                                 const std::string& path) {
  return Parser(bytes, path).Parse();
}

}  // namespace foretoken::formats::huggingface
