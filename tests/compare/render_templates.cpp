// SPDX-License-Identifier: Apache-2.0
// Renders templates for tests/compare/{chat_templates,template_fuzz}.py. It reads lines of JSON,
// {"template": TEXT, "context": {NAME: VALUE}}, and prints a line for each: {"text": TEXT} or
// {"error": TEXT}. The present is python_jinja.NOW.
#include <iostream>
#include <string>

#include "base/json/json_reader.h"
#include "text/jinja/template.h"
#include "text/jinja/values/json_text.h"

namespace {

using namespace foretoken::text::jinja;
using foretoken::Json;

std::tm Now() {
  std::tm now = {};
  now.tm_year = 131, now.tm_mon = 10, now.tm_mday = 9, now.tm_wday = 0, now.tm_yday = 312;
  now.tm_hour = 14, now.tm_min = 5, now.tm_sec = 6;
  return now;
}

Json Rendered(const Json& job) {
  const auto parsed = Template::Parse(job.at("template").text());
  if (!parsed) return {{"error", parsed.error().message}};
  Budget budget({});
  std::vector<Variable> variables;
  for (const auto& [name, value] : job.at("context").members()) {
    auto read = FromJson(budget, value.dump(), true);
    if (!read) return {{"error", read.error().message}};
    variables.push_back({name, *std::move(read)});
  }
  const auto text = parsed->Render(budget, variables, Now());
  if (!text) return {{"error", text.error().message}};
  return {{"text", ToUtf8(*text)}};
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);)
    std::cout << Rendered(foretoken::JsonOrNull(line)).dump() << std::endl;
}
