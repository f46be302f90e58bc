// SPDX-License-Identifier: Apache-2.0
// A conversation of several turns, held by a client as its documents show it, and checked turn by turn against what the server
// answers to the same messages in plain JSON.
import assert from 'node:assert/strict';

export const url = process.argv[2];
export const model = (await (await fetch(`${url}/v1/models`)).json()).data[0].id;
export const kTokens = 32;
export const kSystem = 'A tale of the sea.';
const kQuestions = ['Tell me a story about a small boat.', 'What did the boat find?', 'And then?'];

async function expected(messages) {
  const body = JSON.stringify({ model, messages, temperature: 0, max_tokens: kTokens });
  const response = await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body });
  const reply = await response.json();
  assert.equal(response.status, 200, JSON.stringify(reply));
  return { text: reply.choices[0].message.content, promptTokens: reply.usage.prompt_tokens };
}

// ask: has the client send a question after the turns before, which it keeps itself, and gives the answer's text.
export async function converse(name, ask, { system = null } = {}) {
  const messages = system ? [{ role: 'system', content: system }] : [];
  let before = 0;
  for (const question of kQuestions) {
    messages.push({ role: 'user', content: question });
    const { text, promptTokens } = await expected(messages);
    assert.ok(text.trim().length > 0 && promptTokens > before + 4, 'the conversation does not grow: nothing was tested');
    before = promptTokens;
    assert.equal(await ask(question), text, `${name}: ${question}`);
    messages.push({ role: 'assistant', content: text });
  }
  console.log(`ok ${name}: ${kQuestions.length} turns`);
}

export async function joined(texts) {
  const parts = [];
  for await (const text of texts) parts.push(text ?? '');
  assert.ok(parts.filter(Boolean).length > 1, 'it came in one part: nothing was streamed');
  return parts.join('');
}
