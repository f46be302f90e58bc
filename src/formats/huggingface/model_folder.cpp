// SPDX-License-Identifier: Apache-2.0
#include "formats/huggingface/model_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/hash.h"
#include "formats/gguf_writer.h"
#include "formats/huggingface/chat_templates.h"
#include "formats/huggingface/family.h"
#include "formats/huggingface/safetensors.h"
#include "formats/huggingface/tensor_map.h"
#include "formats/huggingface/tokenizer.h"
#include "formats/huggingface/weight_files.h"
#include "formats/mapped_checkpoint.h"

namespace foretoken::formats::huggingface {

namespace {

class ModelFolder final : public MappedCheckpoint {
 public:
  explicit ModelFolder(std::string path) : MappedCheckpoint(std::move(path)) {}

  Status Read() {
    FORETOKEN_TRY(const WeightFiles weights, FindWeightFiles(path_));
    const std::string config_path = path_ + "/config.json";
    FORETOKEN_TRY(const Json config, ReadObject(config_path));
    if (config.is_null())
      return Fail(ErrorCode::kNotFound,
                  fmt::format("{}: missing; fetch it into the folder, it says what network the "
                              "weights are of",
                              config_path));
    config_hash_ = HashOf(config.dump({.sorted = true}));
    FORETOKEN_TRY(const Configuration configuration,
                  ReadConfiguration(config, config_path, metadata_));
    SetName();
    FORETOKEN_CHECK_OK(ReadWeights(weights, configuration));
    FORETOKEN_CHECK_OK(ReadTokenizer(path_, config, EmbeddingRows(), metadata_));
    FORETOKEN_CHECK_OK(ReadChatTemplates(path_, metadata_));
    FORETOKEN_CHECK_OK(Index());
    return Check();  // nothing changed while the files were parsed
  }

  std::string format() const override {
    return files_.size() == 1 ? "safetensors" : fmt::format("safetensors, {} files", files_.size());
  }

  void CopyKeys(GgufWriter& writer) const override {
    for (const auto& [key, value] : metadata_.all()) writer.Set(key, value);
  }

  // How rows are ordered depends on config.json too.
  std::uint64_t ContentHash() const override {
    return HashOf(std::array{MappedCheckpoint::ContentHash(), config_hash_});
  }

 private:
  void SetName() {
    namespace fs = std::filesystem;
    std::error_code failed;
    const fs::path whole = fs::canonical(path_, failed);
    metadata_.Set("general.type", std::string("model"));
    metadata_.Set("general.name", failed ? path_ : whole.filename().string());
  }

  // The number of tokens that the weights are for. What config.json says of it may be anything.
  std::int64_t EmbeddingRows() const {
    const auto at = std::find_if(tensors_.begin(), tensors_.end(),
                                 [](const auto& t) { return t.name == "token_embd.weight"; });
    return at == tensors_.end() ? 0 : at->n_rows();
  }

  Status ReadWeights(const WeightFiles& weights, const Configuration& configuration) {
    TensorMap map(configuration, path_);
    std::set<std::string, std::less<>> missing;
    for (const auto& [name, path] : weights.path_of) missing.insert(name);
    for (const std::string& path : weights.paths) {
      FORETOKEN_TRY(MappedFile file, MappedFile::Open(path));
      FORETOKEN_TRY(const auto tensors, ParseSafetensors(file.bytes(), path));
      for (const SafeTensor& tensor : tensors) {
        FORETOKEN_CHECK_OK(map.Add(tensor));
        const auto at = weights.path_of.find(tensor.name);
        if (at != weights.path_of.end() && at->second == path) missing.erase(tensor.name);
      }
      files_.push_back(std::move(file));
    }
    if (!missing.empty())
      return Fail(
          ErrorCode::kInvalidFile,
          fmt::format("{}: tensor {}: missing, though the folder's index names it; fetch "
                      "the file again",
                      weights.path_of.find(*missing.begin())->second, Shown(*missing.begin())));
    FORETOKEN_TRY(auto views, map.Take());
    tensors_ = std::move(views.tensors);
    vectors_ = std::move(views.vectors);
    return {};
  }

  std::uint64_t config_hash_ = 0;
  std::vector<std::vector<float>> vectors_;  // what some tensors point into
};

}  // namespace

Result<std::unique_ptr<Checkpoint>> OpenModelFolder(const std::string& path) {
  std::string folder = path;
  while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
  auto opened = std::make_unique<ModelFolder>(std::move(folder));
  FORETOKEN_CHECK_OK(opened->Read());
  return opened;
}

}  // namespace foretoken::formats::huggingface
