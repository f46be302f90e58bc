// SPDX-License-Identifier: Apache-2.0
#include "formats/huggingface/chat_templates.h"

#include <fmt/format.h>

#include "base/files/text_file.h"
#include "formats/huggingface/json_file.h"

namespace foretoken::formats::huggingface {

namespace {

constexpr std::string_view kKey = "tokenizer.chat_template";

// One program, or a list of programs with names.
Status ReadField(const JsonFields& fields, Metadata& metadata) {
  const Json* value = fields.Find("chat_template");
  if (value == nullptr) return {};
  if (value->is_string()) {
    metadata.Set(std::string(kKey), value->text());
    return {};
  }
  if (!value->is_array()) return fields.Bad("chat_template", "it is neither a string nor a list");
  for (const Json& item : *value) {
    const JsonFields named(item, fields.place() + ": chat_template");
    FORETOKEN_TRY(const auto name, named.String("name"));
    FORETOKEN_TRY(const auto program, named.String("template"));
    if (!name || !program) return named.Bad("name", "a template needs a name and a text");
    metadata.Set(*name == "default" ? std::string(kKey) : fmt::format("{}.{}", kKey, *name),
                 *program);
  }
  return {};
}

}  // namespace

Status ReadChatTemplates(const std::string& folder, Metadata& metadata) {
  for (const char* name : {"tokenizer_config.json", "chat_template.json"}) {
    const std::string path = fmt::format("{}/{}", folder, name);
    FORETOKEN_TRY(const Json object, ReadObject(path));
    FORETOKEN_CHECK_OK(ReadField(JsonFields(object, path), metadata));
  }
  auto program =
      ReadTextFile(folder + "/chat_template.jinja", {.most_bytes = std::size_t{1} << 24});
  if (!program && program.error().code == ErrorCode::kNotFound) return {};
  if (!program) return Fail(std::move(program).error());
  metadata.Set(std::string(kKey), std::move(*program));
  return {};
}

}  // namespace foretoken::formats::huggingface
