// SPDX-License-Identifier: Apache-2.0
// cli/files/inspection.h: the results of `inspect`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "foretoken/tools/model_file.h"

namespace foretoken::cli {

struct TypeTotal {
  std::string type;
  std::int64_t count = 0, bytes = 0;
  bool supported = true, has_vector_kernel = true;
};

struct Inspection {
  std::string path, format, name, architecture, type;
  std::int64_t file_bytes = 0, parameters = 0;
  std::string context_length;  // "" if the file does not say
  std::string tokenizer;       // "" if there is none that can be used
  std::string tokenizer_obstacle;
  std::string obstacle;     // "" if foretoken can run the model
  std::string drafts_as;    // the --spec-type for this file
  bool whole_model = true;  // else a head
  std::optional<ModelMemory> memory;
  std::vector<TypeTotal> types;  // most bytes first
  std::vector<TensorSummary> tensors;
  std::vector<std::pair<std::string, std::string>> metadata;

  // Value of a metadata key; "" if it is absent.
  std::string Metadata(const std::string& key) const;
};

// context_size: of the text whose memory is shown; 0: the model's.
Inspection Inspect(ModelFile& file, const std::string& path, int context_size);

}  // namespace foretoken::cli
