// SPDX-License-Identifier: Apache-2.0
// OpenAI's agents.
import { Agent, run, setDefaultOpenAIClient, setOpenAIAPI, setTracingDisabled } from '@openai/agents';
import OpenAI from 'openai';
import { converse, joined, kSystem, kTokens, model, url } from './conversation.mjs';

setDefaultOpenAIClient(new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0 }));
setOpenAIAPI('chat_completions');
setTracingDisabled(true);
const agent = new Agent({ name: 'teller', instructions: kSystem, model, modelSettings: { temperature: 0, maxTokens: kTokens } });

let thread = [];
await converse('@openai/agents', async (content) => {
  const result = await run(agent, [...thread, { role: 'user', content }]);
  thread = result.history;
  return result.finalOutput;
}, { system: kSystem });

thread = [];
await converse('@openai/agents, streamed', async (content) => {
  const result = await run(agent, [...thread, { role: 'user', content }], { stream: true });
  const text = await joined(result.toTextStream());
  await result.completed;
  thread = result.history;
  return text;
}, { system: kSystem });
