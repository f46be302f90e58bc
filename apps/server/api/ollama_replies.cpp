// SPDX-License-Identifier: Apache-2.0
#include "server/api/ollama_replies.h"

#include <fmt/format.h>

#include <ctime>
#include <string_view>
#include <utility>

#include "server/api/object_text.h"

namespace foretoken::server {
namespace {

constexpr std::string_view kOllamaForever = "2999-01-01T00:00:00Z";  // the model stays loaded

// 64 hexadecimal digits. Files are not digested: it is made of the name, so that it differs between
// models and stays the same.
std::string OllamaDigest(std::string_view name) {
  std::string digest;
  for (std::uint64_t part = 0; part < 4; ++part) {
    std::uint64_t hash = 0xcbf29ce484222325u + part;  // FNV-1a
    for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    digest += fmt::format("{:016x}", hash);
  }
  return digest;
}

// 9140000: "9.1M".
std::string OllamaCount(std::int64_t n) {
  const auto count = static_cast<double>(n);
  if (n >= 1'000'000'000) return fmt::format("{:.1f}B", count / 1e9);
  if (n >= 1'000'000) return fmt::format("{:.1f}M", count / 1e6);
  return fmt::format("{:.1f}K", count / 1e3);
}

Json OllamaDetails(const ModelSummary& model) {
  return {{"parent_model", ""},
          {"format", "gguf"},
          {"family", model.architecture},
          {"families", Json::array({model.architecture})},
          {"parameter_size", OllamaCount(model.parameters)},
          {"quantization_level", model.type}};
}

std::string OllamaBegun(const ServedModel& served) {
  return OllamaTime(std::chrono::system_clock::time_point(std::chrono::seconds(served.created)));
}

// What lists of models have in common.
Json OllamaEntry(const ServedModel& served) {
  const ModelSummary& model = served.engine->target;
  return {{"name", served.name},
          {"model", served.name},
          {"modified_at", OllamaBegun(served)},
          {"size", model.file_bytes},
          {"digest", OllamaDigest(served.name)},
          {"details", OllamaDetails(model)}};
}

std::string OllamaList(Json entry) {
  Json json;
  json["models"].push_back(std::move(entry));
  return OneLine(json);
}

}  // namespace

std::string OllamaTime(std::chrono::system_clock::time_point time) {
  const auto since = std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch());
  const std::time_t seconds = since.count() / 1'000'000'000;
  std::tm parts = {};
  gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:09}Z", parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                     since.count() % 1'000'000'000);
}

std::string OllamaErrorJson(const ApiError& error) {
  return OneLine(Json{{"error", error.message}});
}

std::string OllamaTagsJson(const ServedModel& served) {
  return OllamaList(OllamaEntry(served));
}

std::string OllamaPsJson(const ServedModel& served) {
  Json entry = OllamaEntry(served);
  entry.erase("modified_at");
  entry["expires_at"] = kOllamaForever;
  entry["size_vram"] = 0;
  entry["context_length"] = served.engine->target.context_size;
  return OllamaList(std::move(entry));
}

std::string OllamaShowJson(const ServedModel& served) {
  const ModelSummary& model = served.engine->target;
  Json capabilities = {"completion"};
  if (served.chats) capabilities.push_back("tools");
  return OneLine(Json{{"license", ""},
                      {"modelfile", ""},
                      {"parameters", ""},
                      {"template", ""},
                      {"details", OllamaDetails(model)},
                      {"model_info",
                       {{"general.architecture", model.architecture},
                        {"general.parameter_count", model.parameters},
                        {model.architecture + ".context_length", model.context_size}}},
                      {"capabilities", capabilities},
                      {"modified_at", OllamaBegun(served)}});
}

std::string OllamaLoadedJson(const std::string& model, bool chat) {
  Json json = {{"model", model}, {"created_at", OllamaTime(std::chrono::system_clock::now())}};
  if (chat)
    json["message"] = {{"role", "assistant"}, {"content", ""}};
  else
    json["response"] = "";
  json["done_reason"] = "load";
  json["done"] = true;
  return OneLine(json);
}

}  // namespace foretoken::server
