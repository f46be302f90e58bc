// SPDX-License-Identifier: Apache-2.0
// An agent whose two tools are those of a server of the Model Context Protocol, over several turns, by both of OpenAI's APIs. The bundled models cannot choose
// a tool, so each turn names one; what the tool says is in the next request, and the answer to it is free text.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Agent, MCPServerStdio, run, setDefaultOpenAIClient, setOpenAIAPI, setTracingDisabled } from '@openai/agents';
import OpenAI from 'openai';
import { model, url } from './conversation.mjs';

const folder = mkdtempSync(path.join(os.tmpdir(), 'mcp-'));
const calls = path.join(folder, 'calls');
setDefaultOpenAIClient(new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0 }));
setTracingDisabled(true);

const weather = new MCPServerStdio({ command: process.execPath, args: [path.join(import.meta.dirname, 'mcp_server.mjs')], env: { ...process.env, CALLS: calls } });
await weather.connect();

async function turns(api, stream) {
  setOpenAIAPI(api);
  let thread = [];
  const outputs = [];
  for (const [toolChoice, question] of [['warmth', 'Is it warm?'], ['wind', 'Is it windy?'], ['warmth', 'And now?']]) {
    const agent = new Agent({
      name: 'sailor', instructions: 'Sail.', model, mcpServers: [weather], mcpConfig: { convertSchemasToStrict: true },
      modelSettings: { temperature: 0, maxTokens: 120, toolChoice, parallelToolCalls: false },
      // An answer that is cut is an error to it in this API, and the model's stories do not end.
      toolUseBehavior: api === 'responses' ? 'stop_on_first_tool' : 'run_llm_again',
    });
    const result = await run(agent, [...thread, { role: 'user', content: question }], { stream });
    if (stream) await result.completed;
    assert.ok(result.finalOutput.length > 0);
    thread = result.history;
    outputs.push(...thread.filter((item) => item.type === 'function_call_result').slice(outputs.length));
  }
  const said = readFileSync(calls, 'utf8').trim().split('\n');
  rmSync(calls);
  assert.equal(said.length, 3, said);
  assert.match(said.join(), /^warmth: 31 [CF],wind: north, (low|high),warmth: 31 [CF]$/);
  assert.equal(outputs.length, 3);
  for (const [i, output] of outputs.entries()) assert.ok(JSON.stringify(output).includes(said[i].split(': ')[1]), JSON.stringify(output));
  console.log(`ok @modelcontextprotocol/sdk behind @openai/agents, ${api}${stream ? ', streamed' : ''}: ${said.length} turns`);
}

try {
  for (const api of ['chat_completions', 'responses'])
    for (const stream of [false, true]) await turns(api, stream);
} finally {
  await weather.close();
  rmSync(folder, { recursive: true });
}
