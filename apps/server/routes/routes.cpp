// SPDX-License-Identifier: Apache-2.0
#include "server/routes/routes.h"

#include <array>

namespace foretoken::server {

std::span<const Route* const> Routes() {
  static constexpr std::array kRoutes = {
      &kChatCompletionsRoute, &kCompletionsRoute, &kDetokenizeRoute,
      &kHealthRoute,          &kIndexRoute,       &kMetricsRoute,
      &kModelRoute,           &kModelsRoute,      &kPageRoute,
      &kSpeculationRoute,     &kTokenizeRoute,    &kVersionRoute};
  return kRoutes;
}

}  // namespace foretoken::server
