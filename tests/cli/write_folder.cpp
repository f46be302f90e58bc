// SPDX-License-Identifier: Apache-2.0
// Writes the model of a GGUF file as a folder of the kind that is downloaded from Hugging Face:
// write_folder MODEL.gguf FOLDER [FILES]
#include <cstdio>
#include <cstdlib>

#include "fixtures/model_folder.h"

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) {
    std::fprintf(stderr, "usage: write_folder MODEL.gguf FOLDER [FILES]\n");
    return 2;
  }
  foretoken::fixtures::WriteModelFolder(argv[1], argv[2],
                                        {.n_files = argc == 4 ? std::atoi(argv[3]) : 1});
  return 0;
}
