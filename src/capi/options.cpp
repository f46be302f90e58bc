// SPDX-License-Identifier: Apache-2.0
#include "capi/options.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "capi/lists.h"

namespace foretoken::capi {

Status NeedsKind(const foretoken_options* options, foretoken_kind kind) {
  FORETOKEN_CHECK_OK(Needs(options, "options"));
  if (options->kind == kind) return {};
  return InvalidField("options", "they are of another kind; create them for this use");
}

namespace {

Status NeedsProcessing(const foretoken_options* options) {
  FORETOKEN_CHECK_OK(Needs(options, "options"));
  const foretoken_kind kind = options->kind;
  if (kind == FORETOKEN_REQUEST || kind == FORETOKEN_SESSION || kind == FORETOKEN_VERIFICATION)
    return {};
  return InvalidField("options", "nothing is sampled with them; add it to those of a request");
}

Status TakeDrafter(foretoken_options* options, const foretoken_drafter& functions,
                   std::shared_ptr<CallerData> data) {
  FORETOKEN_CHECK_OK(Needs(options, "options"));
  if (options->kind != FORETOKEN_ENGINE && options->kind != FORETOKEN_SESSION)
    return InvalidField("options", "nothing drafts with them; use those of an engine or session");
  FORETOKEN_CHECK_OK(Needs(functions.name, "name"));
  if (functions.propose == nullptr) return Needs(nullptr, "propose");
  options->caller_drafter = {functions, functions.name, std::move(data)};
  return {};
}

}  // namespace
}  // namespace foretoken::capi

using foretoken::Status;
namespace capi = foretoken::capi;

extern "C" {

foretoken_status foretoken_options_create(foretoken_kind kind, foretoken_options** options,
                                          foretoken_error** error) {
  return capi::Guarded(error, [&]() -> Status {
    FORETOKEN_CHECK_OK(capi::Needs(options, "options"));
    *options = nullptr;
    if (kind < FORETOKEN_ENGINE || kind > FORETOKEN_SESSION)
      return foretoken::InvalidField("kind",
                                     "there is no such kind; pass FORETOKEN_ENGINE to "
                                     "FORETOKEN_SESSION");
    auto made = std::make_unique<foretoken_options>();
    made->kind = kind;
    *options = made.release();
    return {};
  });
}

foretoken_status foretoken_options_copy(const foretoken_options* options, foretoken_options** copy,
                                        foretoken_error** error) {
  return capi::Guarded(error, [&]() -> Status {
    FORETOKEN_CHECK_OK(capi::Needs(copy, "copy"));
    *copy = nullptr;
    FORETOKEN_CHECK_OK(capi::Needs(options, "options"));
    *copy = new foretoken_options(*options);
    return {};
  });
}

foretoken_status foretoken_options_set(foretoken_options* options, const char* key,
                                       const char* value, size_t size, foretoken_error** error) {
  return capi::Guarded(error, [&]() -> Status {
    FORETOKEN_CHECK_OK(capi::Needs(options, "options"));
    FORETOKEN_CHECK_OK(capi::Needs(key, "key"));
    FORETOKEN_CHECK_OK(capi::NeedsList(value, size, "value"));
    return capi::SetOption(*options, key, capi::TextOf(value, size));
  });
}

foretoken_status foretoken_options_set_tokens(foretoken_options* options, const char* key,
                                              const int32_t* tokens, size_t count,
                                              foretoken_error** error) {
  return capi::Guarded(error, [&]() -> Status {
    FORETOKEN_CHECK_OK(capi::Needs(options, "options"));
    FORETOKEN_CHECK_OK(capi::Needs(key, "key"));
    FORETOKEN_CHECK_OK(capi::NeedsList(tokens, count, "tokens"));
    return capi::SetTokens(*options, key, capi::ListOf(tokens, count));
  });
}

const char* foretoken_options_key(foretoken_kind kind, size_t index) {
  const char* key = nullptr;
  capi::Guarded(nullptr, [&]() -> Status {
    key = capi::KeyAt(kind, index).data();
    return {};
  });
  return key;
}

void foretoken_options_free(foretoken_options* options) {
  delete options;
}

foretoken_status foretoken_options_set_drafter(foretoken_options* options,
                                               const foretoken_drafter* drafter,
                                               foretoken_error** error) {
  return capi::Guarded(error, [&]() -> Status {
    FORETOKEN_CHECK_OK(capi::Needs(drafter, "drafter"));
    constexpr std::size_t kLeast = sizeof(foretoken_drafter);  // of the first version
    if (drafter->struct_size < kLeast)
      return foretoken::InvalidField("struct_size",
                                     "it is smaller than the structure; set it to "
                                     "sizeof(foretoken_drafter)");
    const foretoken_drafter functions = *drafter;
    return capi::TakeDrafter(options, functions,
                             std::make_shared<capi::CallerData>(functions.user, functions.release));
  });
}

foretoken_status foretoken_options_add_processor(foretoken_options* options,
                                                 foretoken_processor processor, void* user,
                                                 void (*release)(void* user),
                                                 foretoken_error** error) {
  return capi::Guarded(error, [&]() -> Status {
    auto data = std::make_shared<capi::CallerData>(user, release);
    if (processor == nullptr) return capi::Needs(nullptr, "processor");
    FORETOKEN_CHECK_OK(capi::NeedsProcessing(options));
    options->processors.push_back({processor, user, std::move(data)});
    return {};
  });
}

}  // extern "C"
