// SPDX-License-Identifier: Apache-2.0
// train/text/sample.h: text as a target writes it, to distil from.
//
// Sample i is a pure function of (seed, i) and the settings: it continues a prompt cut from the
// given text, the beginning of a document or, in documents longer than a sample, of a line. So a
// run that was stopped continues where it was, and a fixed seed gives the same file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "foretoken/result.h"
#include "formats/checkpoint.h"

namespace foretoken::train {

struct SampleOptions {
  std::string model;              // the target's GGUF file
  std::vector<std::string> text;  // "FILE[:SHARE]": where prompts come from
  std::string out;
  std::int64_t tokens = 0;  // generated ones: at least as many, in whole samples
  double temperature = 0.8;
  int prompt_tokens = 16;  // the most for a sample
  int new_tokens = 0;      // the most for a sample; 0: 240, or what the context holds
  std::uint64_t seed = 1;
  int threads = 0;  // 0: the cores
};

// Writes options.out: UTF-8 documents (prompt and continuation), separated by "<|endoftext|>".
// `out.settings` records how it was made; an existing file that was made in the same way stays as
// it is. `out.part` keeps finished samples meanwhile. Errors: those of ReadDocuments and
// Engine::Open; kInvalidArgument (a temperature out of range, samples longer than the target's
// context); kIo.
[[nodiscard]] Status WriteSamples(SampleOptions options);

// A hash that changes with any weight of the file.
std::uint64_t HashOfWeights(const formats::Checkpoint& file);

}  // namespace foretoken::train
