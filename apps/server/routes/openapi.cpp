// SPDX-License-Identifier: Apache-2.0
// server/routes/openapi.cpp: the document is made from the table of routes and from what the readers of
// their bodies ask for.
#include "server/routes/openapi.h"

#include <cctype>
#include <string>
#include <string_view>

#include "foretoken/catalogue.h"
#include "server/api/body_schema.h"
#include "server/api/object_text.h"
#include "server/api/openai_replies.h"
#include "server/routes/routes.h"

namespace foretoken::server {

extern const Route kChatCompletionsRoute;

namespace {

using DocumentJson = SchemaJson;

DocumentJson BodyReadBy(decltype(Route::reads) reads, const std::string& path,
                        const ModelLimits& limits) {
  const FieldNotes chats;
  kChatCompletionsRoute.reads(limits);
  const FieldNotes notes;
  reads(limits);
  return BodySchema(path, notes, chats);
}

DocumentJson BodyOf(const Route& route, const ModelLimits& limits) {
  if (route.reads == nullptr) return {{"type", "object"}};
  DocumentJson body = BodyReadBy(route.reads, route.path, limits);
  if (route.reads_too == nullptr) return body;
  return {{"anyOf", DocumentJson::array(
                        {std::move(body),
                         BodyReadBy(route.reads_too, std::string(route.path) + "#chat", limits)})}};
}

// The schema of what an example is like: the types of its members, all of which are there.
DocumentJson LikeThis(const DocumentJson& example) {
  if (example.is_string()) return {{"type", "string"}};
  if (example.is_number()) return {{"type", "integer"}};
  if (!example.is_object()) return DocumentJson::object();
  DocumentJson schema = {{"type", "object"}}, required = DocumentJson::array();
  for (const auto& [name, value] : example.items()) {
    schema["properties"][name] = LikeThis(value);
    if (!value.is_null()) required.push_back(name);
  }
  schema["required"] = std::move(required);
  return schema;
}

// In the form of the route's API.
DocumentJson ErrorOf(const Route& route) {
  const auto refusal = route.refusal != nullptr ? route.refusal : ErrorJson;
  DocumentJson error = {{"description", "an error, as JSON"}};
  error["content"]["application/json"]["schema"] =
      LikeThis(DocumentJson::parse(refusal({.message = "what: why; what to do"})));
  return error;
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

DocumentJson OperationJson(const Route& route, const ModelLimits& limits) {
  DocumentJson json = {{"operationId", OperationOf(route)}, {"summary", SummaryOf(route)}};
  if (std::string_view(route.path).find('*') != std::string_view::npos)
    json["parameters"] = DocumentJson::array(
        {{{"name", "name"}, {"in", "path"}, {"required", true}, {"schema", {{"type", "string"}}}}});
  if (route.method == std::string_view("POST") && !route.without_body) {
    json["requestBody"]["required"] = true;
    json["requestBody"]["content"]["application/json"]["schema"] = BodyOf(route, limits);
  }
  json["responses"] = {{"200", {{"description", "the answer"}}}, {"default", ErrorOf(route)}};
  if (route.open) json["security"] = DocumentJson::array();
  return json;
}

HttpResponse OpenApi(Service& service, const HttpRequest&, LogLine&) {
  static const std::string document = OpenApiText(service.limits);
  return {.body = document};
}

}  // namespace

std::string OpenApiText(const ModelLimits& limits) {
  DocumentJson paths = DocumentJson::object();
  for (const Route* const route : Routes()) {
    std::string method = route->method;
    for (char& c : method) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    paths[PathOf(*route)][method] = OperationJson(*route, limits);
  }
  DocumentJson document = {{"openapi", "3.1.0"},
                           {"info",
                            {{"title", "foretoken"},
                             {"version", kVersion},
                             {"license", {{"name", "Apache-2.0"}, {"identifier", "Apache-2.0"}}}}},
                           {"paths", std::move(paths)}};
  document["components"]["schemas"] = SharedForms(limits.vocabulary_size);
  document["components"]["securitySchemes"]["key"] = {{"type", "http"}, {"scheme", "bearer"}};
  // A server without keys needs none.
  document["security"] =
      DocumentJson::array({DocumentJson::object(), DocumentJson({{"key", DocumentJson::array()}})});
  return OneLine(document);
}

extern const Route kOpenApiRoute = {
    .method = "GET",
    .path = "/openapi.json",
    .about = "this table and the fields of bodies, as an OpenAPI 3.1 document",
    .handle = OpenApi};

}  // namespace foretoken::server
