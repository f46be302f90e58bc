// SPDX-License-Identifier: Apache-2.0
#include "attack/good_files.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/check.h"
#include "fixtures/model_folder.h"
#include "fixtures/tiny_model.h"
#include "foretoken/catalogue.h"

namespace foretoken::attack {
namespace {

using fixtures::TinyHeadOptions;
using fixtures::TinyModelOptions;
using tensor::DType;

Bytes ReadBytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  FORETOKEN_CHECK(in.good());
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

TinyModelOptions Small(const std::string& words) {
  return fixtures::TinyOptions("dim=32 ff=32 n_heads=4 n_kv_heads=2 vocab=300 context_length=96 " +
                               words);
}

// Experts in the types that files of gpt-oss and of large mixtures have.
TinyModelOptions Mxfp4Experts() {
  TinyModelOptions options = fixtures::SmallestOf("gpt-oss");
  options.weight_type = DType::kQ8_0;
  for (const char* name : {"ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"})
    options.weight_types[name] = DType::kMXFP4;
  return options;
}

GoodFile FolderOf(const std::string& folder, const char* architecture, DType type, int n_files) {
  TinyModelOptions options = fixtures::SmallestOf(architecture);
  options.weight_type = type;
  const std::string path = folder + "/folder-of-" + architecture;
  fixtures::WriteModelFolder(fixtures::WriteTinyModel(folder, options), path, {.n_files = n_files});
  GoodFile good{.name = std::string("folder of ") + architecture,
                .role = Role::kFolder,
                .bytes = {},
                .target = {}};
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    const Bytes bytes = ReadBytes(entry.path().string());
    good.files[entry.path().filename().string()].assign(reinterpret_cast<const char*>(bytes.data()),
                                                        bytes.size());
  }
  return good;
}

void AddHeads(const std::string& folder, const TinyModelOptions& target, GoodFiles& good) {
  const auto head = [&](const char* name, TinyHeadOptions options) {
    options.target = target;
    const std::string path = fixtures::WriteTinyHead(folder, options);
    good.files.push_back({name, Role::kHead, ReadBytes(path), good.target});
  };
  head("MTP head", {});
  TinyHeadOptions eagle;
  eagle.eagle = true;
  head("EAGLE-3 head", eagle);
  eagle.draft_vocabulary = 100, eagle.norm_before_fc = true;
  head("EAGLE-3 head of few tokens", eagle);
  eagle.layers = {0, 1}, eagle.n_blocks = 2, eagle.dim = 96;
  head("EAGLE-3 head of two wider blocks", eagle);
  head("DFlash drafter", {.block = true, .window = 20});
  head("DFlash 2 drafter", {.block = true, .taps = 2, .n_candidates = 6});
  head("DSpark drafter", {.block = true, .transition_rank = 32, .certainty = true});
}

// Heads that are for targets of other architectures.
void AddHeadsOfFamilies(const std::string& folder, GoodFiles& good) {
  for (const char* name : {"glm4moe", "deepseek2", "qwen35moe"}) {
    TinyModelOptions options = fixtures::SmallestOf(name);
    options.n_layers = 3, options.n_next = 1;
    options.file_name = std::string("good-target-") + name + ".gguf";
    const std::string path = fixtures::WriteTinyModel(folder, options);
    good.files.push_back({std::string("MTP head of ") + name, Role::kHead, ReadBytes(path), path});
  }
  TinyModelOptions gemma = fixtures::SmallestOf("gemma4");
  gemma.file_name = "good-target-gemma4.gguf";
  const std::string target = fixtures::WriteTinyModel(folder, gemma),
                    path = fixtures::WriteTinyHead(
                        folder, {.target = gemma, .assistant = true, .n_blocks = 2, .dim = 64});
  good.files.push_back({"assistant", Role::kHead, ReadBytes(path), target});
}

}  // namespace

GoodFiles MakeGoodFiles(const std::string& folder, std::span<const std::string> more) {
  GoodFiles good;
  TinyModelOptions target = Small("llama");
  target.file_name = "good-target.gguf";
  good.target = fixtures::WriteTinyModel(folder, target);
  TinyModelOptions draft = target;
  draft.noise = 0.2, draft.file_name = "good-draft.gguf";
  good.draft = fixtures::WriteTinyModel(folder, draft);
  const auto model = [&good](const char* name, const TinyModelOptions& options) {
    good.files.push_back({name, Role::kModel, fixtures::TinyModelBytes(options), {}});
  };
  for (const ArchitectureInfo* info : AllArchitectures()) {
    const std::string name(info->name);
    model(name.c_str(), fixtures::SmallestOf(name));
  }
  model("mixtral", fixtures::SmallestOf("mixtral"));
  model("llama with yarn",
        Small("rope_scaling=yarn rope_scaling_factor=2 rope_original_context=48 rope_freqs"));
  model("qwen3 quantised", Small("qwen3 Q8_0 tied head_dim=16 ffn_gate=Q4_0 attn_q=Q5_1"));
  const std::string wide = "n_layers=1 dim=256 ff=256 ";  // K-quants have rows of 256
  model("llama of K-quants", Small(wide + "Q4_K output=Q6_K"));
  model("qwen3moe quantised", Small("qwen3moe Q8_0 ffn_up_exps=F16 n_experts=5 n_dense=1"));
  model("llama of few bits",
        Small(wide + "Q3_K attn_v=Q2_K ffn_down=IQ4_XS ffn_up=IQ4_NL output=MXFP4"));
  // Types that are kept in a wider form.
  model("llama of one to three bits",
        Small(wide + "IQ3_S token_embd=TQ1_0 output=TQ2_0 attn_q=IQ1_S attn_k=IQ1_M attn_v=IQ2_XXS "
                     "attn_output=IQ2_XS ffn_gate=IQ2_S ffn_up=IQ3_XXS"));
  model("gpt-oss of MXFP4", Mxfp4Experts());
  AddHeads(folder, target, good);
  AddHeadsOfFamilies(folder, good);
  good.files.push_back(FolderOf(folder, "llama", DType::kF32, 1));
  good.files.push_back(FolderOf(folder, "qwen3moe", DType::kBF16, 2));
  good.files.push_back(FolderOf(folder, "gemma3", DType::kF16, 1));
  for (const std::string& path : more)
    good.files.push_back(
        {std::filesystem::path(path).filename().string(), Role::kModel, ReadBytes(path), {}});
  return good;
}

}  // namespace foretoken::attack
