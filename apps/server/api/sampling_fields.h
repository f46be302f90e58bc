// SPDX-License-Identifier: Apache-2.0
// server/api/sampling_fields.h: reads SamplingParameters, with the names of OpenAI, llama.cpp and
// vLLM.
#pragma once

#include <string>
#include <vector>

#include "foretoken/request.h"
#include "server/api/json_fields.h"
#include "server/api/openai_schema.h"

namespace foretoken::server {

// A list of token ids. False: it is invalid, and `fields` has an error about `name`.
bool ReadTokenIds(std::string_view name, const Json& list, int vocabulary_size, JsonFields& fields,
                  std::vector<std::int32_t>& out);

// Calls use(token, bias) for each member {"id": bias}, or each of llama.cpp's pairs [[id, bias]]. False: there is
// something else.
bool EachBias(const Json& biases, const auto& use) {
  bool good = biases.is_structured();
  for (const auto& [name, bias] : biases.members()) use(Json(name), bias);
  for (const Json& pair : biases) {
    good &= pair.is_array() && pair.size() == 2;
    if (good) use(pair[0], pair[1]);
  }
  return good;
}

// fields: those of the body. Errors go to them.
void ReadSamplingFields(JsonFields& fields, int vocabulary_size, SamplingParameters& sampling,
                        DryBreakers& dry_breakers);

}  // namespace foretoken::server
