// SPDX-License-Identifier: Apache-2.0
// model/arch/registry.h: from a file's metadata to a ModelConfig, by the name of the architecture.
//
// An architecture is one file in families/ and one row in registry.cpp. The row's function says what the
// files of that architecture leave unsaid. A kind of heads is one file in heads/ and one row.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "foretoken/catalogue.h"
#include "foretoken/result.h"
#include "formats/checkpoint.h"
#include "formats/metadata.h"
#include "model/arch/metadata_reader.h"
#include "model/config.h"

namespace foretoken::model {

struct Architecture {
  ArchitectureInfo info;
  // Completes a configuration that holds what all architectures have in common: layers of attention
  // with an interleaved rotation, and a gated feed-forward part.
  Status (*complete)(const MetadataReader& read, ModelConfig& config);
  bool latent = false;  // attention by latent vectors: keys and values may differ in length
  // Layers without key-value heads are recurrent. `complete` gives them their mixers.
  bool recurrent = false;
  bool single_parts = false;  // layers may lack their feed-forward part, and then have a width of 0
};

// Errors: kUnsupported (an architecture that is not in the registry; the message lists those that
// are), kInvalidFile (a key that is missing or out of range).
[[nodiscard]] Result<ModelConfig> ConfigFromMetadata(const formats::Metadata& metadata);

// With the layers of an MTP head. Errors: as above.
[[nodiscard]] Result<ModelConfig> ConfigOfAllBlocks(const formats::Metadata& metadata);

// An architecture without experts whose file has some is something else than its name says. Error:
// kUnsupported.
[[nodiscard]] Status CheckExpertsAreUsed(const MetadataReader& read, const ModelConfig& config);

// Where a head's file has an output matrix, `vocabulary` becomes the number of its rows. Error:
// kInvalidFile.
[[nodiscard]] Status ReadOutputRows(const formats::Checkpoint& file, ModelConfig& config);

inline constexpr std::size_t kMostFeatureLayers = 64;  // of a target, that a head may read
// The layers whose states a head reads, at least one; nothing where the file lacks the key.
[[nodiscard]] Result<std::vector<int>> ReadFeatureLayers(const MetadataReader& read,
                                                         std::string_view key);

// What a file can serve as in speculation.
struct DraftFile {
  bool model = false;              // it is a whole model
  const HeadKind* head = nullptr;  // that it holds; null: none

  bool model_with_head() const { return model && head != nullptr; }
  std::string Noun() const;  // "an MTP head"
};
DraftFile DraftFileOf(const formats::Checkpoint& checkpoint);

// The MTP head that these metadata tell of: the first of several next-n blocks. `vocabulary` is 0: it
// is the target's. Errors: as above.
[[nodiscard]] Result<ModelConfig> MtpConfigFromMetadata(const formats::Metadata& metadata);

// The head in a file; where it holds none, the error says so. `vocabulary` of an MTP head is 0: it is
// the target's. Errors: as above.
[[nodiscard]] Result<ModelConfig> HeadConfigFromFile(const formats::Checkpoint& checkpoint);

}  // namespace foretoken::model
