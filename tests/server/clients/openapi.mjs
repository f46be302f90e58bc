// SPDX-License-Identifier: Apache-2.0
// The document of all paths against the JSON Schema that OpenAPI 3.1 itself has: node openapi.mjs http://127.0.0.1:PORT
import assert from 'node:assert/strict';
import { Validator } from '@seriousme/openapi-schema-validator';

const document = await (await fetch(`${process.argv[2]}/openapi.json`)).json();
const validator = new Validator();
const result = await validator.validate(structuredClone(document));
assert.ok(result.valid, JSON.stringify(result.errors, null, 1));
assert.equal(validator.version, '3.1');

// The control: a document with a fault is refused.
const faulty = structuredClone(document);
delete faulty.paths['/v1/completions'].post.requestBody.content;
assert.equal((await new Validator().validate(faulty)).valid, false);
console.log('openapi: the document is valid');
