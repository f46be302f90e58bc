// SPDX-License-Identifier: Apache-2.0
// write_tiny_model --mixture FILE: writes a mixture with 96 MiB of experts.
// write_tiny_model --recurrent FILE: writes a network with recurrent layers.
// write_tiny_model --gemma4 FILE: writes a mixture with GELU, windows and routers' norms.
// write_tiny_model --large FILE: writes 300 MB of F16, of which an engine makes a copy that drafts.
// write_tiny_model FOLDER: writes, for tests that run programs, target.gguf, draft.gguf (the target
// and noise), padded.gguf (the draft with more tokens, a few of other texts), other.gguf (another
// vocabulary), and models/: tiny ones under the names of the
// bundled models.
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>

#include "fixtures/tiny_model.h"

namespace {

using namespace foretoken::fixtures;

void WritePair(const std::string& folder, const char* target, const char* draft) {
  TinyModelOptions options;
  options.file_name = target;
  WriteTinyModel(folder, options);
  options.file_name = draft;
  options.noise = 0.2;
  WriteTinyModel(folder, options);
}

void WriteBundledModels(const std::string& folder) {
  std::filesystem::create_directories(folder);
  WritePair(folder, "tales-9m-q8_0.gguf", "tales-1m-draft-q8_0.gguf");
  TinyHeadOptions head;
  head.file_name = "tales-9m-mtp-q8_0.gguf";
  WriteTinyHead(folder, head);
  head.eagle = true;
  head.file_name = "tales-9m-eagle-q8_0.gguf";
  WriteTinyHead(folder, head);
}

// Models that a test asks for alone.
const std::map<std::string, std::string> kModels = {
    {"--mixture", "qwen3moe seed=65 n_layers=4 dim=256 n_experts=64 n_used=4 expert_ff=128"},
    {"--recurrent", "qwen35 seed=92 n_layers=3 head_dim=32 context_length=512 rope_dimensions=8"},
    {"--gemma4",
     "gemma4 seed=93 n_layers=6 kv_heads_by_layer=2,2,1,2,2,1 head_dim=32 window=24 n_experts=8 "
     "n_used=3 rope_freqs"},
    {"--large", "F16 seed=94 n_layers=12 dim=1024 ff=3072 n_heads=16 n_kv_heads=8"}};

}  // namespace

int main(int argc, char** argv) {
  const auto model = kModels.find(argc == 3 ? argv[1] : "");
  if (model != kModels.end()) {
    const std::filesystem::path path = argv[2];
    TinyModelOptions options = TinyOptions(model->second);
    options.file_name = path.filename();
    WriteTinyModel(path.parent_path(), options);
    return 0;
  }
  if (argc != 2) {
    std::fputs(
        "usage: write_tiny_model FOLDER | --mixture FILE | --recurrent FILE | --gemma4 FILE | "
        "--large FILE\n",
        stderr);
    return 2;
  }
  const std::string folder = argv[1];
  WritePair(folder, "target.gguf", "draft.gguf");
  TinyModelOptions other;
  other.file_name = "other.gguf";
  other.vocab = 280;
  WriteTinyModel(folder, other);
  TinyModelOptions padded;
  padded.file_name = "padded.gguf";
  padded.noise = 0.2;
  padded.vocab = 330;
  padded.respelled = {{0, "<|pad|>"}, {300, "<|tool|>"}};
  WriteTinyModel(folder, padded);
  WriteBundledModels(folder + "/models");
  return 0;
}
