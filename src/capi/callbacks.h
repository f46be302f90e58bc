// SPDX-License-Identifier: Apache-2.0
// capi/callbacks.h: functions of the caller as the library's drafters and logits processors.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "foretoken.h"
#include "foretoken/drafter.h"
#include "foretoken/request.h"

namespace foretoken::capi {

// Calls release(user) once, when the last holder has gone.
class CallerData {
 public:
  CallerData(void* user, void (*release)(void*)) : user_(user), release_(release) {}
  ~CallerData() {
    if (release_ != nullptr) release_(user_);
  }
  CallerData(const CallerData&) = delete;
  CallerData& operator=(const CallerData&) = delete;

 private:
  void* user_;
  void (*release_)(void*);
};

struct CallerProcessor {
  foretoken_processor call = nullptr;
  void* user = nullptr;
  std::shared_ptr<CallerData> data;
};

// Whether a processor of one request has failed. Any thread.
using ProcessorFault = std::shared_ptr<std::atomic<bool>>;

// Functions for a request. One that fails sets `fault`, and its NaN ends the request.
std::vector<LogitsProcessor> ProcessorsOf(const std::vector<CallerProcessor>& processors,
                                          const ProcessorFault& fault);

struct CallerDrafter {
  foretoken_drafter functions = {};
  std::string name;
  std::shared_ptr<CallerData> data;
};

// An object for one engine or session; null if there is no drafter.
std::shared_ptr<Drafter> DrafterOf(const CallerDrafter& drafter);

}  // namespace foretoken::capi
