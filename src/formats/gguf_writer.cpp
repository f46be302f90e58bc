// SPDX-License-Identifier: Apache-2.0
#include "formats/gguf_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string_view>
#include <type_traits>
#include <utility>

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

Error IoError(const std::string& path, std::string_view what) {
  return {ErrorCode::kIo,
          fmt::format("{}: {}: {}; check the folder, its permissions and free space", path, what,
                      std::strerror(errno))};
}

// A file that vanishes unless Commit succeeds.
class TemporaryFile {
 public:
  static Result<TemporaryFile> Create(const std::string& path) {
    static std::atomic<unsigned> counter{0};
    TemporaryFile file;
    file.path_ = path;
    file.temporary_ = fmt::format("{}.{}-{}.part", path, getpid(), counter.fetch_add(1));
    file.fd_ = open(file.temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file.fd_ < 0) return Fail(IoError(path, "cannot create"));
    return file;
  }
  TemporaryFile(TemporaryFile&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)),
        path_(std::move(other.path_)),
        temporary_(std::move(other.temporary_)) {}
  TemporaryFile& operator=(TemporaryFile&&) = delete;
  ~TemporaryFile() {
    if (fd_ < 0) return;
    close(fd_);
    unlink(temporary_.c_str());
  }

  Status Append(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t n = write(fd_, bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return Fail(IoError(path_, "cannot write"));
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
    return {};
  }

  Status Commit() {
    if (fsync(fd_) != 0) return Fail(IoError(path_, "cannot write"));
    if (std::rename(temporary_.c_str(), path_.c_str()) != 0)
      return Fail(IoError(path_, "cannot replace"));
    close(std::exchange(fd_, -1));
    return {};
  }

 private:
  TemporaryFile() = default;

  int fd_ = -1;
  std::string path_;
  std::string temporary_;
};

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
  if (key == "general.alignment" &&
      (!std::holds_alternative<std::int64_t>(value) ||
       std::get<std::int64_t>(value) != std::int64_t{kGgufDefaultAlignment}))
    return Reject(fmt::format("key {}: only {} can be written; leave the key out", key,
                              kGgufDefaultAlignment));
  if (!ValueFits(type, value)) {
    return Reject(fmt::format("key {}: the value does not fit its type {}; choose another type",
                              key, static_cast<std::uint32_t>(type)));
  }
  const auto at =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.key == key; });
  if (at == entries_.end()) {
    entries_.push_back({key, type, std::move(value)});
  } else {
    at->type = type;
    at->value = std::move(value);
  }
}

void GgufWriter::AddTensor(std::string name, std::uint32_t ggml_type,
                           std::span<const std::int64_t> shape, std::span<const std::byte> bytes) {
  if (const auto why = WhyBadName(name); !why.empty())
    return Reject(fmt::format("a tensor's name {}; choose another", why));
  if (std::any_of(tensors_.begin(), tensors_.end(),
                  [&](const Tensor& t) { return t.name == name; }))
    return Reject(fmt::format("tensor {}: added twice; choose another name", name));
  if (shape.empty() || shape.size() > 4)
    return Reject(fmt::format("tensor {}: {} dimensions; give 1 to 4", name, shape.size()));
  const auto size = GgmlTensorBytes(ggml_type, shape);
  if (!size)
    return Reject(
        fmt::format("tensor {}: {}; choose another type or shape", name, size.error().message));
  if (static_cast<std::uint64_t>(*size) != bytes.size())
    return Reject(fmt::format("tensor {}: {} bytes given, {} needed; give exactly those", name,
                              bytes.size(), *size));
  tensors_.push_back({std::move(name), ggml_type, {shape.begin(), shape.end()}, bytes});
}

std::vector<std::byte> GgufWriter::Header() const {
  Appender out;
  for (const char c : kGgufMagic) out.Add(c);
  out.Add(std::uint32_t{3});
  out.Add(static_cast<std::uint64_t>(tensors_.size()));
  out.Add(static_cast<std::uint64_t>(entries_.size()));
  for (const Entry& entry : entries_) {
    out.Add(entry.key);
    std::visit([&](const auto& value) { out.AddValue(entry.type, value); }, entry.value);
  }
  std::uint64_t offset = 0;
  for (const Tensor& tensor : tensors_) {
    out.Add(tensor.name);
    out.Add(static_cast<std::uint32_t>(tensor.shape.size()));
    for (const std::int64_t size : tensor.shape) out.Add(size);
    out.Add(tensor.ggml_type);
    out.Add(offset);
    offset += AlignUp(tensor.bytes.size());
  }
  out.bytes.resize(AlignUp(out.bytes.size()));
  return std::move(out.bytes);
}

Status GgufWriter::Emit(const Sink& sink) const {
  if (error_) return Fail(*error_);
  FORETOKEN_CHECK_OK(sink(Header()));
  constexpr std::array<std::byte, kGgufDefaultAlignment> kPadding{};
  for (const Tensor& tensor : tensors_) {
    FORETOKEN_CHECK_OK(sink(tensor.bytes));
    FORETOKEN_CHECK_OK(
        sink(std::span(kPadding).first(AlignUp(tensor.bytes.size()) - tensor.bytes.size())));
  }
  return {};
}

Status GgufWriter::Write(const std::string& path) const {
  if (error_) return Fail(*error_);
  FORETOKEN_TRY(TemporaryFile file, TemporaryFile::Create(path));
  FORETOKEN_CHECK_OK(Emit([&](std::span<const std::byte> bytes) { return file.Append(bytes); }));
  return file.Commit();
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
