// SPDX-License-Identifier: Apache-2.0
#include "server/api/json_fields.h"
#include "server/api/plain_replies.h"
#include "server/router.h"
#include "server/routes/generation.h"
#include "server/routes/routes.h"

namespace foretoken::server {
namespace {

// Verifications are not streamed.
class VerifyWriter final : public ReplyWriter {
 public:
  LongText Whole(const ReplyFrame& frame, std::span<const Choice> choices, int) override {
    return VerifiedText(frame, choices.front());
  }
  const char* stream_type() const override { return ""; }
  LongText Begin(const ReplyFrame&, int, const Echo&, std::vector<TokenLogprobs>) override {
    return {};
  }
  std::string Part(const ReplyFrame&, const StreamPart&) override { return {}; }
  std::string End(const ReplyFrame&, int, const Completion&, bool,
                  std::span<const Choice>) override {
    return {};
  }
  std::string Finish(const ReplyFrame&, const Usage&) override { return {}; }
  std::string Failure(const ApiError&) override { return {}; }
  std::string Refusal(const ApiError& error) override { return ErrorJson(error); }
};

HttpResponse Verify(Service& service, const HttpRequest& request, LogLine& line) {
  return Generate(service, request, ParseVerifyCall(request.body, service.limits),
                  std::make_unique<VerifyWriter>(), line);
}

}  // namespace

extern const Route kVerifyRoute = {
    .method = "POST",
    .path = "/v1/verify",
    .about = "verifies a client's own drafts of a completion or a chat, below",
    .handle = Verify,
    .reads = [](const ModelLimits& limits) { return MissingField(ParseVerifyCall("{}", limits)); },
    .reads_too =
        [](const ModelLimits& limits) {
          std::string lacks = MissingField(ParseVerifyCall(R"({"messages": []})", limits));
          if (FieldNotes* const notes = FieldNotes::OfThread()) notes->Require("", "messages");
          return lacks;
        },
    .reply = "Verification"};

}  // namespace foretoken::server
