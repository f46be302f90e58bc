// SPDX-License-Identifier: Apache-2.0
// What the page asks of the server it came from, and what went wrong in words for people.
import { EventReader } from './sse.js';

export class ServiceError extends Error {
  constructor(message, { status = 0, code = '' } = {}) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export class Service {
  #key = sessionStorage.getItem('foretoken.key') ?? '';
  #model = null;
  #chats = true; // until the server says otherwise

  setKey(key) {
    this.#key = key;
    sessionStorage.setItem('foretoken.key', key);
  }

  // The model as the server lists it, and whether it can chat: {id, meta, draft, chats}.
  async model() {
    const { data } = await this.#json('/v1/models');
    this.#model = data[0];
    this.#chats = this.#model.meta?.chat_template !== false;
    return { ...this.#model, chats: this.#chats };
  }

  speculation() {
    return this.#json('/v1/speculation');
  }

  // The tokens that `turns` are as a prompt; 0 where the model has no chat template.
  async promptTokens(turns, signal) {
    if (!this.#chats) return 0;
    const body = JSON.stringify({ messages: turns });
    const response = await this.#fetch('/tokenize', { method: 'POST', body, signal });
    return (await response.json()).tokens.length;
  }

  // Has the model answer the last of `turns` ({role, content}), or, where it has no chat template,
  // continue that turn's text. Gives each chunk to onChunk. Throws ServiceError, or an AbortError
  // once `signal` fires.
  async answer(turns, fields, stream) {
    const body = { ...fields, model: this.#model?.id };
    if (this.#chats) {
      try {
        // Thoughts are a part of the text that is shown, as they are of its tokens.
        const chat = { ...body, messages: turns, logprobs: true, reasoning_format: 'none' };
        return await this.#stream('/v1/chat/completions', chat, stream);
      } catch (error) {
        if (!/chat template: .*(has none|no known)/.test(error.message)) throw error;
        this.#chats = false;
      }
    }
    const prompt = turns.at(-1).content;
    return this.#stream('/v1/completions', { ...body, prompt, logprobs: 1 }, stream);
  }

  async #stream(path, body, { signal, onChunk }) {
    const response = await this.#fetch(path, {
      method: 'POST',
      body: JSON.stringify({ ...body, stream: true, stream_options: { include_usage: true } }),
      signal,
    });
    const reader = new EventReader();
    let done = false;
    const take = (piece) => {
      for (const data of reader.push(piece)) {
        if (data === '[DONE]') done = true;
        else onChunk(checked(JSON.parse(data)));
      }
    };
    await readPieces(response.body, signal, take);
    if (!done) {
      throw new ServiceError('The connection ended before the answer did. Is the server still running?');
    }
  }

  async #json(path) {
    const response = await this.#fetch(path, { method: 'GET' });
    return response.json();
  }

  async #fetch(path, options) {
    const headers = { 'Content-Type': 'application/json' };
    if (this.#key) headers.Authorization = `Bearer ${this.#key}`;
    let response;
    try {
      response = await fetch(path, { ...options, headers });
    } catch (error) {
      if (error.name === 'AbortError') throw error;
      throw new ServiceError(`No answer from ${location.host}. Is foretoken serve still running?`);
    }
    if (!response.ok) throw await refusal(response);
    return response;
  }
}

async function readPieces(body, signal, take) {
  const decoder = new TextDecoder();
  const pieces = body.getReader();
  try {
    for (;;) {
      const { value, done } = await pieces.read();
      if (done) return;
      take(decoder.decode(value, { stream: true }));
    }
  } catch (error) {
    if (signal.aborted || error instanceof ServiceError) throw error;
    throw new ServiceError(`The connection broke off: ${error.message}. Send it again.`);
  }
}

function checked(chunk) {
  if (chunk.error) throw new ServiceError(chunk.error.message, { code: chunk.error.code });
  return chunk;
}

async function refusal(response) {
  const { status } = response;
  let error = {};
  try {
    error = (await response.json()).error ?? {};
  } catch {
    // Not JSON: what the status says must do.
  }
  const code = error.code ?? error.type ?? '';
  if (status === 429) {
    const seconds = response.headers.get('Retry-After');
    const when = seconds ? `in ${seconds} s` : 'in a moment';
    return new ServiceError(`The server has all the work it can take. Try again ${when}.`, { status, code });
  }
  return new ServiceError(error.message ?? `The server refused (HTTP ${status}).`, { status, code });
}
