// SPDX-License-Identifier: Apache-2.0
// cli/serve/serve_settings.h: the flags of `serve`.
#pragma once

#include "server/server.h"
#include "settings/flag_set.h"
#include "settings/generate_flags.h"

namespace foretoken::cli {

struct ServeSettings {
  settings::GenerateSettings generate;  // its engine
  server::ServerOptions server;
  bool key_on_command_line = false;
  bool exit_with_stdin = false;  // the end of the standard input is a signal to end
};

// The flags write into `settings`, which must live as long as the FlagSet.
settings::FlagSet ServeFlags(ServeSettings& settings);

// After Parse. Errors: those of settings::Finish.
[[nodiscard]] Status FinishServe(ServeSettings& settings);

}  // namespace foretoken::cli
