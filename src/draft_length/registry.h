// SPDX-License-Identifier: Apache-2.0
// draft_length/registry.h: the table of draft-length controllers.
//
// A controller is a class of its own and one row in registry.cpp. Names, checks, help texts,
// documents and the tests of every controller are made from the table.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "draft_length/controller.h"
#include "foretoken/catalogue.h"

namespace foretoken::draft_length {

struct ControllerSpec {
  ControllerInfo info;
  // K if the user gives none.
  int (*default_k)(const SpeculativeOptions& options);
  std::unique_ptr<Controller> (*make)(const ControllerSettings& settings);
};

// In the order of AllControllers().
std::span<const ControllerSpec> Specs();
// REQUIRES: the name of a row.
const ControllerSpec& SpecOf(std::string_view name);

// K if the user gives none.
inline int DefaultCeiling(const SpeculativeOptions& options) {
  return SpecOf(options.controller).default_k(options);
}
// REQUIRES: settings.name is the name of a row; checked settings.
inline std::unique_ptr<Controller> MakeController(const ControllerSettings& settings) {
  return SpecOf(settings.name).make(settings);
}

}  // namespace foretoken::draft_length
