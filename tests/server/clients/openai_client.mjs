// SPDX-License-Identifier: Apache-2.0
// OpenAI's own client against a running `foretoken serve`: what it sends is understood, what it gets
// back it can read.
//
// usage: node openai_client.mjs URL, of a server with the key "key"
import assert from 'node:assert/strict';
import { OpenAI } from 'openai';

const url = process.argv[2];
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'key', maxRetries: 0 });
const [{ id: model }] = (await client.models.list()).data;

const tale = { model, prompt: 'Once upon a time', max_tokens: 24, temperature: 0.8, seed: 5 };
const talk = { model, messages: [{ role: 'user', content: 'Tell me a tale.' }], max_completion_tokens: 24, temperature: 0.8, seed: 5 };

const tests = {
  async completions() {
    const reply = await client.completions.create(tale);
    assert.equal(reply.object, 'text_completion');
    assert.equal(reply.usage.completion_tokens, 24);
    assert.equal(reply.usage.total_tokens, reply.usage.prompt_tokens + 24);
    assert.equal(reply.choices[0].finish_reason, 'length');
    const again = await client.completions.create(tale);
    assert.equal(again.choices[0].text, reply.choices[0].text);
    const other = await client.completions.create({ ...tale, seed: 6 });
    assert.notEqual(other.choices[0].text, reply.choices[0].text);
  },

  async chat() {
    const reply = await client.chat.completions.create(talk);
    assert.equal(reply.choices[0].message.role, 'assistant');
    assert.ok(reply.choices[0].message.content.length > 0);
    assert.equal(reply.usage.completion_tokens_details.accepted_prediction_tokens, 0);
  },

  async streams() {
    const whole = await client.completions.create(tale);
    let text = '';
    let usage = null;
    for await (const chunk of await client.completions.create({ ...tale, stream: true, stream_options: { include_usage: true } })) {
      text += chunk.choices[0]?.text ?? '';
      usage = chunk.usage ?? usage;
    }
    assert.equal(text, whole.choices[0].text);
    assert.equal(usage.completion_tokens, whole.usage.completion_tokens);
  },

  async chatStreams() {
    const whole = await client.chat.completions.create(talk);
    const runner = client.chat.completions.stream({ ...talk, stream_options: { include_usage: true } });
    const final = await runner.finalChatCompletion();
    assert.equal(final.choices[0].message.content, whole.choices[0].message.content);
    assert.equal(final.choices[0].finish_reason, whole.choices[0].finish_reason);
    assert.equal(final.usage.completion_tokens, whole.usage.completion_tokens);
  },

  async stops() {
    const plain = await client.completions.create({ ...tale, temperature: 0 });
    const stop = plain.choices[0].text.slice(10, 14);
    const reply = await client.completions.create({ ...tale, temperature: 0, stop });
    assert.equal(reply.choices[0].finish_reason, 'stop');
    assert.equal(reply.choices[0].text, plain.choices[0].text.slice(0, plain.choices[0].text.indexOf(stop)));
  },

  async choices() {
    const reply = await client.completions.create({ ...tale, n: 3 });
    assert.deepEqual(reply.choices.map((choice) => choice.index), [0, 1, 2]);
    assert.equal(new Set(reply.choices.map((choice) => choice.text)).size, 3);
  },

  async logprobs() {
    const reply = await client.chat.completions.create({ ...talk, logprobs: true, top_logprobs: 2 });
    const tokens = reply.choices[0].logprobs.content;
    assert.equal(tokens.length, reply.usage.completion_tokens);
    for (const token of tokens) {
      assert.equal(token.top_logprobs.length, 2);
      assert.ok(token.logprob <= 0 && token.top_logprobs[0].logprob >= token.top_logprobs[1].logprob);
    }
    const older = await client.completions.create({ ...tale, logprobs: 2 });
    assert.equal(older.choices[0].logprobs.tokens.join(''), older.choices[0].text);
  },

  async biases() {
    const plain = await client.completions.create({ ...tale, temperature: 0, max_tokens: 1, logprobs: 0 });
    const response = await fetch(`${url}/tokenize`, {
      method: 'POST',
      headers: { Authorization: 'Bearer key', 'Content-Type': 'application/json' },
      body: JSON.stringify({ content: `time${plain.choices[0].text}` }),
    });
    const banned = (await response.json()).tokens.at(-1);
    const reply = await client.completions.create({ ...tale, temperature: 0, max_tokens: 1, logit_bias: { [banned]: -100 } });
    assert.notEqual(reply.choices[0].text, plain.choices[0].text);
  },

  async predictions() {
    const plain = await client.chat.completions.create({ ...talk, temperature: 0 });
    const prediction = { type: 'content', content: plain.choices[0].message.content };
    const reply = await client.chat.completions.create({ ...talk, temperature: 0, prediction });
    assert.equal(reply.choices[0].message.content, plain.choices[0].message.content);
    assert.ok(Number.isInteger(reply.usage.completion_tokens_details.rejected_prediction_tokens));
  },

  async structuredOutputs() {
    const schema = {
      type: 'object',
      properties: { who: { type: 'string', minLength: 1, maxLength: 12 }, legs: { type: 'integer', minimum: 0, maximum: 8 }, kind: { enum: ['cat', 'bird'] } },
      required: ['who', 'legs', 'kind'],
      additionalProperties: false,
    };
    const body = { ...talk, max_completion_tokens: 120, response_format: { type: 'json_schema', json_schema: { name: 'animal', strict: true, schema } } };
    const holds = (value) => {
      assert.deepEqual(Object.keys(value), ['who', 'legs', 'kind']);
      assert.ok(value.who.length >= 1 && value.who.length <= 12 && value.legs >= 0 && value.legs <= 8 && ['cat', 'bird'].includes(value.kind));
    };
    const reply = await client.chat.completions.create(body);
    assert.equal(reply.choices[0].finish_reason, 'stop');
    holds(JSON.parse(reply.choices[0].message.content));
    const parsed = await client.chat.completions.parse(body);
    assert.deepEqual(parsed.choices[0].message.parsed, JSON.parse(reply.choices[0].message.content));
    const final = await client.chat.completions.stream(body).finalChatCompletion();
    assert.equal(final.choices[0].message.content, reply.choices[0].message.content);
    const plain = await client.chat.completions.create({ ...body, speculative: { enabled: false } });
    assert.equal(plain.choices[0].message.content, reply.choices[0].message.content);
    const wrong = { type: 'json_schema', json_schema: { name: 'a', schema: { not: {} } } };
    await assert.rejects(client.chat.completions.create({ ...body, response_format: wrong }), (error) => error.param === 'response_format');
  },

  async errors() {
    const fails = (promise, kind, param) =>
      assert.rejects(promise, (error) => {
        assert.ok(error instanceof kind, `${error.constructor.name}: ${error.message}`);
        assert.equal(error.param, param);
        return true;
      });
    await fails(client.completions.create({ ...tale, temperature: 9 }), OpenAI.BadRequestError, 'temperature');
    await fails(client.completions.create({ ...tale, model: 'none' }), OpenAI.NotFoundError, 'model');
    await fails(client.chat.completions.create({ ...talk, messages: [] }), OpenAI.BadRequestError, 'messages');
    await fails(client.chat.completions.create({ ...talk, stream: true, n: 0 }), OpenAI.BadRequestError, 'n');
    const stranger = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'wrong', maxRetries: 0 });
    await assert.rejects(stranger.completions.create(tale), OpenAI.AuthenticationError);
  },

  async aborts() {
    const stream = await client.completions.create({ ...tale, max_tokens: 400, stream: true });
    for await (const chunk of stream) {
      assert.ok(chunk.id);
      break;  // ends the connection
    }
    assert.equal((await client.models.list()).data.length, 1);
  },
};

for (const [name, test] of Object.entries(tests)) {
  await test();
  console.log(`ok ${name}`);
}
