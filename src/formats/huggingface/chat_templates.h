// SPDX-License-Identifier: Apache-2.0
// formats/huggingface/chat_templates.h: a folder's chat templates as tokenizer.chat_template and
// tokenizer.chat_template.NAME.
#pragma once

#include <string>

#include "foretoken/result.h"
#include "formats/metadata.h"

namespace foretoken::formats::huggingface {

// chat_template.jinja comes before chat_template.json, and both before tokenizer_config.json. A folder
// may have none. Errors: kInvalidFile, kIo.
[[nodiscard]] Status ReadChatTemplates(const std::string& folder, Metadata& metadata);

}  // namespace foretoken::formats::huggingface
