// SPDX-License-Identifier: Apache-2.0
// The fields of requests, as the server reads them. Made by tools/npm_types.py; do not change it by hand.

export interface CompletionFields {
  /** one of the served model's names; absent: the one there is */
  model?: string;
  /** a text, a list of token ids, or a list of such, each of which gets an answer */
  prompt: string | SomeTokens | (string | SomeTokens)[];
  /** the most tokens of the answer; -1: as many as fit; absent: 16 in completions, in chats as many as fit */
  max_tokens?: number;
  /** the fewest tokens of the answer */
  min_tokens?: number;
  /** whether the answer goes on behind an end token */
  ignore_eos?: boolean;
  /** false: control tokens are shown, by their names */
  skip_special_tokens?: boolean;
  /** a text that ends the answer, or up to 16 of them; `""` stops nothing */
  stop?: string | string[];
  /** tokens that end the answer */
  stop_token_ids?: Tokens;
  /** 1 draws as the model says, less makes likely tokens likelier, 0 takes the likeliest */
  temperature?: number;
  /** keeps the k likeliest tokens; 0 and -1: all */
  top_k?: number;
  /** keeps the likeliest tokens that have this probability together */
  top_p?: number;
  /** keeps tokens with at least this part of the likeliest one's probability */
  min_p?: number;
  /** keeps tokens whose surprise is near to the mean, with this probability together */
  typical_p?: number;
  /** drops tokens below a threshold that falls with the entropy (eta sampling) */
  eta?: number;
  /** divides the logits of tokens that the whole text has; as `repeat_penalty`, of the last 64 */
  repetition_penalty?: number;
  /** the last tokens that the penalty for repetition counts; -1: the whole text; 0: no penalty */
  repeat_last_n?: number;
  /** is subtracted from a token's logit for each time it was generated */
  frequency_penalty?: number;
  /** is subtracted once from the logit of each token that was generated */
  presence_penalty?: number;
  /** how much DRY lowers tokens that would go on with a repetition; 0: off */
  dry_multiplier?: number;
  /** by what that grows with each token of the repetition */
  dry_base?: number;
  /** the longest repetition that costs nothing */
  dry_allowed_length?: number;
  /** the last tokens in which repetitions are looked for; -1: all */
  dry_penalty_last_n?: number;
  /** texts of one token each, across which no repetition reaches */
  dry_sequence_breakers?: string[];
  /** numbers that are added to tokens' logits, by ids, or as a list of pairs; false bans a token */
  logit_bias?: { [name: string]: Bias } | [Token, Bias][];
  /** what makes the same answer again; -1 or absent: a random one, stated in the reply */
  seed?: number;
  /** the form of the answer: a text, JSON, or JSON that a schema describes */
  response_format?: ResponseFormat;
  /** a JSON Schema that the answer follows */
  json_schema?: JsonSchema;
  /** a JSON Schema that the answer follows */
  guided_json?: JsonSchema;
  /** a grammar (GBNF) that the answer follows */
  grammar?: string;
  /** a grammar (GBNF) that the answer follows */
  ebnf?: string;
  /** a grammar (GBNF) that the answer follows */
  guided_grammar?: string;
  /** a regular expression that the whole answer matches */
  regex?: string;
  /** a regular expression that the whole answer matches */
  guided_regex?: string;
  /** texts, of which the answer is one */
  guided_choice?: string[];
  /** the form of the answer as vLLM has it, one of these */
  structured_outputs?: { json?: JsonSchema; regex?: string; choice?: string[]; grammar?: string; json_object?: boolean };
  /** false: the whole prompt is read, and nothing of the request is kept for others */
  cache_prompt?: boolean;
  /** a text: what is kept serves requests of the same client and salt only */
  cache_salt?: string;
  /** the slot that keeps the text for `/slots`; -1: that of the sequence which it ran in */
  id_slot?: number;
  /** how many answers each prompt gets */
  n?: number;
  /** what a stream has */
  stream_options?: { include_usage?: boolean; include_obfuscation?: boolean; continuous_usage_stats?: boolean };
  /** how many likeliest tokens come with each token; 0: none */
  n_probs?: number;
  /** how many likeliest tokens come with the log-probability of each token */
  logprobs?: number | false;
  /** whether the prompt comes before the answer */
  echo?: boolean;
  /** a text that the answer may repeat: drafts come from it */
  prediction?: { type: "content"; content: Content };
  /** what drafts, and how; absent members have the values of the start */
  speculative?: { type?: Method | Method[]; strategy?: VerifyStrategy; num_speculative_tokens?: number; n_min?: number; p_min?: number; enabled?: boolean; trace?: boolean };
}

export interface ChatFields {
  /** one of the served model's names; absent: the one there is */
  model?: string;
  /** the conversation */
  messages: ChatMessage[];
  /** whether the template's part that asks for an answer is written */
  add_generation_prompt?: boolean;
  /** refused if it is true: the template writes such tokens */
  add_special_tokens?: false;
  /** functions that the model may call */
  tools?: Tool[];
  /** `auto`: the model decides; `none`: it is not told of tools; `required` or `any`: the answer is a call; a function: a call of it */
  tool_choice?: ToolChoice;
  /** whether an answer may have several calls */
  parallel_tool_calls?: boolean;
  /** `none`: thoughts stay in the content */
  reasoning_format?: "auto" | "deepseek" | "deepseek-legacy" | "none";
  /** the most tokens of the first thought; -1: no limit */
  thinking_budget_tokens?: number;
  /** how much to think, where the template knows that */
  reasoning_effort?: "none" | "minimal" | "low" | "medium" | "high" | "xhigh";
  /** variables of the chat template, such as `enable_thinking` */
  chat_template_kwargs?: { [name: string]: unknown };
  /** the most tokens of the answer; -1: as many as fit; absent: 16 in completions, in chats as many as fit */
  max_tokens?: number;
  /** the fewest tokens of the answer */
  min_tokens?: number;
  /** whether the answer goes on behind an end token */
  ignore_eos?: boolean;
  /** false: control tokens are shown, by their names */
  skip_special_tokens?: boolean;
  /** a text that ends the answer, or up to 16 of them; `""` stops nothing */
  stop?: string | string[];
  /** tokens that end the answer */
  stop_token_ids?: Tokens;
  /** 1 draws as the model says, less makes likely tokens likelier, 0 takes the likeliest */
  temperature?: number;
  /** keeps the k likeliest tokens; 0 and -1: all */
  top_k?: number;
  /** keeps the likeliest tokens that have this probability together */
  top_p?: number;
  /** keeps tokens with at least this part of the likeliest one's probability */
  min_p?: number;
  /** keeps tokens whose surprise is near to the mean, with this probability together */
  typical_p?: number;
  /** drops tokens below a threshold that falls with the entropy (eta sampling) */
  eta?: number;
  /** divides the logits of tokens that the whole text has; as `repeat_penalty`, of the last 64 */
  repetition_penalty?: number;
  /** the last tokens that the penalty for repetition counts; -1: the whole text; 0: no penalty */
  repeat_last_n?: number;
  /** is subtracted from a token's logit for each time it was generated */
  frequency_penalty?: number;
  /** is subtracted once from the logit of each token that was generated */
  presence_penalty?: number;
  /** how much DRY lowers tokens that would go on with a repetition; 0: off */
  dry_multiplier?: number;
  /** by what that grows with each token of the repetition */
  dry_base?: number;
  /** the longest repetition that costs nothing */
  dry_allowed_length?: number;
  /** the last tokens in which repetitions are looked for; -1: all */
  dry_penalty_last_n?: number;
  /** texts of one token each, across which no repetition reaches */
  dry_sequence_breakers?: string[];
  /** numbers that are added to tokens' logits, by ids, or as a list of pairs; false bans a token */
  logit_bias?: { [name: string]: Bias } | [Token, Bias][];
  /** what makes the same answer again; -1 or absent: a random one, stated in the reply */
  seed?: number;
  /** the form of the answer: a text, JSON, or JSON that a schema describes */
  response_format?: ResponseFormat;
  /** a JSON Schema that the answer follows */
  json_schema?: JsonSchema;
  /** a JSON Schema that the answer follows */
  guided_json?: JsonSchema;
  /** a grammar (GBNF) that the answer follows */
  grammar?: string;
  /** a grammar (GBNF) that the answer follows */
  ebnf?: string;
  /** a grammar (GBNF) that the answer follows */
  guided_grammar?: string;
  /** a regular expression that the whole answer matches */
  regex?: string;
  /** a regular expression that the whole answer matches */
  guided_regex?: string;
  /** texts, of which the answer is one */
  guided_choice?: string[];
  /** the form of the answer as vLLM has it, one of these */
  structured_outputs?: { json?: JsonSchema; regex?: string; choice?: string[]; grammar?: string; json_object?: boolean };
  /** false: the whole prompt is read, and nothing of the request is kept for others */
  cache_prompt?: boolean;
  /** a text: what is kept serves requests of the same client and salt only */
  cache_salt?: string;
  /** the slot that keeps the text for `/slots`; -1: that of the sequence which it ran in */
  id_slot?: number;
  /** how many answers each prompt gets */
  n?: number;
  /** what a stream has */
  stream_options?: { include_usage?: boolean; include_obfuscation?: boolean; continuous_usage_stats?: boolean };
  /** how many likeliest tokens come with each token; 0: none */
  n_probs?: number;
  /** whether tokens come with their log-probabilities */
  logprobs?: boolean;
  /** how many likeliest tokens come with each token */
  top_logprobs?: number;
  /** a text that the answer may repeat: drafts come from it */
  prediction?: { type: "content"; content: Content };
  /** what drafts, and how; absent members have the values of the start */
  speculative?: { type?: Method | Method[]; strategy?: VerifyStrategy; num_speculative_tokens?: number; n_min?: number; p_min?: number; enabled?: boolean; trace?: boolean };
}

export interface VerifyFields1 extends CompletionFields {
  /** one text, or one list of token ids */
  prompt: string | SomeTokens | (string | SomeTokens)[];
  /** the `tokens` of all calls before, one list behind the other */
  generated?: Tokens;
  /** at most 64 token ids, or a text; an empty list asks for one token */
  drafts: string | Token[];
}

export interface VerifyFields2 extends ChatFields {
  /** refused if it is true: the template writes them */
  add_special_tokens?: false;
  /** the `tokens` of all calls before, one list behind the other */
  generated?: Tokens;
  /** at most 64 token ids, or a text; an empty list asks for one token */
  drafts: string | Token[];
}

export type VerifyFields = VerifyFields1 | VerifyFields2;

export type AllowedTools = { mode?: "auto" | "required"; tools: ({ function: NamedFunction } | { function?: never } & NamedFunction)[] };

/** a number that is added to a logit; false bans the token */
export type Bias = number | false;

export type ChatMessage = { role: "system" | "developer" | "user" | "assistant" | "tool"; content?: Content; refusal?: string; tool_calls?: unknown; tool_call_id?: unknown; name?: unknown; reasoning_content?: unknown };

/** a text, whole or in parts */
export type Content = string | Part[];

export type Function = { name: string; description?: unknown; parameters?: { [name: string]: unknown } };

/** a JSON Schema, or the text of one */
export type JsonSchema = { [name: string]: unknown } | string | true;

/** the name of a drafter; GET /v1/speculation lists them */
export type Method = string;

export type NamedFunction = { name: string };

/** a part of a text; its other members are ignored */
export type Part = { type: "text" | "input_text" | "output_text"; text: string } | { type: "refusal"; refusal: string };

export type ResponseFormat = ({ type: "text" | "json_object" | "json_schema" }) & ({ type?: "text" } | { type?: "json_object"; schema?: JsonSchema } | { type?: "json_schema"; json_schema: { name?: string; description?: string; strict?: boolean; schema: JsonSchema } });

export type SomeTokens = Token[];

/** a token's id */
export type Token = number;

export type Tokens = Token[];

/** a function; tools of other types are left out, with a notice */
export type Tool = { type: "function"; function: Function } | { type: "function"; function?: never } & Function | { type?: never; function: Function } | { type?: never; function?: never } & Function;

export type ToolChoice = "none" | "auto" | "required" | "any" | { type: "function" | "tool"; function: NamedFunction } | ({ type: "function" | "tool"; function?: never }) & NamedFunction | { type: "allowed_tools"; allowed_tools: AllowedTools } | { type: "allowed_tools"; allowed_tools?: never } & AllowedTools;

/** a rule of docs/speculation.md */
export type VerifyStrategy = "auto" | "greedy" | "residual" | "standard" | "rejection-sampling" | "sample-match" | "target-probability" | "block" | "typical-acceptance" | "logit-comparison" | "relaxed";
