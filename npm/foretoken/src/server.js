// SPDX-License-Identifier: Apache-2.0
// serve() starts `foretoken serve` as a child process, and gives a Client of it that can end it.
//
// Contract: the server answers when serve() has resolved. It ends when it is closed, and with this process, however that ends:
// then its standard input ends (--exit-with-stdin).
// It does not keep this process running until somebody asks for its end. It is in a session of its own, so Ctrl-C on a terminal reaches this process alone.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { Client } from './client.js';
import { ForetokenError } from './errors.js';
import { cannotStart, environment, program } from './platform.js';

const kGraceMs = 10_000;
const kLinesKept = 50;
const kCharactersKept = 2000;

function flag(name, value) {
  const written = `--${name.replaceAll('_', '-')}`;
  if (value === undefined || value === null || value === false) return [];
  if (value === true) return [written];
  return [value].flat().flatMap((one) => [written, String(one)]);
}

function checked(options) {
  const known = ['model', 'draft', 'port', 'apiKey', 'flags', 'onLog', 'signal'];
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown !== undefined) {
    const way = `there are ${known.join(', ')}, and flags of the program go into flags`;
    throw new ForetokenError('invalid_argument', `serve: there is no option ${unknown}; ${way}`, { field: unknown });
  }
  return options;
}

// The process of the server. ended: a promise of what it ended with, {code, signal}, which never fails.
class Process {
  lastLines = [];

  constructor(args, apiKey, onLog) {
    const env = environment();
    if (apiKey) env.FORETOKEN_API_KEY = apiKey;
    this.child = spawn(program(), ['serve', '--exit-with-stdin', ...args], { stdio: ['pipe', 'pipe', 'pipe'], detached: true, env });
    this.ended = new Promise((resolve) => {
      this.child.on('error', (why) => resolve({ code: cannotStart(program(), why), signal: null }));
      this.child.on('close', (code, signal) => resolve({ code, signal }));
    });
    createInterface({ input: this.child.stderr }).on('line', (line) => {
      this.lastLines = [...this.lastLines.slice(1 - kLinesKept), line.slice(0, kCharactersKept)];
      onLog?.(line);
    });
  }

  // The address that the server prints when it listens; undefined if it ends before.
  address() {
    return new Promise((resolve) => {
      createInterface({ input: this.child.stdout }).on('line', (line) => {
        const found = / at (https?:\/\/\S+:\d+)/.exec(line);
        if (found) resolve(found[1]);
      });
      this.ended.then(() => resolve(undefined));
    });
  }

  // Whether the process keeps this one running.
  hold(held) {
    for (const part of [this.child, ...this.child.stdio]) held ? part.ref() : part.unref();
  }

  wait() {
    this.hold(true);
    return this.ended;
  }

  // A second SIGTERM would break off what the first one lets the server answer.
  stop() {
    this.stopped ??= this.#terminate();
    return this.stopped;
  }

  async #terminate() {
    this.child.kill('SIGTERM');
    const late = setTimeout(() => this.child.kill('SIGKILL'), kGraceMs);
    await this.wait();
    clearTimeout(late);
  }
}

export class Server extends Client {
  #process;

  constructor(url, options, started) {
    super(url, options);
    this.#process = started;
    started.hold(false);
  }

  // Resolves when the server has ended by itself or was closed, with {code, signal}. Whoever asks waits for it: from then on the server keeps
  // this process running.
  get ended() {
    return this.#process.wait();
  }

  // Ends the server: requests that run get their answers first, for at most ten seconds. May be called again.
  async close() {
    await this.#process.stop();
  }
}

// Errors: invalid_argument (an option), unsupported_platform, not_found, server_ended (its message has the program's reason).
export async function serve(options = {}) {
  const { model, draft, port = 0, apiKey = process.env.FORETOKEN_API_KEY, flags = {}, onLog, signal } = checked(options);
  signal?.throwIfAborted();
  const named = [['port', port], ['model', model], ['model-draft', draft], ...Object.entries(flags)];
  const args = named.flatMap(([name, value]) => flag(name, value));
  const started = new Process(args, apiKey, onLog);
  const stop = () => void started.stop();
  signal?.addEventListener('abort', stop);
  try {
    const url = await started.address();
    signal?.throwIfAborted();
    if (url === undefined) {
      const { code, signal: killed } = await started.ended;
      const reason = started.lastLines.join('\n') || `it ended with ${killed ?? code}`;
      throw new ForetokenError('server_ended', `serve: the server has ended: ${reason}; see \`npx foretoken serve --help\``);
    }
    await new Client(url).health({ signal });
    return new Server(url, { apiKey }, started);
  } catch (error) {
    await started.stop();
    throw error;
  } finally {
    signal?.removeEventListener('abort', stop);
  }
}
