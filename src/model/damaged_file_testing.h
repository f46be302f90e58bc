// SPDX-License-Identifier: Apache-2.0
// model/damaged_file_testing.h: a model file in memory whose keys and tensors tests change.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/checkpoint.h"
#include "formats/gguf.h"

namespace foretoken::model {

class DamagedFile final : public formats::Checkpoint {
 public:
  explicit DamagedFile(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {
    auto parsed = formats::ParseGguf(bytes_, path_);
    EXPECT_TRUE(parsed) << parsed.error().message;
    if (parsed) file = std::move(*parsed);
  }
  DamagedFile(const DamagedFile&) = delete;
  DamagedFile& operator=(const DamagedFile&) = delete;

  // The tensors point into the bytes: a shape that asks for more must not be read.
  formats::GgufFile file;

  const formats::Metadata& metadata() const override { return file.metadata; }
  std::span<const formats::TensorView> tensors() const override { return file.tensors; }
  const formats::TensorView* Find(std::string_view name) const override {
    const auto at = std::find_if(file.tensors.begin(), file.tensors.end(),
                                 [&](const formats::TensorView& t) { return t.name == name; });
    return at == file.tensors.end() ? nullptr : &*at;
  }
  void Release(std::span<const std::byte>) const noexcept override {}
  const std::string& path() const override { return path_; }
  std::vector<std::string> files() const override { return {path_}; }
  std::size_t file_bytes() const override { return bytes_.size(); }
  std::string format() const override { return "GGUF v3"; }
  const std::string& PathOf(const formats::TensorView&) const override { return path_; }
  std::uint64_t ContentHash() const override { return 0; }
  std::uint64_t Fingerprint() const override { return 0; }
  void CopyKeys(formats::GgufWriter&) const override {}
  Status Check() const override { return {}; }

 private:
  const std::string path_ = "damaged.gguf";
  const std::vector<std::byte> bytes_;
};

}  // namespace foretoken::model
