// SPDX-License-Identifier: Apache-2.0
// cli/documents/catalogue_json.h: what this build has, as JSON: verbs, the rows of
// foretoken/catalogue.h, settings and the server's endpoints.
#pragma once

#include <string>

namespace foretoken::cli {

// Ends with a line end.
std::string CatalogueJson();

}  // namespace foretoken::cli
