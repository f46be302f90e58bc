// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "foretoken/cancellation.h"
#include "server/api/json_fields.h"
#include "server/api/object_text.h"
#include "server/api/plain_replies.h"
#include "server/router.h"
#include "server/routes/long_reply.h"
#include "server/routes/routes.h"
#include "settings/option_flags.h"

namespace foretoken::server {
namespace {

// How the conversation is written; its messages get what the template does not know.
ChatOptions FormatOf(const Service& service, TokenizeCall& call) {
  ChatOptions format = service.chat_format;
  format.add_generation_prompt = call.add_generation_prompt;
  PutToolsInText(service.model_calls, call.messages, call.tools_json);
  format.tools_json = call.tools_json;
  format.template_kwargs_json =
      MergedObjects(format.template_kwargs_json, call.template_kwargs_json);
  return format;
}

HttpResponse ApplyTemplate(Service& service, const HttpRequest& request, LogLine& line) {
  auto call = ParseTokenizeCall(request.body, service.limits);
  if (!call) return ErrorResponse(call.error());
  if (call->messages.empty())
    return ErrorResponse(BadField("messages", "they are missing; give the messages of a chat"));
  const ChatOptions format = FormatOf(service, *call);
  auto written = service.engine.WriteChat(call->messages, format);
  if (!written)
    return ErrorResponse(BadField("messages", settings::InFlags(written.error().message)));
  const std::size_t bytes = written->capacity();
  return LongReply(service, request, line, NamedText("prompt", *std::move(written)), bytes);
}

HttpResponse Tokenize(Service& service, const HttpRequest& request, LogLine& line) {
  auto call = ParseTokenizeCall(request.body, service.limits);
  if (!call) return ErrorResponse(call.error());
  const Engine& engine = service.engine;
  std::vector<std::int32_t> tokens;
  if (call->messages.empty()) {
    tokens = engine.Tokenize(call->content, call->add_special, call->parse_special);
  } else {
    const ChatOptions format = FormatOf(service, *call);
    auto written = engine.FormatChat(call->messages, format);
    if (!written)
      return ErrorResponse(BadField("messages", settings::InFlags(written.error().message)));
    tokens = *std::move(written);
  }
  // Nobody waits for it; the router answers.
  if (tokens.empty() && CancellationScope::AnyIsCancelled()) return {};
  const PieceOf piece = [&engine](std::int32_t token) { return Piece(engine, token); };
  const std::size_t bytes = tokens.capacity() * sizeof(std::int32_t);
  return LongReply(service, request, line,
                   TokensText(std::move(tokens), call->with_pieces ? piece : nullptr), bytes);
}

}  // namespace

extern const Route kTokenizeRoute = {
    .method = "POST",
    .path = "/tokenize",
    .about =
        "`content` (or `prompt`), `add_special`, `parse_special`, or the `messages` of a chat, "
        "`add_generation_prompt`, `tools`, `chat_template_kwargs`; `with_pieces` -> `tokens`: ids, "
        "or `{id, piece}`",
    .handle = Tokenize,
    .reads =
        [](const ModelLimits& limits) { return MissingField(ParseTokenizeCall("{}", limits)); },
    .reply = "TokenList"};

extern const Route kApplyTemplateRoute = {
    .method = "POST",
    .path = "/apply-template",
    .about =
        "llama.cpp's: the `messages` of a chat, `add_generation_prompt`, `tools`, "
        "`chat_template_kwargs` -> `prompt`, the text that the template writes",
    .handle = ApplyTemplate,
    .reads =
        [](const ModelLimits& limits) {
          static_cast<void>(ParseTokenizeCall(R"({"content": ""})", limits));
          if (FieldNotes* const notes = FieldNotes::OfThread()) notes->AddChoice({"messages"});
          return std::string("messages");
        },
    .reply = "WrittenChat"};

}  // namespace foretoken::server
