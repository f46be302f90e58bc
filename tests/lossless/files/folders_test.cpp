// SPDX-License-Identifier: Apache-2.0
// A folder as it is downloaded (config.json, tokenizer.json, *.safetensors) and a GGUF file of the same
// weights give the same tokens and the same bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <fstream>
#include <iterator>
#include <vector>

#include "fixtures/engines_testing.h"
#include "fixtures/model_folder.h"
#include "fixtures/tiny_model.h"
#include "foretoken/tools/model_file.h"
#include "formats/checkpoint.h"

namespace foretoken {
namespace {

using fixtures::TemporaryFolder;
using fixtures::TinyModelOptions;

struct Pair {
  std::string gguf, folder;
};

Pair Write(const TinyModelOptions& options, int n_files = 1) {
  Pair pair;
  pair.gguf = fixtures::WriteTinyModel(TemporaryFolder(), options);
  pair.folder =
      fixtures::WriteModelFolder(pair.gguf, TemporaryFolder() + "/model", {.n_files = n_files});
  return pair;
}

struct Outcome {
  std::vector<std::int32_t> tokens;
  std::vector<std::uint32_t> bits;  // of log-probabilities
  std::string text;
  bool operator==(const Outcome&) const = default;
};

Outcome OutcomeOf(const std::string& model, const std::string& draft = "") {
  const auto engine = OpenEngine({.model = model,
                                  .draft_model = draft,
                                  .speculative = {.method = draft.empty() ? "none" : "standalone"},
                                  .threads = 2});
  if (!engine) return {};
  const auto ids = engine->Tokenize("the rain and the sea: a ship, \xE2\x82\xAC 5", true, false);
  const Completion text =
      Generated(*engine, {.prompt = "the rain and", .max_new_tokens = 40, .ignore_eos = true});
  Outcome outcome{.tokens = text.token_ids, .bits = {}, .text = text.text};
  for (const float score : Got(engine->Score(ids)))
    outcome.bits.push_back(std::bit_cast<std::uint32_t>(score));
  outcome.tokens.insert(outcome.tokens.end(), ids.begin(), ids.end());
  return outcome;
}

TinyModelOptions Smallest(const char* architecture, tensor::DType type) {
  TinyModelOptions options = fixtures::SmallestOf(architecture);
  options.weight_type = type, options.short_norms = true;
  return options;
}

std::vector<TinyModelOptions> Networks() {
  using tensor::DType;
  return {{.seed = 71},
          {.arch = "llama", .seed = 72, .tied = true, .weight_type = DType::kBF16},
          {.arch = "qwen2", .seed = 73},
          {.arch = "qwen2", .seed = 74, .weight_type = DType::kF16},
          {.arch = "qwen3", .seed = 75, .head_dim = 24},
          {.arch = "qwen3", .seed = 76, .weight_type = DType::kBF16},
          Smallest("qwen3moe", DType::kF32),
          Smallest("qwen3moe", DType::kBF16),
          Smallest("gemma3", DType::kF32),
          Smallest("gemma3", DType::kF16)};
}

TEST(Folders, GiveTheBitsOfAGgufFile) {
  for (const TinyModelOptions& options : Networks())
    for (const int n_files : {1, 4}) {
      const Pair pair = Write(options, n_files);
      const Outcome expected = OutcomeOf(pair.gguf);
      EXPECT_EQ(expected.tokens.size() > 40, true);
      EXPECT_EQ(OutcomeOf(pair.folder), expected) << options.arch << " " << options.seed;
    }
}

TEST(Folders, MayBeDraftModels) {
  TinyModelOptions options{.seed = 81, .tied = true};
  const Pair target = Write(options);
  options.noise = 0.1;
  const Pair draft = Write(options);
  const Outcome expected = OutcomeOf(target.gguf);
  EXPECT_EQ(OutcomeOf(target.folder, draft.folder).text, expected.text);
  EXPECT_EQ(OutcomeOf(target.gguf, draft.folder).text, expected.text);
}

void ExpectSameTensors(const std::string& path, const std::string& other_path) {
  const auto file = formats::OpenCheckpoint(path), other = formats::OpenCheckpoint(other_path);
  ASSERT_TRUE(file && other);
  EXPECT_EQ((*file)->tensors().size(), (*other)->tensors().size());
  for (const formats::TensorView& tensor : (*file)->tensors()) {
    const formats::TensorView* const same = (*other)->Find(tensor.name);
    ASSERT_NE(same, nullptr) << tensor.name;
    EXPECT_EQ(same->ggml_type, tensor.ggml_type) << tensor.name;
    EXPECT_EQ(same->shape, tensor.shape) << tensor.name;
    EXPECT_TRUE(
        std::equal(tensor.data.begin(), tensor.data.end(), same->data.begin(), same->data.end()))
        << tensor.name;
  }
}

TEST(Folders, QuantizeWritesTheGgufFileOfTheSameWeights) {
  const TinyModelOptions networks[] = {{.arch = "llama", .seed = 91},
                                       Smallest("qwen3moe", tensor::DType::kF32),
                                       Smallest("gemma3", tensor::DType::kF32)};
  for (const TinyModelOptions& network : networks)
    for (const char* type : {"F32", "BF16", "Q8_0", "Q4_0"}) {
      const Pair pair = Write(network, 2);
      const std::string of_gguf = TemporaryFolder() + "/a.gguf", of_folder = of_gguf + ".b";
      Got(QuantizeFile({.input = pair.gguf, .output = of_gguf, .type = type}));
      Got(QuantizeFile({.input = pair.folder, .output = of_folder, .type = type}));
      ExpectSameTensors(of_folder, of_gguf);
      EXPECT_EQ(OutcomeOf(of_folder), OutcomeOf(of_gguf)) << network.arch << " " << type;
    }
}

TEST(Folders, QuantizeDoesNotWriteOverAShard) {
  const Pair pair = Write({.seed = 92}, 2);
  const std::string shard = pair.folder + "/model-00002-of-00002.safetensors";
  EXPECT_TRUE(
      Fails(QuantizeFile({.input = pair.folder, .output = shard, .type = "F16"}), "is the input"));
}

TEST(Folders, InspectShowsWhatAGgufFileShows) {
  const Pair pair = Write({.arch = "qwen3", .seed = 93, .weight_type = tensor::DType::kBF16}, 2);
  const auto file = *ModelFile::Open(pair.gguf), folder = *ModelFile::Open(pair.folder);
  EXPECT_EQ(folder->format(), "safetensors, 2 files");
  EXPECT_EQ(folder->parameters(), file->parameters());
  EXPECT_EQ(folder->type(), "BF16");
  EXPECT_EQ(folder->obstacle(), "");
  EXPECT_TRUE(folder->is_whole_model());
  EXPECT_EQ(folder->tensors().size(), file->tensors().size());
}

TEST(Folders, MetaspacePutsASpaceWhereThereIsNone) {
  const Pair pair = Write({.seed = 94});
  const std::string path = pair.folder + "/tokenizer.json";
  std::ifstream in(path);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  const auto begin = text.find("\"normalizer\""), end = text.find("\"post_processor\"");
  ASSERT_NE(end, std::string::npos);
  const auto ids = [&](const std::string& scheme, const std::string& of) {
    std::string changed = text;
    changed.replace(
        begin, end - begin,
        R"("pre_tokenizer": {"type": "Metaspace", "prepend_scheme": ")" + scheme + "\"}, ");
    fixtures::WriteText(path, changed);
    return *(*ModelFile::Open(pair.folder))->Tokenize(of, false, true);
  };
  const auto the = ids("never", " the");
  EXPECT_EQ(ids("always", "the"), the);
  EXPECT_EQ(ids("always", " the"), the);
  EXPECT_EQ(ids("first", "the"), the);
  EXPECT_NE(ids("never", "the"), the);
  const auto behind = [&](const char* scheme) { return ids(scheme, "a</s>the").size(); };
  EXPECT_EQ(ids("first", "a</s>the").back(), ids("never", "the").back());
  EXPECT_EQ(ids("always", "a</s>the").back(), the.back());
  EXPECT_GE(behind("first"), behind("always"));
}

}  // namespace
}  // namespace foretoken
