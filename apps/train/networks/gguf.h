// SPDX-License-Identifier: Apache-2.0
// train/networks/gguf.h: reads weights from GGUF files and writes them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "foretoken/result.h"
#include "formats/checkpoint.h"
#include "formats/gguf_writer.h"
#include "text/tokenizer/tokenizer.h"
#include "train/networks/network.h"
#include "train/networks/network_config.h"

namespace foretoken::train {

// A vocabulary, of any GGUF file that has one.
[[nodiscard]] Result<std::unique_ptr<text::Tokenizer>> OpenVocabulary(
    const std::string& path, std::unique_ptr<formats::Checkpoint>& file);

enum class FileType { kF32, kF16, kQ8_0 };
[[nodiscard]] Result<FileType> ParseFileType(const std::string& name);

// Turns weights into tensors of a file, and keeps their bytes until it is written.
class TensorStore {
 public:
  explicit TensorStore(FileType type) : type_(type) {}
  // Matrices and tables in the file's type (F32 if a row is not a multiple of 32 values), gains in
  // F32.
  void Add(formats::GgufWriter& writer, const Parameter& parameter);
  void AddInt64(formats::GgufWriter& writer, const std::string& name,
                const std::vector<std::int64_t>& values);
  void Copy(formats::GgufWriter& writer, const formats::TensorView& tensor);
  std::int64_t file_type() const;  // general.file_type

 private:
  FileType type_;
  std::vector<std::vector<std::byte>> bytes_;
};

// Copies every tokenizer.* key.
void CopyVocabulary(const formats::Metadata& from, formats::GgufWriter& to);

// Writes general.*, and PREFIX.* with the config's sizes.
void DescribeModel(const NetworkConfig& config, const std::string& name, const std::string& license,
                   formats::GgufWriter& writer);

}  // namespace foretoken::train
