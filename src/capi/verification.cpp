// SPDX-License-Identifier: Apache-2.0
// Verification of foretoken.h, on logits of the caller.
#include "foretoken/verification.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "capi/engine.h"
#include "capi/lists.h"

struct foretoken_verification {
  foretoken::DraftVerification verification;
  foretoken::capi::ProcessorFault fault;
  int vocabulary_size;
};

namespace foretoken::capi {
namespace {

// Rows of the caller, none for NULL.
TokenRows RowsAt(const float* first, std::size_t rows, std::size_t vocabulary) {
  if (first == nullptr) return {};
  return {first, static_cast<int>(rows), static_cast<int>(vocabulary),
          static_cast<std::int64_t>(vocabulary)};
}

Status CheckInput(const foretoken_verification& verification,
                  const foretoken_verification_input* input) {
  FORETOKEN_CHECK_OK(Needs(input, "input"));
  if (input->struct_size < sizeof(foretoken_verification_input))
    return InvalidField("struct_size",
                        "it is smaller than the structure; set it to "
                        "sizeof(foretoken_verification_input)");
  FORETOKEN_CHECK_OK(NeedsList(input->text, input->text_count, "text"));
  FORETOKEN_CHECK_OK(NeedsList(input->drafts, input->draft_count, "drafts"));
  FORETOKEN_CHECK_OK(Needs(input->target_logits, "target_logits"));
  if (input->draft_count > kMaxDraft)
    return InvalidField("draft_count", fmt::format("{} is more than {}; verify fewer drafts",
                                                   input->draft_count, kMaxDraft));
  const std::size_t least = static_cast<std::size_t>(verification.vocabulary_size);
  if (input->vocabulary < least || input->vocabulary > (1u << 30))
    return InvalidField(
        "vocabulary",
        fmt::format("{} is not in [{}, 2^30]; give the floats of a row", input->vocabulary, least));
  if (input->generated > input->text_count)
    return InvalidField("generated", "it is more than the text has; give at most text_count");
  if (input->position > std::numeric_limits<int>::max())
    return InvalidField("position", "it is beyond 2^31; give the position of the first draft");
  return {};
}

VerificationInput InputOf(const foretoken_verification_input& in) {
  const std::size_t n = in.draft_count;
  VerificationInput input{.text = ListOf(in.text, in.text_count),
                          .n_generated = static_cast<int>(in.generated),
                          .drafts = ListOf(in.drafts, n),
                          .draft_probabilities = RowsAt(in.draft_probabilities, n, in.vocabulary),
                          .draft_logits = RowsAt(in.draft_logits, n, in.vocabulary),
                          .target_logits = RowsAt(in.target_logits, n + 1, in.vocabulary),
                          .uniforms = {.accept = ListOf(in.accept, n),
                                       .recover = ListOf(in.recover, n),
                                       .target = ListOf(in.target, n + 1)}};
  if (in.position >= 0) input.position = static_cast<int>(in.position);
  return input;
}

Status VerifyInto(foretoken_verification& verification, const foretoken_verification_input* input,
                  foretoken_verified* verified) {
  FORETOKEN_CHECK_OK(Needs(verified, "verified"));
  if (verified->struct_size < sizeof(foretoken_verified))
    return InvalidField("struct_size",
                        "it is smaller than the structure; set it to "
                        "sizeof(foretoken_verified)");
  FORETOKEN_CHECK_OK(CheckInput(verification, input));
  auto done = verification.verification.Verify(InputOf(*input));
  if (verification.fault->exchange(false))
    throw CallbackFailed{
        "processor: a function of the caller returned an error; see its reason there"};
  FORETOKEN_TRY(const VerifiedDrafts kept, std::move(done));
  verified->accepted = kept.accepted;
  verified->next = kept.next;
  verified->origin = static_cast<std::int32_t>(kept.origin);
  verified->lossless = kept.lossless ? 1 : 0;
  return {};
}

}  // namespace
}  // namespace foretoken::capi

using foretoken::Status;
namespace capi = foretoken::capi;

extern "C" {

foretoken_status foretoken_verification_create(const foretoken_options* options,
                                               foretoken_verification** verification,
                                               foretoken_error** error) {
  return capi::Guarded(error, [&]() -> Status {
    FORETOKEN_CHECK_OK(capi::Needs(verification, "verification"));
    *verification = nullptr;
    FORETOKEN_CHECK_OK(capi::NeedsKind(options, FORETOKEN_VERIFICATION));
    const auto fault = std::make_shared<std::atomic<bool>>(false);
    foretoken::Request request = capi::RequestOf(*options, fault);
    FORETOKEN_TRY(auto made,
                  foretoken::DraftVerification::Create({.vocabulary_size = options->vocabulary_size,
                                                        .speculative = options->engine.speculative,
                                                        .sampling = std::move(request.sampling),
                                                        .seed = request.seed,
                                                        .request_id = request.id,
                                                        .isa = options->engine.isa}));
    *verification = new foretoken_verification{std::move(made), fault, options->vocabulary_size};
    return {};
  });
}

foretoken_status foretoken_verification_run(foretoken_verification* verification,
                                            const foretoken_verification_input* input,
                                            foretoken_verified* verified, foretoken_error** error) {
  return capi::Guarded(error, [&]() -> Status {
    FORETOKEN_CHECK_OK(capi::Needs(verification, "verification"));
    return capi::VerifyInto(*verification, input, verified);
  });
}

void foretoken_verification_free(foretoken_verification* verification) {
  delete verification;
}

}  // extern "C"
