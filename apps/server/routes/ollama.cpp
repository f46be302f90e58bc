// SPDX-License-Identifier: Apache-2.0
// server/routes/ollama.cpp: Ollama's API. Its paths stand together, as most of them are a line
// about the one model.
#include <fmt/format.h>

#include <utility>

#include "server/api/ollama_replies.h"
#include "server/api/ollama_schema.h"
#include "server/api/plain_replies.h"
#include "server/router.h"
#include "server/routes/answer.h"
#include "server/routes/embeddings.h"
#include "server/routes/generation.h"
#include "server/routes/routes.h"

namespace foretoken::server {
namespace {

ServedModel OllamaModel(const Service& service) {
  return {.name = service.limits.name,
          .aliases = service.limits.aliases,
          .created = service.started,
          .engine = &service.engine.summary(),
          .chats = service.chats};
}

HttpResponse OllamaRefusal(const ApiError& error, LogLine& line) {
  line.Add("error", NameOf(error));
  return {.status = error.status, .body = OllamaErrorJson(error)};
}

HttpResponse OllamaAnswerTo(Service& service, const HttpRequest& request, Parsed<OllamaCall> call,
                            bool chat, LogLine& line) {
  if (!call) return Generate(service, request, Refuse(call.error()), OllamaWriter(chat), line);
  if (call->load) return {.body = OllamaLoadedJson(service.limits.name, chat)};
  // A raw prompt writes its control tokens itself.
  if (call->raw)
    for (Prompt& prompt : call->generation.prompts)
      if (const auto* const text = std::get_if<std::string>(&prompt)) {
        if (service.options.log_prompts) line.Add("prompt", *text);
        prompt = service.engine.Tokenize(*text, true, true);
      }
  return Generate(service, request, std::move(call->generation), OllamaWriter(chat), line);
}

HttpResponse OllamaChat(Service& service, const HttpRequest& request, LogLine& line) {
  return OllamaAnswerTo(service, request, ParseOllamaChat(request.body, service.limits), true,
                        line);
}

HttpResponse OllamaGenerate(Service& service, const HttpRequest& request, LogLine& line) {
  return OllamaAnswerTo(service, request,
                        ParseOllamaGenerate(request.body, service.limits, service.chats), false,
                        line);
}

HttpResponse OllamaTags(Service& service, const HttpRequest&, LogLine&) {
  return {.body = OllamaTagsJson(OllamaModel(service))};
}

HttpResponse OllamaPs(Service& service, const HttpRequest&, LogLine&) {
  return {.body = OllamaPsJson(OllamaModel(service))};
}

HttpResponse OllamaShow(Service& service, const HttpRequest& request, LogLine& line) {
  if (const auto error = CheckOllamaShow(request.body, service.limits))
    return OllamaRefusal(*error, line);
  return {.body = OllamaShowJson(OllamaModel(service))};
}

HttpResponse OllamaEmbedAs(Service& service, const HttpRequest& request, EmbeddingForm form,
                           LogLine& line) {
  auto call = ParseOllamaEmbedding(request.body, service.limits, form);
  if (!call) return RefusedEmbedding(call.error(), OllamaErrorJson, line);
  if (!call->inputs.empty())
    return EmbedCall(service, request, *std::move(call), OllamaErrorJson, line);
  std::string body;
  EmbeddingsText(*call, {.model = service.limits.name}).Write(kAtOnce, body);
  return {.body = std::move(body)};
}

HttpResponse OllamaEmbed(Service& service, const HttpRequest& request, LogLine& line) {
  return OllamaEmbedAs(service, request, EmbeddingForm::kOllama, line);
}

HttpResponse OllamaEmbedPrompt(Service& service, const HttpRequest& request, LogLine& line) {
  return OllamaEmbedAs(service, request, EmbeddingForm::kOllamaPrompt, line);
}

template <EmbeddingForm kForm>
std::string OllamaReadsEmbed(const ModelLimits& limits) {
  return MissingField(ParseOllamaEmbedding("{}", limits, kForm));
}

HttpResponse OllamaVersion(Service&, const HttpRequest&, LogLine&) {
  return {.body = VersionJson()};
}

HttpResponse OllamaNotHere(Service&, const HttpRequest& request, LogLine& line) {
  return OllamaRefusal(
      {.status = 501,
       .message = fmt::format("{}: this server serves one model, the one that it was started with; "
                              "use /api/chat, /api/generate, /api/embed, /api/tags, /api/show or "
                              "/api/ps",
                              request.path),
       .code = "not_implemented"},
      line);
}

constexpr Route NotHere(const char* method, const char* path) {
  return {.method = method,
          .path = path,
          .about = "Ollama's; 501, as there is one model",
          .handle = OllamaNotHere,
          .refusal = OllamaErrorJson,
          .refuses = 501};
}

}  // namespace

extern const Route kOllamaChatRoute = {
    .method = "POST",
    .path = "/api/chat",
    .about = "Ollama's chats, below",
    .handle = OllamaChat,
    .refusal = OllamaErrorJson,
    .reads = [](const ModelLimits& limits) { return MissingField(ParseOllamaChat("{}", limits)); },
    .reply = "OllamaChat",
    .event = "OllamaChatLine",
    .event_type = kOllamaLines};
extern const Route kOllamaGenerateRoute = {
    .method = "POST",
    .path = "/api/generate",
    .about = "Ollama's completions, below",
    .handle = OllamaGenerate,
    .refusal = OllamaErrorJson,
    .reads =
        [](const ModelLimits& limits) {
          return MissingField(ParseOllamaGenerate("{}", limits, true));
        },
    .reply = "OllamaGeneration",
    .event = "OllamaGenerationLine",
    .event_type = kOllamaLines};
extern const Route kOllamaTagsRoute = {.method = "GET",
                                       .path = "/api/tags",
                                       .about = "Ollama's list of models: the one there is",
                                       .handle = OllamaTags,
                                       .refusal = OllamaErrorJson,
                                       .reply = "OllamaTags"};
extern const Route kOllamaPsRoute = {.method = "GET",
                                     .path = "/api/ps",
                                     .about = "the same as a list of loaded models",
                                     .handle = OllamaPs,
                                     .refusal = OllamaErrorJson,
                                     .reply = "OllamaPs"};
extern const Route kOllamaShowRoute = {.method = "POST",
                                       .path = "/api/show",
                                       .about = "Ollama's description of the model",
                                       .handle = OllamaShow,
                                       .refusal = OllamaErrorJson,
                                       .reads =
                                           [](const ModelLimits& limits) {
                                             static_cast<void>(CheckOllamaShow("{}", limits));
                                             return std::string();
                                           },
                                       .reply = "OllamaShow"};
extern const Route kOllamaVersionRoute = {.method = "GET",
                                          .path = "/api/version",
                                          .about = "the version, for clients of Ollama",
                                          .handle = OllamaVersion,
                                          .refusal = OllamaErrorJson,
                                          .reply = "Version"};
extern const Route kOllamaPullRoute = NotHere("POST", "/api/pull");
extern const Route kOllamaPushRoute = NotHere("POST", "/api/push");
extern const Route kOllamaCreateRoute = NotHere("POST", "/api/create");
extern const Route kOllamaCopyRoute = NotHere("POST", "/api/copy");
extern const Route kOllamaDeleteRoute = NotHere("DELETE", "/api/delete");
extern const Route kOllamaEmbedRoute = {.method = "POST",
                                        .path = "/api/embed",
                                        .about = "Ollama's embeddings, below",
                                        .handle = OllamaEmbed,
                                        .refusal = OllamaErrorJson,
                                        .reads = OllamaReadsEmbed<EmbeddingForm::kOllama>,
                                        .reply = "OllamaEmbeddings"};
extern const Route kOllamaEmbeddingsRoute = {
    .method = "POST",
    .path = "/api/embeddings",
    .about = "Ollama's older form, of one `prompt`",
    .handle = OllamaEmbedPrompt,
    .refusal = OllamaErrorJson,
    .reads = OllamaReadsEmbed<EmbeddingForm::kOllamaPrompt>,
    .reply = "OllamaEmbedding"};

}  // namespace foretoken::server
