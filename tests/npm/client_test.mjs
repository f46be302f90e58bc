// SPDX-License-Identifier: Apache-2.0
// The client of the installed package, against the server that it starts.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import { after, before, test } from 'node:test';
import { Client, ForetokenError, serve } from 'foretoken';
import { run, until } from './processes.mjs';

const kFlags = { threads: 1, lookahead: 'fixed', 'num-speculative-tokens': 4, repack_cache: 'off' };
const kPrompt = 'Once upon a time';
const kLong = { max_tokens: 100_000, ignore_eos: true, stream: true };
const log = [];
let server;

before(async () => {
  server = await serve({ flags: kFlags, onLog: (line) => log.push(line) });
});
after(() => server.close());

async function collect(chunks, text) {
  const found = [];
  for await (const chunk of chunks) found.push(chunk);
  return { text: found.map((chunk) => chunk.choices.map(text).join('')).join(''), last: found.at(-1), count: found.length };
}

test('a chat is the same whole and streamed', async () => {
  const options = { seed: 5, max_tokens: 30 };
  const whole = await server.chat('Tell me a story', options);
  const messages = [{ role: 'user', content: 'Tell me a story' }];
  const streamed = await collect(server.chat(messages, { ...options, stream: true }), (choice) => choice.delta.content ?? '');
  assert.equal(whole.usage.completion_tokens, 30);
  assert.ok(whole.choices[0].message.content.length > 0);
  assert.equal(streamed.text, whole.choices[0].message.content);
  assert.ok(streamed.count > 2);
  assert.equal(streamed.last.seed, 5);
});

test('a completion is that of the program, whole and streamed', async () => {
  const options = { temperature: 0, max_tokens: 40 };
  const whole = await server.complete(kPrompt, options);
  const streamed = await collect(server.complete(kPrompt, { ...options, stream: true }), (choice) => choice.text);
  const program = await run('npx', ['foretoken', 'generate', '--json', '-p', kPrompt, '--temp', '0', '-n', '40', '-t', '1']);
  assert.equal(whole.choices[0].text, JSON.parse(program.out).text);
  assert.equal(streamed.text, whole.choices[0].text);
  assert.ok(whole.speculation.accepted > 0);
});

test('tokens and their text', async () => {
  const tokens = await server.tokenize(kPrompt);
  assert.equal(tokens.length, 4);
  assert.equal(await server.detokenize(tokens), kPrompt);
});

test('every path can be asked', async () => {
  const vectors = await server.request('/v1/embeddings', { input: ['a text', 'another'] });
  assert.deepEqual(vectors.data.map((one) => one.embedding.length), [384, 384]);
  assert.match((await server.request('/v1/models')).data[0].id, /^tales/);
});

test('right and wrong drafts give the text of a completion', async () => {
  const fields = { seed: 7, max_tokens: 24 };
  const wanted = (await server.complete(kPrompt, { ...fields, speculative: { enabled: false } })).choices[0].text;
  const right = (await server.tokenize(kPrompt + wanted)).slice((await server.tokenize(kPrompt)).length);
  let [text, generated, accepted, calls] = ['', [], 0, 0];
  for (let done = false; !done; ++calls) {
    const drafts = calls % 2 === 0 ? right.slice(generated.length, generated.length + 3) : [1, 2];
    const reply = await server.verify({ prompt: kPrompt, ...fields, generated, drafts });
    text += reply.text;
    generated = [...generated, ...reply.tokens];
    accepted += reply.accepted;
    done = reply.finish_reason !== null;
  }
  assert.equal(text, wanted);
  assert.ok(accepted > 5 && calls < 24, `${accepted} accepted in ${calls} calls`);
});

test('the server\'s errors are thrown, with code, field and status', async () => {
  const isUnknown = (error) => error instanceof ForetokenError && error.code === 'unknown_field' && error.field === 'max_token' && error.status === 400;
  await assert.rejects(server.chat('Hi', { max_token: 3 }), isUnknown);
  await assert.rejects(server.complete('Hi', { max_token: 3, stream: true }).next(), isUnknown);
  await assert.rejects(server.request('/no/such/path'), (error) => error.status === 404);
  await assert.rejects(server.request('http://127.0.0.1:1/health'), (error) => error.code === 'invalid_argument' && error.field === 'path');
});

// How many requests the server's log has that their client left.
function left() {
  return log.filter((line) => line.includes('error=client_gone')).length;
}

// Asks, and leaves, until the log says so: where this process waits for its core, the server may have answered in full before it sees that.
async function untilLeft(ask) {
  const before = left();
  for (let asked = 0; left() === before; ++asked) {
    assert.ok(asked < 20, 'each request was answered in full');
    const lines = log.length;
    await ask();
    await until(() => log.length > lines, 'the line of the request');
  }
}

test('a signal ends a stream, and the server\'s work on it', async () => {
  await untilLeft(async () => {
    const controller = new AbortController();
    const reading = (async () => {
      for await (const chunk of server.complete(kPrompt, { ...kLong, signal: controller.signal })) {
        assert.ok(chunk);
        controller.abort(new Error('enough'));
      }
    })();
    await assert.rejects(reading, /enough/);
  });
  await until(async () => (await server.health()).running === 0, 'the end of the work on it');
});

test('leaving the loop ends a stream', async () => {
  await untilLeft(async () => {
    for await (const chunk of server.chat('Hi', kLong)) {
      assert.ok(chunk);
      break;
    }
  });
});

test('a signal ends a request that waits, and one that is not sent yet', async () => {
  await untilLeft(() => assert.rejects(server.complete(kPrompt, { ...kLong, stream: false, signal: AbortSignal.timeout(50) }), { name: 'TimeoutError' }));
  await assert.rejects(server.chat('Hi', { signal: AbortSignal.abort(new Error('never')) }), /never/);
});

test('two servers at once have ports of their own, and many requests are under way together', async () => {
  const other = await serve({ flags: { ...kFlags, parallel: 4 } });
  try {
    assert.notEqual(other.url, server.url);
    const asked = [server, other, new Client(other.url)].flatMap((one) => [1, 2, 3].map((seed) => one.complete(kPrompt, { seed, max_tokens: 16 })));
    const texts = (await Promise.all(asked)).map((reply) => reply.choices[0].text);
    assert.deepEqual(texts.slice(3, 6), texts.slice(0, 3));
    assert.deepEqual(texts.slice(6), texts.slice(0, 3));
  } finally {
    await other.close();
  }
  assert.deepEqual(await other.ended, { code: 0, signal: null });
  await assert.rejects(other.health(), (error) => error.code === 'connection');
  assert.equal((await server.health()).status, 'ok');
});

test('a key is asked for, and sent', async () => {
  const locked = await serve({ apiKey: 'secret', flags: kFlags });
  try {
    assert.equal((await locked.complete(kPrompt, { max_tokens: 3 })).usage.completion_tokens, 3);
    await assert.rejects(new Client(locked.url).complete(kPrompt), (error) => error.status === 401);
  } finally {
    await locked.close();
  }
});

// What a server of another kind replies is never a reply.
async function withReply(head, body, use) {
  const strange = http.createServer((request, reply) => reply.writeHead(200, head).end(body));
  await new Promise((resolve) => strange.listen(0, '127.0.0.1', resolve));
  try {
    await use(new Client(`http://127.0.0.1:${strange.address().port}/behind/a/proxy/`));
  } finally {
    strange.close();
  }
}

test('replies that are none, and streams that break off, are errors', async () => {
  const isLost = (error) => error instanceof ForetokenError && error.code === 'connection';
  await withReply({}, '<html>', async (client) => {
    await assert.rejects(client.chat('Hi'), isLost);
  });
  await withReply({}, '{"a": 1}', async (client) => {
    assert.deepEqual(await client.request('/any'), { a: 1 });
  });
  await withReply({}, 'data: {"a": 1}\n\n', async (client) => {
    const chunks = client.complete('Hi', { stream: true });
    assert.deepEqual((await chunks.next()).value, { a: 1 });
    await assert.rejects(chunks.next(), isLost);
  });
  await withReply({}, 'data: {"error": {"message": "no memory", "type": "server_error", "code": "out_of_memory"}}\n\ndata: [DONE]\n\n', async (client) => {
    await assert.rejects(client.complete('Hi', { stream: true }).next(), (error) => error.code === 'out_of_memory' && error.message === 'no memory');
  });
});

test('a server that cannot start tells why', async () => {
  await assert.rejects(serve({ model: '/no/such.gguf' }), (error) => error.code === 'server_ended' && error.message.includes('/no/such.gguf: no such file'));
  await assert.rejects(serve({ flags: { no_such_flag: 1 } }), /--no-such-flag/);
  await assert.rejects(serve({ modle: 'x' }), (error) => error.code === 'invalid_argument' && error.field === 'modle');
  await assert.rejects(serve({ signal: AbortSignal.abort(new Error('not now')) }), /not now/);
});

test('the lines of docs/node.md run', async () => {
  const page = readFileSync('node.md', 'utf8');
  const [, lines] = /```js\n(.*?)```/s.exec(page);
  const said = await run('node', ['--input-type=module', '-e', lines]);
  assert.equal(said.code, 0, said.errors);
  assert.ok(said.out.length > 20, said.out);
});
