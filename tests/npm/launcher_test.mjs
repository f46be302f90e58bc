// SPDX-License-Identifier: Apache-2.0
// The command `foretoken` of the installed package: the program's own output, exit codes and signals.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import path from 'node:path';
import { test } from 'node:test';
import { marked, run, until } from './processes.mjs';

const require = createRequire(import.meta.url);
const launcher = path.join(path.dirname(require.resolve('foretoken/package.json')), 'src/launcher.js');
const kPrompts = ['Once upon a time', 'Lily and Ben went to the', 'The dog was'];
const kLimits = ['--threads', '1', '-n', '24', '--json'];

test('npx foretoken generate gives the very ids of the program', async () => {
  const env = { ...process.env, FORETOKEN_MODELS: process.env.BUILT_MODELS };
  const commands = [['npx', 'foretoken'], ['node_modules/.bin/foretoken']];
  for (const prompt of kPrompts) {
    for (const drawn of [['--temp', '0'], ['--temp', '0.9', '--seed', '11']]) {
      const args = ['generate', '-p', prompt, ...kLimits, ...drawn];
      const [command, ...first] = commands[prompt === kPrompts[0] ? 0 : 1]; // npx itself takes a second
      const [ours, built] = [await run(command, [...first, ...args]), await run(process.env.BUILT_PROGRAM, args, { env })];
      const [text, wanted] = [JSON.parse(ours.out), JSON.parse(built.out)];
      assert.equal(wanted.token_ids.length, 24);
      assert.deepEqual(text.token_ids, wanted.token_ids);
      assert.equal(text.speculation.method, 'standalone');
    }
  }
});

test('input, output and exit codes are the program\'s', async () => {
  const piped = await run('node_modules/.bin/foretoken', ['generate', '-q', '--temp', '0', '-t', '1', '-n', '8'], { input: 'Once upon a time' });
  assert.match(piped.out, /there was/);
  assert.equal(piped.code, 0);
  const wrong = await run('node_modules/.bin/foretoken', ['generate', '--no-such-flag']);
  assert.equal(wrong.code, 2);
  assert.match(wrong.errors, /no-such-flag/);
});

for (const signal of ['SIGTERM', 'SIGINT']) {
  test(`a server gets ${signal} from the command, and ends with 0`, async () => {
    let sent = false;
    const started = (child, { out }) => {
      if (!sent && out.includes(' at http')) sent = child.kill(signal);
    };
    // In a session of its own it has no terminal, from which the program would get Ctrl-C itself.
    const ended = await run('node', [launcher, 'serve', '--port', '0', '-t', '1'], { started, detached: true });
    assert.deepEqual([ended.code, ended.signal], [0, null], ended.errors);
  });
}

test('the command ends by the signal that ended the program', async () => {
  const mark = `mark-${process.pid}-killed`;
  const running = run('node', [launcher, 'serve', '--port', '0', '-t', '1', '--model-name', mark]);
  const server = await until(() => marked(mark).find((one) => one.isServer), 'the server');
  process.kill(server.id, 'SIGKILL');
  assert.deepEqual((({ code, signal }) => [code, signal])(await running), [null, 'SIGKILL']);
});
