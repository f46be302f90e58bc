// SPDX-License-Identifier: Apache-2.0
// engine/record_file.h: a file that others see only with whole parts: it gets its name with the
// first Publish, and whatever fails afterwards leaves it as the last Publish left it.
#pragma once

#include <string>
#include <string_view>

#include "foretoken/result.h"

namespace foretoken::engine {

class RecordFile {
 public:
  // A regular file of that name is replaced at the first Publish; a device or a pipe is written to
  // as it is. Errors: kIo.
  [[nodiscard]] static Result<RecordFile> Create(const std::string& path);
  RecordFile(RecordFile&& other) noexcept;
  RecordFile& operator=(RecordFile&&) = delete;
  ~RecordFile();  // what was not published vanishes

  [[nodiscard]] Status Append(std::string_view bytes);
  [[nodiscard]] Status Publish();

 private:
  RecordFile() = default;
  Error IoError(const char* what) const;

  std::string path_, temporary_;  // temporary_: "" once the file has its name
  int fd_ = -1;
  bool regular_ = true;
  long long written_ = 0, published_ = 0;  // bytes
};

}  // namespace foretoken::engine
