// SPDX-License-Identifier: Apache-2.0
// Sessions of foretoken.h: a drafter on texts of the caller.
#include <utility>

#include "capi/engine.h"
#include "capi/lists.h"
#include "foretoken/built_in_drafters.h"
#include "foretoken/draft_session.h"

struct foretoken_session {
  std::unique_ptr<foretoken::DraftSession> session;
  foretoken::SessionText text;  // without a prompt: what each text begins with
  foretoken::capi::ProcessorFault fault;
  foretoken::Drafts drafts;  // what `view` points to
  foretoken_drafts view = {};
};

namespace foretoken::capi {
namespace {

Result<std::shared_ptr<Drafter>> OpenDrafterOf(const foretoken_options& options) {
  if (auto own = DrafterOf(options.caller_drafter)) return own;
  const EngineOptions& model = options.engine;
  if (options.drafter == "ngram") return MakeNgramDrafter();
  if (options.drafter == "suffix") return MakeSuffixDrafter();
  if (options.drafter == "model") {
    FORETOKEN_TRY(auto opened,
                  OpenDrafter(model.model, {.context_size = model.context_size,
                                            .threads = model.threads,
                                            .draft_window = model.speculative.draft_window,
                                            .isa = model.isa,
                                            .repack_cache = model.repack_cache}));
    return std::shared_ptr<Drafter>(std::move(opened));
  }
  return InvalidField("drafter", "'" + Shown(options.drafter) +
                                     "' is none; choose ngram, suffix or model, or set your own");
}

SessionText SessionTextOf(const foretoken_options& options, const ProcessorFault& fault) {
  Request request = RequestOf(options, fault);
  return {.max_new_tokens = request.max_new_tokens,
          .min_new_tokens = request.min_new_tokens,
          .sampling = std::move(request.sampling),
          .end_tokens = options.engine.end_tokens,
          .draft_p_min = options.draft_p_min,
          .seed = request.seed,
          .id = request.id,
          .shares_noise = options.shares_noise};
}

Status ProposeIn(foretoken_session& session, int k, bool distributions) {
  session.view = {};
  FORETOKEN_TRY(session.drafts, session.session->Propose(k, {.distributions = distributions}));
  if (session.fault->exchange(false))
    throw CallbackFailed{
        "processor: a function of the caller returned an error; see its reason there"};
  const Drafts& d = session.drafts;
  session.view = {.tokens = d.tokens.data(),
                  .count = d.tokens.size(),
                  .probabilities = d.probabilities.empty() ? nullptr : d.probabilities.data(),
                  .distributions = d.distributions.empty() ? nullptr : d.distributions.data(),
                  .vocabulary = static_cast<std::size_t>(d.vocabulary_size)};
  return {};
}

}  // namespace
}  // namespace foretoken::capi

using foretoken::Status;
namespace capi = foretoken::capi;

extern "C" {

foretoken_status foretoken_session_open(const foretoken_options* options,
                                        foretoken_session** session, foretoken_error** error) {
  return capi::Guarded(error, [&]() -> Status {
    FORETOKEN_CHECK_OK(capi::Needs(session, "session"));
    *session = nullptr;
    FORETOKEN_CHECK_OK(capi::NeedsKind(options, FORETOKEN_SESSION));
    auto made = std::make_unique<foretoken_session>();
    made->fault = std::make_shared<std::atomic<bool>>(false);
    made->text = capi::SessionTextOf(*options, made->fault);
    FORETOKEN_TRY(auto drafter, capi::OpenDrafterOf(*options));
    FORETOKEN_TRY(made->session,
                  foretoken::DraftSession::Create(std::move(drafter), options->vocabulary_size));
    *session = made.release();
    return {};
  });
}

foretoken_status foretoken_session_begin(foretoken_session* session, const int32_t* prompt,
                                         size_t count, foretoken_error** error) {
  return capi::Guarded(error, [&]() -> Status {
    FORETOKEN_CHECK_OK(capi::Needs(session, "session"));
    FORETOKEN_CHECK_OK(capi::NeedsList(prompt, count, "prompt"));
    foretoken::SessionText text = session->text;
    const auto tokens = capi::ListOf(prompt, count);
    text.prompt.assign(tokens.begin(), tokens.end());
    return session->session->Begin(text);
  });
}

foretoken_status foretoken_session_propose(foretoken_session* session, int32_t k,
                                           int32_t distributions, const foretoken_drafts** drafts,
                                           foretoken_error** error) {
  return capi::Guarded(error, [&]() -> Status {
    FORETOKEN_CHECK_OK(capi::Needs(drafts, "drafts"));
    *drafts = nullptr;
    FORETOKEN_CHECK_OK(capi::Needs(session, "session"));
    FORETOKEN_CHECK_OK(capi::ProposeIn(*session, k, distributions != 0));
    *drafts = &session->view;
    return {};
  });
}

foretoken_status foretoken_session_observe(foretoken_session* session, const int32_t* tokens,
                                           size_t count, foretoken_error** error) {
  return capi::Guarded(error, [&]() -> Status {
    FORETOKEN_CHECK_OK(capi::Needs(session, "session"));
    FORETOKEN_CHECK_OK(capi::NeedsList(tokens, count, "tokens"));
    return session->session->Observe(capi::ListOf(tokens, count));
  });
}

void foretoken_session_close(foretoken_session* session) {
  delete session;
}

}  // extern "C"
