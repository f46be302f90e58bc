// SPDX-License-Identifier: Apache-2.0
#include "server/routes/routes.h"

#include <array>
#include <string_view>

namespace foretoken::server {

extern const Route kApplyTemplateRoute, kChatCompletionsRoute, kCompletionsRoute, kCountTokensRoute,
    kDetokenizeRoute, kEmbeddingsRoute, kHealthRoute, kIndexRoute, kLlamaEmbeddingRoute,
    kLlamaEmbeddingsRoute, kMessagesRoute, kMetricsRoute, kModelRoute, kModelsRoute, kPageRoute,
    kRerankRoute, kRerankingRoute, kResponsesRoute, kSpeculationRoute, kTokenizeRoute, kVerifyRoute,
    kVersionRoute;
extern const Route kOllamaChatRoute, kOllamaCopyRoute, kOllamaCreateRoute, kOllamaDeleteRoute,
    kOllamaEmbedRoute, kOllamaEmbeddingsRoute, kOllamaGenerateRoute, kOllamaPsRoute,
    kOllamaPullRoute, kOllamaPushRoute, kOllamaShowRoute, kOllamaTagsRoute, kOllamaVersionRoute;
extern const Route kCancelResponseRoute, kDeleteResponseRoute, kInputItemsRoute,
    kStoredResponseRoute;
extern const Route kInfillRoute, kLlamaCppCompletionRoute, kOpenApiRoute, kPropsRoute,
    kSetPropsRoute, kSlotRoute, kSlotsRoute;

std::string NameInPath(const HttpRequest& request) {
  const std::string_view pattern = request.route->path;
  const std::size_t star = pattern.find('*');
  return request.path.substr(star, request.path.size() - (pattern.size() - 1));
}

std::span<const Route* const> Routes() {
  static constexpr std::array kRoutes = {&kCompletionsRoute,    &kChatCompletionsRoute,
                                         &kVerifyRoute,         &kResponsesRoute,
                                         &kStoredResponseRoute, &kDeleteResponseRoute,
                                         &kInputItemsRoute,     &kCancelResponseRoute,
                                         &kMessagesRoute,       &kCountTokensRoute,
                                         &kEmbeddingsRoute,     &kLlamaEmbeddingsRoute,
                                         &kLlamaEmbeddingRoute, &kRerankRoute,
                                         &kRerankingRoute,      &kModelsRoute,
                                         &kModelRoute,          &kVersionRoute,
                                         &kHealthRoute,         &kSpeculationRoute,
                                         &kTokenizeRoute,       &kDetokenizeRoute,
                                         &kApplyTemplateRoute,  &kLlamaCppCompletionRoute,
                                         &kInfillRoute,         &kPropsRoute,
                                         &kSetPropsRoute,       &kSlotsRoute,
                                         &kSlotRoute,           &kOpenApiRoute,
                                         &kMetricsRoute,        &kOllamaChatRoute,
                                         &kOllamaGenerateRoute, &kOllamaTagsRoute,
                                         &kOllamaPsRoute,       &kOllamaShowRoute,
                                         &kOllamaVersionRoute,  &kOllamaPullRoute,
                                         &kOllamaPushRoute,     &kOllamaCreateRoute,
                                         &kOllamaCopyRoute,     &kOllamaDeleteRoute,
                                         &kOllamaEmbedRoute,    &kOllamaEmbeddingsRoute,
                                         &kPageRoute,           &kIndexRoute};
  return kRoutes;
}

}  // namespace foretoken::server
