// SPDX-License-Identifier: Apache-2.0
#include "model/arch/mamba2_config.h"

#include <fmt/format.h>

namespace foretoken::model {

Result<Mamba2Config> ReadMamba2(const MetadataReader& read) {
  Mamba2Config mamba;
  FORETOKEN_TRY(mamba.taps, read.Size("ssm.conv_kernel", kMostTaps));
  FORETOKEN_TRY(mamba.state_size, read.Size("ssm.state_size", 1024));
  FORETOKEN_TRY(mamba.n_groups, read.Size("ssm.group_count", 1 << 10));
  FORETOKEN_TRY(mamba.n_heads, read.Size("ssm.time_step_rank", 1 << 12));
  FORETOKEN_TRY(const int inner, read.Size("ssm.inner_size", 1 << 18));
  if (inner % mamba.n_heads != 0 || mamba.n_heads % mamba.n_groups != 0)
    return Fail(ErrorCode::kInvalidFile,
                fmt::format("{}: {} numbers cannot be divided among {} heads in {} groups",
                            read.Key("ssm.inner_size"), inner, mamba.n_heads, mamba.n_groups));
  mamba.head_dim = inner / mamba.n_heads;
  if (mamba.head_dim % 16 != 0)
    return Fail(ErrorCode::kUnsupported,
                fmt::format("{}: heads of {} numbers are no multiple of 16, which is not supported",
                            read.Key("ssm.inner_size"), mamba.head_dim));
  if (mamba.state_size % 8 != 0)
    return Fail(ErrorCode::kUnsupported,
                fmt::format("{}: {} is not a multiple of 8, which is not supported",
                            read.Key("ssm.state_size"), mamba.state_size));
  return mamba;
}

}  // namespace foretoken::model
