// SPDX-License-Identifier: Apache-2.0
// capi/stream.h: the events of a request, one at a time as views.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "capi/callbacks.h"
#include "capi/result.h"
#include "foretoken/event_stream.h"

struct foretoken_stream {
  foretoken_stream(foretoken::EventStream opened, foretoken::capi::ProcessorFault processor_fault)
      : events(std::move(opened)), fault(std::move(processor_fault)) {}

  foretoken::EventStream events;
  foretoken::capi::ProcessorFault fault;
  // What `view` points to.
  std::optional<foretoken::StreamEvent> last;
  std::vector<std::int32_t> tokens;
  std::vector<std::uint8_t> origins;
  std::vector<float> logprobs;
  foretoken_event view = {};
  std::unique_ptr<foretoken_result> result;  // from the end on, until it is taken
};
