// SPDX-License-Identifier: Apache-2.0
// Hugging Face's client, of a server of one's own.
import { InferenceClient } from '@huggingface/inference';
import { converse, joined, kTokens, model, url } from './conversation.mjs';

const client = new InferenceClient('none', { endpointUrl: `${url}/v1` });
const body = { model, temperature: 0, max_tokens: kTokens };

const whole = [];
await converse('@huggingface/inference', async (content) => {
  whole.push({ role: 'user', content });
  const { message } = (await client.chatCompletion({ ...body, messages: whole })).choices[0];
  whole.push(message);
  return message.content;
});

const streamed = [];
await converse('@huggingface/inference, streamed', async (content) => {
  streamed.push({ role: 'user', content });
  const text = await joined((async function* () {
    for await (const chunk of client.chatCompletionStream({ ...body, messages: streamed })) yield chunk.choices[0]?.delta?.content;
  })());
  streamed.push({ role: 'assistant', content: text });
  return text;
});
