#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// The command `foretoken`: the program of this machine with the bundled models, on this process's streams.
import { runAsChild } from './child.js';
import { environment, program } from './platform.js';

try {
  runAsChild(program(), process.argv.slice(2), { stdio: 'inherit', env: environment() });
} catch (error) {
  process.stderr.write(`foretoken: ${error.message}\n`);
  process.exitCode = 1;
}
