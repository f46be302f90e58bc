// SPDX-License-Identifier: Apache-2.0
#include "server/api/foreign_fields.h"

#include <algorithm>
#include <array>

#include "base/json/json_reader.h"

namespace foretoken::server {
namespace {

enum class Treatment { kSilent, kNotice, kRefuse };
using enum Treatment;
enum class Place { kBoth, kCompletions, kChats };

struct ForeignField {
  std::string_view name;
  Treatment treatment;
  // Values that change nothing, as a JSON list. Null, "", [] and {} always change nothing.
  const char* neutral = "[]";
  const char* advice = "";
  Place place = Place::kBoth;
};

constexpr const char* kNoTools = "it is OpenAI's older form; use tools and tool_choice";
constexpr const char* kTextOnly = "models here read and write text; leave it out";
constexpr const char* kNoThinking = "models here have no such setting; it changes nothing";
constexpr const char* kOneOrder = "there is one order of filters; leave it out";
constexpr const char* kNoShift = "a text that fills the context ends, nothing is shifted out of it";
constexpr const char* kNoSuchFilter = "there is no such filter; leave it out";
constexpr const char* kNotReturned = "replies do not have it; it changes nothing";
constexpr const char* kOwnId = "the reply has an id of its own; it changes nothing";
constexpr const char* kOwnTemplate =
    "the template is the model's or that of --chat-template; leave it out";

constexpr auto kFields = std::to_array<ForeignField>({
    // OpenAI: fields for its own service.
    {"user", kSilent},
    {"metadata", kSilent},
    {"store", kSilent},
    {"service_tier", kSilent},
    {"safety_identifier", kSilent},
    {"prompt_cache_key", kSilent},
    {"prompt_cache_retention", kSilent},
    {"prompt_cache_options", kSilent},
    // OpenAI: what models cannot do here.
    {"suffix", kRefuse, "[]", "texts are only continued; leave it out"},
    {"best_of", kRefuse, "[1]", "every choice is returned; use n"},
    {"audio", kRefuse, "[]", kTextOnly, Place::kChats},
    {"modalities", kRefuse, "[[\"text\"]]", kTextOnly, Place::kChats},
    {"web_search_options", kRefuse, "[]", "nothing is searched; leave it out", Place::kChats},
    {"functions", kRefuse, "[]", kNoTools, Place::kChats},
    {"function_call", kRefuse, "[\"none\", \"auto\"]", kNoTools, Place::kChats},
    {"reasoning", kNotice, "[]", kNoThinking, Place::kChats},
    {"verbosity", kNotice, "[\"medium\"]", kNoThinking, Place::kChats},
    // llama.cpp: filters, and the parameters of filters that are off.
    {"mirostat", kRefuse, "[0]",
     "there is no mirostat, which moves a threshold of its own with each token; use min_p or "
     "typical_p"},
    {"mirostat_tau", kSilent},
    {"mirostat_eta", kSilent},
    {"xtc_probability", kRefuse, "[0]", kNoSuchFilter},
    {"xtc_threshold", kSilent},
    {"dynatemp_range", kRefuse, "[0]", kNoSuchFilter},
    {"dynatemp_exponent", kSilent},
    {"adaptive_target", kRefuse, "[-1]", kNoSuchFilter},
    {"adaptive_decay", kSilent},
    {"top_n_sigma", kRefuse, "[-1, 0]", kNoSuchFilter},
    {"tfs_z", kRefuse, "[1]", kNoSuchFilter},
    {"samplers", kRefuse, "[]", kOneOrder},
    {"min_keep", kRefuse, "[0, 1]", "filters keep the best token only; leave it out"},
    {"penalize_nl", kRefuse, "[false]", "there is no such switch; leave it out"},
    // llama.cpp: fields about the text and its length.
    {"n_indent", kRefuse, "[0]", "no least indentation is kept; leave it out"},
    {"t_max_predict_ms", kRefuse, "[0, -1]", "texts end by length, not by time; use max_tokens"},
    {"t_max_prompt_ms", kRefuse, "[0, -1]", "prompts are read to their end; leave it out"},
    {"lora", kRefuse, "[]", "the model is served as it is; leave it out"},
    {"image_data", kRefuse, "[]", kTextOnly},
    {"post_sampling_probs", kRefuse, "[false]",
     "log-probabilities are those before all filters; leave it out"},
    {"n_keep", kNotice, "[0]", kNoShift},
    {"n_discard", kNotice, "[0]", kNoShift},
    // llama.cpp: fields about serving and replies.
    {"n_cache_reuse", kNotice, "[0]", "whole beginnings of prompts are used again, no parts"},
    {"timings_per_token", kNotice, "[false]", "timings come with the last part"},
    {"return_progress", kNotice, "[false]", kNotReturned},
    {"return_tokens", kNotice, "[false]", kNotReturned},
    {"response_fields", kNotice, "[]", "replies have all their members"},
    {"verbose", kNotice, "[false]", kNotReturned},
    {"backend_sampling", kSilent},
    {"thinking_forced_open", kNotice, "[false]", kNoThinking, Place::kChats},
    {"parse_tool_calls", kSilent, "[]", "", Place::kChats},
    // vLLM: fields about the text.
    {"use_beam_search", kRefuse, "[false]",
     "there is no beam search, which ranks whole texts; ask for several choices with n"},
    {"length_penalty", kSilent},
    {"early_stopping", kSilent},
    {"include_stop_str_in_output", kRefuse, "[false]", "stop texts are cut off; leave it out"},
    {"spaces_between_special_tokens", kSilent},
    {"truncate_prompt_tokens", kRefuse, "[]", "prompts are not cut; shorten it yourself"},
    {"truncation_side", kSilent},
    {"allowed_token_ids", kRefuse, "[]", "there is no such list; use logit_bias or grammar"},
    {"bad_words", kRefuse, "[]", "words cannot be banned; use logit_bias or grammar"},
    {"logits_processors", kRefuse, "[]", "requests bring no programs; leave it out"},
    {"watermarking", kRefuse, "[false]", "texts are not marked; leave it out"},
    {"repetition_detection", kRefuse, "[]",
     "repetitions end no text; use dry_multiplier or repetition_penalty"},
    {"guided_whitespace_pattern", kRefuse, "[]", "white space in JSON is fixed; leave it out"},
    {"structural_tag", kRefuse, "[]", "it is not followed; use grammar"},
    {"vllm_xargs", kRefuse, "[]", "there are no such extensions; leave it out"},
    {"chat_template", kRefuse, "[]", kOwnTemplate, Place::kChats},
    {"continue_final_message", kRefuse, "[false]",
     "an answer begins anew; use /v1/completions to continue a text", Place::kChats},
    {"documents", kRefuse, "[]", "templates have no place for them; write them into a message",
     Place::kChats},
    {"media_io_kwargs", kRefuse, "[]", kTextOnly, Place::kChats},
    {"mm_processor_kwargs", kRefuse, "[]", kTextOnly, Place::kChats},
    {"echo", kRefuse, "[false]", "chats do not repeat messages; leave it out", Place::kChats},
    {"kv_transfer_params", kRefuse, "[]", "the cache stays in this server; leave it out"},
    {"ec_transfer_params", kRefuse, "[]", "the cache stays in this server; leave it out"},
    // vLLM: fields about serving and replies.
    {"prompt_logprobs", kNotice, "[0]", "it is not returned; use echo with logprobs"},
    {"logprob_token_ids", kNotice, "[]", kNotReturned},
    {"return_token_ids", kNotice, "[false]", kNotReturned},
    {"return_tokens_as_token_ids", kNotice, "[false]", kNotReturned},
    {"return_token_offsets", kNotice, "[false]", kNotReturned},
    {"return_prompt_text", kNotice, "[false]", kNotReturned},
    {"return_mm_kwargs", kSilent},
    {"routed_experts_prompt_start", kSilent},
    {"priority", kNotice, "[0]", "requests are served as they come"},
    {"request_id", kNotice, "[]", kOwnId},
    {"session_id", kNotice, "[]", kOwnId},
    {"stream_interval", kNotice, "[1]", "a part is sent for each round"},
    {"guided_decoding_backend", kNotice, "[]", "there is one; it changes nothing"},
    {"include_reasoning", kSilent, "[]", "", Place::kChats},
    // SGLang, and Hugging Face.
    {"no_stop_trim", kRefuse, "[false]", "stop texts are cut off; leave it out"},
    {"stop_regex", kRefuse, "[]", "only texts stop; use stop"},
    {"custom_logit_processor", kRefuse, "[]", "requests bring no programs; leave it out"},
    {"lora_path", kRefuse, "[]", "the model is served as it is; leave it out"},
    {"max_length", kRefuse, "[]", "it counts the prompt too; use max_tokens"},
    {"return_hidden_states", kNotice, "[false]", kNotReturned},
    {"separate_reasoning", kSilent, "[]", "", Place::kChats},
    {"stream_reasoning", kSilent, "[]", "", Place::kChats},
    {"rid", kNotice, "[]", kOwnId},
});

bool IsNeutral(const Json& value, const char* neutral) {
  if (value.is_string() && value.text().empty()) return true;
  if (value.is_structured() && value.empty()) return true;
  const Json values = JsonOrNull(neutral);
  return std::find(values.begin(), values.end(), value) != values.end();
}

}  // namespace

void ReadForeignFields(JsonFields& fields, bool chat, std::vector<std::string>& notices) {
  const Place other = chat ? Place::kCompletions : Place::kChats;
  for (const ForeignField& field : kFields) {
    if (field.place == other) continue;
    const Json* const value = fields.FindForeign(field.name, field.advice,
                                                 field.treatment == kRefuse ? field.neutral : "");
    if (value == nullptr || IsNeutral(*value, field.neutral)) continue;
    if (field.treatment == kSilent)
      fields.NoteIdle(field.name, value);
    else if (field.treatment == kRefuse)
      fields.Bad(field.name, field.advice, "unsupported_parameter");
    else
      notices.push_back(std::string(field.name) + ": " + field.advice);
  }
}

}  // namespace foretoken::server
