// SPDX-License-Identifier: Apache-2.0
// LangChain.
import { AIMessage, HumanMessage } from '@langchain/core/messages';
import { ChatOpenAI } from '@langchain/openai';
import { converse, joined, kTokens, model, url } from './conversation.mjs';

const chat = new ChatOpenAI({ model, temperature: 0, maxTokens: kTokens, maxRetries: 0, apiKey: 'none', configuration: { baseURL: `${url}/v1` } });

const whole = [];
await converse('@langchain/openai', async (content) => {
  whole.push(new HumanMessage(content));
  const reply = await chat.invoke(whole);
  whole.push(reply);
  return reply.content;
});

const streamed = [];
await converse('@langchain/openai, streamed', async (content) => {
  streamed.push(new HumanMessage(content));
  const stream = await chat.stream(streamed);
  const text = await joined((async function* () {
    for await (const chunk of stream) yield chunk.content;
  })());
  streamed.push(new AIMessage(text));
  return text;
});
