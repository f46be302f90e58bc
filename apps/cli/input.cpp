// SPDX-License-Identifier: Apache-2.0
#include "cli/input.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "foretoken/engine.h"

namespace foretoken::cli {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{1} << 30;

tl::unexpected<Error> Unreadable(const std::string& name, int error) {
  const ErrorCode code = error == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo;
  return Fail(code,
              fmt::format("{}: {}; name a text file that can be read", name, std::strerror(error)));
}

struct Closer {
  void operator()(std::FILE* file) const {
    if (file != stdin) std::fclose(file);
  }
};

}  // namespace

Result<std::string> ReadText(const std::string& path) {
  const std::string name = path == "-" ? "standard input" : path;
  const std::unique_ptr<std::FILE, Closer> file(path == "-" ? stdin
                                                            : std::fopen(path.c_str(), "rb"));
  if (!file) return Unreadable(name, errno);
  std::string text;
  std::array<char, 1 << 16> buffer;
  for (;;) {
    errno = 0;
    const std::size_t n = std::fread(buffer.data(), 1, buffer.size(), file.get());
    text.append(buffer.data(), n);
    if (text.size() > kMaxBytes) {
      return Fail(ErrorCode::kTooLarge,
                  fmt::format("{}: more than 1 GiB of text; give a shorter one", name));
    }
    if (n == buffer.size()) continue;
    if (std::ferror(file.get()) != 0) return Unreadable(name, errno);
    return text;
  }
}

bool StandardInputHoldsText() {
  struct stat status = {};
  if (fstat(STDIN_FILENO, &status) != 0) return false;
  return S_ISFIFO(status.st_mode) || S_ISREG(status.st_mode) || S_ISSOCK(status.st_mode);
}

std::string FileName(const std::string& path) {
  return path.substr(path.find_last_of('/') + 1);
}

std::string DraftFileNames(const EngineSummary& engine) {
  std::string names;
  for (const DrafterSummary& draft : engine.drafts)
    names += (names.empty() ? "" : ", ") + FileName(draft.model.path);
  return names;
}

}  // namespace foretoken::cli
