// SPDX-License-Identifier: Apache-2.0
#include "model/arch/metadata_reader.h"

#include <fmt/format.h>

namespace foretoken::model {

std::string MetadataReader::Key(std::string_view key) const {
  return fmt::format("{}.{}", architecture_, key);
}

template <typename T>
T MetadataReader::Noted(std::string_view key, T value, std::string_view kind) const {
  if (!value && misread_.empty() && metadata_.Find(Key(key)) != nullptr)
    misread_ = fmt::format("{}: the value is not {}; the file is damaged, convert the model again",
                           Key(key), kind);
  return value;
}

std::optional<std::int64_t> MetadataReader::Int(std::string_view key) const {
  return Noted(key, metadata_.Int(Key(key)), "a whole number");
}

std::optional<bool> MetadataReader::Bool(std::string_view key) const {
  return Noted(key, metadata_.Bool(Key(key)), "true or false");
}

const std::string* MetadataReader::String(std::string_view key) const {
  return Noted(key, metadata_.String(Key(key)), "a text");
}

const std::vector<std::int64_t>* MetadataReader::Ints(std::string_view key) const {
  const auto* list = metadata_.Ints(Key(key));
  return metadata_.Int(Key(key)) ? list : Noted(key, list, "a list of whole numbers");
}

Status MetadataReader::Kinds() const {
  if (misread_.empty()) return {};
  return Fail(ErrorCode::kInvalidFile, misread_);
}

Result<int> MetadataReader::InRange(std::string_view key, std::int64_t value, std::int64_t most,
                                    std::int64_t least) const {
  if (value < least || value > most)
    return Fail(ErrorCode::kInvalidFile,
                fmt::format("{}: {} is out of range ({} to {})", Key(key), value, least, most));
  return static_cast<int>(value);
}

Result<int> MetadataReader::Size(std::string_view key, std::int64_t most,
                                 std::int64_t fallback) const {
  const auto value = Int(key);
  if (!value && fallback < 0)
    return Fail(ErrorCode::kInvalidFile,
                fmt::format("{}: missing; this is not a complete model file", Key(key)));
  return InRange(key, value.value_or(fallback), most);
}

Result<std::vector<int>> MetadataReader::SizesByLayer(std::string_view key, int n,
                                                      std::int64_t most,
                                                      const std::vector<int>& fallbacks,
                                                      std::int64_t least) const {
  const auto size = static_cast<std::size_t>(n);
  std::vector<int> values;
  if (const auto* list = Ints(key); list != nullptr) {
    if (list->size() < size)
      return Fail(
          ErrorCode::kInvalidFile,
          fmt::format("{}: a list of {} numbers for {} blocks; this is not a complete model "
                      "file",
                      Key(key), list->size(), n));
    for (std::size_t i = 0; i < size; ++i) {
      FORETOKEN_TRY(const int value, InRange(key, (*list)[i], most, least));
      values.push_back(value);
    }
    return values;
  }
  if (!fallbacks.empty() && !Int(key)) return fallbacks;
  FORETOKEN_TRY(const int value, Size(key, most));
  values.assign(size, value);
  return values;
}

Result<double> MetadataReader::Positive(std::string_view key, double fallback) const {
  FORETOKEN_TRY(const double v, NotNegative(key, fallback));
  if (v == 0)
    return Fail(ErrorCode::kInvalidFile, fmt::format("{}: {} is out of range", Key(key), v));
  return v;
}

Result<double> MetadataReader::NotNegative(std::string_view key, double fallback) const {
  const double v = Noted(key, metadata_.Float(Key(key)), "a number").value_or(fallback);
  if (!(v >= 0 && v < 1e12))
    return Fail(ErrorCode::kInvalidFile, fmt::format("{}: {} is out of range", Key(key), v));
  return v;
}

}  // namespace foretoken::model
