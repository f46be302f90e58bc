// SPDX-License-Identifier: Apache-2.0
// fuzz/json_seeds.h: a mutator for JSON texts that starts from given ones.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "attack/json_mutator.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace foretoken {

// What LLVMFuzzerCustomMutator does. seeds: a list of texts; an input that is too short to be one
// becomes a seed. Few inputs are changed without regard to their values.
template <typename Seeds>
std::size_t MutateJson(const Seeds& seeds, std::uint8_t* data, std::size_t size,
                       std::size_t max_size, unsigned seed) {
  attack::Random random(seed);
  if (size >= 16 && random.OneIn(8)) return LLVMFuzzerMutate(data, size, max_size);
  std::string text(reinterpret_cast<const char*>(data), size);
  if (size < 16 || random.OneIn(64)) text = random.Pick(seeds);
  attack::ChangeJson(random, text);
  const std::size_t n = std::min(text.size(), max_size);
  std::memcpy(data, text.data(), n);
  return n;
}

}  // namespace foretoken
