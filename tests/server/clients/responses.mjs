// SPDX-License-Identifier: Apache-2.0
// Responses with OpenAI's client, its agents, the AI SDK and LangChain: conversations, and calls of functions whose results are sent back.
import assert from 'node:assert/strict';
import { createOpenAI } from '@ai-sdk/openai';
import { AIMessage, HumanMessage } from '@langchain/core/messages';
import { ChatOpenAI } from '@langchain/openai';
import { Agent, run, setDefaultOpenAIClient, setOpenAIAPI, setTracingDisabled, tool } from '@openai/agents';
import { generateText, streamText } from 'ai';
import OpenAI from 'openai';
import { converse, joined, kSystem, kTokens, model, url } from './conversation.mjs';

const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0 });
const body = { model, temperature: 0, max_output_tokens: kTokens };

const whole = [];
await converse('responses', async (content) => {
  whole.push({ role: 'user', content });
  const response = await client.responses.create({ ...body, input: whole });
  whole.push(...response.output);
  return response.output_text;
});

const streamed = [];
await converse('responses, streamed', async (content) => {
  streamed.push({ role: 'user', content });
  const stream = await client.responses.create({ ...body, instructions: kSystem, input: streamed, stream: true });
  let last = null;
  const text = await joined((async function* () {
    for await (const event of stream) {
      last = event;
      if (event.type === 'response.output_text.delta') yield event.delta;
    }
  })());
  assert.ok(['response.completed', 'response.incomplete'].includes(last.type), last.type);
  streamed.push(...last.response.output);
  return text;
}, { system: kSystem });

const gathered = [];
await converse('responses, gathered from a stream', async (content) => {
  gathered.push({ role: 'user', content });
  const response = await client.responses.stream({ ...body, input: gathered }).finalResponse();
  gathered.push(...response.output);
  return response.output_text;
});

const tools = [{
  type: 'function', name: 'weather', strict: true,
  parameters: { type: 'object', properties: { city: { type: 'string', maxLength: 9 } }, required: ['city'], additionalProperties: false },
}];
const input = [{ role: 'user', content: 'Is Rome warm?' }];
const forced = { model, tools, input, tool_choice: 'required', parallel_tool_calls: false, temperature: 0 };
const first = await client.responses.create(forced);
const gatheredFirst = await client.responses.stream(forced).finalResponse();
for (const response of [first, gatheredFirst]) {
  assert.equal(response.status, 'completed');
  assert.equal(response.output.length, 1);
  const [call] = response.output;
  assert.equal(call.type, 'function_call');
  assert.equal(call.name, 'weather');
  assert.equal(typeof JSON.parse(call.arguments).city, 'string');
  assert.equal(call.arguments, first.output[0].arguments);
  const second = [...input, call, { type: 'function_call_output', call_id: call.call_id, output: '31 degrees' }];
  const answer = await client.responses.create({ ...body, tools, input: second });
  assert.ok(answer.output_text.length > 0);
  assert.equal(answer.usage.total_tokens, answer.usage.input_tokens + answer.usage.output_tokens);
}
console.log('ok responses: a function is called, and its result is read');

const continued = [];
await converse('responses, each continuing the one before', async (content) => {
  const stream = continued.length === 1;
  const sent = { ...body, input: content, previous_response_id: continued.at(-1)?.id };
  const response = stream ? await client.responses.stream(sent).finalResponse() : await client.responses.create(sent);
  continued.push(response);
  return response.output_text;
});

const [earliest, middle, latest] = continued;
const { output_text: ignored, ...sentWhole } = latest;
const { output_text: alsoIgnored, ...readAgain } = await client.responses.retrieve(latest.id);
assert.deepEqual(readAgain, sentWhole);
assert.equal(latest.previous_response_id, middle.id);
const listed = [];
for await (const item of client.responses.inputItems.list(latest.id, { limit: 2, order: 'asc' })) listed.push(item);
assert.deepEqual(listed.map((item) => item.role), ['user', 'assistant', 'user', 'assistant', 'user']);
assert.deepEqual([listed[1], listed[3]].map((item) => [item.id, item.content[0].text]),
  [earliest, middle].map((response) => [response.output[0].id, response.output_text]));
await assert.rejects(client.responses.cancel(latest.id), { status: 400 });
await client.responses.delete(earliest.id);
await assert.rejects(client.responses.retrieve(earliest.id), { status: 404, code: 'response_not_found' });
await assert.rejects(client.responses.create({ ...body, input: 'And then?', previous_response_id: latest.id }),
  { status: 400, code: 'previous_response_not_found', param: 'previous_response_id' });
console.log('ok responses: they are read again, listed and deleted');

// The AI SDK refers to items of earlier turns by their ids, unless nothing is stored.
let sentByAi = null;
const keepSent = (address, request) => {
  sentByAi = JSON.parse(request.body);
  return fetch(address, request);
};
const settings = {
  model: createOpenAI({ baseURL: `${url}/v1`, apiKey: 'none', fetch: keepSent }).responses(model),
  temperature: 0, maxOutputTokens: kTokens, maxRetries: 0,
};
for (const store of [true, false]) {
  const generated = [];
  await converse(`responses with ai, ${store ? '' : 'not '}stored`, async (content) => {
    generated.push({ role: 'user', content });
    const result = await generateText({ ...settings, messages: generated, providerOptions: { openai: { store } } });
    assert.equal(sentByAi.input.some((item) => item.type === 'item_reference'), store && generated.length > 1);
    generated.push(...result.response.messages);
    return result.text;
  });
}
const generatedInParts = [];
await converse('responses with ai, streamed', async (content) => {
  generatedInParts.push({ role: 'user', content });
  const result = streamText({ ...settings, messages: generatedInParts, onError: ({ error }) => { throw error; } });
  const text = await joined(result.textStream);
  generatedInParts.push(...(await result.response).messages);
  return text;
});

const chat = new ChatOpenAI({
  model, temperature: 0, maxTokens: kTokens, maxRetries: 0, apiKey: 'none', useResponsesApi: true, configuration: { baseURL: `${url}/v1` },
});
const invoked = [];
await converse('responses with @langchain/openai', async (content) => {
  invoked.push(new HumanMessage(content));
  const reply = await chat.invoke(invoked);
  invoked.push(reply);
  return reply.text;
});
const invokedInParts = [];
await converse('responses with @langchain/openai, streamed', async (content) => {
  invokedInParts.push(new HumanMessage(content));
  const stream = await chat.stream(invokedInParts);
  const text = await joined((async function* () {
    for await (const chunk of stream) yield chunk.text;
  })());
  invokedInParts.push(new AIMessage(text));
  return text;
});

// Agents call a function and read its result by themselves. A response that is incomplete is an error to them, so a text that stops ends it.
setDefaultOpenAIClient(client);
setOpenAIAPI('responses');
setTracingDisabled(true);
for (const stream of [false, true]) {
  const weather = tool({ ...tools[0], description: 'Of a city.', execute: async () => '31 degrees' });
  const agent = new Agent({
    name: 'teller', instructions: kSystem, model, tools: [weather],
    modelSettings: { temperature: 0, toolChoice: 'required', parallelToolCalls: false, providerData: { stop: ['.', ',', '?'] } },
  });
  const result = await run(agent, 'Is Rome warm?', { stream });
  if (stream) await result.completed;
  assert.deepEqual(result.newItems.map((item) => item.type), ['tool_call_item', 'tool_call_output_item', 'message_output_item']);
}
console.log('ok responses with @openai/agents: a function is called, and its result is read');
