// SPDX-License-Identifier: Apache-2.0
// own_drafter TARGET [DRAFT]: your own drafter. It drafts what followed the newest token the last
// time, in this request or an earlier one. The text stays the target's.
#include <cstdint>
#include <iostream>
#include <memory>
#include <unordered_map>

#include "foretoken/drafter.h"
#include "foretoken/engine.h"

namespace {

class LastTime final : public foretoken::Drafter {
 public:
  std::string_view name() const override { return "last-time"; }

  void Begin(const foretoken::DrafterText& request) override {
    newest_[request.sequence] = request.prompt.front();
    Learn(request.sequence, request.prompt.subspan(1));
  }
  void Propose(int, foretoken::DraftProposal& proposal) override {
    while (proposal.left() > 0) {
      const auto known = after_.find(proposal.text().back());
      if (known == after_.end() || !proposal.Push(known->second)) return;
    }
  }
  void Observe(const foretoken::DrafterRound& round) override {
    Learn(round.sequence, round.committed);
  }

 private:
  void Learn(int sequence, std::span<const std::int32_t> tokens) {
    for (const std::int32_t token : tokens) {
      after_[newest_[sequence]] = token;
      newest_[sequence] = token;
    }
  }
  std::unordered_map<std::int32_t, std::int32_t> after_;
  std::unordered_map<int, std::int32_t> newest_;  // by sequence
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return std::cerr << "usage: own_drafter TARGET\n", 2;
  foretoken::EngineOptions options;
  options.model = argv[1];
  options.speculative.controller = "fixed";
  options.drafter = std::make_shared<LastTime>();
  auto engine = foretoken::Engine::Open(options);
  if (!engine) return std::cerr << engine.error().message << '\n', 1;
  for (const float temperature : {0.0f, 0.8f}) {
    foretoken::Request request;
    request.prompt = "Once upon a time there was a little girl. The little girl";
    request.sampling.temperature = temperature;
    const auto drafted = (*engine)->Generate(request);
    request.speculative.method = "none";
    const auto plain = (*engine)->Generate(request);
    if (!drafted || !plain) return std::cerr << "a request was refused\n", 1;
    std::cout << drafted->text << "\n[temperature " << temperature << ": "
              << drafted->speculation.accepted << " of " << drafted->speculation.drafted
              << " drafts accepted]\n";
    if (drafted->token_ids != plain->token_ids || drafted->speculation.accepted == 0)
      return std::cerr << "own_drafter: the text is not the target's, or nothing was accepted\n", 1;
  }
}
