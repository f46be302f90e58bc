// SPDX-License-Identifier: Apache-2.0
// model/arch/common_config.h: the keys that all architectures have in common.
#pragma once

#include "foretoken/result.h"
#include "model/arch/metadata_reader.h"
#include "model/config.h"

namespace foretoken::model {

// What the files of an architecture may have, as the rows of registry.h say.
struct MixerKinds {
  bool latent = false, recurrent = false, single_parts = false;
  bool next_alone = false;  // all blocks are those of a head
};

// The layers include those of an MTP head, n_next_layers of them, at the end. The attention of
// recurrent layers has no heads. Errors: kInvalidFile, kUnsupported.
[[nodiscard]] Result<ModelConfig> ReadCommonConfig(const MetadataReader& read,
                                                   MixerKinds kinds = {});

}  // namespace foretoken::model
