// SPDX-License-Identifier: Apache-2.0
#include "cli/input.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/files/text_file.h"
#include "foretoken/catalogue.h"
#include "foretoken/engine.h"

namespace foretoken::cli {

Result<std::string> ReadText(const std::string& path) {
  constexpr ReadLimits kLimits = {.most_bytes = std::size_t{1} << 30, .pipes = true};
  if (path == "-") return ReadDescriptor(STDIN_FILENO, "standard input", kLimits);
  return ReadTextFile(path, kLimits);
}

bool StandardInputHoldsText() {
  struct stat status = {};
  if (fstat(STDIN_FILENO, &status) != 0) return false;
  return S_ISFIFO(status.st_mode) || S_ISREG(status.st_mode) || S_ISSOCK(status.st_mode);
}

std::string FileName(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

std::string DraftFileNames(const EngineSummary& engine) {
  std::string names;
  for (const DrafterSummary& draft : engine.drafters) {
    const DrafterInfo* const row = FindDrafter(draft.method);
    names += (names.empty() ? "" : ", ") + (row != nullptr && row->copies_target
                                                ? "a copy in " + draft.model.type
                                                : FileName(draft.model.path));
  }
  return names;
}

}  // namespace foretoken::cli
