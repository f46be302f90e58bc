// SPDX-License-Identifier: Apache-2.0
// server/routes/openapi.cpp: a document of all paths, made from the table of routes and from what the
// readers of their bodies ask for.
#include <cctype>
#include <string>
#include <string_view>

#include "foretoken/catalogue.h"
#include "server/api/json_fields.h"
#include "server/api/object_text.h"
#include "server/routes/routes.h"

namespace foretoken::server {
namespace {

using DocumentJson = nlohmann::ordered_json;

// Null counts as absent.
DocumentJson OrNull(const char* type) {
  return {{"type", DocumentJson::array({type, "null"})}};
}

DocumentJson SchemaOf(const FieldNote& note) {
  DocumentJson schema = DocumentJson::object();
  using Kind = Json::value_t;
  if (note.kind == Kind::boolean) schema = OrNull("boolean");
  if (note.kind == Kind::string) schema = OrNull("string");
  if (note.kind == Kind::object) schema = OrNull("object");
  if (note.kind == Kind::number_float) schema = OrNull("number");
  if (note.kind == Kind::number_integer) schema = OrNull("integer");
  if (note.kind == Kind::number_float)
    schema["minimum"] = note.least, schema["maximum"] = note.most;
  if (note.kind == Kind::number_integer) {
    schema["minimum"] = static_cast<std::int64_t>(note.least);
    schema["maximum"] = static_cast<std::int64_t>(note.most);
  }
  if (!note.same_as.empty()) schema["description"] = "another name of " + note.same_as;
  if (note.foreign)
    schema["description"] = "a field of other servers: " +
                            (note.about.empty() ? "accepted without effect" : note.about);
  return schema;
}

DocumentJson BodySchema(const Route& route, const ModelLimits& limits) {
  DocumentJson schema = {{"type", "object"}};
  if (route.reads == nullptr) return schema;
  const FieldNotes notes;
  const std::string lacks = route.reads(limits);
  DocumentJson& properties = schema["properties"] = DocumentJson::object();
  for (const FieldNote& note : notes.all()) properties[note.name] = SchemaOf(note);
  if (properties.contains(lacks)) schema["required"] = DocumentJson::array({lacks});
  return schema;
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
    json["requestBody"]["content"]["application/json"]["schema"] = BodySchema(route, limits);
  }
  json["responses"] = {{"200", {{"description", "the answer"}}},
                       {"default", {{"description", "an error, as JSON"}}}};
  if (route.open) json["security"] = DocumentJson::array();
  return json;
}

std::string DocumentOf(const ModelLimits& limits) {
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
  document["components"]["securitySchemes"]["key"] = {{"type", "http"}, {"scheme", "bearer"}};
  // A server without keys needs none.
  document["security"] =
      DocumentJson::array({DocumentJson::object(), DocumentJson({{"key", DocumentJson::array()}})});
  return OneLine(document);
}

HttpResponse OpenApi(Service& service, const HttpRequest&, LogLine&) {
  static const std::string document = DocumentOf(service.limits);
  return {.body = document};
}

}  // namespace

extern const Route kOpenApiRoute = {
    .method = "GET",
    .path = "/openapi.json",
    .about = "this table and the fields of bodies, as an OpenAPI 3.1 document",
    .handle = OpenApi};

}  // namespace foretoken::server
