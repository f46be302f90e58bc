// SPDX-License-Identifier: Apache-2.0
// attack/model_mutator.h: damaged model files, made from good ones with knowledge of the format.
//
// A file is taken apart into keys and tensors, some of them are changed, dropped, doubled, renamed
// or given another type, and it is written again; while it is written, the place of every count,
// length, size, type and offset is kept, so that these can be overwritten and the file can be cut
// at each of them. The file for a number depends on the seed, the number and the good files alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace foretoken::attack {

using Bytes = std::vector<std::byte>;

// splitmix64: the same on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t Next();
  std::uint64_t Below(std::uint64_t n) { return n == 0 ? 0 : Next() % n; }
  bool OneIn(std::uint64_t n) { return Below(n) == 0; }
  template <typename List>
  auto& Pick(List& list) {
    return list[static_cast<std::size_t>(Below(std::size(list)))];
  }

 private:
  std::uint64_t state_;
};
// The stream of randomness of one file.
Random RandomOf(std::uint64_t seed, std::uint64_t number);

// What the good file is in an engine.
enum class Role { kModel, kHead };

struct GoodFile {
  std::string name;  // "qwen2"
  Role role = Role::kModel;
  Bytes bytes;
  std::string target;  // of a head: the path of the model that it drafts for
};

struct Mutated {
  std::size_t good = 0;  // the index of the file that it was made from
  Bytes bytes;
  std::string what;  // "qwen2: key qwen2.block_count removed; cut to 1200 bytes"
};

// REQUIRES: `files` are whole GGUF files of version 3.
Mutated Mutate(std::span<const GoodFile> files, std::uint64_t seed, std::uint64_t number);

}  // namespace foretoken::attack
