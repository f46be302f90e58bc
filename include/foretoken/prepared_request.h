// SPDX-License-Identifier: Apache-2.0
// foretoken/prepared_request.h: a request that an engine has checked. Its prompt is tokens and its
// grammar is compiled, so that the engine's thread begins it without delay.
//
// A value without ties to threads: any thread may hold it, copy it and let it go. Only the engine
// that prepared it may begin it, and that engine must outlive it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "foretoken/request.h"

namespace foretoken {

namespace grammar {
class Grammar;
}
namespace engine {
class Admission;
class Preparation;
}  // namespace engine

class PreparedRequest {
 public:
  // As it was given, but for prompt_tokens, which have moved:
  const Request& request() const { return request_; }
  std::span<const std::int32_t> prompt_tokens() const { return prompt_; }
  // Null where the request has no grammar.
  const grammar::Grammar* grammar() const { return grammar_.get(); }

  // Separates choices that share everything else: Request::id.
  void set_id(std::uint64_t id) { request_.id = id; }

 private:
  friend class engine::Admission;
  friend class engine::Preparation;
  PreparedRequest() = default;

  const engine::Preparation* prepared_by_ = nullptr;
  Request request_;
  std::vector<std::int32_t> prompt_;
  std::shared_ptr<const grammar::Grammar> grammar_;
};

}  // namespace foretoken
