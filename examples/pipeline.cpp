// SPDX-License-Identifier: Apache-2.0
// pipeline TARGET DRAFT: batches of two replicas, one step at a time; requests come, pause and go.
#include <iostream>

#include "foretoken/speculative_pipeline.h"

namespace {

foretoken::Request Tale(const char* prompt, int tokens, int drafts) {
  foretoken::Request request;
  request.prompt = prompt;
  request.max_new_tokens = tokens;
  request.sampling.temperature = 0.8f;
  request.speculative.num_speculative_tokens = drafts;
  return request;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::cerr << "usage: pipeline TARGET DRAFT\n", 2;
  foretoken::EngineOptions options;
  options.model = argv[1];
  options.draft_model = argv[2];
  options.speculative.controller = "fixed";
  options.max_sequences = 3;  // of all replicas
  auto opened = foretoken::StandaloneSpeculativeDecodingPipeline::Create(options);
  if (!opened) return std::cerr << opened.error().message << '\n', 1;
  foretoken::StandaloneSpeculativeDecodingPipeline& pipeline = **opened;

  const std::map<std::string, foretoken::Request> tales = {
      {"fox", Tale("The fox", 40, 4)},
      {"king", Tale("There was a king", 30, 2)},
      {"girl", Tale("Once upon a time there was a girl", 50, 6)}};
  std::map<std::string, std::string> texts;
  std::map<std::string, bool> done;
  for (int step = 0; done.size() < tales.size(); ++step) {
    std::vector<foretoken::TextGenerationBatch> replicas(2);
    for (const auto& [id, request] : tales) {
      const bool rests = id == "king" && step % 2 == 1;
      if (!done.contains(id) && !rests) replicas[id == "girl" ? 1 : 0][id] = request;
    }
    const auto outputs = pipeline.Execute(replicas);
    if (!outputs) return std::cerr << outputs.error().message << '\n', 1;
    for (const auto& [id, output] : *outputs) {
      texts[id] += output.text;
      if (output.done) done[id] = true;
    }
  }
  const auto metrics = pipeline.SpecDecodeMetrics();
  std::cout << metrics.accepted << " of " << metrics.drafted << " drafts accepted\n";

  // Each text is the one that its request gives alone.
  auto engine = foretoken::Engine::Open(options);
  if (!engine) return std::cerr << engine.error().message << '\n', 1;
  for (const auto& [id, request] : tales) {
    const auto released = pipeline.Release(id);
    const auto alone = (*engine)->Generate(request);
    std::cout << id << ": " << texts[id] << '\n';
    if (!released || !alone || released->text != texts[id] || alone->text != texts[id])
      return std::cerr << "pipeline: '" << id << "' has another text alone\n", 1;
  }
  return metrics.accepted > 0 ? 0 : 1;
}
