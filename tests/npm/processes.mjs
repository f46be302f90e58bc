// SPDX-License-Identifier: Apache-2.0
// Processes for the tests: commands that are run to their end, servers that are found by their mark, and waits that only end a hang.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const kTries = 1200;
const kTryMs = 100;

// Waits until `done` gives something, which is returned.
export async function until(done, what) {
  for (let tried = 0; tried < kTries; ++tried) {
    const found = await done();
    if (found) return found;
    await sleep(kTryMs);
  }
  return assert.fail(`it never came: ${what}`);
}

// Runs a command to its end: {code, signal, out, errors}. input: what it reads. started(child, said): called with each piece of its output.
export function run(command, args, { input = '', started, ...options } = {}) {
  const child = spawn(command, args, { ...options, stdio: ['pipe', 'pipe', 'pipe'] });
  const said = { out: '', errors: '' };
  return new Promise((resolve, reject) => {
    const listen = (name) => (piece) => {
      said[name] += piece;
      started?.(child, said);
    };
    child.stdout.setEncoding('utf8').on('data', listen('out'));
    child.stderr.setEncoding('utf8').on('data', listen('errors'));
    child.on('error', reject).on('close', (code, signal) => resolve({ code, signal, ...said }));
    child.stdin.on('error', () => {}).end(input);
  });
}

// The command line of a process, and its parent; null if it has ended.
function read(id) {
  try {
    const parent = Number(readFileSync(`/proc/${id}/stat`, 'utf8').replace(/.*\) \S /s, '').split(' ')[0]);
    return { id, parent, command: readFileSync(`/proc/${id}/cmdline`, 'utf8').split('\0') };
  } catch {
    return null;
  }
}

// The processes that have `mark` among their arguments: servers, and commands that run one (whose program is node).
export function marked(mark) {
  const ids = readdirSync('/proc').filter((name) => /^\d+$/.test(name)).map(Number);
  return ids.map(read).filter((one) => one?.command.includes(mark)).map((one) => ({ ...one, isServer: one.command[1] === 'serve' }));
}
