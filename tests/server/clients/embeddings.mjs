// SPDX-License-Identifier: Apache-2.0
// Embeddings, with the clients of OpenAI, LangChain and Ollama: what they decode is what plain JSON says.
import assert from 'node:assert/strict';
import { OpenAIEmbeddings } from '@langchain/openai';
import { Ollama } from 'ollama';
import OpenAI from 'openai';
import { model, url } from './conversation.mjs';

const texts = ['Once upon a time there was a dog.', 'The sun was warm.'];

async function plain(input, fields = {}) {
  const body = JSON.stringify({ model, input, ...fields });
  const response = await fetch(`${url}/v1/embeddings`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body });
  assert.equal(response.status, 200);
  return (await response.json()).data.map((entry) => entry.embedding);
}

function same(found, expected) {
  assert.equal(found.length, expected.length);
  found.forEach((row, i) => assert.deepEqual([...row].map(Math.fround), expected[i].map(Math.fround)));
}

const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0 });
const expected = await plain(texts);
for (const format of [{}, { encoding_format: 'float' }, { encoding_format: 'base64' }]) {
  const reply = await client.embeddings.create({ model, input: texts, ...format });
  assert.equal(reply.model, model);
  assert.ok(reply.usage.prompt_tokens > texts.length && reply.usage.total_tokens === reply.usage.prompt_tokens);
  const rows = reply.data.map((entry) => entry.embedding);
  if (format.encoding_format !== 'base64') same(rows, expected);
  else same(rows.map((text) => new Float32Array(new Uint8Array(Buffer.from(text, 'base64')).buffer)), expected);
}
same((await client.embeddings.create({ model, input: texts[0], dimensions: 8 })).data.map((entry) => entry.embedding), await plain(texts[0], { dimensions: 8 }));
await assert.rejects(client.embeddings.create({ model, input: [] }), (error) => error.status === 400 && error.param === 'input');
console.log('ok openai: embeddings');

const chain = new OpenAIEmbeddings({ model, apiKey: 'none', configuration: { baseURL: `${url}/v1` }, maxRetries: 0 });
same(await chain.embedDocuments(texts), expected);
same([await chain.embedQuery(texts[1])], [expected[1]]);
console.log('ok langchain: embeddings');

const ollama = new Ollama({ host: url });
same((await ollama.embed({ model, input: texts })).embeddings, expected);
assert.equal((await ollama.embeddings({ model, prompt: texts[0] })).embedding.length, expected[0].length);
await assert.rejects(ollama.embed({ model: 'other', input: 'a' }), { status_code: 404 });
console.log('ok ollama: embeddings');
