// SPDX-License-Identifier: Apache-2.0
#include "server/routes/routes.h"

#include <array>

namespace foretoken::server {

extern const Route kApplyTemplateRoute, kChatCompletionsRoute, kCompletionsRoute, kDetokenizeRoute,
    kHealthRoute, kIndexRoute, kMetricsRoute, kModelRoute, kModelsRoute, kPageRoute,
    kResponsesRoute, kSpeculationRoute, kTokenizeRoute, kVersionRoute;

std::span<const Route* const> Routes() {
  static constexpr std::array kRoutes = {&kCompletionsRoute,   &kChatCompletionsRoute,
                                         &kResponsesRoute,     &kModelsRoute,
                                         &kModelRoute,         &kVersionRoute,
                                         &kHealthRoute,        &kSpeculationRoute,
                                         &kTokenizeRoute,      &kDetokenizeRoute,
                                         &kApplyTemplateRoute, &kMetricsRoute,
                                         &kPageRoute,          &kIndexRoute};
  return kRoutes;
}

}  // namespace foretoken::server
