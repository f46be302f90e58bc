// SPDX-License-Identifier: Apache-2.0
#include "formats/huggingface/model_folder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "base/failure_testing.h"
#include "base/files/whole_file_testing.h"
#include "fixtures/model_folder.h"
#include "fixtures/tiny_model.h"
#include "formats/checkpoint.h"

namespace foretoken::formats::huggingface {
namespace {

namespace fs = std::filesystem;
using fixtures::TemporaryFolder;
using fixtures::TinyModelOptions;
using fixtures::WriteModelFolder;
using fixtures::WriteText;

std::string Gguf(const TinyModelOptions& options = {}) {
  return fixtures::WriteTinyModel(TemporaryFolder(), options);
}

std::string FolderOf(const std::string& gguf, int n_files = 1) {
  return WriteModelFolder(gguf, TemporaryFolder() + "/tiny", {.n_files = n_files});
}

void ExpectSameTensors(const Checkpoint& file, const Checkpoint& folder) {
  ASSERT_EQ(file.tensors().size(), folder.tensors().size());
  for (const TensorView& t : file.tensors()) {
    const TensorView* other = folder.Find(t.name);
    ASSERT_NE(other, nullptr) << t.name;
    EXPECT_EQ(other->shape, t.shape) << t.name;
    EXPECT_EQ(other->ggml_type, t.ggml_type) << t.name;
    ASSERT_EQ(other->bytes(), t.bytes()) << t.name;
    for (std::int64_t row = 0; row < t.n_rows(); ++row)
      EXPECT_TRUE(std::equal(t.Row(row), t.Row(row) + t.row_bytes(), other->Row(row)))
          << t.name << " row " << row;
  }
}

TEST(ModelFolder, HasTheTensorsOfAGgufFileOfTheSameWeights) {
  for (const char* arch : {"llama", "qwen2", "qwen3"}) {
    const std::string gguf = Gguf({.arch = arch, .n_heads = 4, .n_kv_heads = 2});
    const auto file = OpenCheckpoint(gguf).value();
    for (const int n_files : {1, 3}) {
      const auto folder = Got(OpenCheckpoint(FolderOf(gguf, n_files)));
      ExpectSameTensors(*file, *folder);
      EXPECT_EQ(folder->files().size(), static_cast<std::size_t>(n_files));
    }
  }
}

TEST(ModelFolder, HasTheKeysOfAGgufFile) {
  for (const char* arch : {"llama", "qwen2", "qwen3"}) {
    const std::string gguf = Gguf({.arch = arch,
                                   .rope_scaling = "yarn",
                                   .rope_scaling_factor = 4,
                                   .rope_original_context = 64});
    const auto file = OpenCheckpoint(gguf).value();
    const auto folder = OpenCheckpoint(FolderOf(gguf)).value();
    for (const auto& [key, value] : file->metadata().all()) {
      if (key.starts_with("tokenizer.ggml.scores") || key == "general.name") continue;
      const MetadataValue* other = folder->metadata().Find(key);
      ASSERT_NE(other, nullptr) << key;
      if (std::holds_alternative<double>(value))
        EXPECT_FLOAT_EQ(static_cast<float>(*folder->metadata().Float(key)),
                        static_cast<float>(*file->metadata().Float(key)))
            << key;
      else
        EXPECT_TRUE(*other == value) << key;
    }
  }
}

TEST(ModelFolder, KeepsBf16AndF16AsTheyAre) {
  for (const auto type : {tensor::DType::kBF16, tensor::DType::kF16}) {
    const std::string gguf = Gguf({.weight_type = type});
    ExpectSameTensors(*OpenCheckpoint(gguf).value(), *OpenCheckpoint(FolderOf(gguf)).value());
  }
}

TEST(ModelFolder, ATiedHeadIsNotThereTwice) {
  const std::string folder = FolderOf(Gguf({.tied = true}));
  EXPECT_EQ(OpenCheckpoint(folder).value()->Find("output.weight"), nullptr);
}

TEST(ModelFolder, TheFingerprintFollowsTheConfiguration) {
  const std::string folder = FolderOf(Gguf());
  const auto before = OpenCheckpoint(folder).value()->Fingerprint();
  EXPECT_EQ(OpenCheckpoint(folder + "/").value()->Fingerprint(), before);
  const std::string config = folder + "/config.json";
  WriteText(config, R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64,
                        "intermediate_size": 96, "num_attention_heads": 8, "head_dim": 16,
                        "num_key_value_heads": 2, "vocab_size": 320})");
  EXPECT_NE(OpenCheckpoint(folder).value()->Fingerprint(), before);
}

TEST(ModelFolder, ChatTemplatesComeFromTheirOwnFileFirst) {
  const std::string folder = FolderOf(Gguf());
  const auto shown = [&](const char* key = "tokenizer.chat_template") {
    const auto opened = OpenCheckpoint(folder);
    const std::string* text = opened ? (*opened)->metadata().String(key) : nullptr;
    return text == nullptr ? "" : *text;
  };
  EXPECT_EQ(shown(), "");
  WriteText(folder + "/tokenizer_config.json",
            R"({"chat_template": [{"name": "default", "template": "a"},
                                  {"name": "tool_use", "template": "b"}]})");
  EXPECT_EQ(shown(), "a");
  EXPECT_EQ(shown("tokenizer.chat_template.tool_use"), "b");
  WriteText(folder + "/tokenizer_config.json", R"({"chat_template": "c"})");
  EXPECT_EQ(shown(), "c");
  WriteText(folder + "/chat_template.jinja", "d");
  EXPECT_EQ(shown(), "d");
}

TEST(ModelFolder, OtherTokensThatEndATextComeFromTheGenerationConfig) {
  const std::string folder = FolderOf(Gguf());
  WriteText(folder + "/generation_config.json", R"({"eos_token_id": [2, 300, 301]})");
  const auto opened = OpenCheckpoint(folder).value();
  EXPECT_EQ(opened->metadata().Int("tokenizer.ggml.eos_token_id"), 2);
  EXPECT_EQ(opened->metadata().Int("tokenizer.ggml.eot_token_id"), 300);
  EXPECT_EQ(opened->metadata().Int("tokenizer.ggml.eom_token_id"), 301);
}

// ---- Hostile folders ----------------------------------------------------------------------------

void Replace(const std::string& path, const std::string& from, const std::string& to) {
  std::string text = WholeFile(path);
  const auto at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  WriteText(path, text.replace(at, from.size(), to));
}

struct Damage {
  const char* name;
  std::function<void(const std::string& folder)> make;
  std::vector<const char*> words;  // of the message
  int n_files = 1;
};

std::vector<Damage> Damages() {
  const auto drop = [](const char* file) {
    return [file](const std::string& folder) { fs::remove(folder + "/" + file); };
  };
  const auto change = [](const char* file, const char* from, const char* to) {
    return [=](const std::string& folder) { Replace(folder + "/" + file, from, to); };
  };
  constexpr const char* kConfig = "config.json";
  constexpr const char* kTokenizer = "tokenizer.json";
  constexpr const char* kIndex = "model.safetensors.index.json";
  constexpr const char* kSecond = "model-00002-of-00002.safetensors";
  return {
      {"no config", drop(kConfig), {"config.json: missing"}},
      {"no tokenizer", drop(kTokenizer), {"tokenizer.json: missing", "fetch"}},
      {"no weights", drop("model.safetensors"), {"neither model.safetensors"}},
      {"no shard", drop(kSecond), {kSecond, "missing", "fetch it"}, 2},
      {"no index", drop(kIndex), {"neither model.safetensors"}, 2},
      {"config is a list", [](auto& f) { WriteText(f + "/config.json", "[]"); }, {"config.json"}},
      {"config is empty", [](auto& f) { WriteText(f + "/config.json", ""); }, {"config.json"}},
      {"config is deep",
       [](auto& f) { WriteText(f + "/config.json", std::string(1 << 20, '[')); },
       {"config.json", "nested"}},
      {"no model type", change(kConfig, "model_type", "m"), {"config.json", "model_type"}},
      {"another network", change(kConfig, "\"llama\"", "\"mamba\""), {"mamba", "llama", "GGUF"}},
      {"a type of another kind", change(kConfig, "\"llama\"", "5"), {"model_type", "string"}},
      {"a size in words",
       change(kConfig, "\"hidden_size\": 64", "\"hidden_size\": \"64\""),
       {"hidden_size", "integer"}},
      {"a size of 2^70",
       change(kConfig, "\"hidden_size\": 64", "\"hidden_size\": 1180591620717411303424"),
       {"hidden_size"}},
      {"a size of 0",
       change(kConfig, "\"num_attention_heads\": 4", "\"num_attention_heads\": 0"),
       {"num_attention_heads", "out of range"}},
      {"heads of 2^40",
       change(kConfig, "\"head_dim\": 16", "\"head_dim\": 1099511627776"),
       {"head_dim", "out of range"}},
      {"heads that do not divide the rows",
       change(kConfig, "\"head_dim\": 16", "\"head_dim\": 24"),
       {"q_proj", "heads of 24"}},
      {"fewer blocks than tensors",
       change(kConfig, "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1"),
       {"model.layers.1."}},
      {"quantised",
       change(kConfig, "{\"model_type\"",
              "{\"quantization_config\": {\"quant_method\": \"gptq\"}, \"model_type\""),
       {"quantization_config", "BF16"}},
      {"another activation",
       change(kConfig, "{\"model_type\"", "{\"hidden_act\": \"relu\", \"model_type\""),
       {"hidden_act", "relu"}},
      {"another scaling",
       change(kConfig, "{\"model_type\"",
              "{\"rope_scaling\": {\"type\": \"dynamic\", \"factor\": 2}, \"model_type\""),
       {"rope_type", "dynamic"}},
      {"a scaling without a factor",
       change(kConfig, "{\"model_type\"",
              "{\"rope_scaling\": {\"type\": \"llama3\"}, \"model_type\""),
       {"factor", "missing"}},
      {"an index that leaves the folder",
       change(kIndex, "\"model-00002-of-00002.safetensors\"", "\"../model.safetensors\""),
       {"index.json", "not a file of this folder"},
       2},
      {"an index with an absolute path",
       change(kIndex, "\"model-00002-of-00002.safetensors\"", "\"/etc/passwd\""),
       {"index.json", "not a file of this folder"},
       2},
      {"an index with a number",
       change(kIndex, "\"model-00002-of-00002.safetensors\"", "7"),
       {"index.json", "not a file of this folder"},
       2},
      {"an index without a map",
       change(kIndex, "weight_map", "weights"),
       {"index.json", "weight_map", "missing"},
       2},
      {"an index with a tensor that is not there",
       change(kIndex, "\"weight_map\": {",
              "\"weight_map\": {\"model.x\": \"model-00001-of-00002.safetensors\", "),
       {"model.x", "missing"},
       2},
      {"a shard that is text",
       [=](auto& f) { WriteText(f + "/" + kSecond, "version https://git-lfs.github.com"); },
       {kSecond},
       2},
      {"a tensor that networks of the kind do not have",
       change("model.safetensors", "model.layers.1.mlp.up_proj", "model.layers.1.mlp.xx_proj"),
       {"xx_proj", "llama"}},
      {"a matrix of integers", change("model.safetensors", "\"F32\"", "\"I32\""), {"I32", "BF16"}},
      {"a tokenizer of another kind",
       change(kTokenizer, "\"model\": {\"type\": \"BPE\"", "\"model\": {\"type\": \"Unigram\""),
       {"tokenizer.json", "Unigram", "GGUF"}},
      {"a tokenizer without merges",
       change(kTokenizer, "\"merges\"", "\"m\""),
       {"tokenizer.json", "merges", "missing"}},
      {"merges of one part",
       change(kTokenizer, "\"merges\": [[", "\"merges\": [[\"a\"], ["),
       {"merges", "pair"}},
      {"two tokens with one id",
       change(kTokenizer, "\"<0x00>\": 3", "\"<0x00>\": 4"),
       {"tokenizer.json", "id 4"}},
      {"an id of 2^40",
       change(kTokenizer, "\"<0x00>\": 3", "\"<0x00>\": 1099511627776"),
       {"tokenizer.json", "<0x00>"}},
      {"an id that makes millions of tokens",
       change(kTokenizer, "\"<0x00>\": 3", "\"<0x00>\": 16777215"),
       {"tokenizer.json", "<0x00>", "below 643"}},
      {"a negative id",
       change(kTokenizer, "\"<0x00>\": 3", "\"<0x00>\": -3"),
       {"tokenizer.json", "<0x00>"}},
      {"an unknown normalizer", change(kTokenizer, "Prepend", "NFKC"), {"normalizer", "NFKC"}},
      {"words that are not known",
       change(kTokenizer, "\"pre_tokenizer\": null",
              "\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": "
              "\"Split\", \"pattern\": {\"Regex\": \"x+\"}, \"behavior\": \"Isolated\"}, "
              "{\"type\": \"ByteLevel\", \"use_regex\": false}]}"),
       {"pre_tokenizer", "x+", "GGUF"}},
  };
}

TEST(ModelFolder, ADamagedFolderIsAnErrorThatNamesFileAndRemedy) {
  const std::string gguf = Gguf();
  for (const Damage& damage : Damages()) {
    SCOPED_TRACE(damage.name);
    const std::string folder = FolderOf(gguf, damage.n_files);
    damage.make(folder);
    const std::string& message = MessageOf(OpenCheckpoint(folder));
    EXPECT_TRUE(message.starts_with(folder)) << message;
    EXPECT_NE(message.find("; "), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    for (const char* word : damage.words)
      EXPECT_NE(message.find(word), std::string::npos) << word << " is not in: " << message;
  }
}

TEST(ModelFolder, AnotherFolderSaysWhatItLacks) {
  const std::string folder = TemporaryFolder();
  WriteText(folder + "/x.gguf", "x");
  EXPECT_TRUE(Fails(OpenCheckpoint(folder), "x.gguf"));
  WriteText(folder + "/pytorch_model.bin", "x");
  EXPECT_TRUE(Fails(OpenCheckpoint(folder), "PyTorch"));
}

TEST(ModelFolder, ASafetensorsFileNamesItsFolder) {
  const std::string folder = FolderOf(Gguf());
  EXPECT_TRUE(Fails(OpenCheckpoint(folder + "/model.safetensors"), "name the folder"));
}

}  // namespace
}  // namespace foretoken::formats::huggingface
