// SPDX-License-Identifier: Apache-2.0
// train/run/machine.h: what this machine can compute with.
#pragma once

#include <torch/torch.h>

#include "foretoken/result.h"

namespace foretoken::train {

torch::Device BestDevice();                        // CUDA where libtorch and the machine have it
bool HasFastBf16();                                // AVX-512 BF16, AMX, or CUDA
torch::Dtype FastType(const torch::Tensor& like);  // BF16 where it is fast and `like` is F32
void UseThreads(int threads);
std::string DescribeMachine();

// Errors: kTooLarge, kIo: this machine lacks the memory or disk for a run of this size.
[[nodiscard]] Status CheckRoom(std::int64_t memory_bytes, std::int64_t disk_bytes,
                               const std::string& path);

}  // namespace foretoken::train
