// SPDX-License-Identifier: Apache-2.0
#include "loader/ranks/model_agreement.h"

#include <fmt/format.h>

#include <array>

#include "comm/agreement.h"

namespace foretoken::loader {

Status AgreeOnModel(comm::Ranks& ranks, const std::string& path, const formats::Checkpoint* file,
                    const std::string& why) {
  const std::string contents =
      file == nullptr
          ? why
          : fmt::format("{} bytes, hash {:016x}", file->file_bytes(), file->ContentHash());
  return comm::Agree(ranks, std::array{comm::Fact{path, contents}});
}

}  // namespace foretoken::loader
