// SPDX-License-Identifier: Apache-2.0
// model/arch/metadata_reader.h: values of a file's metadata whose keys begin with the name of the
// architecture, with their ranges. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "foretoken/result.h"
#include "formats/metadata.h"

namespace foretoken::model {

class MetadataReader {
 public:
  MetadataReader(const formats::Metadata& metadata, std::string architecture)
      : metadata_(metadata), architecture_(std::move(architecture)) {}

  const std::string& architecture() const { return architecture_; }
  std::string Key(std::string_view key) const;  // "llama.block_count"
  // Nothing where the key is absent or holds something of another kind, which Kinds reports.
  std::optional<std::int64_t> Int(std::string_view key) const;
  std::optional<bool> Bool(std::string_view key) const;
  const std::string* String(std::string_view key) const;
  const std::vector<std::int64_t>* Ints(std::string_view key) const;  // null for one number too

  // A number from 1 to `most`; `fallback` stands for an absent key, which is an error where
  // fallback is negative. Errors: kInvalidFile.
  [[nodiscard]] Result<int> Size(std::string_view key, std::int64_t most,
                                 std::int64_t fallback = -1) const;
  // Such a number for each of n layers, from `least` on. The file has one number for all of them or a list with a number
  // for each. fallbacks: empty: the key must be there; else one for each layer.
  [[nodiscard]] Result<std::vector<int>> SizesByLayer(std::string_view key, int n,
                                                      std::int64_t most,
                                                      const std::vector<int>& fallbacks = {},
                                                      std::int64_t least = 1) const;
  // A number above 0. Errors: kInvalidFile.
  [[nodiscard]] Result<double> Positive(std::string_view key, double fallback) const;
  // A number that is not below 0. Errors: kInvalidFile.
  [[nodiscard]] Result<double> NotNegative(std::string_view key, double fallback) const;

  // Whether all keys that were read so far were absent or of the kind that was asked for. What
  // replaced such a value makes other errors, so this one comes first. Errors: kInvalidFile.
  [[nodiscard]] Status Kinds() const;

 private:
  // Keeps the first key whose value could not be read.
  template <typename T>
  T Noted(std::string_view key, T value, std::string_view kind) const;
  Result<int> InRange(std::string_view key, std::int64_t value, std::int64_t most,
                      std::int64_t least = 1) const;

  const formats::Metadata& metadata_;
  std::string architecture_;
  mutable std::string misread_;  // an error message
};

}  // namespace foretoken::model
