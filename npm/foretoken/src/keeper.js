// SPDX-License-Identifier: Apache-2.0
// Runs a server as a child of its own for as long as the standard input is open: node keeper.js PROGRAM ARGUMENTS...
//
// The input is a pipe from the process that wanted the server. The system closes it when that process ends, however it ends, so no server
// outlives its user. The server then gets SIGTERM, and answers what it has accepted; after ten seconds it gets SIGKILL.
import { runAsChild } from './child.js';

const kGraceMs = 10_000;
const [program, ...args] = process.argv.slice(2);
const server = runAsChild(program, args, { stdio: ['ignore', 'inherit', 'inherit'] });

let stopping = false;
function stop() {
  if (stopping) return;
  stopping = true;
  server.kill('SIGTERM');
  setTimeout(() => server.kill('SIGKILL'), kGraceMs);
}

process.stdin.on('end', stop).on('error', stop).on('close', stop).resume();
