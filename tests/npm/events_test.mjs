// SPDX-License-Identifier: Apache-2.0
// Events of streams, cut anywhere.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import path from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';

const folder = path.dirname(createRequire(import.meta.url).resolve('foretoken/package.json'));
const { EventReader } = await import(pathToFileURL(path.join(folder, 'src/events.js')));

test('events are whole wherever the pieces of the body end', () => {
  const body = 'data: {"a":1}\n\n: a comment\n\ndata: two\r\ndata: lines\r\n\r\nevent: named\ndata:[DONE]\n\n';
  for (let cut = 0; cut <= body.length; ++cut) {
    const reader = new EventReader();
    assert.deepEqual([...reader.push(body.slice(0, cut)), ...reader.push(body.slice(cut))], ['{"a":1}', 'two\nlines', '[DONE]'], `cut at ${cut}`);
  }
  const reader = new EventReader();
  assert.deepEqual([...body].flatMap((character) => reader.push(character)), ['{"a":1}', 'two\nlines', '[DONE]']);
});

test('an event may be as long as is allowed, and any number may follow', () => {
  const reader = new EventReader(16);
  for (let count = 0; count < 10; ++count) assert.deepEqual(reader.push('data: 0123456789\n\n'), ['0123456789']);
  assert.throws(() => reader.push('data: 0123456789a'), /more than 16 characters/);
  const lines = new EventReader(32);
  assert.throws(() => lines.push('data: 01234567\n'.repeat(3)), /more than 32 characters/);
});
