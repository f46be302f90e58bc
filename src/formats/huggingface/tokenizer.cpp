// SPDX-License-Identifier: Apache-2.0
#include "formats/huggingface/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/files/mapped_file.h"
#include "base/seeded_hash.h"
#include "formats/huggingface/pre_tokenizer.h"

namespace foretoken::formats::huggingface {

namespace {

constexpr std::uint64_t kMostTokens = std::uint64_t{1} << 24;
constexpr std::int64_t kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5,
                       kByte = 6;  // of tokenizer.ggml.token_type
constexpr std::string_view kTokenizerAdvice =
    "convert the folder to GGUF with llama.cpp's convert_hf_to_gguf.py";
constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581

bool IsByteText(std::string_view text) {
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'F'); };
  return text.size() == 6 && text.starts_with("<0x") && is_digit(text[3]) && is_digit(text[4]) &&
         text[5] == '>';
}

// A token's text, which is given alone or in an object.
std::optional<std::string> TokenText(const Json* value) {
  if (value != nullptr && value->is_object()) value = value->find("content");
  return value == nullptr || !value->is_string() ? std::nullopt : std::optional(value->text());
}

class TokenizerReader {
 public:
  TokenizerReader(const std::string& folder, const Json& config, Metadata& metadata)
      : folder_(folder), config_(config), metadata_(metadata) {}

  Status Read(std::int64_t vocabulary) {
    const std::string path = folder_ + "/tokenizer.json";
    FORETOKEN_TRY(file_, ReadObject(path));
    if (file_.is_null())
      return Fail(ErrorCode::kNotFound,
                  fmt::format("{}: missing; fetch it into the folder, or convert the folder to "
                              "GGUF with llama.cpp's convert_hf_to_gguf.py",
                              path));
    FORETOKEN_TRY(settings_, ReadObject(folder_ + "/tokenizer_config.json"));
    const JsonFields file(file_, path);
    FORETOKEN_TRY(const Json* model, file.NeedObject("model"));
    const JsonFields model_fields(*model, path + ": model");
    FORETOKEN_CHECK_OK(ReadTokens(file, model_fields, vocabulary));
    FORETOKEN_CHECK_OK(ReadKind(file, model_fields));
    FORETOKEN_CHECK_OK(ReadSpecial(file));
    // The ids are those of the model's own tokenizer, also where other programs read a GGUF file's
    // pattern in another way.
    metadata_.Set("foretoken.tokenizer.exact", true);
    return {};
  }

 private:
  void Set(std::string_view key, MetadataValue value) {
    metadata_.Set(fmt::format("tokenizer.ggml.{}", key), std::move(value));
  }

  // ---- Tokens ----

  Status ReadTokens(const JsonFields& file, const JsonFields& model, std::int64_t least) {
    FORETOKEN_TRY(const auto type, model.String("type"));
    FORETOKEN_TRY(const auto fallback, model.Bool("byte_fallback"));
    if (type.value_or("BPE") != "BPE")
      return model.Unsupported("type", fmt::format("{} is not supported", Shown(*type)),
                               kTokenizerAdvice);
    byte_fallback_ = fallback.value_or(false);
    FORETOKEN_TRY(const Json* vocab, model.NeedObject("vocab"));
    FORETOKEN_TRY(const Json* added, file.List("added_tokens"));
    const std::size_t n_entries = vocab->size() + (added == nullptr ? 0 : added->size());
    most_ids_ = std::min(static_cast<std::int64_t>(kMostTokens),
                         least + static_cast<std::int64_t>(n_entries));
    for (const auto& [text, id] : vocab->members()) {
      const bool byte = byte_fallback_ && IsByteText(text);
      FORETOKEN_CHECK_OK(Place(model, "vocab", text, id, byte ? kByte : kNormal));
    }
    static const Json kNone = Json::array();
    for (const Json& token : added == nullptr ? kNone : *added) {
      const JsonFields fields(token, file.place() + ": added_tokens");
      FORETOKEN_TRY(const auto text, fields.String("content"));
      FORETOKEN_TRY(const auto special, fields.Bool("special"));
      if (!text) return fields.Bad("content", "it is missing");
      const Json* id = fields.Find("id");
      FORETOKEN_CHECK_OK(Place(fields, "id", *text, id == nullptr ? Json() : *id,
                               special.value_or(false) ? kControl : kUserDefined));
    }
    if (texts_.empty()) return model.Bad("vocab", "it is empty");
    for (std::size_t id = texts_.size(); id < static_cast<std::size_t>(least); ++id)
      texts_.emplace_back(), types_.push_back(0);
    for (std::size_t id = 0; id < texts_.size(); ++id) {
      if (types_[id] == 0) texts_[id] = fmt::format("[PAD{}]", id), types_[id] = kUnused;
      ids_.emplace(texts_[id], static_cast<std::int64_t>(id));
    }
    return {};
  }

  Status Place(const JsonFields& fields, std::string_view name, const std::string& text,
               const Json& id, std::int64_t type) {
    const auto number = id.natural();
    if (!number || *number >= static_cast<std::uint64_t>(most_ids_))
      return fields.Bad(
          name, fmt::format("the id of {} is no whole number below {}", Shown(text), most_ids_));
    const auto at = static_cast<std::size_t>(*number);
    if (at >= texts_.size()) texts_.resize(at + 1), types_.resize(at + 1, 0);
    const bool added = type == kControl || type == kUserDefined;
    if (types_[at] != 0 && !added)
      return fields.Bad(name, fmt::format("two tokens have the id {}", at));
    texts_[at] = text;
    types_[at] = type;
    return {};
  }

  // ---- How texts are encoded ----

  Status ReadKind(const JsonFields& file, const JsonFields& model) {
    FORETOKEN_TRY(const auto ignores, model.Bool("ignore_merges"));
    FORETOKEN_TRY(PreTokenizer words, ReadPreTokenizer(file, ignores.value_or(false)));
    FORETOKEN_TRY(const std::vector<std::string> merges, ReadMerges(model));
    bool composes = false;
    FORETOKEN_CHECK_OK(ReadNormalizers(file, words, composes));
    FORETOKEN_TRY(const auto unknown, model.String("unk_token"));
    if (unknown && ids_.contains(*unknown)) {
      types_[static_cast<std::size_t>(ids_.at(*unknown))] = kUnknown;
      Set("unknown_token_id", ids_.at(*unknown));
    }
    if (words.byte_level) {
      Set("model", std::string("gpt2"));
      Set("pre", words.name);
      if (composes) Set("normalizer.nfc", true);
    } else if (byte_fallback_) {
      Set("model", std::string("llama"));
      Set("pre", std::string("default"));
      Set("add_space_prefix", words.space_prefix);
      if (!words.metaspace.empty()) metadata_.Set("foretoken.tokenizer.metaspace", words.metaspace);
      Set("scores", ScoresOf(merges));
    } else {
      return model.Unsupported("byte_fallback", "characters without bytes are not supported",
                               kTokenizerAdvice);
    }
    if (words.byte_level) Set("merges", merges);
    Set("tokens", std::move(texts_));
    Set("token_type", std::move(types_));
    return {};
  }

  static Result<std::vector<std::string>> ReadMerges(const JsonFields& model) {
    FORETOKEN_TRY(const Json* list, model.List("merges"));
    if (list == nullptr) return model.Bad("merges", "it is missing");
    std::vector<std::string> merges;
    merges.reserve(list->size());
    for (const Json& merge : *list) {
      if (merge.is_string())
        merges.push_back(merge.text());
      else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
               merge[1].is_string())
        merges.push_back(merge[0].text() + ' ' + merge[1].text());
      else
        return model.Bad("merges", "it holds something that is not a pair of strings");
    }
    return merges;
  }

  // SentencePiece's scores: a token that an earlier merge makes has the higher one.
  std::vector<double> ScoresOf(const std::vector<std::string>& merges) const {
    std::unordered_map<std::string, double, SeededHasher> order;
    for (const std::string& merge : merges) {
      std::string whole = merge;
      if (const auto space = whole.find(' '); space != std::string::npos) whole.erase(space, 1);
      order.emplace(std::move(whole), static_cast<double>(order.size()));
    }
    std::vector<double> scores;
    scores.reserve(texts_.size());
    for (const std::string& text : texts_) {
      const auto at = order.find(text);
      scores.push_back(at == order.end() ? 0 - static_cast<double>(order.size()) : 0 - at->second);
    }
    return scores;
  }

  // Byte-level words may be composed. Others have spaces as U+2581, perhaps one before the text.
  Status ReadNormalizers(const JsonFields& file, PreTokenizer& words, bool& composes) {
    FORETOKEN_TRY(const Json* object, file.Object("normalizer"));
    if (object == nullptr) return {};
    const JsonFields sequence(*object, file.place() + ": normalizer");
    FORETOKEN_TRY(const Json* list, sequence.List("normalizers"));
    const Json one = Json::array({*object});
    for (const Json& part : list == nullptr ? one : *list) {
      const JsonFields fields(part, file.place() + ": normalizer");
      FORETOKEN_TRY(const auto type, fields.String("type"));
      const std::string kind = type.value_or("");
      const Json* mark = fields.Find(kind == "Prepend" ? "prepend" : "content");
      const bool marks = mark != nullptr && *mark == kSpaceMark;
      if (kind == "NFC" && words.byte_level)
        composes = true;
      else if (kind == "Prepend" && marks && !words.byte_level)
        words.space_prefix = true;
      else if (kind != "Replace" || !marks || words.byte_level)
        return fields.Unsupported("type", fmt::format("{} is not supported", Shown(kind)),
                                  kTokenizerAdvice);
    }
    return {};
  }

  // ---- Special tokens ----

  Status ReadSpecial(const JsonFields& file) {
    const JsonFields settings(settings_, folder_ + "/tokenizer_config.json");
    const JsonFields config(config_, folder_ + "/config.json");
    std::map<std::string, std::int64_t> special;
    for (const std::string name : {"bos", "eos", "pad"}) {
      const auto text = TokenText(settings.Find(name + "_token"));
      if (text && ids_.contains(*text)) {
        special[name] = ids_.at(*text);
        continue;
      }
      const Json* id = config.Find(name + "_token_id");
      if (id != nullptr && id->is_array() && !id->empty()) id = &(*id)[0];
      const auto number = id != nullptr ? id->natural() : std::nullopt;
      if (number && *number < kMostTokens) special[name] = static_cast<std::int64_t>(*number);
    }
    const auto [first, last] = AroundText(file);
    if (!special.contains("bos") && ids_.contains(first)) special["bos"] = ids_.at(first);
    for (const auto& [name, id] : special) Set(name + "_token_id", id);
    FORETOKEN_TRY(const auto add_bos, settings.Bool("add_bos_token"));
    FORETOKEN_TRY(const auto add_eos, settings.Bool("add_eos_token"));
    const auto is = [&](const char* name, const std::string& text) {
      return special.contains(name) && ids_.contains(text) && special[name] == ids_.at(text);
    };
    Set("add_bos_token", special.contains("bos") && add_bos.value_or(is("bos", first)));
    Set("add_eos_token", special.contains("eos") && add_eos.value_or(is("eos", last)));
    return ReadEnds(config, special.contains("eos") ? special["eos"] : -1);
  }

  // The tokens that the post-processor puts before and behind a text; "" for none.
  static std::pair<std::string, std::string> AroundText(const JsonFields& file) {
    const Json* object = file.Find("post_processor");
    if (object == nullptr) return {};
    const Json* found = object;
    for (const Json& part : object->at("processors"))
      if (part.contains("single")) found = &part;
    const Json& single = found->at("single");
    if (!single.is_array() || single.empty()) return {};
    const auto text_of = [](const Json& part) {
      const Json& id = part.at("SpecialToken").at("id");
      return id.is_string() ? id.text() : std::string();
    };
    return {text_of(single.front()), text_of(single.back())};
  }

  // Tokens beside EOS that end a text: GGUF has keys for two.
  Status ReadEnds(const JsonFields& config, std::int64_t eos) {
    const std::string path = folder_ + "/generation_config.json";
    FORETOKEN_TRY(const Json generation, ReadObject(path));
    const JsonFields fields(generation, path);
    const char* const keys[] = {"eot_token_id", "eom_token_id"};
    std::size_t n = 0;
    for (const Json* value : {fields.Find("eos_token_id"), config.Find("eos_token_id")}) {
      if (value == nullptr) continue;
      const Json one = Json::array({*value});
      for (const Json& id : value->is_array() ? *value : one) {
        const auto number = id.natural();
        if (!number || *number >= kMostTokens) continue;
        const auto token = static_cast<std::int64_t>(*number);
        if (eos < 0) Set("eos_token_id", eos = token);
        const bool known = token == eos || metadata_.Int("tokenizer.ggml.eot_token_id") == token;
        if (!known && n < std::size(keys)) Set(keys[n++], token);
      }
    }
    return {};
  }

  const std::string& folder_;
  const Json& config_;
  Metadata& metadata_;
  Json file_, settings_;
  bool byte_fallback_ = false;
  // Ids without a token get one each, so how many there are is bounded by what the files hold.
  std::int64_t most_ids_ = 0;
  std::vector<std::string> texts_;
  std::vector<std::int64_t> types_;
  std::unordered_map<std::string, std::int64_t, SeededHasher> ids_;
};

}  // namespace

Status ReadTokenizer(const std::string& folder, const Json& config, std::int64_t vocabulary,
                     Metadata& metadata) {
  return TokenizerReader(folder, config, metadata).Read(vocabulary);
}

}  // namespace foretoken::formats::huggingface
