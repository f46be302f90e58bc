// SPDX-License-Identifier: Apache-2.0
// Where no package has a program for the machine, the error names the platform and the way out.
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { run } from './processes.mjs';

const folder = path.dirname(createRequire(import.meta.url).resolve('foretoken/package.json'));
const { checkLibc, isBefore, program } = await import(pathToFileURL(path.join(folder, 'src/platform.js')));
const here = `${process.platform}-${process.arch}`;
const needs = { glibc: '2.36', interpreter: '/lib64/ld-linux-x86-64.so.2' };

test('versions are compared by their numbers', () => {
  const pairs = [['2.9', '2.36', true], ['2.36', '2.9', false], ['2.36', '2.36', false], ['2.36', '2.36.1', true], ['1.99', '2.0', true], ['3.0', '2.36', false]];
  for (const [a, b, before] of pairs) assert.equal(isBefore(a, b), before, `${a} ${b}`);
});

test('a platform without a package is named, with those that have one', () => {
  assert.throws(() => program('darwin-arm64'), (error) => error.code === 'unsupported_platform' && /darwin-arm64.*linux-x64.*FORETOKEN_PROGRAM/.test(error.message));
});

test('a package that is not installed is named, with the command that installs it', () => {
  const other = here === 'linux-x64' ? 'linux-arm64' : 'linux-x64';
  const { version } = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'));
  assert.throws(() => program(other), (error) => error.code === 'not_found' && error.message.includes(`npm install @foretoken/${other}@${version}`));
});

test('another C library, and an older one, are errors', () => {
  checkLibc(here, needs, '2.36', () => true);
  assert.throws(() => checkLibc(here, needs, undefined, () => false), /needs glibc, and \/lib64\/ld-linux-x86-64.so.2 is not here; use a system with glibc/);
  assert.throws(() => checkLibc(here, needs, '2.31', () => true), /needs glibc 2.36, and this is 2.31; use a newer system/);
});

test('the command says it on one line, and ends with 1', async () => {
  const bare = mkdtempSync(path.join(os.tmpdir(), 'foretoken_platform_'));
  try {
    const place = path.join(bare, 'node_modules/foretoken');
    cpSync(folder, place, { recursive: true, filter: (file) => !file.endsWith('.gguf') });
    const launcher = path.join(place, 'src/launcher.js');
    const missing = await run('node', [launcher, 'version']);
    assert.equal(missing.code, 1);
    assert.match(missing.errors, new RegExp(`^foretoken: package @foretoken/${here}: .* is not installed; .*\n$`));
    const other = path.join(bare, 'node_modules/@foretoken', here);
    mkdirSync(other, { recursive: true });
    writeFileSync(path.join(other, 'package.json'), JSON.stringify({ name: `@foretoken/${here}`, version: '0.0.1' }));
    assert.match((await run('node', [launcher, 'version'])).errors, /its version is 0\.0\.1, not/);
    const named = await run('node', [launcher, 'version'], { env: { ...process.env, FORETOKEN_PROGRAM: process.env.BUILT_PROGRAM } });
    assert.deepEqual([named.code, named.errors], [0, '']);
    const wrong = await run('node', [launcher, 'version'], { env: { ...process.env, FORETOKEN_PROGRAM: '/no/such/program' } });
    assert.equal(wrong.code, 1);
    assert.match(wrong.errors, /^foretoken: program \/no\/such\/program: .*ENOENT/);
  } finally {
    rmSync(bare, { recursive: true });
  }
});
