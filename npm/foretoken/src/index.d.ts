// SPDX-License-Identifier: Apache-2.0
// The types of the package foretoken. docs/node.md is the guide, docs/server.md tells what fields and replies mean.
import type { ChatFields, ChatMessage, CompletionFields, VerifyFields } from './requests.js';

export type { ChatFields, ChatMessage, CompletionFields, Content, Tool, ToolChoice, VerifyFields, VerifyStrategy } from './requests.js';

/** What every call takes beside the fields of its request. */
export interface CallOptions {
  /** Ends the request; its reason is thrown. */
  signal?: AbortSignal;
}

type Streamed = { stream: true };
type Whole = { stream?: false };
export type ChatOptions = Omit<ChatFields, 'messages'> & CallOptions;
export type CompleteOptions = Omit<CompletionFields, 'prompt'> & CallOptions;
export type VerifyOptions = VerifyFields & CallOptions;

export interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  prompt_tokens_details: { cached_tokens: number };
  completion_tokens_details: { accepted_prediction_tokens: number; rejected_prediction_tokens: number };
}

export interface Timings {
  prompt_n: number;
  prompt_ms: number;
  prompt_per_second?: number;
  predicted_n: number;
  predicted_ms: number;
  predicted_per_second?: number;
  draft_n: number;
  draft_n_accepted: number;
  queue_ms: number;
  first_token_ms?: number;
}

/** What drafted, and how much of it was accepted. Further counts are in docs/speculation.md. */
export interface Speculation {
  method: string;
  strategy: string;
  lossless: boolean;
  rounds: number;
  drafted: number;
  accepted: number;
  emitted: number;
  acceptance_rate?: number;
  mean_acceptance_length?: number;
  estimated_speedup?: number;
  drafters: { [name: string]: { rounds: number; drafted: number; accepted: number } };
  [name: string]: unknown;
}

export type FinishReason = 'stop' | 'length' | 'tool_calls';

/** What a whole reply has, and the last chunk of a stream. */
export interface Statistics {
  /** The seed that gives the same reply again. */
  seed: number;
  timings: Timings;
  speculation: Speculation;
  /** Fields that were accepted without the effect that their sender may expect. */
  notices?: string[];
}

interface Named {
  id: string;
  created: number;
  model: string;
  system_fingerprint: string;
}

export interface ToolCall {
  id: string;
  type: 'function';
  function: { name: string; arguments: string };
}

export interface AnswerMessage {
  role: 'assistant';
  content: string | null;
  refusal: string | null;
  reasoning_content?: string;
  tool_calls?: ToolCall[];
}

export interface ChatLogprob {
  token: string;
  logprob: number;
  bytes: number[];
  top_logprobs: { token: string; logprob: number; bytes: number[] }[];
}

export interface ChatLogprobs {
  content: ChatLogprob[] | null;
  refusal: null;
}

export interface Chat extends Named, Statistics {
  object: 'chat.completion';
  choices: { index: number; message: AnswerMessage; logprobs: ChatLogprobs | null; finish_reason: FinishReason }[];
  usage: Usage;
}

export interface CompletionLogprobs {
  tokens: string[];
  token_logprobs: (number | null)[];
  top_logprobs: ({ [token: string]: number } | null)[];
  text_offset: number[];
}

export interface Completion extends Named, Statistics {
  object: 'text_completion';
  choices: { index: number; text: string; logprobs: CompletionLogprobs | null; finish_reason: FinishReason }[];
  usage: Usage;
}

/** A round of speculation, with `speculative: { trace: true }`. */
export interface Round {
  round: number;
  drafter: string | null;
  drafted: number;
  tokens: { id: number; text: string; origin: 'plain' | 'accepted' | 'recovered' | 'bonus'; logprob?: number }[];
  rejected: { id: number; text: string }[];
}

interface Chunk extends Named, Partial<Statistics> {
  /** In a chunk of its own, with `stream_options: { include_usage: true }`. */
  usage?: Usage | null;
  foretoken?: Round;
}

export interface ChatDelta {
  role?: 'assistant';
  content?: string | null;
  reasoning_content?: string;
  tool_calls?: { index: number; id?: string; type?: 'function'; function?: { name?: string; arguments?: string } }[];
}

export interface ChatChunk extends Chunk {
  object: 'chat.completion.chunk';
  choices: { index: number; delta: ChatDelta; logprobs: ChatLogprobs | null; finish_reason: FinishReason | null }[];
}

export interface CompletionChunk extends Chunk {
  object: 'text_completion';
  choices: { index: number; text: string; logprobs: CompletionLogprobs | null; finish_reason: FinishReason | null }[];
}

export interface Verified extends Named, Statistics {
  object: 'verification';
  /** The number of drafts that were right. */
  accepted: number;
  /** The token behind them; null where the answer ends with a draft. */
  next: { id: number; text: string } | null;
  /** The accepted drafts and the token behind them: what the next call has as `generated`, behind those of the calls before. */
  tokens: number[];
  text: string;
  /** Null until the answer ends. */
  finish_reason: FinishReason | null;
  usage: Usage;
}

export interface Health {
  status: 'ok';
  running: number;
  waiting: number;
  overload: string;
  memory: { limit_bytes: number; resident_bytes: number; requests_bytes: number };
}

/** Speaks to a server of foretoken. Any number of requests may be under way at once. */
export declare class Client {
  /** @param url "http://HOST:PORT" */
  constructor(url: string | URL, options?: { apiKey?: string });
  readonly url: string;
  /** Answers a conversation, or a text that stands for a user's only message. A stream begins when its first chunk is asked for. */
  chat(messages: string | ChatMessage[], options: ChatOptions & Streamed): AsyncGenerator<ChatChunk, void, void>;
  chat(messages: string | ChatMessage[], options?: ChatOptions & Whole): Promise<Chat>;
  /** Goes on with a text, a list of token ids, or a list of such. A stream begins when its first chunk is asked for. */
  complete(prompt: CompletionFields['prompt'], options: CompleteOptions & Streamed): AsyncGenerator<CompletionChunk, void, void>;
  complete(prompt: CompletionFields['prompt'], options?: CompleteOptions & Whole): Promise<Completion>;
  /** Verifies drafts of the caller: one pass gives as many tokens as were right, and one more. */
  verify(options: VerifyOptions): Promise<Verified>;
  tokenize(text: string, options?: { add_special?: boolean; parse_special?: boolean } & CallOptions): Promise<number[]>;
  detokenize(tokens: number[], options?: CallOptions): Promise<string>;
  health(options?: CallOptions): Promise<Health>;
  /** The reply of any other path: a POST if there is a body, else a GET. */
  request(path: string, body?: object, options?: CallOptions): Promise<unknown>;
}

export interface ServeOptions extends CallOptions {
  /** A GGUF file or folder; without it the bundled model with its own drafter. */
  model?: string;
  /** What drafts for it: a file, or several. */
  draft?: string | string[];
  /** 0, the default: one that is free. */
  port?: number;
  /** The key that the server asks for, and that this client sends. Default: FORETOKEN_API_KEY. */
  apiKey?: string;
  /** Flags of `foretoken serve` by name, `_` for `-` if you like: true sets a flag, a list repeats it. */
  flags?: { [name: string]: string | number | boolean | (string | number)[] | null | undefined };
  /** Is called with each line of the server's log. */
  onLog?: (line: string) => void;
}

export interface Ended {
  /** The exit code, or why the process could not be started. */
  code: number | string | null;
  signal: string | null;
}

/** A server that `serve` started. It ends with this process, and does not keep it running. */
export declare class Server extends Client {
  private constructor();
  /** Resolves when the server has ended. Asking for it keeps this process running until then. */
  readonly ended: Promise<Ended>;
  /** Ends the server: requests that run get their answers first, for at most ten seconds. May be called again. */
  close(): Promise<void>;
}

/** Starts a server as a child process, and resolves when it answers. `signal` ends the start only. */
export declare function serve(options?: ServeOptions): Promise<Server>;

export declare class ForetokenError extends Error {
  private constructor();
  /** A word to compare: that of the server, or unsupported_platform, not_found, invalid_argument, server_ended, connection. */
  readonly code: string;
  /** What is wrong, if one thing is. */
  readonly field?: string;
  /** That of the server's reply. */
  readonly status?: number;
}
