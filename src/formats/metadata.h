// SPDX-License-Identifier: Apache-2.0
// formats/metadata.h: the key-value pairs of a model file.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace foretoken::formats {

// Integers of any width and sign become int64 (the reader rejects larger unsigned values), floats
// become double.
using MetadataValue =
    std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>,
                 std::vector<double>,
                 std::vector<std::string>>;  // arrays of bool are vectors of int64

class Metadata {
 public:
  void Set(std::string key, MetadataValue value) {
    values_.insert_or_assign(std::move(key), std::move(value));
  }
  const std::map<std::string, MetadataValue, std::less<>>& all() const { return values_; }
  const MetadataValue* Find(std::string_view key) const;

  // nullopt / nullptr if the key is absent or of another kind. Float accepts an integer; Int
  // accepts a bool.
  std::optional<bool> Bool(std::string_view key) const;
  std::optional<std::int64_t> Int(std::string_view key) const;
  std::optional<double> Float(std::string_view key) const;
  const std::string* String(std::string_view key) const;
  const std::vector<std::int64_t>* Ints(std::string_view key) const;
  const std::vector<double>* Floats(std::string_view key) const;
  const std::vector<std::string>* Strings(std::string_view key) const;

 private:
  std::map<std::string, MetadataValue, std::less<>> values_;
};

}  // namespace foretoken::formats
