// SPDX-License-Identifier: Apache-2.0
// serve() starts `foretoken serve` as a child process, and gives a Client of it that can end it.
//
// Contract: the server answers when serve() has resolved. It ends when it is closed, and with this process, however that ends (keeper.js).
// It does not keep this process running until somebody asks for its end. It is in a session of its own, so Ctrl-C on a terminal reaches this process alone.
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { createInterface } from 'node:readline';
import { Client } from './client.js';
import { ForetokenError } from './errors.js';
import { environment, program } from './platform.js';

const kKeeper = fileURLToPath(new URL('keeper.js', import.meta.url));
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
    const env = { ...environment(), ELECTRON_RUN_AS_NODE: '1' };
    if (apiKey) env.FORETOKEN_API_KEY = apiKey;
    delete env.NODE_OPTIONS; // they are this process's, not the keeper's
    this.child = spawn(process.execPath, [kKeeper, program(), 'serve', ...args], { stdio: ['pipe', 'pipe', 'pipe'], detached: true, env });
    this.child.stdin.on('error', () => {}); // it has ended already
    this.ended = new Promise((resolve) => {
      this.child.on('error', (why) => resolve({ code: why.message, signal: null }));
      this.child.on('close', (code, signal) => resolve({ code, signal }));
    });
    this.child.on('exit', () => this.#endGroup());
    createInterface({ input: this.child.stderr }).on('line', (line) => {
      this.lastLines = [...this.lastLines.slice(1 - kLinesKept), line.slice(0, kCharactersKept)];
      onLog?.(line);
    });
  }

  // The keeper ends after the server, unless somebody has killed it: then the server is all that is left of its group.
  #endGroup() {
    try {
      process.kill(-this.child.pid, 'SIGTERM');
    } catch {
      // nothing is left
    }
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

  stop() {
    this.child.stdin.end();
    return this.wait();
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
