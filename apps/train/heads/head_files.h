// SPDX-License-Identifier: Apache-2.0
// train/heads/head_files.h: the files of heads, in the layouts that llama.cpp has for them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "foretoken/result.h"
#include "formats/metadata.h"
#include "train/heads/head_network.h"
#include "train/networks/gguf.h"

namespace foretoken::train {

// What a file says and holds. The references must outlive it.
struct HeadFile {
  const HeadConfig& head;
  const TargetReader& target;
  const Parameters& parameters;
  const std::vector<std::int64_t>& draft_vocabulary;  // empty: the target's
  FileType type = FileType::kQ8_0;
  std::string name, license;
};

// A file of the architecture eagle3.
[[nodiscard]] Status WriteEagle(const std::string& path, const HeadFile& file);

// A file of the target's architecture with one more block. It holds that block alone; where `whole` is
// set, the target's tensors and keys too.
[[nodiscard]] Status WriteMtp(const std::string& path, const HeadFile& file, bool whole);

// A file of the architecture dflash.
[[nodiscard]] Status WriteBlockDrafter(const std::string& path, const HeadFile& file);

// The target's metadata with one more block, which is an MTP head. Where a key has a number for each
// block, it has that of the target's last block with attention. A block that would be a mixture of
// experts is a dense one, as wide as what a token uses there: then the metadata call every block
// dense, and are those of a head's own file alone.
formats::Metadata MetadataWithNextBlock(const TargetReader& target);
// It is such a block.
bool NextBlockReplacesExperts(const TargetReader& target);

}  // namespace foretoken::train
