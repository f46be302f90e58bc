// SPDX-License-Identifier: Apache-2.0
// Requests of JSON over HTTP, without a time limit of their own: an answer may take as long as the server allows.
//
// Contract: `signal` ends a request at any time, and its reason is thrown. Other errors are ForetokenError: "connection" where no reply came
// or it broke off, else the server's own. A reply may have at most kMostCharacters.
import http from 'node:http';
import https from 'node:https';
import { ForetokenError } from './errors.js';
import { EventReader } from './events.js';

const kMostCharacters = 1 << 28;

function failed(url, why, signal) {
  if (signal?.aborted) return signal.reason;
  if (why instanceof ForetokenError) return why;
  return new ForetokenError('connection', `server ${url.origin}: ${why.message}; see whether it still runs, and whether this is its address`, { cause: why });
}

function send(url, { body, apiKey, signal }) {
  const text = body === undefined ? undefined : JSON.stringify(body);
  const headers = { Accept: 'application/json' };
  if (text !== undefined) Object.assign(headers, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) });
  if (apiKey) headers.Authorization = `Bearer ${apiKey}`;
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const { request } = url.protocol === 'https:' ? https : http;
    const sent = request(url, { method: text === undefined ? 'GET' : 'POST', headers, signal, agent: false });
    sent.on('response', resolve).on('error', reject).end(text);
  });
}

async function read(reply) {
  const parts = [];
  let length = 0;
  for await (const part of reply) {
    length += part.length;
    if (length > kMostCharacters) throw new ForetokenError('connection', `reply: it has more than ${kMostCharacters} characters; ask for a shorter one`);
    parts.push(part);
  }
  return parts.join('');
}

function parsed(text, status) {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new ForetokenError('connection', `server: it replied with ${status} and what is no JSON; see whether this is the address of foretoken`, { status, cause });
  }
}

// The error that a value of the server describes. A stream has errors among its values, with the status 200.
function errorOf(value, status) {
  const error = value?.error ?? {};
  const message = typeof error.message === 'string' ? error.message : `server: it replied with ${status}; see its log`;
  const code = [error.code, error.type].find((word) => typeof word === 'string') ?? 'server';
  return new ForetokenError(code, message, { field: typeof error.param === 'string' ? error.param : undefined, status });
}

async function open(url, options) {
  const reply = await send(url, options);
  reply.setEncoding('utf8');
  if (reply.statusCode >= 400) throw errorOf(parsed(await read(reply), reply.statusCode), reply.statusCode);
  return reply;
}

// The value of the reply to a POST of `body`, or to a GET without one.
export async function ask(url, options) {
  try {
    const reply = await open(url, options);
    return parsed(await read(reply), reply.statusCode);
  } catch (why) {
    throw failed(url, why, options.signal);
  }
}

// The values of a stream of events, to its [DONE]. Nothing is sent before the first is asked for; leaving the loop cancels the request.
export async function* stream(url, options) {
  try {
    const reply = await open(url, options);
    const reader = new EventReader();
    for await (const piece of reply) {
      for (const event of reader.push(piece)) {
        if (event === '[DONE]') return;
        const value = parsed(event, reply.statusCode);
        if (value?.error) throw errorOf(value, reply.statusCode);
        yield value;
      }
    }
    throw new ForetokenError('connection', 'stream: it ended before its last event; see the log of the server');
  } catch (why) {
    throw failed(url, why, options.signal);
  }
}
