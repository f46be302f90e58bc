// SPDX-License-Identifier: Apache-2.0
// Encodes many texts with the npm package @huggingface/tokenizers, for tests/compare/tokenizers.py:
// node encode_texts.mjs PACKAGE_FILE FOLDER, where FOLDER holds tokenizer.json and, if there is one,
// tokenizer_config.json. Standard input is a JSON list of texts. Each text gives one line of ids.
import {existsSync, readFileSync} from 'node:fs';
import {pathToFileURL} from 'node:url';

const [packageFile, folder] = process.argv.slice(2);
const {Tokenizer} = await import(pathToFileURL(packageFile));
const read = (name) => JSON.parse(readFileSync(`${folder}/${name}`, 'utf8'));
const config = existsSync(`${folder}/tokenizer_config.json`) ? read('tokenizer_config.json') : {};
const tokenizer = new Tokenizer(read('tokenizer.json'), config);
for (const text of JSON.parse(readFileSync(0, 'utf8'))) {
  console.log(tokenizer.encode(text, {add_special_tokens: false}).ids.join(' '));
}
