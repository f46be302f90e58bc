// SPDX-License-Identifier: Apache-2.0
#include "train/heads/head_files.h"

namespace foretoken::train {
namespace {

// Keys that have a number for each block.
const std::vector<std::int64_t>* NumbersByBlock(const TargetReader& target, const std::string& key,
                                                const formats::MetadataValue& value) {
  const auto* list = std::get_if<std::vector<std::int64_t>>(&value);
  const bool by_block = list != nullptr && key.starts_with(target.config().architecture + ".") &&
                        list->size() == target.config().layers.size();
  return by_block ? list : nullptr;
}

// The keys that heads have which are architectures of their own.
void Describe(const HeadFile& file, const TensorStore& store, formats::GgufWriter& writer) {
  DescribeModel(file.head.block, file.name, file.license, writer);
  writer.Set("general.file_type", store.file_type());
  writer.Set(file.head.block.architecture + ".target_layers",
             std::vector<std::int64_t>(file.head.layers.begin(), file.head.layers.end()));
  CopyVocabulary(file.target.file().metadata(), writer);
}

// Lists of true and false keep their type.
void SetChanged(const std::string& key, const formats::MetadataValue& value,
                formats::GgufWriter& writer) {
  const auto* list = std::get_if<std::vector<std::int64_t>>(&value);
  if (list != nullptr && key.ends_with("_pattern"))
    writer.SetAs(key, formats::GgufType::kBool, *list);
  else
    writer.Set(key, value);
}

// The block that is like a target's next one.
std::size_t LikeNextBlock(const model::ModelConfig& config) {
  return static_cast<std::size_t>(LastAttention(config).value_or(config.n_layers() - 1));
}

// Every block is dense, and the last one is so wide.
void MakeDense(const std::string& arch, std::int64_t width, formats::Metadata& metadata) {
  metadata.Set(arch + ".leading_dense_block_count", *metadata.Int(arch + ".block_count"));
  const std::string key = arch + ".feed_forward_length";
  const std::vector<std::int64_t>* list = metadata.Ints(key);
  if (list == nullptr) return metadata.Set(key, width);
  std::vector<std::int64_t> widths = *list;
  widths.back() = width;
  metadata.Set(key, std::move(widths));
}

}  // namespace

Status WriteEagle(const std::string& path, const HeadFile& file) {
  formats::GgufWriter writer;
  TensorStore store(file.type);
  Describe(file, store, writer);
  writer.Set("eagle3.target_hidden_size", std::int64_t{file.target.config().dim});
  writer.Set("eagle3.norm_before_residual", false);
  for (const Parameter& p : file.parameters.all()) store.Add(writer, p);
  if (!file.draft_vocabulary.empty()) store.AddInt64(writer, "d2t", file.draft_vocabulary);
  return writer.Write(path);
}

Status WriteBlockDrafter(const std::string& path, const HeadFile& file) {
  formats::GgufWriter writer;
  TensorStore store(file.type);
  Describe(file, store, writer);
  writer.Set("dflash.block_size", std::int64_t{file.head.block_size});
  writer.Set("dflash.attention.causal", true);
  writer.Set("tokenizer.ggml.mask_token_id", std::int64_t{file.head.mask});
  // A target that rotates by several positions wants to know which one the drafter rotates by.
  const std::string sections = ".rope.dimension_sections";
  const std::string& arch = file.target.config().architecture;
  if (file.target.file().metadata().Find(arch + sections) != nullptr)
    writer.Set("dflash" + sections,
               std::vector<std::int64_t>{file.head.block.rope.n_rot / 2, 0, 0, 0});
  for (const Parameter& p : file.parameters.all()) store.Add(writer, p);
  return writer.Write(path);
}

Status WriteMtp(const std::string& path, const HeadFile& file, bool whole) {
  const TargetReader& target = file.target;
  const formats::Metadata next = MetadataWithNextBlock(target);
  const std::string& arch = target.config().architecture;
  formats::GgufWriter writer;
  TensorStore store(file.type);
  target.file().CopyKeys(writer);
  for (const auto& [key, value] : next.all()) {
    const bool kept = whole || key.starts_with(arch + ".") || key.starts_with("tokenizer.") ||
                      key.starts_with("foretoken.tokenizer.") || key == "general.architecture";
    const formats::MetadataValue* before = target.file().metadata().Find(key);
    if (!kept || key.starts_with("split."))
      writer.Remove(key);
    else if (before == nullptr || *before != value)
      SetChanged(key, value, writer);
  }
  if (whole) {
    for (const formats::TensorView& tensor : target.file().tensors()) store.Copy(writer, tensor);
  } else {
    writer.Set("general.type", std::string("model"));
    writer.Set("general.name", file.name);
    if (!file.license.empty()) writer.Set("general.license", file.license);
    writer.Set("general.file_type", store.file_type());
  }
  for (const Parameter& p : file.parameters.all()) store.Add(writer, p);
  return writer.Write(path);
}

formats::Metadata MetadataWithNextBlock(const TargetReader& target) {
  const model::ModelConfig& config = target.config();
  const std::size_t like = LikeNextBlock(config);
  formats::Metadata next = target.file().metadata();
  for (const auto& [key, value] : target.file().metadata().all())
    if (const auto* list = NumbersByBlock(target, key, value)) {
      std::vector<std::int64_t> longer = *list;
      longer.push_back(longer[like]);
      next.Set(key, std::move(longer));
    }
  next.Set(config.architecture + ".block_count", std::int64_t{config.n_layers() + 1});
  next.Set(config.architecture + ".nextn_predict_layers", std::int64_t{1});
  if (NextBlockReplacesExperts(target))
    MakeDense(config.architecture, BlockLike(config, false).ff, next);
  return next;
}

bool NextBlockReplacesExperts(const TargetReader& target) {
  const model::ModelConfig& config = target.config();
  return config.layers[LikeNextBlock(config)].experts() != nullptr;
}

}  // namespace foretoken::train
