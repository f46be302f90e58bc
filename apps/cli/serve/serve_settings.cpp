// SPDX-License-Identifier: Apache-2.0
#include "cli/serve/serve_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

#include "base/comma_list.h"
#include "base/files/text_file.h"
#include "settings/llama_flags.h"
#include "settings/setters.h"

namespace foretoken::cli {
namespace {

using settings::ParseInteger;
using settings::StoreInteger;
using settings::StoreText;
using settings::StoreTrue;

// Blank lines and lines that begin with # are not keys.
Status ReadKeys(const std::string& path, std::vector<std::string>& keys) {
  constexpr std::size_t kMostBytes = 1 << 20;
  FORETOKEN_TRY(const std::string text,
                ReadTextFile(path, {.most_bytes = kMostBytes, .pipes = true, .trusted = true}));
  std::istringstream file(text);
  const std::size_t before = keys.size();
  for (std::string line; std::getline(file, line);) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (!line.empty() && line[0] != '#') keys.push_back(line);
  }
  if (keys.size() > before) return {};
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("{}: it holds no key; give a file with a key in each line", path));
}

// As browsers write it: scheme and host, an optional port, nothing else.
Status CheckOrigin(const std::string& text) {
  const std::size_t begin = text.starts_with("http://")    ? 7
                            : text.starts_with("https://") ? 8
                                                           : std::string::npos;
  if (text == "*" || text == "null") return {};
  if (begin != std::string::npos && begin < text.size() &&
      text.find_first_of("/?# *", begin) == std::string::npos)
    return {};
  return Fail(ErrorCode::kInvalidArgument,
              "it is not an origin; give *, or scheme and host as in https://example.org");
}

// "a,b": several names.
Status AddNames(const std::string& text, std::vector<std::string>& names) {
  for (const std::string_view name : CommaItems(text)) {
    if (name.empty())
      return Fail(ErrorCode::kInvalidArgument, "a name is empty; give one or leave the flag out");
    names.emplace_back(name);
  }
  return {};
}

// "900M", "6G", "6GiB", or bytes.
Result<std::int64_t> ParseBytes(const std::string& text) {
  constexpr std::string_view kUnits = "KMGT";
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  std::string unit = text.substr(digits);
  for (const char* const end : {"iB", "B"})
    if (unit.size() > 1 && unit.ends_with(end)) unit.resize(unit.size() - std::strlen(end));
  const std::size_t power = unit.size() == 1 ? kUnits.find(unit[0]) : std::string_view::npos;
  if (digits > 0 && digits <= 15 && (unit.empty() || power != std::string_view::npos)) {
    const std::int64_t bytes = std::atoll(text.c_str());
    const int shift = unit.empty() ? 0 : 10 * (static_cast<int>(power) + 1);
    if (bytes > 0 && bytes <= INT64_MAX >> shift) return bytes << shift;
  }
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("'{}' is not a size; give one as 6G or 900M", text));
}

settings::Setter StoreLimit(std::optional<int>& limit) {
  return [&limit](const std::string& text) -> Status {
    FORETOKEN_TRY(const std::int64_t n, ParseInteger(text, 0, 1 << 24));
    limit = static_cast<int>(n);
    return {};
  };
}

Status ReadFieldName(const std::string& text, std::string& name) {
  name = text;
  for (char& c : name)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  if (!name.empty() &&
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-_") == std::string::npos)
    return {};
  return Fail(ErrorCode::kInvalidArgument,
              "it is not the name of a header field; give one such as X-Forwarded-For");
}

settings::FlagGroup AddressFlags(ServeSettings& settings) {
  server::ServerOptions& server = settings.server;
  settings::FlagGroup group = {
      "Address",
      {
          {{"--host"},
           "ADDRESS",
           "where to listen; 0.0.0.0: on all networks; default 127.0.0.1: this machine only",
           StoreText(server.host)},
          {{"--port"},
           "N",
           "default 8080; 0: one that is free, which is printed",
           StoreInteger(server.port, 0, 65535)},
          {{"--api-key-file"},
           "PATH",
           "ask for a key; the file has one in each line, and one of them opens; also "
           "FORETOKEN_API_KEY=KEY",
           [&server](const std::string& path) { return ReadKeys(path, server.api_keys); },
           true},
          {{"--api-key"},
           "KEY",
           "ask for this key; others on the machine can read it; may be repeated",
           [&settings](const std::string& text) -> Status {
             if (text.empty())
               return Fail(ErrorCode::kInvalidArgument,
                           "the key is empty; give one or leave the flag out");
             settings.server.api_keys.push_back(text);
             settings.key_on_command_line = true;
             return {};
           },
           true},
          {{"--cors-origin"},
           "ORIGIN",
           "pages of https://... or http://... may use the server; *: all pages; may be "
           "repeated",
           [&server](const std::string& text) -> Status {
             FORETOKEN_CHECK_OK(CheckOrigin(text));
             server.cors_origins.push_back(text);
             return {};
           },
           true},
          {{"--allowed-host"},
           "NAME",
           "a name of the server that requests may ask for, beside localhost; may be repeated",
           [&server](const std::string& text) -> Status {
             if (text.empty() || text.find_first_of("/@ ") != std::string::npos)
               return Fail(ErrorCode::kInvalidArgument,
                           "it is not a name; give one without scheme and port");
             server.allowed_hosts.push_back(text);
             return {};
           },
           true},
          {{"--share-prefixes"},
           "client|all",
           "whose earlier texts speed up a request (cached prompts, and drafts that were learnt "
           "from "
           "texts): client, those of its key, or of its address where there are no keys; all, "
           "everybody's, whose texts others can then find out; default client",
           [&server](const std::string& text) -> Status {
             if (text != "client" && text != "all")
               return Fail(ErrorCode::kInvalidArgument,
                           "'" + text + "' is neither client nor all; give one of them");
             server.share_among_clients = text == "all";
             return {};
           }},
          settings::EngineFlag("slot_folder", settings.generate.engine),
          {{"--model-name", "--alias", "-a", "--served-model-name"},
           "NAME",
           "the model's name in requests and replies; may be repeated, or several with commas: "
           "replies have the first; its file's name is always one",
           [&server](const std::string& text) { return AddNames(text, server.model_names); },
           true},
          {{"--any-model"},
           "",
           "requests may name any model, and the one that is served answers",
           StoreTrue(server.request_rules.any_model)},
      }};
  for (settings::Flag& flag : settings::TemplateFlags(server.chat_format))
    group.flags.push_back(std::move(flag));
  return group;
}

settings::FlagGroup LimitFlags(ServeSettings& settings) {
  server::ServerOptions& server = settings.server;
  return {"Limits",
          {
              settings::EngineFlag("max_sequences", settings.generate.engine),
              {{"--max-queue"},
               "N",
               "choices that may wait for a place of --parallel; more are told to come back; "
               "default 64",
               StoreInteger(server.max_queue, 0, 1 << 16)},
              {{"--max-body-bytes"},
               "N",
               fmt::format("of a request; default {}", server.max_body_bytes),
               [&server](const std::string& text) -> Status {
                 FORETOKEN_TRY(server.max_body_bytes, ParseInteger(text, 1, 1 << 30));
                 return {};
               }},
              {{"--max-memory"},
               "SIZE",
               "of the process, as 6G or 900M: as it fills, requests are refused; default: nine "
               "tenths of what the machine, its control group or ulimit allows",
               [&server](const std::string& text) -> Status {
                 FORETOKEN_TRY(server.max_memory, ParseBytes(text));
                 return {};
               }},
              {{"--max-connections-per-address"},
               "N",
               "of an IPv4 address or an IPv6 /64; default: half of all, addresses of this machine "
               "aside; 0: no limit",
               StoreLimit(server.limits.connections_per_address)},
              {{"--max-requests-per-address"},
               "N",
               "under way together, each choice counted; default: half of --parallel and "
               "--max-queue, addresses of this machine aside; 0: no limit",
               StoreLimit(server.limits.requests_per_address)},
              {{"--max-requests-per-key"},
               "N",
               "the same for a key; default: half where there are several keys; 0: no limit",
               StoreLimit(server.limits.requests_per_key)},
              {{"--client-address-header"},
               "NAME",
               "behind a proxy: the header field that ends with the client's address, such as "
               "X-Forwarded-For; believed from everybody, so only where all requests come through "
               "the proxy",
               [&server](const std::string& text) -> Status {
                 return ReadFieldName(text, server.limits.client_address_header);
               }},
              {{"--request-timeout-s"},
               "S",
               "from a request's arrival to its last token; default 600; 0: none",
               StoreInteger(server.request_timeout_s, 0, 1 << 24)},
              {{"--exit-with-stdin"},
               "",
               "end as after SIGTERM when standard input ends: a program that holds the other end "
               "of a pipe takes the server along, however it ends",
               StoreTrue(settings.exit_with_stdin)},
          }};
}

settings::FlagGroup LogFlags(ServeSettings& settings) {
  return {
      "Output",
      {
          {{"--log-prompts"},
           "",
           "with the prompts in the log's lines, which have no texts otherwise",
           StoreTrue(settings.server.log_prompts)},
          settings::EngineFlag("record", settings.generate.engine),
          {{"-q", "--quiet"}, "", "no line for each request", StoreTrue(settings.generate.quiet)},
      }};
}

}  // namespace

settings::FlagSet ServeFlags(ServeSettings& settings) {
  settings::FlagSet flags(
      "serve [-m MODEL] [-md DRAFT] [flags]",
      "Serves a model over HTTP, to the clients of OpenAI's API and, at /, to a browser. Each "
      "request has one line on standard error. SIGTERM, SIGHUP or Ctrl-C: what was accepted is "
      "answered first; a second one stops at once.");
  flags.Add(AddressFlags(settings));
  flags.Add(LimitFlags(settings));
  flags.Add(settings::ModelFlags(settings.generate.engine));
  flags.Add(settings::SpeculationFlags(settings.generate));
  flags.Add(LogFlags(settings));
  flags.SetEssential({"--host", "--port", "--api-key-file", "--model-name", "-np", "-m", "-c", "-t",
                      "-md", "--spec-type", "--num-speculative-tokens", "-q"});
  settings::AddLlamaFlags(flags);
  flags.SetExamples(
      {"foretoken serve",
       "foretoken serve -m target.gguf -md draft.gguf --parallel 4 --api-key-file keys.txt",
       "curl http://127.0.0.1:8080/v1/completions -H 'Content-Type: application/json' -d "
       "'{\"prompt\": \"Once upon a time\"}'"});
  return flags;
}

Status FinishServe(ServeSettings& settings) {
  if (settings.generate.draft_temperature)
    return Fail(ErrorCode::kInvalidArgument,
                "--draft-temp: each request has its temperature, and drafts follow it; leave it "
                "out");
  if (settings.generate.engine.speculative.strategy == VerifyStrategy::kGreedy)
    settings.generate.request.sampling.temperature = 0;  // requests are checked as they arrive
  if (const char* const key = std::getenv("FORETOKEN_API_KEY"); key != nullptr && *key != '\0')
    settings.server.api_keys.emplace_back(key);
  settings.server.log_requests = !settings.generate.quiet;
  settings.generate.prompt.emplace();  // generate's rules need a prompt
  return settings::Finish(settings.generate);
}

}  // namespace foretoken::cli
