// SPDX-License-Identifier: Apache-2.0
#include "cli/files/inspection.h"
#include "settings/option_flags.h"

#include <algorithm>

namespace foretoken::cli {

std::string Inspection::Metadata(const std::string& key) const {
  const auto it = std::find_if(metadata.begin(), metadata.end(),
                               [&](const auto& entry) { return entry.first == key; });
  return it == metadata.end() ? "" : it->second;
}

Inspection Inspect(ModelFile& file, const std::string& path, int context_size) {
  Inspection inspection;
  inspection.path = path;
  inspection.format = file.format();
  inspection.file_bytes = file.file_bytes();
  inspection.parameters = file.parameters();
  inspection.type = file.type();
  inspection.obstacle = settings::InFlags(file.obstacle());
  inspection.drafts_as = file.drafts_as();
  inspection.whole_model = file.is_whole_model();
  if (inspection.whole_model && inspection.obstacle.empty())
    if (auto memory = file.Memory(context_size)) inspection.memory = *std::move(memory);
  inspection.tensors = file.tensors();
  inspection.metadata = file.metadata();
  inspection.name = inspection.Metadata("general.name");
  inspection.architecture = inspection.Metadata("general.architecture");
  inspection.context_length = inspection.Metadata(inspection.architecture + ".context_length");
  if (auto tokenizer = file.DescribeTokenizer()) {
    inspection.tokenizer = *std::move(tokenizer);
  } else {
    inspection.tokenizer_obstacle = settings::InFlags(tokenizer.error().message);
  }
  for (const TensorSummary& tensor : inspection.tensors) {
    auto total = std::find_if(inspection.types.begin(), inspection.types.end(),
                              [&](const TypeTotal& t) { return t.type == tensor.type; });
    if (total == inspection.types.end()) {
      total = inspection.types.insert(total, {.type = tensor.type,
                                              .supported = tensor.supported,
                                              .has_vector_kernel = tensor.has_vector_kernel});
    }
    ++total->count;
    total->bytes += tensor.bytes;
  }
  std::stable_sort(inspection.types.begin(), inspection.types.end(),
                   [](const TypeTotal& a, const TypeTotal& b) { return a.bytes > b.bytes; });
  return inspection;
}

}  // namespace foretoken::cli
