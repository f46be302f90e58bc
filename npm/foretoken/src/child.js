// SPDX-License-Identifier: Apache-2.0
// A process that stands for its child: it ends as the child ends, with the same exit code or by the same signal, and hands signals on.
import { spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import os from 'node:os';
import { cannotStart } from './platform.js';

// On a terminal Ctrl-C reaches the child by itself, and a second one would stop a server at once.
function hasTerminal() {
  try {
    closeSync(openSync('/dev/tty', 'r'));
    return true;
  } catch {
    return false;
  }
}

function endByTheSame(code, signal) {
  if (signal === null) process.exit(code);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
  process.exit(128 + os.constants.signals[signal]); // Node ignores this signal
}

// Starts `program`; options are those of spawn(). Returns the child.
export function runAsChild(program, args, options) {
  const child = spawn(program, args, options);
  child.on('error', (why) => {
    process.stderr.write(`foretoken: ${cannotStart(program, why)}\n`);
    process.exit(1);
  });
  child.on('exit', endByTheSame);
  for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  process.on('SIGINT', () => hasTerminal() || child.kill('SIGINT'));
  return child;
}
