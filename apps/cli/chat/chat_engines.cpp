// SPDX-License-Identifier: Apache-2.0
#include "cli/chat/chat_engines.h"

#include <fmt/format.h>

#include "cli/input.h"
#include "cli/open_engine.h"
#include "cli/terminal.h"
#include "foretoken/tools/model_file.h"

namespace foretoken::cli {

Result<Engine*> ChatEngines::Target() {
  if (!target_) {
    FORETOKEN_TRY(target_, OpenEngine(options_, !show_progress_));
  }
  return target_.get();
}

Result<Engine*> ChatEngines::Drafter() {
  if (drafter_) return drafter_.get();
  std::vector<std::string> files = options_.DraftFiles();
  if (target_ && files.empty())
    for (const DrafterSummary& draft : target_->summary().drafters)
      if (draft.model.path != options_.model) files.push_back(draft.model.path);
  if (files.empty())
    return Fail(ErrorCode::kNotFound,
                "/drafter: this chat has no draft model; start it with -md PATH");
  const std::string& file = files.front();
  FORETOKEN_TRY(const auto model, ModelFile::Open(file));
  if (!model->is_whole_model())
    return Fail(ErrorCode::kNotFound,
                fmt::format("/drafter: {} is a head, which writes nothing alone; start the chat "
                            "with a draft model",
                            FileName(file)));
  EngineOptions options = options_;
  options.model = file;
  options.draft_model.clear();
  options.speculative = {.method = "none"};
  options.record.clear();  // only the target's engine records
  FORETOKEN_TRY(drafter_, OpenEngine(std::move(options), !show_progress_));
  return drafter_.get();
}

}  // namespace foretoken::cli
