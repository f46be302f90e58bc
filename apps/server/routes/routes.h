// SPDX-License-Identifier: Apache-2.0
// server/routes/routes.h: the table of paths. Each endpoint is a .cpp that ends with its row, and a
// line in routes.cpp.
#pragma once

#include <span>
#include <string>

#include "server/net/http.h"
#include "server/net/sse.h"
#include "server/service.h"

namespace foretoken::server {

struct Route {
  const char* method;
  const char* path;   // a * in it stands for any text; the longest path that matches is taken
  const char* about;  // what it does, for documents (Markdown)
  bool open = false;  // answered without a key
  // Adds what a log should say about this request to the line.
  HttpResponse (*handle)(Service& service, const HttpRequest& request, LogLine& line);
  bool always = false;  // answered even while the server refuses everything else
  // The body of an error before `handle` is asked. Null: OpenAI's.
  std::string (*refusal)(const ApiError& error) = nullptr;
  // Reads an empty body of it, so that FieldNotes has its fields. Returns the first that is missing, or
  // "". Null: it has no body, or one without fields.
  std::string (*reads)(const ModelLimits& limits) = nullptr;
  // As `reads`, for bodies of another kind. Null: there is one kind.
  std::string (*reads_too)(const ModelLimits& limits) = nullptr;
  bool without_body = false;  // of a POST that changes nothing: it need not say that it is JSON
  int refuses = 0;            // the status with which it refuses every request; 0: it answers
  // The names of the forms (api/reply_forms.h) of its reply and of an event of a streamed one. Null: the
  // reply is a text; it is not streamed.
  const char* reply = nullptr;
  const char* event = nullptr;
  const char* reply_type = "application/json";
  const char* event_type = kEventStream;
  int failing = 0;  // a status with which it answers in the same form; 0: none
};

// What the star of the request's path stands for.
std::string NameInPath(const HttpRequest& request);

// For Route::reads.
template <typename T>
std::string MissingField(const Parsed<T>& of_empty) {
  return of_empty ? std::string() : of_empty.error().param;
}

// In the order of the documents.
std::span<const Route* const> Routes();

}  // namespace foretoken::server
