// SPDX-License-Identifier: Apache-2.0
// The package foretoken: what it exports. docs/node.md is the guide.
export { Client } from './client.js';
export { ForetokenError } from './errors.js';
export { Server, serve } from './server.js';
