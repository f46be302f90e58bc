// SPDX-License-Identifier: Apache-2.0
// server/api/reply_texts.cpp: what replies have, in the notation of reply_forms.h. The writers decide.
#include <string>

#include "server/api/reply_forms.h"
#include "server/api/stats_json.h"

namespace foretoken::server {
namespace {

constexpr std::string_view kPlaceOfCounts = "/counts/";  // NotationOfStats is put there

constexpr std::string_view kReplies = R"(
_Statistics = {seed: integer, notices?: [string], timings: Timings, speculation: Speculation}
_Named = {id: string, created: integer, model: string, system_fingerprint: string}
Usage = {prompt_tokens: integer, completion_tokens: integer, total_tokens: integer,
  prompt_tokens_details: {cached_tokens: integer},
  completion_tokens_details: {reasoning_tokens: integer,
    accepted_prediction_tokens: integer, rejected_prediction_tokens: integer}}
_Times = {prompt_n: integer, prompt_ms: number, prompt_per_token_ms?: number,
  prompt_per_second?: number, predicted_n: integer, predicted_ms: number,
  predicted_per_token_ms?: number, predicted_per_second?: number, draft_n: integer,
  draft_n_accepted: integer}
Timings = {..._Times, queue_ms: number, first_token_ms: number}
_Counts = {/counts/}
DrafterCounts = {*: {rounds: integer, drafted: integer, accepted: integer}}
Speculation = {method: string, strategy: string, lossless: boolean, lookahead: string,
  num_speculative_tokens: integer, estimated_speedup?: number, ..._Counts,
  drafters: DrafterCounts}
Round = {round: integer, drafter: string | null, drafted: integer,
  tokens: [{id: integer, text: string, origin: 'plain' | 'accepted' | 'recovered' | 'bonus',
    logprob?: number}],
  rejected: [{id: integer, text: string}]}

TextLogprobs = {tokens: [string], token_logprobs: [number | null],
  top_logprobs: [{*: number} | null], text_offset: [integer]}
Completion = {..._Named, object: 'text_completion',
  choices: [{index: integer, text: string, logprobs: TextLogprobs | null,
    finish_reason: 'stop' | 'length'}],
  usage: Usage, ..._Statistics}
CompletionChunk = {..._Named, object: 'text_completion',
  choices: [{index: integer, text: string, logprobs: TextLogprobs | null,
    finish_reason: 'stop' | 'length' | null}],
  usage?: Usage | null, foretoken?: Round, ...?_Statistics}
CompletionEvent = CompletionChunk | OpenAiError
Verification = {..._Named, object: 'verification', accepted: integer,
  next: {id: integer, text: string} | null, tokens: [integer], text: string,
  finish_reason: 'stop' | 'length' | null, logprobs: TextLogprobs | null, usage: Usage,
  ..._Statistics}

_TokenLogprob = {token: string, logprob: number, bytes: [integer]}
ChatLogprobs = {content: [{..._TokenLogprob, top_logprobs: [{..._TokenLogprob}]}], refusal: null}
ChatCompletion = {..._Named, object: 'chat.completion',
  choices: [{index: integer,
    message: {role: 'assistant', content: string | null, refusal: null,
      reasoning_content?: string,
      tool_calls?: [{id: string, type: 'function', function: {name: string, arguments: string}}]},
    logprobs: ChatLogprobs | null, finish_reason: 'stop' | 'length' | 'tool_calls'}],
  usage: Usage, ..._Statistics}
ChatChunk = {..._Named, object: 'chat.completion.chunk',
  choices: [{index: integer,
    delta: {role?: 'assistant', content?: string, reasoning_content?: string,
      tool_calls?: [{index: integer, id?: string, type?: 'function',
        function: {name?: string, arguments: string}}]},
    logprobs: ChatLogprobs | null, finish_reason: 'stop' | 'length' | 'tool_calls' | null}],
  usage?: Usage | null, foretoken?: Round, ...?_Statistics}
ChatEvent = ChatChunk | OpenAiError

ResponsePart = {type: 'output_text', text: string, annotations: [], logprobs: []}
  | {type: 'reasoning_text', text: string}
_Output = {id: string, status: 'in_progress' | 'completed' | 'incomplete'}
ResponseOutput = {..._Output, type: 'message', role: 'assistant', content: [ResponsePart]}
  | {..._Output, type: 'function_call', call_id: string, name: string, arguments: string}
  | {..._Output, type: 'reasoning', summary: [], content: [ResponsePart]}
Response = {id: string, object: 'response', created_at: integer,
  status: 'in_progress' | 'completed' | 'incomplete' | 'failed', background: false,
  error: {code: string, message: string} | null,
  incomplete_details: {reason: 'max_output_tokens'} | null, model: string,
  previous_response_id: string | null, store: boolean, instructions: string | null,
  max_output_tokens: integer | null, parallel_tool_calls: boolean, tools: [{*: any}],
  text: {format: {*: any}, verbosity: string}, reasoning: {*: any}, metadata: {*: any},
  temperature: number | null, tool_choice: string | {*: any}, top_p: number | null,
  truncation: 'auto' | 'disabled', output: [ResponseOutput],
  usage: {input_tokens: integer, input_tokens_details: {cached_tokens: integer},
    output_tokens: integer, output_tokens_details: {reasoning_tokens: integer},
    total_tokens: integer} | null,
  notices?: [string]}
_Place = {sequence_number: integer, item_id: string, output_index: integer}
_InContent = {..._Place, content_index: integer}
ResponseEvent = {type: 'response.created' | 'response.in_progress' | 'response.completed'
    | 'response.incomplete' | 'response.failed', sequence_number: integer, response: Response}
  | {type: 'response.output_item.added' | 'response.output_item.done', sequence_number: integer,
    output_index: integer, item: ResponseOutput}
  | {type: 'response.content_part.added' | 'response.content_part.done', ..._InContent,
    part: ResponsePart}
  | {type: 'response.output_text.delta', ..._InContent, delta: string, logprobs: []}
  | {type: 'response.output_text.done', ..._InContent, text: string, logprobs: []}
  | {type: 'response.reasoning_text.delta', ..._InContent, delta: string}
  | {type: 'response.reasoning_text.done', ..._InContent, text: string}
  | {type: 'response.function_call_arguments.delta', ..._Place, delta: string}
  | {type: 'response.function_call_arguments.done', ..._Place, name: string, arguments: string}
  | {type: 'error', sequence_number: integer, code: string, message: string,
    param: string | null}
DeletedResponse = {id: string, object: 'response', deleted: true}
InputItems = {object: 'list', data: [{id: string, type: string, *: any}],
  first_id: string | null, last_id: string | null, has_more: boolean}

AnthropicUsage = {input_tokens: integer, cache_creation_input_tokens: 0,
  cache_read_input_tokens: integer, output_tokens: integer}
AnthropicBlock = {type: 'text', text: string}
  | {type: 'thinking', thinking: string, signature: ''}
  | {type: 'tool_use', id: string, name: string, input: {*: any}}
_Message = {id: string, type: 'message', role: 'assistant', model: string, stop_sequence: null,
  usage: AnthropicUsage}
AnthropicReply = {..._Message, content: [AnthropicBlock],
  stop_reason: 'end_turn' | 'max_tokens' | 'tool_use', notices?: [string]}
AnthropicEvent = {type: 'message_start', message: {..._Message, content: [], stop_reason: null}}
  | {type: 'content_block_start', index: integer, content_block: AnthropicBlock}
  | {type: 'content_block_delta', index: integer, delta: {type: 'text_delta', text: string}
    | {type: 'thinking_delta', thinking: string}
    | {type: 'input_json_delta', partial_json: string}}
  | {type: 'content_block_stop', index: integer}
  | {type: 'message_delta', delta: {stop_reason: 'end_turn' | 'max_tokens' | 'tool_use',
    stop_sequence: null}, usage: AnthropicUsage, notices?: [string]}
  | {type: 'message_stop'}
  | AnthropicError
TokenCount = {input_tokens: integer}

_ReadTokens = {prompt_tokens: integer, total_tokens: integer}
LlamaCppEmbeddings = [{index: integer, embedding: [[number] | string]}]
OpenAiEmbeddings = {object: 'list',
  data: [{object: 'embedding', index: integer, embedding: [number] | string}], model: string,
  usage: {..._ReadTokens}}
Embeddings = OpenAiEmbeddings | LlamaCppEmbeddings
Ranks = {model: string, object: 'list', usage: {..._ReadTokens}, notices: [string],
    results: [{index: integer, relevance_score: number, document?: {text: string}}]}
  | [{index: integer, score: number, text?: string}]

_Sizes = {architecture: string, type: string, parameters: integer, vocabulary_size: integer,
  context_size: integer}
DraftModels = [{name: string, method: string, ..._Sizes}]
Model = {id: string, object: 'model', created: integer, owned_by: 'foretoken',
  aliases: [string], meta: {..._Sizes, chat_template: boolean}, draft: {..._Sizes} | null,
  drafts: DraftModels}
Models = {object: 'list', data: [Model]}
Version = {version: string}
Health = {status: 'ok' | 'draining' | 'error', running: integer, waiting: integer,
  overload: string,
  memory: {limit_bytes: integer, resident_bytes: integer, requests_bytes: integer},
  error?: string}
SpeculationState = {method: string, lookahead: string, strategy: string, lossless: boolean,
  strategies: [string], num_speculative_tokens: integer, parallel: integer, running: integer,
  waiting: integer, draft_models: DraftModels,
  copy?: {state: 'refused' | 'waiting' | 'making' | 'ready', type?: string, made_bytes?: integer,
    bytes?: integer, error?: string},
  choices: {methods: [{name: string, help?: string, drafts_from?: string}],
    strategies: [{name: string, help: string, lossless: boolean, same_text: boolean}],
    controllers: [{name: string, help: string}]},
  estimated_speedup?: number, plain_ms_per_token?: number, verify_us?: {*: number},
  totals: {requests: integer, ..._Counts}, drafters: DrafterCounts}
OpenApi = {*: any}
TokenList = {tokens: [integer] | [{id: integer, piece: string}]}
TextOfTokens = {content: string}
WrittenChat = {prompt: string}

LlamaCppSettings = {n_ctx: integer, n_predict: integer, max_tokens: integer, seed: integer,
  temperature: number, top_k: integer, top_p: number, min_p: number, typical_p: number,
  repeat_last_n: integer, repeat_penalty: number, presence_penalty: number,
  frequency_penalty: number, dry_multiplier: number, dry_base: number,
  dry_allowed_length: integer, dry_penalty_last_n: integer, dry_sequence_breakers: [string],
  mirostat: 0, stop: [string], n_keep: 0, n_discard: 0, min_keep: 1, ignore_eos: boolean,
  stream: boolean, n_probs: integer, logit_bias: [{bias: number | null, token: integer}],
  grammar: string, samplers: [string], timings_per_token: false}
_LlamaCppToken = {id: integer, ..._TokenLogprob}
LlamaCppProbabilities = [{..._LlamaCppToken, top_logprobs: [{..._LlamaCppToken}]}]
LlamaCppReply = {index: integer, content: string, tokens: [integer], id_slot: integer,
  stop: true, model: string,
  tokens_predicted: integer, tokens_evaluated: integer, generation_settings: LlamaCppSettings,
  prompt: string, has_new_line: boolean, truncated: boolean,
  stop_type: 'limit' | 'eos' | 'word' | 'none', stopping_word: string, tokens_cached: integer,
  timings: {cache_n: integer, ..._Times}, notices?: [string],
  completion_probabilities?: LlamaCppProbabilities}
LlamaCppChosen = {...?LlamaCppReply, /: any}
LlamaCppCompletion = LlamaCppReply | LlamaCppChosen | [LlamaCppReply | LlamaCppChosen]
LlamaCppPart = {index: integer, content: string, tokens: [integer], stop: false,
  tokens_predicted: integer, tokens_evaluated: integer,
  completion_probabilities?: LlamaCppProbabilities}
LlamaCppEvent = LlamaCppPart | LlamaCppReply | LlamaCppChosen | LlamaCppError
_Slot = {id: integer, id_task: integer, n_ctx: integer, speculative: boolean,
  is_processing: boolean}
LlamaCppProps = {default_generation_settings: {..._Slot, params: LlamaCppSettings},
  total_slots: integer, model_alias: string, model_path: string,
  modalities: {vision: false, audio: false}, chat_template?: string, bos_token: string,
  eos_token: string, build_info: string, is_sleeping: false}
LlamaCppSlots = [{..._Slot}]
LlamaCppSlotAction = {id_slot: integer, filename: string, n_saved: integer, n_written: integer,
    timings: {save_ms: number}}
  | {id_slot: integer, filename: string, n_restored: integer, n_read: integer,
    timings: {restore_ms: number}}
  | {id_slot: integer, n_erased: integer}

OllamaMessageReply = {role: 'assistant', content: string, thinking?: string,
  tool_calls?: [{function: {name: string, arguments: {*: any}}}]}
_OllamaPart = {model: string, created_at: string}
_OllamaEnd = {..._OllamaPart, done_reason: 'stop' | 'length', done: true,
  total_duration: integer, load_duration: 0, prompt_eval_count: integer,
  prompt_eval_duration: integer, eval_count: integer, eval_duration: integer,
  notices?: [string]}
OllamaChat = {..._OllamaEnd, message: OllamaMessageReply}
  | {..._OllamaPart, message: OllamaMessageReply, done_reason: 'load', done: true}
OllamaChatLine = {..._OllamaPart, message: OllamaMessageReply, done: false} | OllamaChat
  | OllamaError
_OllamaText = {response: string, thinking?: string}
OllamaGeneration = {..._OllamaEnd, ..._OllamaText, context: []}
  | {..._OllamaPart, response: string, done_reason: 'load', done: true}
OllamaGenerationLine = {..._OllamaPart, ..._OllamaText, done: false} | OllamaGeneration
  | OllamaError
OllamaEmbeddings = {model: string, embeddings: [[number]], total_duration: integer,
  load_duration: 0, prompt_eval_count: integer}
OllamaEmbedding = {embedding: [number]}
OllamaDetails = {parent_model: '', format: 'gguf', family: string, families: [string],
  parameter_size: string, quantization_level: string}
_OllamaModel = {name: string, model: string, size: integer, digest: string,
  details: OllamaDetails}
OllamaTags = {models: [{..._OllamaModel, modified_at: string}]}
OllamaPs = {models: [{..._OllamaModel, expires_at: string, size_vram: 0,
  context_length: integer}]}
OllamaShow = {license: '', modelfile: '', parameters: '', template: '', details: OllamaDetails,
  model_info: {*: string | integer}, capabilities: ['completion' | 'tools'],
  modified_at: string}
)";

}  // namespace

std::string_view TextOfReplies() {
  static const std::string text = [] {
    std::string forms(kReplies);
    return forms.replace(forms.find(kPlaceOfCounts), kPlaceOfCounts.size(), NotationOfStats());
  }();
  return text;
}

}  // namespace foretoken::server
