// SPDX-License-Identifier: Apache-2.0
// What the types of the package let pass, and what they refuse.
import { Client, ForetokenError, Server, serve, type Chat, type ChatMessage, type Completion, type Verified } from 'foretoken';

const server: Server = await serve({ model: 'target.gguf', draft: ['draft.gguf'], flags: { 'spec-type': 'ngram', parallel: 2, quiet: true }, onLog: (line) => line.length });
const client: Client = server;
const messages: ChatMessage[] = [{ role: 'system', content: 'Be short.' }, { role: 'user', content: [{ type: 'text', text: 'Hi' }] }];

const chat: Chat = await client.chat(messages, { temperature: 0, max_tokens: 20, stop: ['.'], signal: AbortSignal.timeout(1000) });
const content: string | null | undefined = chat.choices[0]?.message.content;
for await (const chunk of client.chat('Hi', { stream: true, speculative: { trace: true, strategy: 'greedy' } })) {
  const piece: string = chunk.choices[0]?.delta.content ?? '';
  const origins = chunk.foretoken?.tokens.map((token) => token.origin === 'accepted');
}
const tool = { type: 'function', function: { name: 'weather', parameters: { type: 'object' } } } as const;
const called = (await client.chat(messages, { tools: [tool], tool_choice: 'required' })).choices[0]?.message.tool_calls?.[0]?.function.name;

const completion: Completion = await client.complete(['one', 'two'], { logprobs: 2, n: 1, logit_bias: { 5: -1, 6: false } });
const text: string | undefined = completion.choices[0]?.text;
for await (const chunk of client.complete([1, 2, 3], { stream: true })) console.log(chunk.choices[0]?.text);
const schema = await client.complete('A name: ', { response_format: { type: 'json_schema', json_schema: { schema: { type: 'object' } } } });

const verified: Verified = await client.verify({ prompt: 'Once', seed: 7, drafts: [1, 2], generated: [] });
const next: number | undefined = verified.next?.id;
await client.verify({ messages, drafts: 'a text' });
const tokens: number[] = await client.tokenize('Hi', { add_special: true });
const again: string = await client.detokenize(tokens);
const vectors: unknown = await client.request('/v1/embeddings', { input: 'Hi' });
try {
  await new Client('http://127.0.0.1:8080', { apiKey: 'key' }).health();
} catch (error) {
  if (error instanceof ForetokenError && error.code === 'connection') console.log(error.field, error.status);
}
await server.close();
const { code } = await server.ended;

// @ts-expect-error: there is no such field
await client.chat('Hi', { max_token: 3 });
// @ts-expect-error: a number is asked for
await client.complete('Hi', { temperature: 'hot' });
// @ts-expect-error: drafts are missing
await client.verify({ prompt: 'Hi' });
// @ts-expect-error: there is no such strategy
await client.chat('Hi', { speculative: { strategy: 'guess' } });
// @ts-expect-error: a whole reply is no stream
for await (const chunk of client.chat('Hi')) console.log(chunk);
// @ts-expect-error: a stream is no whole reply
const wrong: Chat = await client.chat('Hi', { stream: true });
// @ts-expect-error: there is no such role
await client.chat([{ role: 'narrator', content: 'Hi' }]);
// @ts-expect-error: there is no such option
await serve({ modle: 'target.gguf' });
// @ts-expect-error: servers are started by serve
const made = new Server('http://127.0.0.1');
