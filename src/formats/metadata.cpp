// SPDX-License-Identifier: Apache-2.0
#include "formats/metadata.h"

namespace foretoken::formats {

namespace {

template <typename T>
const T* As(const MetadataValue* value) {
  return value == nullptr ? nullptr : std::get_if<T>(value);
}

}  // namespace

const MetadataValue* Metadata::Find(std::string_view key) const {
  const auto at = values_.find(key);
  return at == values_.end() ? nullptr : &at->second;
}

std::optional<bool> Metadata::Bool(std::string_view key) const {
  const bool* value = As<bool>(Find(key));
  if (value == nullptr) return std::nullopt;
  return *value;
}

std::optional<std::int64_t> Metadata::Int(std::string_view key) const {
  const MetadataValue* value = Find(key);
  if (const auto* number = As<std::int64_t>(value)) return *number;
  if (const auto* flag = As<bool>(value)) return *flag ? 1 : 0;
  return std::nullopt;
}

std::optional<double> Metadata::Float(std::string_view key) const {
  const MetadataValue* value = Find(key);
  if (const auto* number = As<double>(value)) return *number;
  if (const auto* number = As<std::int64_t>(value)) return static_cast<double>(*number);
  return std::nullopt;
}

const std::string* Metadata::String(std::string_view key) const {
  return As<std::string>(Find(key));
}

const std::vector<std::int64_t>* Metadata::Ints(std::string_view key) const {
  return As<std::vector<std::int64_t>>(Find(key));
}

const std::vector<double>* Metadata::Floats(std::string_view key) const {
  return As<std::vector<double>>(Find(key));
}

const std::vector<std::string>* Metadata::Strings(std::string_view key) const {
  return As<std::vector<std::string>>(Find(key));
}

}  // namespace foretoken::formats
