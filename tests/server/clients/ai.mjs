// SPDX-License-Identifier: Apache-2.0
// The AI SDK, with its provider for OpenAI and that for servers like it.
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, streamText } from 'ai';
import { converse, joined, kTokens, model, url } from './conversation.mjs';

const providers = {
  '@ai-sdk/openai': createOpenAI({ baseURL: `${url}/v1`, apiKey: 'none' }).chat(model),
  '@ai-sdk/openai-compatible': createOpenAICompatible({ name: 'foretoken', baseURL: `${url}/v1` })(model),
};
for (const [name, chat] of Object.entries(providers)) {
  const settings = { model: chat, temperature: 0, maxOutputTokens: kTokens, maxRetries: 0 };
  const whole = [];
  await converse(`ai with ${name}`, async (content) => {
    whole.push({ role: 'user', content });
    const result = await generateText({ ...settings, messages: whole });
    whole.push(...result.response.messages);
    return result.text;
  });
  const streamed = [];
  await converse(`ai with ${name}, streamed`, async (content) => {
    streamed.push({ role: 'user', content });
    const result = streamText({ ...settings, messages: streamed, onError: ({ error }) => { throw error; } });
    const text = await joined(result.textStream);
    streamed.push(...(await result.response).messages);
    return text;
  });
}
