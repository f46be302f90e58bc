// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "cli/idle_report.h"
#include "cli/input.h"
#include "cli/open_engine.h"
#include "cli/report.h"
#include "cli/serve/serve_settings.h"
#include "cli/terminal.h"
#include "cli/verb.h"
#include "cli/verb_flags.h"
#include "foretoken/engine.h"
#include "server/input_end.h"
#include "server/server.h"

namespace foretoken::cli {
namespace {

// IPv6 addresses need brackets.
std::string Address(const std::string& host, int port) {
  const bool colons = host.find(':') != std::string::npos;
  return fmt::format("http://{}{}{}:{}", colons ? "[" : "", host, colons ? "]" : "", port);
}

// A closed descriptor would become that of a file which is opened later.
Status CheckInput(const ServeSettings& settings) {
  if (!settings.exit_with_stdin || fcntl(STDIN_FILENO, F_GETFD) >= 0) return {};
  return Fail(ErrorCode::kInvalidArgument,
              "--exit-with-stdin: standard input is closed; give it a pipe, or leave the flag out");
}

// Until the server listens there is nothing to answer, so the end of the input ends the program.
std::unique_ptr<server::InputEnd> WatchInput(const ServeSettings& settings) {
  if (!settings.exit_with_stdin) return nullptr;
  return std::make_unique<server::InputEnd>([] { std::_Exit(kDone); });
}

Result<int> Serve(ServeSettings& settings) {
  FORETOKEN_CHECK_OK(CheckInput(settings));
  const std::unique_ptr<server::InputEnd> input = WatchInput(settings);
  const EngineOptions& options = settings.generate.engine;
  FORETOKEN_TRY(std::unique_ptr<Engine> engine,
                OpenEngine(options, settings.generate.quiet, true, true));
  if (settings.key_on_command_line && !settings.generate.quiet)
    std::fputs(
        "foretoken: --api-key: others on this machine can read the command line; use "
        "--api-key-file or FORETOKEN_API_KEY\n",
        stderr);
  if (server::IsOpenToAll(settings.server) && !settings.generate.quiet)
    fmt::print(
        stderr,
        "foretoken: --host {}: everybody who reaches it there may use it; ask for a key with "
        "--api-key-file\n",
        settings.server.host);
  ReportIdleSettings(settings.generate, engine->UseForAny());
  Output output;
  const std::string model = FileName(engine->summary().target.path);
  FORETOKEN_TRY(
      const server::ServeOutcome outcome,
      server::Serve(std::move(engine), options, settings.server, input.get(), [&](int port) {
        output.Write(
            fmt::format("foretoken: {} at {}\n", model, Address(settings.server.host, port)));
      }));
  return outcome == server::ServeOutcome::kDrained ? kDone : kInterrupted;
}

Result<int> RunServe(ServeSettings& settings) {
  FORETOKEN_CHECK_OK(FinishServe(settings));
  return Serve(settings);
}

}  // namespace

extern const Verb kServeVerb = MakeVerb<ServeFlags, RunServe>(
    "serve", "an HTTP server for OpenAI's clients, with a page for browsers");

}  // namespace foretoken::cli
