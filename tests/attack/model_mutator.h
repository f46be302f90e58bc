// SPDX-License-Identifier: Apache-2.0
// attack/model_mutator.h: damaged model files, made from good ones with knowledge of the format.
//
// A file is taken apart into keys and tensors, some of them are changed, dropped, doubled, renamed
// or given another type, and it is written again; while it is written, the place of every count,
// length, size, type and offset is kept, so that these can be overwritten and the file can be cut
// at each of them. Folders are changed by json_mutator.h. The file for a number depends on the seed, the number and the good files alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "attack/random.h"

namespace foretoken::attack {

using Bytes = std::vector<std::byte>;

// What the good file is in an engine.
enum class Role { kModel, kHead, kFolder };

struct GoodFile {
  std::string name;  // "qwen2"
  Role role = Role::kModel;
  Bytes bytes;         // of a GGUF file
  std::string target;  // of a head: the path of the model that it drafts for
  std::map<std::string, std::string> files = {};  // of a folder: contents by names
};

struct Mutated {
  std::size_t good = 0;  // the index of the file that it was made from
  Bytes bytes;
  std::map<std::string, std::string> files = {};  // of a folder
  std::string what;  // "qwen2: key qwen2.block_count removed; cut to 1200 bytes"
};

// REQUIRES: `files` are whole GGUF files of version 3, or folders.
Mutated Mutate(std::span<const GoodFile> files, std::uint64_t seed, std::uint64_t number);

}  // namespace foretoken::attack
