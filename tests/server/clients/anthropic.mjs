// SPDX-License-Identifier: Apache-2.0
// Anthropic's client: conversations, a tool that really runs, and its counts of tokens.
import assert from 'node:assert/strict';
import Anthropic from '@anthropic-ai/sdk';
import { converse, joined, kTokens, model, url } from './conversation.mjs';

const client = new Anthropic({ baseURL: url, apiKey: 'none', maxRetries: 0 });
const body = { model, temperature: 0, max_tokens: kTokens };

const whole = [];
await converse('@anthropic-ai/sdk', async (content) => {
  whole.push({ role: 'user', content });
  const message = await client.messages.create({ ...body, messages: whole });
  whole.push({ role: 'assistant', content: message.content });
  return message.content.map((block) => block.text).join('');
});

const streamed = [];
await converse('@anthropic-ai/sdk, streamed', async (content) => {
  streamed.push({ role: 'user', content });
  const events = await client.messages.create({ ...body, messages: streamed, stream: true });
  const text = await joined((async function* () {
    for await (const event of events) yield event.delta?.text;
  })());
  streamed.push({ role: 'assistant', content: text });
  return text;
});

const gathered = [];
await converse('@anthropic-ai/sdk, gathered from a stream', async (content) => {
  gathered.push({ role: 'user', content });
  const message = await client.messages.stream({ ...body, messages: gathered }).finalMessage();
  gathered.push({ role: 'assistant', content: message.content });
  return message.content.map((block) => block.text).join('');
});

const tools = [{
  name: 'warmth', description: 'how warm',
  input_schema: { type: 'object', properties: { unit: { type: 'string', enum: ['C', 'F'] } }, required: ['unit'], additionalProperties: false },
}];
const asked = { ...body, max_tokens: 100, tools, tool_choice: { type: 'tool', name: 'warmth' }, messages: [{ role: 'user', content: 'Is it warm?' }] };
for (const [name, ask] of [['whole', () => client.messages.create(asked)], ['streamed', () => client.messages.stream(asked).finalMessage()]]) {
  const message = await ask();
  assert.equal(message.stop_reason, 'tool_use');
  const use = message.content.find((block) => block.type === 'tool_use');
  assert.match(use.input.unit, /^[CF]$/);
  const result = { type: 'tool_result', tool_use_id: use.id, content: `31 ${use.input.unit}` };
  const turns = [...asked.messages, { role: 'assistant', content: message.content }, { role: 'user', content: [result] }];
  const next = await client.messages.create({ ...body, tools, messages: turns });
  assert.equal(next.content[0].type, 'text');
  const { input_tokens } = await client.messages.countTokens({ model, tools, messages: turns });
  assert.equal(input_tokens, next.usage.input_tokens + next.usage.cache_read_input_tokens);
  console.log(`ok @anthropic-ai/sdk, ${name}: a tool is used, and its result is read`);
}
await assert.rejects(client.messages.create({ ...body, messages: [] }), Anthropic.BadRequestError);
