// SPDX-License-Identifier: Apache-2.0
// write_tiny_model FOLDER: writes target.gguf, draft.gguf (the target and noise) and other.gguf
// (another vocabulary) for tests that run programs.
#include <cstdio>

#include "fixtures/tiny_model.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: write_tiny_model FOLDER\n", stderr);
    return 2;
  }
  foretoken::fixtures::TinyModelOptions options;
  options.file_name = "target.gguf";
  foretoken::fixtures::WriteTinyModel(argv[1], options);
  options.file_name = "draft.gguf";
  options.noise = 0.2;
  foretoken::fixtures::WriteTinyModel(argv[1], options);
  options.file_name = "other.gguf";
  options.vocab = 300;
  foretoken::fixtures::WriteTinyModel(argv[1], options);
  return 0;
}
