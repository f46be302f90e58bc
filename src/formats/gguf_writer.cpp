// SPDX-License-Identifier: Apache-2.0
#include "formats/gguf_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "base/files/output_file.h"

namespace foretoken::formats {

namespace {

template <typename T>
bool Fits(std::int64_t x) {
  return std::in_range<T>(x);
}

template <typename T>
bool AllFit(const std::vector<std::int64_t>& xs) {
  return std::all_of(xs.begin(), xs.end(), Fits<T>);
}

GgufType DefaultType(const MetadataValue& value) {
  struct Visitor {
    GgufType operator()(bool) const { return GgufType::kBool; }
    GgufType operator()(std::int64_t x) const {
      if (Fits<std::uint32_t>(x)) return GgufType::kUint32;
      return Fits<std::int32_t>(x) ? GgufType::kInt32 : GgufType::kInt64;
    }
    GgufType operator()(double) const { return GgufType::kFloat32; }
    GgufType operator()(const std::string&) const { return GgufType::kString; }
    GgufType operator()(const std::vector<std::int64_t>& xs) const {
      return AllFit<std::int32_t>(xs) ? GgufType::kInt32 : GgufType::kInt64;
    }
    GgufType operator()(const std::vector<double>&) const { return GgufType::kFloat32; }
    GgufType operator()(const std::vector<std::string>&) const { return GgufType::kString; }
  };
  return std::visit(Visitor{}, value);
}

bool IntFits(GgufType type, std::int64_t x) {
  switch (type) {
    case GgufType::kUint8:
      return Fits<std::uint8_t>(x);
    case GgufType::kInt8:
      return Fits<std::int8_t>(x);
    case GgufType::kUint16:
      return Fits<std::uint16_t>(x);
    case GgufType::kInt16:
      return Fits<std::int16_t>(x);
    case GgufType::kUint32:
      return Fits<std::uint32_t>(x);
    case GgufType::kInt32:
      return Fits<std::int32_t>(x);
    case GgufType::kUint64:
      return x >= 0;
    case GgufType::kInt64:
      return true;
    case GgufType::kBool:
      return x == 0 || x == 1;
    default:
      return false;
  }
}

bool ValueFits(GgufType type, const MetadataValue& value) {
  struct Visitor {
    GgufType type;
    bool operator()(bool) const { return type == GgufType::kBool; }
    bool operator()(std::int64_t x) const { return type != GgufType::kBool && IntFits(type, x); }
    bool operator()(double) const {
      return type == GgufType::kFloat32 || type == GgufType::kFloat64;
    }
    bool operator()(const std::string&) const { return type == GgufType::kString; }
    bool operator()(const std::vector<std::int64_t>& xs) const {
      return IntFits(type, 0) &&
             std::all_of(xs.begin(), xs.end(), [&](std::int64_t x) { return IntFits(type, x); });
    }
    bool operator()(const std::vector<double>&) const { return (*this)(0.0); }
    bool operator()(const std::vector<std::string>&) const { return type == GgufType::kString; }
  };
  return std::visit(Visitor{type}, value);
}

// Appends values in the file's form.
class Appender {
 public:
  std::vector<std::byte> bytes;

  template <typename T>
  void Add(T value) {
    static_assert(std::is_arithmetic_v<T>);
    const auto* p = reinterpret_cast<const std::byte*>(&value);
    bytes.insert(bytes.end(), p, p + sizeof(T));
  }
  void Add(const std::string& text) {
    Add(static_cast<std::uint64_t>(text.size()));
    const auto* p = reinterpret_cast<const std::byte*>(text.data());
    bytes.insert(bytes.end(), p, p + text.size());
  }
  void AddElement(GgufType type, std::int64_t x) {
    switch (type) {
      case GgufType::kUint8:
      case GgufType::kInt8:
      case GgufType::kBool:
        return Add(static_cast<std::uint8_t>(x));
      case GgufType::kUint16:
      case GgufType::kInt16:
        return Add(static_cast<std::uint16_t>(x));
      case GgufType::kUint32:
      case GgufType::kInt32:
        return Add(static_cast<std::uint32_t>(x));
      default:
        return Add(x);
    }
  }
  void AddElement(GgufType type, double x) {
    if (type == GgufType::kFloat32) return Add(static_cast<float>(x));
    Add(x);
  }
  void AddElement(GgufType, const std::string& text) { Add(text); }
  void AddElement(GgufType, bool x) { Add(static_cast<std::uint8_t>(x ? 1 : 0)); }

  template <typename T>
  void AddValue(GgufType type, const T& value) {
    Add(static_cast<std::uint32_t>(type));
    AddElement(type, value);
  }
  template <typename T>
  void AddValue(GgufType type, const std::vector<T>& values) {
    Add(static_cast<std::uint32_t>(GgufType::kArray));
    Add(static_cast<std::uint32_t>(type));
    Add(static_cast<std::uint64_t>(values.size()));
    for (const T& value : values) AddElement(type, value);
  }
};

std::uint64_t AlignUp(std::uint64_t x) {
  return (x + kGgufDefaultAlignment - 1) / kGgufDefaultAlignment * kGgufDefaultAlignment;
}

// Goes through the keys of a header, from its first byte on.
class KeyWalker {
 public:
  explicit KeyWalker(std::span<const std::byte> bytes) : bytes_(bytes) {}

  // Reads what precedes the first key. False: this is not a GGUF header.
  bool ReadCounts(std::uint64_t* n_keys) {
    std::uint32_t version = 0;
    std::uint64_t n_tensors = 0;
    const auto* text = reinterpret_cast<const char*>(bytes_.data());
    if (!std::string_view(text, bytes_.size()).starts_with(kGgufMagic)) return false;
    at_ = kGgufMagic.size();
    return Read(&version) && Read(&n_tensors) && Read(n_keys);
  }

  // The next key and the bytes of its value, type included.
  bool ReadKey(std::string* key, std::span<const std::byte>* value) {
    std::uint64_t size = 0;
    if (!Read(&size) || size > bytes_.size() - at_) return false;
    key->assign(reinterpret_cast<const char*>(bytes_.data() + at_), size);
    at_ += size;
    const std::size_t begin = at_;
    std::uint32_t type = 0;
    if (!Read(&type) || !SkipValue(static_cast<GgufType>(type))) return false;
    *value = bytes_.subspan(begin, at_ - begin);
    return true;
  }

 private:
  template <typename T>
  bool Read(T* out) {
    if (bytes_.size() - at_ < sizeof(T)) return false;
    std::memcpy(out, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return true;
  }
  bool Skip(std::uint64_t count, std::uint64_t width) {
    if (count > (bytes_.size() - at_) / width) return false;
    at_ += count * width;
    return true;
  }
  bool SkipStrings(std::uint64_t count) {
    std::uint64_t size = 0;
    for (std::uint64_t i = 0; i < count; ++i)
      if (!Read(&size) || !Skip(size, 1)) return false;
    return true;
  }
  bool SkipElements(GgufType type, std::uint64_t count) {
    switch (type) {
      case GgufType::kUint8:
      case GgufType::kInt8:
      case GgufType::kBool:
        return Skip(count, 1);
      case GgufType::kUint16:
      case GgufType::kInt16:
        return Skip(count, 2);
      case GgufType::kUint32:
      case GgufType::kInt32:
      case GgufType::kFloat32:
        return Skip(count, 4);
      case GgufType::kUint64:
      case GgufType::kInt64:
      case GgufType::kFloat64:
        return Skip(count, 8);
      case GgufType::kString:
        return SkipStrings(count);
      case GgufType::kArray:
        break;
    }
    return false;
  }
  bool SkipValue(GgufType type) {
    if (type != GgufType::kArray) return SkipElements(type, 1);
    std::uint32_t element = 0;
    std::uint64_t count = 0;
    return Read(&element) && Read(&count) && SkipElements(static_cast<GgufType>(element), count);
  }

  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
};

constexpr std::string_view kAlignmentKey = "general.alignment";

}  // namespace

void GgufWriter::Reject(std::string message) {
  if (!error_) error_ = Error{ErrorCode::kInvalidArgument, std::move(message)};
}

void GgufWriter::Set(const std::string& key, MetadataValue value) {
  const GgufType type = DefaultType(value);
  SetAs(key, type, std::move(value));
}

void GgufWriter::SetAs(const std::string& key, GgufType type, MetadataValue value) {
  if (const auto why = WhyBadName(key); !why.empty())
    return Reject(fmt::format("a key's name {}; choose another", why));
  if (key == kAlignmentKey &&
      (!std::holds_alternative<std::int64_t>(value) ||
       std::get<std::int64_t>(value) != std::int64_t{kGgufDefaultAlignment}))
    return Reject(fmt::format("key {}: only {} can be written; leave the key out", key,
                              kGgufDefaultAlignment));
  if (!ValueFits(type, value)) {
    return Reject(fmt::format("key {}: the value does not fit its type {}; choose another type",
                              key, static_cast<std::uint32_t>(type)));
  }
  Appender out;
  std::visit([&](const auto& v) { out.AddValue(type, v); }, value);
  Put(key, std::move(out.bytes));
}

void GgufWriter::Put(const std::string& key, std::vector<std::byte> value) {
  const auto at =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.key == key; });
  if (at == entries_.end()) {
    entries_.push_back({key, std::move(value)});
  } else {
    at->value = std::move(value);
  }
}

void GgufWriter::CopyKeys(std::span<const std::byte> file) {
  KeyWalker walker(file);
  std::uint64_t n_keys = 0;
  bool good = walker.ReadCounts(&n_keys);
  for (std::uint64_t i = 0; good && i < n_keys; ++i) {
    std::string key;
    std::span<const std::byte> value;
    good = walker.ReadKey(&key, &value) && WhyBadName(key).empty();
    if (good && key != kAlignmentKey) Put(key, {value.begin(), value.end()});
  }
  if (!good) Reject("keys to copy: not a GGUF header; give a whole file");
}

void GgufWriter::Remove(const std::string& key) {
  std::erase_if(entries_, [&](const Entry& entry) { return entry.key == key; });
}

std::optional<std::uint64_t> GgufWriter::SizeOf(const std::string& name, std::uint32_t ggml_type,
                                                std::span<const std::int64_t> shape) {
  const auto reject = [this](std::string message) {
    Reject(std::move(message));
    return std::nullopt;
  };
  if (const auto why = WhyBadName(name); !why.empty())
    return reject(fmt::format("a tensor's name {}; choose another", why));
  if (std::any_of(tensors_.begin(), tensors_.end(),
                  [&](const Tensor& t) { return t.name == name; }))
    return reject(fmt::format("tensor {}: added twice; choose another name", name));
  if (shape.empty() || shape.size() > 4)
    return reject(fmt::format("tensor {}: {} dimensions; give 1 to 4", name, shape.size()));
  const auto size = GgmlTensorBytes(ggml_type, shape);
  if (!size)
    return reject(
        fmt::format("tensor {}: {}; choose another type or shape", name, size.error().message));
  return static_cast<std::uint64_t>(*size);
}

void GgufWriter::AddTensor(std::string name, std::uint32_t ggml_type,
                           std::span<const std::int64_t> shape, std::span<const std::byte> bytes) {
  const std::optional<std::uint64_t> size = SizeOf(name, ggml_type, shape);
  if (!size) return;
  if (*size != bytes.size())
    return Reject(fmt::format("tensor {}: {} bytes given, {} needed; give exactly those", name,
                              bytes.size(), *size));
  AddTensor(std::move(name), ggml_type, shape,
            [bytes](const ByteSink& sink) { return sink(bytes); });
}

void GgufWriter::AddTensor(std::string name, std::uint32_t ggml_type,
                           std::span<const std::int64_t> shape, Producer produce) {
  const std::optional<std::uint64_t> size = SizeOf(name, ggml_type, shape);
  if (!size) return;
  tensors_.push_back(
      {std::move(name), ggml_type, {shape.begin(), shape.end()}, *size, std::move(produce)});
}

std::vector<std::byte> GgufWriter::Header() const {
  Appender out;
  for (const char c : kGgufMagic) out.Add(c);
  out.Add(std::uint32_t{3});
  out.Add(static_cast<std::uint64_t>(tensors_.size()));
  out.Add(static_cast<std::uint64_t>(entries_.size()));
  for (const Entry& entry : entries_) {
    out.Add(entry.key);
    out.bytes.insert(out.bytes.end(), entry.value.begin(), entry.value.end());
  }
  std::uint64_t offset = 0;
  for (const Tensor& tensor : tensors_) {
    out.Add(tensor.name);
    out.Add(static_cast<std::uint32_t>(tensor.shape.size()));
    for (const std::int64_t size : tensor.shape) out.Add(size);
    out.Add(tensor.ggml_type);
    out.Add(offset);
    offset += AlignUp(tensor.size);
  }
  out.bytes.resize(AlignUp(out.bytes.size()));
  return std::move(out.bytes);
}

Status GgufWriter::Emit(const ByteSink& sink) const {
  if (error_) return Fail(*error_);
  FORETOKEN_CHECK_OK(sink(Header()));
  constexpr std::array<std::byte, kGgufDefaultAlignment> kPadding{};
  for (const Tensor& tensor : tensors_) {
    std::uint64_t given = 0;
    FORETOKEN_CHECK_OK(tensor.produce([&](std::span<const std::byte> bytes) {
      given += bytes.size();
      return sink(bytes);
    }));
    FORETOKEN_CHECK(given == tensor.size);
    FORETOKEN_CHECK_OK(sink(std::span(kPadding).first(AlignUp(given) - given)));
  }
  return {};
}

Status GgufWriter::Write(const std::string& path) const {
  if (error_) return Fail(*error_);
  FORETOKEN_TRY(OutputFile file, OutputFile::Create(path, {}));
  std::uint64_t size = Header().size();
  for (const Tensor& tensor : tensors_) size += AlignUp(tensor.size);
  FORETOKEN_CHECK_OK(file.Reserve(size));
  FORETOKEN_CHECK_OK(Emit([&](std::span<const std::byte> bytes) { return file.Append(bytes); }));
  return file.Publish();
}

Result<std::vector<std::byte>> GgufWriter::Bytes() const {
  std::vector<std::byte> all;
  FORETOKEN_CHECK_OK(Emit([&](std::span<const std::byte> bytes) {
    all.insert(all.end(), bytes.begin(), bytes.end());
    return Status{};
  }));
  return all;
}

}  // namespace foretoken::formats
