// SPDX-License-Identifier: Apache-2.0
// formats/huggingface/family.h: the networks whose folders are known, and how a folder's config.json
// becomes the metadata that a GGUF file of the network has.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretoken/result.h"
#include "formats/huggingface/json_file.h"
#include "formats/metadata.h"

namespace foretoken::formats::huggingface {

// What a field is where config.json leaves it out.
struct Defaults {
  std::int64_t heads = 0, kv_heads = 0;  // 0: the first must be there; the second is the first
  std::int64_t head_dim = 0;             // 0: hidden_size / heads
  std::int64_t context = 2048, window = 0, vocabulary = 0;
  double rms_epsilon = 1e-6, rope_base = 10000;
  bool tied = false;
};

// One row for each model_type.
struct Family {
  std::string_view model_type;    // of config.json
  std::string_view architecture;  // of GGUF
  // Rows of queries and keys are stored by halves of a head; the architecture has them alternate.
  bool alternates = false;
  bool has_experts = false;
  bool sandwich = false;  // Gemma's names for the norms around both parts
  float norm_offset = 0;  // added to the weights of norms
  std::string_view activation = "silu";
  Defaults defaults = {};
};

// What the reading of a folder's tensors needs to know.
struct Configuration {
  const Family* family = nullptr;
  std::int64_t blocks = 0, head_dim = 0, experts = 0, vocabulary = 0;
  bool tied = false;
  std::vector<float> rope_factors;  // of rope_freqs.weight; empty: there are none
};

// Fills in general.architecture and ARCHITECTURE.*. Errors: kInvalidFile (a missing field, one of
// another kind), kUnsupported (a model_type or a setting that is not known, with what to do).
[[nodiscard]] Result<Configuration> ReadConfiguration(const Json& config, const std::string& path,
                                                      Metadata& metadata);

// "gemma3, llama, ...": the model types that are known.
std::string KnownModelTypes();

}  // namespace foretoken::formats::huggingface
