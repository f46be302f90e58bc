// SPDX-License-Identifier: Apache-2.0
// Ollama's client.
import assert from 'node:assert/strict';
import { Ollama } from 'ollama';
import { converse, joined, kSystem, kTokens, model, url } from './conversation.mjs';

const client = new Ollama({ host: url });
const body = { model, options: { temperature: 0, num_predict: kTokens } };

const [listed] = (await client.list()).models;
assert.equal(listed.name, model);
assert.deepEqual((await client.ps()).models.map((loaded) => [loaded.name, loaded.digest]), [[model, listed.digest]]);
const shown = await client.show({ model });
assert.deepEqual(shown.details, listed.details);
assert.ok(shown.capabilities.includes('tools'));
assert.match((await client.version()).version, /^\d+\.\d+\.\d+/);
await assert.rejects(client.pull({ model: 'other', stream: false }), { status_code: 501, message: /one model/ });
await assert.rejects(client.chat({ model: 'other', messages: [{ role: 'user', content: 'Hi' }] }), { status_code: 404, message: /other/ });
console.log('ok ollama: what it says of the model');

const whole = [];
await converse('ollama', async (content) => {
  whole.push({ role: 'user', content });
  const { message } = await client.chat({ ...body, messages: whole });
  whole.push(message);
  return message.content;
});

const streamed = [{ role: 'system', content: kSystem }];
await converse('ollama, streamed', async (content) => {
  streamed.push({ role: 'user', content });
  const stream = await client.chat({ ...body, messages: streamed, stream: true });
  const text = await joined((async function* () {
    for await (const part of stream) yield part.message.content;
  })());
  streamed.push({ role: 'assistant', content: text });
  return text;
}, { system: kSystem });

const tale = { ...body, prompt: 'Once upon a time' };
const { response, eval_count: count } = await client.generate(tale);
assert.equal(count, kTokens);
assert.equal(await joined((async function* () {
  for await (const part of await client.generate({ ...tale, stream: true })) yield part.response;
})()), response);
assert.notEqual((await client.generate({ ...tale, raw: true })).response, response);
console.log('ok ollama: prompts');

// The model knows no tools, so the call is forced by a field that is this server's own.
const parameters = { type: 'object', properties: { unit: { type: 'string', enum: ['C', 'F'] } }, required: ['unit'] };
const tools = [{ type: 'function', function: { name: 'weather', description: 'The weather.', parameters } }];
const question = [{ role: 'user', content: 'Is Rome warm?' }];
const asked = { model, options: { temperature: 0 }, messages: question, tools, tool_choice: 'required', parallel_tool_calls: false };
const { message } = await client.chat(asked);
assert.equal(message.tool_calls.length, 1);
const [call] = message.tool_calls;
assert.equal(call.function.name, 'weather');
assert.ok(['C', 'F'].includes(call.function.arguments.unit));
const calls = [];
for await (const part of await client.chat({ ...asked, stream: true })) calls.push(...part.message.tool_calls ?? []);
assert.deepEqual(calls, message.tool_calls);
const next = await client.chat({ ...body, messages: [...question, message, { role: 'tool', tool_name: 'weather', content: '31' }], tools });
assert.equal(next.message.role, 'assistant');
console.log('ok ollama: a tool, its result');
