// SPDX-License-Identifier: Apache-2.0
// cli/chat/chat_engines.h: the engines of a chat, opened when they are first needed.
#pragma once

#include <memory>

#include "foretoken/engine.h"
#include "foretoken/options.h"

namespace foretoken::cli {

class ChatEngines {
 public:
  // show_progress: on a terminal, while models load.
  ChatEngines(EngineOptions options, bool show_progress)
      : options_(std::move(options)), show_progress_(show_progress) {}

  // The model with all its drafters. Errors: Engine::Open's.
  [[nodiscard]] Result<Engine*> Target();
  // The draft model alone. Errors: kNotFound if there is none, or only a head; Engine::Open's.
  [[nodiscard]] Result<Engine*> Drafter();

  const EngineOptions& options() const { return options_; }
  // The drafters' settings are read when an engine opens. Changing them closes it, and the next
  // answer opens it again.
  SpeculativeOptions& ChangeSpeculation() {
    target_.reset();
    return options_.speculative;
  }
  // The settings of both models: changing them closes both engines.
  EngineOptions& Change() {
    target_.reset();
    drafter_.reset();
    return options_;
  }

 private:
  EngineOptions options_;
  bool show_progress_;
  std::unique_ptr<Engine> target_, drafter_;
};

}  // namespace foretoken::cli
