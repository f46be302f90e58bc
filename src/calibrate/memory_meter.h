// SPDX-License-Identifier: Apache-2.0
// calibrate/memory_meter.h: how fast all threads together read memory: the ceiling of decoding.
#pragma once

#include "base/aligned_buffer.h"
#include "base/machine/thread_pool.h"
#include "kernels/kernels.h"

namespace foretoken::calibrate {

class MemoryMeter {
 public:
  // Takes and fills a buffer of 256 MiB, more than processors cache.
  MemoryMeter(ThreadPool& pool, const kernels::Kernels& kernels);

  // One reading of the whole buffer. It empties the caches of everything else.
  double GigabytesPerSecond() noexcept;

 private:
  ThreadPool& pool_;
  const kernels::Kernels& kernels_;
  AlignedBuffer<float> data_;
};

}  // namespace foretoken::calibrate
