// SPDX-License-Identifier: Apache-2.0
// Words for the state of the model's copy that drafts; '' where there is nothing to say. copy: as /v1/speculation has it.
export function copyText(copy) {
  if (copy?.state === 'waiting') return 'A copy of the model that will draft for it is about to be made';
  if (copy?.state === 'refused') return `No copy of the model drafts: ${copy.error}`;
  if (copy?.state !== 'making') return '';
  const percent = Math.floor((100 * copy.made_bytes) / copy.bytes);
  return `A copy of the model that will draft for it is being made: ${percent} % of ${Math.ceil(copy.bytes / 2 ** 20)} MiB`;
}
