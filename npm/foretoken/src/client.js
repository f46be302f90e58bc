// SPDX-License-Identifier: Apache-2.0
// Client speaks to a server of foretoken. Any number of requests may be under way at once.
//
// Contract: the members of options other than `signal` are the fields of the request's body, by the server's names, and replies are as the
// server gave them. With `stream: true` the result is an async iterator of chunks, else a promise of the whole reply.
import { ForetokenError } from './errors.js';
import { ask, stream } from './http.js';

export class Client {
  #url;
  #apiKey;

  // url: "http://HOST:PORT"; a proxy may have put a path behind it.
  constructor(url, { apiKey } = {}) {
    this.#url = new URL(url).href.replace(/\/+$/, '');
    this.#apiKey = apiKey;
  }

  get url() {
    return this.#url;
  }

  #at(path) {
    if (!String(path).startsWith('/')) {
      throw new ForetokenError('invalid_argument', `path ${path}: it does not begin with /; give one of the server, such as /v1/models`, { field: 'path' });
    }
    return new URL(this.#url + path);
  }

  // The reply of any path: a POST if there is a body, else a GET.
  async request(path, body, { signal } = {}) {
    return ask(this.#at(path), { body, signal, apiKey: this.#apiKey });
  }

  #answer(path, body, signal) {
    if (body.stream !== true) return this.request(path, body, { signal });
    return stream(this.#at(path), { body, signal, apiKey: this.#apiKey });
  }

  // Answers a conversation, or a text that stands for a user's only message.
  chat(messages, { signal, ...fields } = {}) {
    const conversation = typeof messages === 'string' ? [{ role: 'user', content: messages }] : messages;
    return this.#answer('/v1/chat/completions', { ...fields, messages: conversation }, signal);
  }

  // Goes on with a text, a list of token ids, or a list of such.
  complete(prompt, { signal, ...fields } = {}) {
    return this.#answer('/v1/completions', { ...fields, prompt }, signal);
  }

  // Verifies the caller's own drafts of a completion (`prompt`) or of a chat (`messages`).
  verify({ signal, ...fields }) {
    return this.request('/v1/verify', fields, { signal });
  }

  // The token ids of a text.
  async tokenize(text, { signal, ...fields } = {}) {
    return (await this.request('/tokenize', { ...fields, content: text }, { signal })).tokens;
  }

  // The text of token ids.
  async detokenize(tokens, { signal } = {}) {
    return (await this.request('/detokenize', { tokens }, { signal })).content;
  }

  health({ signal } = {}) {
    return this.request('/health', undefined, { signal });
  }
}
