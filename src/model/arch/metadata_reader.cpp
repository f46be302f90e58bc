// SPDX-License-Identifier: Apache-2.0
#include "model/arch/metadata_reader.h"

#include <fmt/format.h>

namespace foretoken::model {

std::string MetadataReader::Key(std::string_view key) const {
  return fmt::format("{}.{}", architecture_, key);
}

Result<int> MetadataReader::InRange(std::string_view key, std::int64_t value,
                                    std::int64_t most) const {
  if (value < 1 || value > most)
    return Fail(ErrorCode::kInvalidFile,
                fmt::format("{}: {} is out of range (1 to {})", Key(key), value, most));
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
                                                      const std::vector<int>& fallbacks) const {
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
      FORETOKEN_TRY(const int value, InRange(key, (*list)[i], most));
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
  const double v = metadata_.Float(Key(key)).value_or(fallback);
  if (!(v >= 0 && v < 1e12))
    return Fail(ErrorCode::kInvalidFile, fmt::format("{}: {} is out of range", Key(key), v));
  return v;
}

}  // namespace foretoken::model
