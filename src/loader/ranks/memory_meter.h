// SPDX-License-Identifier: Apache-2.0
// loader/ranks/memory_meter.h: how fast all threads together read memory, which limits decoding.
#pragma once

#include "base/aligned_buffer.h"
#include "base/machine/thread_pool.h"
#include "kernels/kernels.h"

namespace foretoken::loader {

class MemoryMeter {
 public:
  // Allocates and fills a buffer of 256 MiB, more than CPUs cache.
  MemoryMeter(ThreadPool& pool, const kernels::Kernels& kernels);

  // Reads the whole buffer once. That empties the caches of everything else.
  double GigabytesPerSecond() noexcept;

 private:
  ThreadPool& pool_;
  const kernels::Kernels& kernels_;
  AlignedBuffer<float> data_;
};

}  // namespace foretoken::loader
