// SPDX-License-Identifier: Apache-2.0
// ForetokenError is what this package throws, but for a signal's own reason when a caller aborts.
//
// code: a word that programs may compare ("unsupported_platform", "not_found", "invalid_argument", "server_ended", "connection",
// or the server's own, such as "context_length_exceeded"). field: what is wrong, if one thing is. status: that of the server's reply.
export class ForetokenError extends Error {
  constructor(code, message, { field, status, cause } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'ForetokenError';
    this.code = code;
    this.field = field;
    this.status = status;
  }
}
