// SPDX-License-Identifier: Apache-2.0
// OpenAI's client.
import OpenAI from 'openai';
import { converse, joined, kSystem, kTokens, model, url } from './conversation.mjs';

const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0 });
const body = { model, temperature: 0, max_completion_tokens: kTokens };

const whole = [];
await converse('openai', async (content) => {
  whole.push({ role: 'user', content });
  const { message } = (await client.chat.completions.create({ ...body, messages: whole })).choices[0];
  whole.push(message);
  return message.content;
});

const streamed = [{ role: 'developer', content: kSystem }];
await converse('openai, streamed', async (content) => {
  streamed.push({ role: 'user', content });
  const stream = await client.chat.completions.create({ ...body, messages: streamed, stream: true });
  const text = await joined((async function* () {
    for await (const chunk of stream) yield chunk.choices[0]?.delta?.content;
  })());
  streamed.push({ role: 'assistant', content: text });
  return text;
}, { system: kSystem });

const gathered = [];
await converse('openai, gathered from a stream', async (content) => {
  gathered.push({ role: 'user', content });
  const { message } = (await client.chat.completions.stream({ ...body, messages: gathered }).finalChatCompletion()).choices[0];
  gathered.push(message);
  return message.content;
});
