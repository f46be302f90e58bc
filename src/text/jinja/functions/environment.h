// SPDX-License-Identifier: Apache-2.0
// text/jinja/functions/environment.h: what functions, filters and methods see beside their
// arguments.
#pragma once

#include <ctime>
#include <memory>

#include "text/jinja/values/value.h"

namespace foretoken::text::jinja {

struct Scope;

struct Environment {
  Budget& budget;
  std::tm now = {};  // what strftime_now() writes
  // Values that can change may contain themselves, directly or not. All of them are kept here, and
  // emptied one by one at the end, so that nothing stays and nothing is destroyed recursively.
  List<std::shared_ptr<Namespace>> namespaces = {};
  List<std::shared_ptr<Loop>> changing_loops = {};
  List<std::shared_ptr<Scope>> scopes = {};
};

}  // namespace foretoken::text::jinja
