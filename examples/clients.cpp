// SPDX-License-Identifier: Apache-2.0
// clients TARGET DRAFT: three threads ask one engine at the same time. One reads its text as it
// comes, one wants two texts for one prompt, and one loses interest.
#include <iostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "foretoken/async_engine.h"

namespace {

using foretoken::AsyncEngine;
using foretoken::StreamEvent;

foretoken::Request Ask(const std::string& prompt) {
  foretoken::Request request;
  request.prompt = prompt;
  request.max_new_tokens = 40;
  request.sampling.temperature = 0.8f;
  request.seed = 7;
  return request;
}

// Reads one text as it comes.
std::string Read(AsyncEngine& engine) {
  auto stream = engine.Submit(Ask("Once upon a time"));
  if (!stream) return stream.error().message;
  std::string text;
  while (auto event = stream->Next()) {
    if (event->kind == StreamEvent::Kind::kRound) text += event->round.text;
    if (event->kind == StreamEvent::Kind::kFailed) return event->error.message;
  }
  return text;
}

// Waits for two texts that continue the same prompt.
std::string ReadTwo(AsyncEngine& engine) {
  auto prepared = engine.engine().Prepare(Ask("The little fox"));
  if (!prepared) return prepared.error().message;
  std::vector<foretoken::AsyncChoice> choices;
  choices.push_back({.request = *prepared});
  prepared->set_id(1);  // other noise, so another text
  choices.push_back({.request = *std::move(prepared), .first_of_prompt = false});
  auto stream = engine.Submit(std::move(choices), {.rounds = false});
  if (!stream) return stream.error().message;
  const auto completions = stream->Collect();
  if (!completions) return completions.error().message;
  return (*completions)[0].text + "\nor:" + (*completions)[1].text;
}

// Reads until it has seen enough.
std::string ReadABit(AsyncEngine& engine) {
  foretoken::Request request = Ask("A girl named Lily");
  request.max_new_tokens = 400;
  auto stream = engine.Submit(request);
  if (!stream) return stream.error().message;
  while (auto event = stream->Next()) {
    if (event->kind == StreamEvent::Kind::kRound) stream->Cancel();
    if (event->kind == StreamEvent::Kind::kEnd) {
      const foretoken::Completion& completion = event->end->completion;
      return completion.text + " (" + foretoken::Name(completion.finish_reason) + ")";
    }
  }
  return "it failed";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::cerr << "usage: clients TARGET DRAFT\n", 2;
  foretoken::EngineOptions options;
  options.model = argv[1];
  options.draft_model = argv[2];
  options.max_sequences = 4;
  const auto opened = AsyncEngine::Open(options, {.max_waiting = 8});
  if (!opened) return std::cerr << opened.error().message << '\n', 1;
  AsyncEngine& engine = **opened;

  std::string one, two, bit;
  std::thread first([&] { one = Read(engine); });
  std::thread second([&] { two = ReadTwo(engine); });
  std::thread third([&] { bit = ReadABit(engine); });
  first.join(), second.join(), third.join();
  std::cout << one << "\n\n" << two << "\n\n" << bit << '\n';

  // The engine alone gives the same text.
  const auto alone = engine.Close()->Generate(Ask("Once upon a time"));
  if (!alone || alone->text != one) return std::cerr << "clients: the text is another\n", 1;
  if (bit.find("cancelled") == std::string::npos)
    return std::cerr << "clients: the third request was not cancelled\n", 1;
}
