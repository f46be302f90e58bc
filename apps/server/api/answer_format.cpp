// SPDX-License-Identifier: Apache-2.0
#include "server/api/answer_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <utility>
#include <vector>

#include "foretoken/structured_output.h"

namespace foretoken::server {
namespace {

class Reader {
 public:
  Reader(JsonFields& fields, std::string& grammar) : fields_(fields), grammar_(grammar) {}

  void Read() {
    ReadResponseFormat();
    ReadSchema("json_schema", fields_.Find("json_schema"));
    ReadSchema("guided_json", fields_.Find("guided_json"));
    for (const char* name : {"grammar", "ebnf", "guided_grammar"})
      ReadText(name, fields_.Find(name), Kind::kGrammar);
    for (const char* name : {"regex", "guided_regex"})
      ReadText(name, fields_.Find(name), Kind::kRegex);
    ReadChoice("guided_choice", fields_.Find("guided_choice"));
    ReadStructuredOutputs();
  }

 private:
  enum class Kind { kGrammar, kRegex };

  // Takes the grammar of a field, unless another field gave one.
  void Take(const std::string& field, Result<std::string> grammar) {
    if (fields_.failed()) return;
    if (!grammar)
      return fields_.Bad(field, grammar.error().why(),
                         grammar.error().code == ErrorCode::kTooLarge ? "grammar_too_large" : "");
    if (!taken_.empty())
      return fields_.Bad(field, fmt::format("{} is given too, and a text has one form; keep one of "
                                            "them",
                                            taken_));
    taken_ = field;
    grammar_ = *std::move(grammar);
  }

  void ReadResponseFormat() {
    const Json* const format = fields_.Object("response_format");
    if (format == nullptr) return;
    const Json& type = format->at("type");
    const auto known = [&](std::initializer_list<std::string_view> names) {
      for (const auto& [name, value] : format->members())
        if (!value.is_null() && std::find(names.begin(), names.end(), name) == names.end())
          fields_.Bad("response_format",
                      fmt::format("{} is not a field of it with this type; leave it out",
                                  JsonFields::Shown(Json(name))));
    };
    if (type == "text") return known({"type"});
    if (type == "json_object") {
      known({"type", "schema"});
      const Json& schema = format->at("schema");
      if (schema.is_null()) return Take("response_format", JsonGrammar());
      return ReadSchema("response_format", &schema);
    }
    if (type != "json_schema")
      return fields_.Bad("response_format",
                         fmt::format("its type {} is not known; use text, json_object or "
                                     "json_schema",
                                     JsonFields::Shown(type)));
    known({"type", "json_schema"});
    ReadNamedSchema(format->at("json_schema"));
  }

  // OpenAI's {"name", "description", "schema", "strict"}. A schema is always enforced, strict or
  // not.
  void ReadNamedSchema(const Json& value) {
    const char* const wanted =
        "json_schema.schema is missing; give {\"name\": ..., \"schema\": "
        "{...}}";
    if (!value.is_object()) return fields_.Bad("response_format", wanted);
    const std::pair<std::string_view, Json::Kind> others[] = {{"name", Json::Kind::kString},
                                                              {"description", Json::Kind::kString},
                                                              {"strict", Json::Kind::kBoolean}};
    const Json* schema = nullptr;
    for (const auto& [name, member] : value.members()) {
      if (name == "schema" && !member.is_null()) schema = &member;
      bool good = name == "schema";
      for (const auto& [other, kind] : others)
        good |= name == other && (member.is_null() || member.kind() == kind);
      if (!good)
        return fields_.Bad("response_format",
                           fmt::format("json_schema.{} is not known or of another kind; leave it "
                                       "out",
                                       JsonFields::Shown(Json(name))));
    }
    if (schema == nullptr) return fields_.Bad("response_format", wanted);
    ReadSchema("response_format", schema);
  }

  // As JSON, or as a string of JSON.
  void ReadSchema(const std::string& field, const Json* value) {
    if (value == nullptr || value->is_null() || fields_.failed()) return;
    Take(field, JsonSchemaGrammar(value->is_string() ? value->text() : value->written()));
  }

  void ReadText(const std::string& field, const Json* value, Kind kind) {
    if (value == nullptr || value->is_null() || fields_.failed()) return;
    if (!value->is_string())
      return fields_.Bad(field, JsonFields::Shown(*value) + " is not a text; give one in quotes");
    const auto& text = value->text();
    if (kind == Kind::kRegex) return Take(field, RegexGrammar(text));
    if (!text.empty()) Take(field, Checked(text));  // "": no grammar
  }

  static Result<std::string> Checked(const std::string& grammar) {
    FORETOKEN_CHECK_OK(CheckGrammar(grammar));
    return grammar;
  }

  void ReadChoice(const std::string& field, const Json* value) {
    if (value == nullptr || value->is_null() || fields_.failed()) return;
    std::vector<std::string> choices;
    bool good = value->is_array();
    if (good)
      for (const Json& choice : *value) {
        good &= choice.is_string();
        if (good) choices.push_back(choice.text());
      }
    if (!good) return fields_.Bad(field, "it is not a list of texts; give one");
    Take(field, ChoiceGrammar(choices));
  }

  void ReadStructuredOutputs() {
    const Json* const object = fields_.Object("structured_outputs");
    if (object == nullptr) return;
    for (const auto& [name, value] : object->members()) {
      const std::string field = "structured_outputs." + name;
      if (name == "json")
        ReadSchema(field, &value);
      else if (name == "regex" || name == "grammar")
        ReadText(field, &value, name == "regex" ? Kind::kRegex : Kind::kGrammar);
      else if (name == "choice")
        ReadChoice(field, &value);
      else if (name == "json_object" && value == true)
        Take(field, JsonGrammar());
      else if (!value.is_null() && !(name == "json_object" && value == false))
        fields_.Bad("structured_outputs",
                    fmt::format("{} is not followed; use json, regex, choice, grammar or "
                                "json_object",
                                JsonFields::Shown(Json(name))));
    }
  }

  JsonFields& fields_;
  std::string& grammar_;
  std::string taken_;  // the field that gave the grammar
};

}  // namespace

void ReadAnswerFormat(JsonFields& fields, std::string& grammar) {
  Reader(fields, grammar).Read();
}

}  // namespace foretoken::server
