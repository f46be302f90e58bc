// SPDX-License-Identifier: Apache-2.0
// A server of the Model Context Protocol with two tools, on standard input and output. Each call goes to the file named by CALLS, a line for each.
import { appendFileSync } from 'node:fs';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';

const schema = (name, words) => ({ type: 'object', properties: { [name]: { type: 'string', enum: words } }, required: [name], additionalProperties: false });
const tools = {
  warmth: { description: 'How warm it is.', inputSchema: schema('unit', ['C', 'F']), run: ({ unit }) => `31 ${unit}` },
  wind: { description: 'Where the wind comes from.', inputSchema: schema('height', ['low', 'high']), run: ({ height }) => `north, ${height}` },
};

const server = new Server({ name: 'weather', version: '1.0.0' }, { capabilities: { tools: {} } });
server.setRequestHandler(ListToolsRequestSchema, () => ({
  tools: Object.entries(tools).map(([name, { description, inputSchema }]) => ({ name, description, inputSchema })),
}));
server.setRequestHandler(CallToolRequestSchema, ({ params }) => {
  const text = tools[params.name].run(params.arguments);
  appendFileSync(process.env.CALLS, `${params.name}: ${text}\n`);
  return { content: [{ type: 'text', text }] };
});
await server.connect(new StdioServerTransport());
