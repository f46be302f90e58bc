// SPDX-License-Identifier: Apache-2.0
// A server ends with the process that started it, however that ends.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { test } from 'node:test';
import { serve } from 'foretoken';
import { marked, run, until } from './processes.mjs';

const kLong = { max_tokens: 100_000, ignore_eos: true, stream: true };

function markOf(name) {
  return `mark-${process.pid}-${name}`;
}

// A program that starts a server with `mark`, and goes on with `more`.
function userProgram(mark, more) {
  return `import { serve } from 'foretoken'; const starting = serve({ flags: { 'model-name': '${mark}', threads: 1 } }); ${more}`;
}

function start(code) {
  return spawn('node', ['--input-type=module', '-e', code], { stdio: ['ignore', 'pipe', 'inherit'] });
}

function gone(mark) {
  return until(() => marked(mark).length === 0, 'the end of the server');
}

test('a parent that is killed leaves no server', async () => {
  const mark = markOf('parent');
  const parent = start(userProgram(mark, 'const server = await starting; console.log(server.url); setInterval(() => {}, 1000);'));
  await new Promise((resolve) => parent.stdout.once('data', resolve));
  assert.equal(marked(mark).length, 1, 'the server, and nothing between');
  parent.kill('SIGKILL');
  await gone(mark);
});

test('a parent that is killed while its server still starts leaves none', async () => {
  const mark = markOf('early');
  const parent = start(userProgram(mark, 'setInterval(() => {}, 1000);'));
  await until(() => marked(mark).length > 0, 'the server');
  parent.kill('SIGKILL');
  await gone(mark);
});

test('a parent that is killed while its server answers leaves none', async () => {
  const mark = markOf('busy');
  const more = `for await (const chunk of (await starting).complete('Once', ${JSON.stringify(kLong)})) console.log(chunk.id);`;
  const parent = start(userProgram(mark, more));
  await new Promise((resolve) => parent.stdout.once('data', resolve));
  parent.kill('SIGKILL');
  await gone(mark);
});

test('a program that forgets its server ends, and the server with it', async () => {
  const mark = markOf('forgotten');
  const ended = await run('node', ['--input-type=module', '-e', userProgram(mark, 'console.log((await starting).url);')]);
  assert.deepEqual([ended.code, ended.signal], [0, null]);
  assert.match(ended.out, /^http/);
  await gone(mark);
});

test('a program that waits for the end of its server goes on until then', async () => {
  const mark = markOf('awaited');
  const parent = start(userProgram(mark, 'const server = await starting; console.log(server.url); console.log(await server.ended);'));
  await new Promise((resolve) => parent.stdout.once('data', resolve));
  process.kill(marked(mark)[0].id, 'SIGKILL');
  const code = await new Promise((resolve) => parent.on('exit', resolve));
  assert.equal(code, 0, 'a program that Node ends while it waits ends with 13');
  await gone(mark);
});

test('closing answers what was accepted, also when it is asked for twice', async () => {
  const mark = markOf('closed');
  const server = await serve({ flags: { 'model-name': mark, threads: 1 } });
  const request = { ...kLong, max_tokens: 400 };
  let [read, closing] = [0, null];
  for await (const chunk of server.complete('Once upon a time', request)) {
    read += chunk.choices.length;
    closing ??= Promise.all([server.close(), server.close()]);
  }
  assert.ok(read > 0);
  await closing;
  assert.deepEqual(await server.ended, { code: 0, signal: null });
  await gone(mark);
});

test('a program that is not there is named', async () => {
  process.env.FORETOKEN_PROGRAM = '/nowhere/foretoken';
  try {
    await assert.rejects(serve(), /program \/nowhere\/foretoken: .*ENOENT; install the package again, or name another program/);
  } finally {
    delete process.env.FORETOKEN_PROGRAM;
  }
});

test('a stream whose server is killed is an error, and the user hears of its end', async () => {
  const mark = markOf('server');
  const server = await serve({ flags: { 'model-name': mark, threads: 1 } });
  const [{ id }] = marked(mark);
  const reading = (async () => {
    let read = 0;
    for await (const chunk of server.complete('Once upon a time', kLong)) {
      assert.ok(chunk);
      if (read++ === 0) process.kill(id, 'SIGKILL');
    }
  })();
  await assert.rejects(reading, (error) => error.code === 'connection');
  assert.deepEqual(await server.ended, { code: null, signal: 'SIGKILL' });
});

test('starting can be aborted', async () => {
  const mark = markOf('aborted');
  const controller = new AbortController();
  const starting = serve({ flags: { 'model-name': mark, threads: 1 }, signal: controller.signal });
  await until(() => marked(mark).length > 0, 'the server');
  controller.abort(new Error('not now'));
  await assert.rejects(starting, /not now/);
  await gone(mark);
});
