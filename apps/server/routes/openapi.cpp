// SPDX-License-Identifier: Apache-2.0
// server/routes/openapi.cpp: the document is made from the table of routes, from what the readers of
// their bodies ask for, and from the table of what replies have.
#include "server/routes/openapi.h"

#include <cctype>
#include <string>
#include <string_view>

#include "foretoken/catalogue.h"
#include "server/api/anthropic_writer.h"
#include "server/api/body_schema.h"
#include "server/api/llama_cpp_replies.h"
#include "server/api/object_text.h"
#include "server/api/ollama_replies.h"
#include "server/api/openai_replies.h"
#include "server/api/plain_replies.h"
#include "server/api/reply_forms.h"
#include "server/routes/routes.h"

namespace foretoken::server {

extern const Route kChatCompletionsRoute;

namespace {

Json BodyReadBy(decltype(Route::reads) reads, const std::string& path, const ModelLimits& limits) {
  const FieldNotes chats;
  kChatCompletionsRoute.reads(limits);
  const FieldNotes notes;
  reads(limits);
  return BodySchema(path, notes, chats);
}

Json BodyOf(const Route& route, const ModelLimits& limits) {
  if (route.reads == nullptr) return {{"type", "object"}};
  Json body = BodyReadBy(route.reads, route.path, limits);
  if (route.reads_too == nullptr) return body;
  return {{"anyOf",
           Json::array({std::move(body),
                        BodyReadBy(route.reads_too, std::string(route.path) + "#chat", limits)})}};
}

// The schema of what an example is like: the types of its members, all of which are there and no
// others; null stands for a text that may be missing.
Json LikeThis(const Json& example) {
  if (example.is_string()) return {{"type", "string"}};
  if (example.is_number()) return {{"type", "integer"}};
  if (!example.is_object()) return {{"type", Json::array({"string", "null"})}};
  Json schema = {{"type", "object"}}, required = Json::array();
  for (const auto& [name, value] : example.members()) {
    schema["properties"][name] = LikeThis(value);
    required.push_back(name);
  }
  schema["required"] = std::move(required);
  schema["additionalProperties"] = false;
  return schema;
}

// The errors of an API, by the function that writes them.
struct ErrorForm {
  const char* name;
  std::string (*write)(const ApiError& error);
};
constexpr ErrorForm kErrorForms[] = {{"OpenAiError", ErrorJson},
                                     {"AnthropicError", AnthropicErrorJson},
                                     {"OllamaError", OllamaErrorJson},
                                     {"LlamaCppError", LlamaCppErrorJson}};

Json Content(const char* type, const char* form) {
  Json content;
  content[type]["schema"] = form != nullptr ? ReplyForm(form) : Json{{"type", "string"}};
  return content;
}

// In the form of the route's API.
Json ErrorOf(const Route& route) {
  for (const ErrorForm& form : kErrorForms)
    if (form.write == (route.refusal != nullptr ? route.refusal : ErrorJson))
      return {{"$ref", std::string("#/components/responses/") + form.name}};
  return {{"description", "an error"}};
}

Json RepliesOf(const Route& route) {
  Json replies;
  if (route.refuses == 0) {
    Json& reply = replies["200"];
    reply["description"] = route.event != nullptr
                               ? "the answer; the second schema is that of each event of a stream"
                               : "the answer";
    reply["content"] = Content(route.reply_type, route.reply);
    if (route.event != nullptr) reply["content"].update(Content(route.event_type, route.event));
    if (route.failing != 0) {
      Json failing = reply;
      replies[std::to_string(route.failing)] = std::move(failing);
    }
  } else {
    replies[std::to_string(route.refuses)] = ErrorOf(route);
  }
  replies["default"] = ErrorOf(route);
  return replies;
}

void AddReplyForms(Json& components) {
  components["schemas"].update(ReplyForms(TextOfReplies()));
  for (const auto& [name, write] : kErrorForms) {
    components["schemas"][name] = LikeThis(JsonOrNull(write({.message = "what: why; what to do"})));
    components["responses"][name] = {{"description", "an error"},
                                     {"content", Content("application/json", name)}};
  }
}

// "/v1/models/*" is "/v1/models/{name}".
std::string PathOf(const Route& route) {
  std::string path = route.path;
  if (const std::size_t star = path.find('*'); star != path.npos) path.replace(star, 1, "{name}");
  return path;
}

// POST /v1/completions: "postV1Completions".
std::string OperationOf(const Route& route) {
  std::string name;
  for (const char* c = route.method; *c != '\0'; ++c)
    name += static_cast<char>(std::tolower(static_cast<unsigned char>(*c)));
  bool begins = false;
  for (const char* c = route.path; *c != '\0'; ++c) {
    const auto letter = static_cast<unsigned char>(*c);
    if (std::isalnum(letter) != 0)
      name += static_cast<char>(begins ? std::toupper(letter) : letter);
    begins = std::isalnum(letter) == 0;
    if (*c == '*') name += "Name";
  }
  return name;
}

std::string SummaryOf(const Route& route) {
  constexpr std::string_view kBelow = ", below";  // in docs/server.md
  std::string summary = route.about;
  if (summary.ends_with(kBelow)) summary.resize(summary.size() - kBelow.size());
  return summary;
}

Json OperationJson(const Route& route, const ModelLimits& limits) {
  Json json = {{"operationId", OperationOf(route)}, {"summary", SummaryOf(route)}};
  if (std::string_view(route.path).find('*') != std::string_view::npos)
    json["parameters"] = Json::array(
        {{{"name", "name"}, {"in", "path"}, {"required", true}, {"schema", {{"type", "string"}}}}});
  if (route.method == std::string_view("POST") && !route.without_body) {
    json["requestBody"]["required"] = true;
    json["requestBody"]["content"]["application/json"]["schema"] = BodyOf(route, limits);
  }
  json["responses"] = RepliesOf(route);
  if (route.open) json["security"] = Json::array();
  return json;
}

HttpResponse OpenApi(Service& service, const HttpRequest&, LogLine&) {
  static const std::string document = OpenApiText(service.limits);
  return {.body = document};
}

}  // namespace

std::string OpenApiText(const ModelLimits& limits) {
  Json paths = Json::object();
  for (const Route* const route : Routes()) {
    std::string method = route->method;
    for (char& c : method) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    paths[PathOf(*route)][method] = OperationJson(*route, limits);
  }
  Json document = {{"openapi", "3.1.0"},
                   {"info",
                    {{"title", "foretoken"},
                     {"version", kVersion},
                     {"license", {{"name", "Apache-2.0"}, {"identifier", "Apache-2.0"}}}}},
                   {"paths", std::move(paths)}};
  document["components"]["schemas"] = SharedForms(limits.vocabulary_size);
  AddReplyForms(document["components"]);
  document["components"]["securitySchemes"]["key"] = {{"type", "http"}, {"scheme", "bearer"}};
  // A server without keys needs none.
  document["security"] = Json::array({Json::object(), Json({{"key", Json::array()}})});
  return OneLine(document);
}

extern const Route kOpenApiRoute = {
    .method = "GET",
    .path = "/openapi.json",
    .about = "this table and the fields of bodies, as an OpenAPI 3.1 document",
    .handle = OpenApi,
    .reply = "OpenApi"};

}  // namespace foretoken::server
