// SPDX-License-Identifier: Apache-2.0
// loader/file_watch.h: whether the model files are still what the engine was opened with.
//
// Weights and embeddings are read from mapped files for as long as the engine lives. If someone cuts such a
// file short or overwrites it, passes compute something else. The engine calls Check after each pass, before
// anything of it is committed, and when a request begins. Once it has failed it always fails, because nothing
// that the engine holds can be trusted any more.
//
// A background thread reads the sources of the kept tiles again (model/weights/source_check.h), at
// the lowest priority and for a quarter of the time, and ends when everything is read.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/machine/pause.h"
#include "foretoken/result.h"
#include "formats/checkpoint.h"
#include "model/late_runner.h"
#include "model/local_runner.h"

namespace foretoken::loader {

class FileWatch {
 public:
  FileWatch() = default;
  ~FileWatch();  // waits for the thread, at most for a piece of a file
  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;

  // Call it before Begin. Both arguments must outlive the watch.
  void Add(const formats::Checkpoint& checkpoint, model::LocalRunner& runner);
  // Adds a runner that is still being made. The sources of its tiles are those of the target's.
  void Add(const formats::Checkpoint& checkpoint, const model::LateRunner& runner);
  // Starts the thread, if there is anything for it to do.
  void Begin();

  // False if there is an error. For the thread of the passes: well below a microsecond for each
  // file if nothing happened.
  bool Check() noexcept;
  // Any thread. The error, also one that can be found without waiting for a pass.
  [[nodiscard]] Status status() const;

 private:
  struct Watched {
    const formats::Checkpoint* checkpoint = nullptr;
    model::LocalRunner* own = nullptr;  // or:
    const model::LateRunner* late = nullptr;

    // Null as long as it is being made.
    model::LocalRunner* runner() const noexcept { return late == nullptr ? own : late->made(); }
  };
  [[nodiscard]] Status CheckAll();
  void Note(Status status) noexcept;  // REQUIRES: the mutex. The first error stays
  void Read() noexcept;               // runs on the thread
  [[nodiscard]] Status ReadSources();

  std::vector<Watched> watched_;
  std::atomic<bool> failed_{false};
  Pause pause_;               // of the thread, between pieces
  mutable std::mutex mutex_;  // guards error_ and what Check remembers in the models
  std::optional<Error> error_;
  std::thread thread_;
};

}  // namespace foretoken::loader
