// SPDX-License-Identifier: Apache-2.0
// Tools that really run, called through the clients of OpenAI, LangChain and the AI SDK. The bundled models cannot choose a tool, so each is
// asked for by name.
import assert from 'node:assert/strict';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { HumanMessage, ToolMessage } from '@langchain/core/messages';
import { ChatOpenAI } from '@langchain/openai';
import { generateText, jsonSchema, streamText, tool } from 'ai';
import OpenAI from 'openai';
import { model, url } from './conversation.mjs';

const parameters = { type: 'object', properties: { unit: { type: 'string', enum: ['C', 'F'] } }, required: ['unit'], additionalProperties: false };
const question = 'Is it warm?';
const forced = { type: 'function', function: { name: 'warmth' } };
const described = { name: 'warmth', description: 'how warm', parameters };
const ran = [];
const warmth = ({ unit }) => {
  assert.match(unit, /^[CF]$/);
  ran.push(unit);
  return `31 ${unit}`;
};
const finished = (name, n) => {
  assert.equal(ran.length, n, `${name}: the tool ran ${ran.length} times`);
  ran.length = 0;
  console.log(`${name}: the tool ran`);
};

const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0 });
const body = { model, temperature: 0, parallel_tool_calls: false, messages: [{ role: 'user', content: question }] };
{
  // The answer to the tool's result is free text again.
  const first = await client.chat.completions.create({ ...body, tools: [{ type: 'function', function: described }], tool_choice: forced });
  const { message, finish_reason } = first.choices[0];
  assert.equal(finish_reason, 'tool_calls');
  const call = message.tool_calls[0];
  const content = warmth(JSON.parse(call.function.arguments));
  const next = await client.chat.completions.create({
    ...body, max_completion_tokens: 8, messages: [...body.messages, message, { role: 'tool', tool_call_id: call.id, content }],
  });
  assert.ok(next.choices[0].message.content);
  finished('openai', 1);
}
{
  const runner = client.chat.completions.runTools({
    ...body, tools: [{ type: 'function', function: { ...described, function: warmth, parse: JSON.parse } }], tool_choice: forced,
  });
  await runner.done();
  finished('openai, runTools', 1);
}
{
  const stream = client.chat.completions.stream({ ...body, tools: [{ type: 'function', function: described }], tool_choice: forced });
  const { message } = (await stream.finalChatCompletion()).choices[0];
  warmth(JSON.parse(message.tool_calls[0].function.arguments));
  finished('openai, streamed', 1);
}

const chat = new ChatOpenAI({ model, temperature: 0, maxRetries: 0, apiKey: 'none', configuration: { baseURL: `${url}/v1` } });
{
  const bound = chat.bindTools([{ type: 'function', function: described }], { tool_choice: forced, parallel_tool_calls: false });
  const messages = [new HumanMessage(question)];
  const reply = await bound.invoke(messages);
  const call = reply.tool_calls[0];
  messages.push(reply, new ToolMessage({ tool_call_id: call.id, content: warmth(call.args) }));
  assert.ok((await chat.invoke(messages, { max_tokens: 8 })).content);
  finished('@langchain/openai, bindTools', 1);
  let gathered;
  for await (const chunk of await bound.stream([new HumanMessage(question)])) gathered = gathered ? gathered.concat(chunk) : chunk;
  warmth(gathered.tool_calls[0].args);
  finished('@langchain/openai, bindTools, streamed', 1);
}
for (const method of ['functionCalling', 'jsonSchema']) {
  warmth(await chat.withStructuredOutput(parameters, { name: 'warmth', method }).invoke(question));
  finished(`@langchain/openai, withStructuredOutput by ${method}`, 1);
}

const providers = {
  '@ai-sdk/openai': createOpenAI({ baseURL: `${url}/v1`, apiKey: 'none' }).chat(model),
  '@ai-sdk/openai-compatible': createOpenAICompatible({ name: 'foretoken', baseURL: `${url}/v1` })(model),
};
for (const [name, chosen] of Object.entries(providers)) {
  const settings = {
    model: chosen, temperature: 0, maxRetries: 0, prompt: question, toolChoice: { type: 'tool', toolName: 'warmth' },
    tools: { warmth: tool({ description: 'how warm', inputSchema: jsonSchema(parameters), execute: warmth }) },
  };
  const whole = await generateText(settings);
  assert.equal(whole.finishReason, 'tool-calls');
  assert.match(whole.toolResults[0].output, /^31 [CF]$/);
  finished(`ai with ${name}`, whole.toolCalls.length);
  const streamed = streamText({ ...settings, onError: ({ error }) => { throw error; } });
  await streamed.consumeStream();
  finished(`ai with ${name}, streamed`, (await streamed.toolCalls).length);
}
