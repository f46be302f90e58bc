// SPDX-License-Identifier: Apache-2.0
// The page at "/" in headless Chromium, against the real server. Skips where there is no Chromium or no playwright-core.
//
// usage: node page_test.mjs FORETOKEN MODEL [DRAFT_MODEL]
//   PLAYWRIGHT_CORE  folder of the package playwright-core; else Node looks for it
//   CHROMIUM         the browser's path; else chromium, chromium-browser or google-chrome on PATH
//   PAGE_IMAGES      folder for screenshots; else none are kept
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';

const [program, model, draft] = process.argv.slice(2);
const source = path.join(path.dirname(fileURLToPath(import.meta.url)), '../../apps/server/page');
const kPrompt = 'Once upon a time, there was a little girl named Lily. She loved to';

function findPlaywright() {
  try {
    const require = createRequire(import.meta.url);
    return require(process.env.PLAYWRIGHT_CORE ?? 'playwright-core').chromium;
  } catch {
    return null;
  }
}

function findBrowser() {
  if (process.env.CHROMIUM) return process.env.CHROMIUM;
  const folders = process.env.PATH.split(':');
  const places = ['chromium', 'chromium-browser', 'google-chrome'].flatMap((name) => folders.map((folder) => `${folder}/${name}`));
  return places.find(existsSync) ?? null;
}

const playwright = findPlaywright();
const executablePath = findBrowser();
const skip = !playwright ? 'playwright-core is not here' : !executablePath ? 'no Chromium is here' : !program ? 'no server was given' : false;

// A module of the page that imports nothing, as it stands in the tree.
function load(name) {
  return import(`data:text/javascript,${encodeURIComponent(readFileSync(path.join(source, name), 'utf8'))}`);
}

test('events are whole wherever the pieces of the body end', async () => {
  const { EventReader } = await load('sse.js');
  const body = 'data: {"a":1}\n\n: a comment\n\ndata: two\r\ndata: lines\r\n\r\ndata:[DONE]\n\n';
  for (let cut = 0; cut <= body.length; ++cut) {
    const reader = new EventReader();
    const events = [...reader.push(body.slice(0, cut)), ...reader.push(body.slice(cut))];
    assert.deepEqual(events, ['{"a":1}', 'two\nlines', '[DONE]'], `cut at ${cut}`);
  }
});

test('the first difference is found, also where one list ends early', async () => {
  const { firstDifference } = await load('rounds.js');
  const tokens = (...ids) => ids.map((id) => ({ id }));
  assert.equal(firstDifference(tokens(1, 2, 3), tokens(1, 2, 3)), -1);
  assert.equal(firstDifference(tokens(1, 2, 3), tokens(1, 9, 3)), 1);
  assert.equal(firstDifference(tokens(1, 2), tokens(1, 2, 3)), 2);
  assert.equal(firstDifference([], []), -1);
});

test('a copy that is not there is told in words', async () => {
  const { copyText } = await load('copy.js');
  assert.equal(copyText(undefined), '');
  assert.equal(copyText({ state: 'ready', made_bytes: 5, bytes: 5 }), '');
  assert.match(copyText({ state: 'waiting', made_bytes: 0, bytes: 5 }), /about to be made/);
  const making = { state: 'making', made_bytes: 2.99 * 2 ** 20, bytes: 9.5 * 2 ** 20 };
  assert.match(copyText(making), /: 31 % of 10 MiB$/);
  assert.match(copyText({ state: 'refused', error: 'memory: 5 MiB' }), /drafts: memory: 5 MiB$/);
});

test('tokens show the text of a chunk, each character once', async () => {
  const { shownTexts } = await load('rounds.js');
  const shown = (texts, content) => shownTexts(texts.map((text) => ({ text })), content);
  assert.deepEqual(shown([' a', ' cat'], ' a cat'), [' a', ' cat']);
  assert.deepEqual(shown(['\ufffd', '\ufffd', '!'], 'é!'), ['', 'é', '!']);
  assert.deepEqual(shown(['D', '!'], ' END!'), [' END', '!']);
  assert.deepEqual(shown([' Once', ' upon'], 'Once upon'), ['Once', ' upon']);
  assert.deepEqual(shown(['.', '</s>'], '.'), ['.', '']);
  assert.deepEqual(shown([], ''), []);
});

test('rounds are counted by position, and plain rounds are rounds', async () => {
  const { Rounds } = await load('rounds.js');
  const rounds = new Rounds();
  const round = (drafted, origins) => rounds.add({ drafted, tokens: origins.map((origin) => ({ origin })) });
  round(3, ['accepted', 'accepted', 'recovered']);
  round(1, ['accepted', 'bonus']);
  round(0, ['plain']);
  assert.deepEqual(rounds.drafted, [2, 1, 1]);
  assert.deepEqual(rounds.accepted, [2, 1, 0]);
  assert.equal(rounds.acceptanceRate(), 3 / 4);
  assert.equal(rounds.meanDrafted(), 4 / 3);
});

// What runs for the tests below.
let server = null;
let browser = null;
let address = '';

function startServer() {
  const draftFlags = draft ? ['-md', draft] : [];
  // A fixed length and rule: what is tested then happens at any speed of the machine.
  const rule = ['--lookahead', 'fixed', '--num-speculative-tokens', '4', '--verify', 'sample-match'];
  server = spawn(program, ['serve', '-m', model, ...draftFlags, ...rule, '--host', '127.0.0.1', '--port', '0'], { stdio: ['ignore', 'pipe', 'pipe'] });
  return new Promise((resolve, reject) => {
    let said = '';
    const listen = (piece) => {
      said += piece;
      const found = /http:\/\/127\.0\.0\.1:\d+/.exec(said);
      if (found) resolve(found[0]);
    };
    server.stdout.on('data', listen);
    server.stderr.on('data', listen);
    server.on('exit', (status) => reject(new Error(`the server ended with ${status}: ${said}`)));
  });
}

before(async () => {
  if (skip) return;
  address = await startServer();
  // Chromium's own sandbox does not work for root.
  browser = await playwright.launch({ executablePath, args: process.getuid() === 0 ? ['--no-sandbox'] : [] });
});

after(async () => {
  await browser?.close();
  server?.removeAllListeners('exit');
  server?.kill('SIGTERM');
});

// A page of its own for each test. What goes wrong unasked, and requests to elsewhere, fail it.
function onPage(name, options, body) {
  test(name, { skip, timeout: 60000 }, async () => {
    const context = await browser.newContext({ viewport: { width: 1400, height: 900 }, ...options });
    const page = await context.newPage();
    const surprises = [];
    page.on('pageerror', (error) => surprises.push(error.message));
    page.on('request', (request) => {
      if (!request.url().startsWith(`${address}/`)) surprises.push(`asks ${request.url()}`);
    });
    await page.goto(`${address}/`);
    await page.waitForSelector('#examples button');
    await body(page, context);
    assert.deepEqual(surprises, []);
    await context.close();
  });
}

const idle = (page) => page.waitForFunction(() => document.querySelector('#send').textContent !== 'Stop');

// Sends the prompt and returns the rounds that the server told of.
async function send(page, prompt = kPrompt) {
  const answers = [];
  const keep = (response) => {
    if (/completions$/.test(response.url()) && response.ok()) answers.push(response.text());
  };
  page.on('response', keep);
  await page.fill('#prompt', prompt);
  await page.press('#prompt', 'Enter');
  await page.waitForSelector('.answer');
  await idle(page);
  page.off('response', keep);
  return (await Promise.all(answers)).map(roundsOf);
}

function roundsOf(text) {
  const events = text.split('\n\n').filter((event) => event.startsWith('data: {'));
  return events.map((event) => JSON.parse(event.slice(6)).foretoken).filter(Boolean);
}

const tokensOf = (rounds) => rounds.flatMap((round) => round.tokens);

async function image(page, name) {
  const folder = process.env.PAGE_IMAGES;
  if (!folder) return;
  mkdirSync(folder, { recursive: true });
  await page.screenshot({ path: path.join(folder, `${name}.png`) });
}

onPage('each token shows where it came from', {}, async (page) => {
  const [rounds] = await send(page);
  const tokens = tokensOf(rounds);
  assert.ok(tokens.length > 20, `only ${tokens.length} tokens`);
  for (const origin of ['accepted', 'recovered', 'bonus', 'plain']) {
    const wanted = tokens.filter((token) => token.origin === origin).length;
    assert.equal(await page.locator(`.answer .token.${origin}`).count(), wanted, origin);
  }
  assert.ok(tokens.some((token) => token.origin === 'accepted'), 'no draft was accepted: nothing was tested');
  const spoken = await page.locator('#log').textContent();
  assert.match(spoken, new RegExp(`${tokens.length} tokens`));
});

onPage('a pointer over a token tells drafter, probability and place', {}, async (page) => {
  const [rounds] = await send(page);
  const round = rounds.find((one) => one.tokens[0]?.origin === 'accepted');
  await page.hover('.answer .token.accepted .mark');
  const card = await page.locator('#card').innerText();
  assert.match(card, new RegExp(`Drafter\\s+${round.drafter}`));
  assert.match(card, new RegExp(`draft 1 of ${round.drafted}, round ${round.round}\\b`));
  const percentage = Number(/Probability\s+<?\s*([\d.]+) %/.exec(card)[1]);
  assert.ok(Math.abs(percentage - 100 * Math.exp(round.tokens[0].logprob)) <= 0.51, card);
  await image(page, 'answer');
});

onPage('arrow keys walk through the tokens and say them', {}, async (page) => {
  const tokens = tokensOf((await send(page))[0]);
  await page.locator('.answer .text').focus();
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('ArrowRight');
  await page.waitForFunction((id) => document.querySelector('#spoken').textContent.includes(`id ${id}.`), tokens[1].id);
  await page.keyboard.press('End');
  await page.waitForFunction((id) => document.querySelector('#spoken').textContent.includes(`id ${id}.`), tokens.at(-1).id);
  await page.keyboard.press('Escape');
  assert.equal(await page.locator('#card').isVisible(), false);
});

onPage('the plots hold the numbers of the rounds, and stay in place', { viewport: { width: 1280, height: 800 } }, async (page) => {
  const place = await page.locator('#plot-cost svg').boundingBox();
  const [rounds] = await send(page);
  assert.deepEqual(await page.locator('#plot-cost svg').boundingBox(), place);
  const cells = await page.locator('#plot-acceptance tr').evaluateAll((rows) => rows.slice(1).map((row) => [...row.cells].map((cell) => Number.parseFloat(cell.textContent))));
  const drafted = rounds.map((round) => round.drafted);
  const accepted = rounds.map((round) => round.tokens.filter((token) => token.origin === 'accepted').length);
  assert.equal(cells.length, Math.max(...drafted));
  cells.forEach(([position, hits, tries]) => {
    assert.equal(tries, drafted.filter((n) => n >= position).length);
    assert.equal(hits, accepted.filter((n) => n >= position).length);
  });
  assert.match(await page.locator('#plot-speed .value').textContent(), /^[\d.,]+$/);
  assert.match(await page.locator('#plot-length svg').getAttribute('aria-label'), /rounds drafted/);
  assert.ok((await page.locator('#plot-cost svg').getAttribute('aria-label')).length > 10);
});

onPage('menus offer what the server says', {}, async (page) => {
  const { choices } = await page.evaluate(async () => (await fetch('/v1/speculation')).json());
  const menu = (id) => page.locator(`${id} option`).evaluateAll((options) => options.map(({ value, title }) => [value, title]));
  const methods = choices.methods.filter((row) => !row.drafts_from);
  assert.ok(methods.some((row) => row.name === 'suffix'));
  assert.deepEqual(await menu('#drafter'), [['', ''], ...methods.map(({ name, help }) => [name, help ?? ''])]);
  const strategies = choices.strategies.filter((row) => row.name !== 'greedy');
  assert.deepEqual(await menu('#strategy'), [['', ''], ...strategies.map(({ name, help }) => [name, help])]);
});

onPage('drafter and draft length are those of the settings', {}, async (page) => {
  await page.selectOption('#drafter', 'ngram');
  await page.selectOption('#length', '2');
  await page.fill('#temperature', '0');
  const rounds = (await send(page)).at(-1);
  assert.ok(rounds.some((round) => round.drafter === 'ngram'), 'ngram never drafted: nothing was tested');
  assert.ok(rounds.every((round) => round.drafted <= 2 && [null, 'ngram'].includes(round.drafter)));
  await page.selectOption('#drafter', 'none');
  const plain = (await send(page)).at(-1);
  assert.ok(plain.every((round) => round.drafted === 0));
});

onPage('drafts are verified by the chosen strategy, and the page says what that promises', {}, async (page) => {
  const rule = page.locator('#rule');
  const names = await page.locator('#strategy option').evaluateAll((options) => options.map((option) => option.value));
  for (const name of ['', 'sample-match', ...(draft ? ['residual', 'block'] : []), 'typical-acceptance', 'relaxed']) assert.ok(names.includes(name), `${name}: ${names}`);
  const verifiedBy = async (name, temperature) => {
    await page.selectOption('#strategy', name);
    await page.fill('#temperature', temperature);
    const [rounds] = await send(page);
    assert.ok(rounds.some((round) => round.drafted > 0), 'nothing was drafted: nothing was tested');
    return page.locator('.answer .summary').last().textContent();
  };
  for (const name of names.filter(Boolean)) {
    assert.match(await verifiedBy(name, '0.8'), new RegExp(`verified by ${name}`));
    assert.match(await rule.textContent(), new RegExp(`verified by ${name}: `));
    await page.click('#clear');
  }
  assert.match(await verifiedBy('', '0.8'), /verified by sample-match/);
  assert.match(await rule.textContent(), /exactly the text that plain decoding gives with this seed/);
  await page.selectOption('#strategy', 'relaxed');
  assert.match(await rule.textContent(), /verified by relaxed: not the model's own distribution/);
  await page.fill('#temperature', '0');
  assert.match(await rule.textContent(), /verified by relaxed: /);
  await page.selectOption('#strategy', 'target-probability');
  assert.match(await rule.textContent(), /verified by greedy: exactly the text of plain decoding/);
});

onPage('a strategy that the drafter does not fit is refused in the server\'s words', {}, async (page) => {
  if (!draft) return;
  await page.selectOption('#strategy', 'residual');
  await page.selectOption('#drafter', 'ngram');
  await page.fill('#prompt', kPrompt);
  await page.press('#prompt', 'Enter');
  await page.waitForSelector('.answer .error');
  assert.match(await page.locator('.answer .error').textContent(), /'residual' needs a drafter that reports its distributions, and ngram reports none; use sample-match/);
  await image(page, 'refused');
});

onPage('a comparison of the same seed ends with identical', {}, async (page) => {
  await page.click('#tab-compare');
  const [plain, speculative] = await send(page);
  assert.ok(speculative.some((round) => round.drafted > 0), 'nothing was drafted: nothing was tested');
  assert.equal(await page.locator('#verdict .lead').textContent(), `Identical: ${tokensOf(plain).length} tokens`);
  assert.match(await page.locator('#verdict .detail').textContent(), /times as fast/);
  await image(page, 'identical');
});

onPage('a comparison of two seeds ends with the place of the first difference', {}, async (page) => {
  await page.route('**/completions', (route) => {
    const body = route.request().postDataJSON();
    if (body.speculative.enabled) body.seed += 1; // the control: this answer is another
    return route.continue({ postData: JSON.stringify(body) });
  });
  await page.fill('#temperature', '1');
  await page.click('#tab-compare');
  const [plain, speculative] = (await send(page)).slice(-2).map(tokensOf);
  const at = plain.findIndex((token, i) => token.id !== speculative[i]?.id);
  assert.ok(at >= 0);
  assert.match(await page.locator('#verdict .lead').textContent(), new RegExp(`^First difference at token ${at + 1},`));
  assert.equal(await page.locator('.token.difference').count(), 2);
  await image(page, 'different');
});

onPage('a chat sends the turns before, with all of their text', {}, async (page) => {
  await page.route('**/v1/models', async (route) => {
    const json = await (await route.fetch()).json();
    json.data[0].meta.chat_template = true;
    await route.fulfill({ json });
  });
  await page.reload();
  await page.waitForSelector('#examples button');
  const sent = [];
  const answer = [
    { choices: [{ delta: { role: 'assistant', content: '' } }] },
    { choices: [{ delta: { content: 'An é' } }],
      foretoken: { round: 1, drafter: null, drafted: 0, rejected: [], tokens: [{ id: 1, text: 'An', origin: 'plain' }, { id: 2, text: ' \ufffd', origin: 'plain' }, { id: 3, text: '\ufffd', origin: 'plain' }] } },
    { choices: [{ delta: { content: ' held back' } }] },
    { choices: [{ delta: {}, finish_reason: 'stop' }] },
    { choices: [], usage: {} },
  ];
  await page.route('**/v1/chat/completions', (route) => {
    sent.push(route.request().postDataJSON());
    const events = [...answer.map((part) => JSON.stringify(part)), '[DONE]'];
    return route.fulfill({ contentType: 'text/event-stream', body: events.map((data) => `data: ${data}\n\n`).join('') });
  });
  await send(page, 'First?');
  await send(page, 'Second?');
  assert.deepEqual(sent.map((body) => body.messages), [
    [{ role: 'user', content: 'First?' }],
    [{ role: 'user', content: 'First?' }, { role: 'assistant', content: 'An é held back' }, { role: 'user', content: 'Second?' }],
  ]);
  assert.equal(await page.locator('.answer .text').first().textContent(), 'An é held back');
});

onPage('a long conversation leaves out its oldest turns, says so, and shows the context used', {}, async (page) => {
  const sent = [];
  const usages = [];
  page.on('request', (request) => {
    if (/chat\/completions$/.test(request.url())) sent.push(request.postDataJSON().messages);
  });
  page.on('response', async (response) => {
    if (!/chat\/completions$/.test(response.url())) return;
    usages.push(JSON.parse((await response.text()).split('data: ').at(-2)).usage);
  });
  const forgotten = page.locator('.forgotten');
  await page.fill('#max-tokens', '100');
  let asked = 0;
  while (asked < 14 && await forgotten.count() === 0) {
    await send(page, `Tell me more about the boat, part ${asked += 1}.`);
    await page.waitForFunction((n) => document.querySelectorAll('.answer:not(.running)').length === n, asked);
  }
  assert.ok(asked > 2 && asked < 14, `${asked} questions: nothing was tested`);
  await send(page, 'And then?');
  asked += 1;
  const messages = sent.at(-1);
  assert.ok(messages.length < 2 * asked - 1);
  assert.deepEqual([messages[0].role, messages.at(-1).content], ['user', 'And then?']);
  assert.equal(await forgotten.count(), 1);
  assert.match(await forgotten.textContent(), /context of 512 tokens is full/);
  assert.equal(await page.locator('.forgotten + .question').textContent(), messages[0].content);
  assert.match(await page.locator('#log').textContent(), /no longer sent/);
  for (const one of sent) {
    const response = await fetch(`${address}/tokenize`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ messages: one }) });
    const { tokens } = await response.json();
    assert.ok(tokens.length + 100 <= 512, `${tokens.length} tokens leave no room`);
  }
  assert.equal(usages.length, asked);
  assert.equal(await page.locator('#context .value').textContent(), `${usages.at(-1).total_tokens} of 512`);
  assert.equal(await page.locator('#context .track').getAttribute('aria-valuenow'), `${usages.at(-1).total_tokens}`);
  await image(page, 'long');
  await page.click('#clear');
  assert.equal(await page.locator('#context .value').textContent(), '0 of 512');
  assert.equal(await forgotten.count(), 0);
});

onPage('Esc stops, and the frame stays where it was', {}, async (page) => {
  await page.route('**/completions', async (route) => {
    await new Promise((resolve) => setTimeout(resolve, 1000));
    await route.continue().catch(() => {}); // the page has hung up
  });
  const places = () => page.evaluate(() => ['#send', '#prompt', '#settings', '#plot-cost svg', '#legend'].map((id) => {
    const { x, y, width, height } = document.querySelector(id).getBoundingClientRect();
    return [id, x, y, width, height];
  }));
  const before = await places();
  await page.fill('#prompt', kPrompt);
  await page.press('#prompt', 'Enter');
  await page.waitForSelector('.answer.running');
  assert.equal(await page.locator('#send').textContent(), 'Stop');
  assert.deepEqual(await places(), before);
  await page.keyboard.press('Escape');
  await idle(page);
  assert.match(await page.locator('.answer .summary').textContent(), /stopped/);
  assert.deepEqual(await places(), before);
});

onPage('errors are told in words, and the prompt comes back', {}, async (page, context) => {
  const failing = async () => {
    await page.fill('#prompt', kPrompt);
    await page.press('#prompt', 'Enter');
    await idle(page);
    assert.equal(await page.inputValue('#prompt'), kPrompt);
    return page.locator('.answer .error').last().textContent();
  };
  await page.route('**/completions', (route) => route.fulfill({ status: 429, headers: { 'Retry-After': '3' }, body: '{"error":{"message":"full"}}' }));
  assert.match(await failing(), /Try again in 3 s/);
  await page.unrouteAll();
  await page.route('**/completions', (route) => route.fulfill({ status: 502, body: '<html>' }));
  assert.match(await failing(), /HTTP 502/);
  await page.unrouteAll();
  await page.route('**/completions', (route) => route.fulfill({ status: 200, body: 'data: {"choices":[]}\n\n' }));
  assert.match(await failing(), /ended before the answer did/);
  await page.unrouteAll();
  await context.setOffline(true);
  assert.match(await failing(), /Is foretoken serve still running/);
  await context.setOffline(false);
  await page.fill('#prompt', 'word '.repeat(5000));
  await page.press('#prompt', 'Enter');
  await idle(page);
  const refusal = await page.locator('.answer .error').last().textContent();
  assert.match(refusal, /\w+ .*[:;]/); // the server's own words: what, why, what to do
});

onPage('a server with a key asks for it', {}, async (page) => {
  await page.route('**/v1/**', (route) => {
    if (route.request().headers().authorization === 'Bearer secret') return route.continue();
    return route.fulfill({ status: 401, body: '{"error":{"message":"key: it is missing; send one","code":"invalid_api_key"}}' });
  });
  await page.reload();
  await page.waitForSelector('#key:visible');
  await page.fill('#key', 'secret');
  await page.press('#key', 'Tab');
  await page.waitForSelector('#examples button');
  assert.equal(await page.locator('#key').isVisible(), false);
  const answers = await send(page);
  assert.ok(tokensOf(answers.at(-1)).length > 0);
});

onPage('a wrong setting is shown and nothing is sent', {}, async (page) => {
  let sent = false;
  page.on('request', (request) => { sent ||= request.method() === 'POST'; });
  await page.fill('#temperature', '3');
  await page.fill('#prompt', kPrompt);
  await page.press('#prompt', 'Enter');
  await page.waitForTimeout(200);
  assert.equal(sent, false);
  assert.equal(await page.evaluate(() => document.activeElement.id), 'temperature');
});

onPage('all can be reached by Tab, and tabs by arrow keys', {}, async (page) => {
  await send(page);
  const reached = new Set();
  await page.evaluate(() => document.activeElement.blur());
  for (let i = 0; i < 40; ++i) {
    await page.keyboard.press('Tab');
    reached.add(await page.evaluate(() => document.activeElement.id || document.activeElement.className));
  }
  for (const id of ['theme', 'tab-chat', 'clear', 'text', 'prompt', 'send', 'drafter', 'length', 'strategy', 'temperature', 'max-tokens', 'seed', 'show-rejected']) {
    assert.ok(reached.has(id), `${id} was not reached: ${[...reached]}`);
  }
  await page.focus('#tab-chat');
  await page.keyboard.press('ArrowRight');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'tab-compare');
  assert.ok(await page.locator('#compare').isVisible());
});

// Texts whose contrast with what is behind them is below WCAG's 4.5.
function faintTexts() {
  const channels = (color) => color.match(/[\d.]+/g).map(Number);
  const luminance = (color) => {
    const [r, g, b] = channels(color).map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const opaque = (color) => (channels(color)[3] ?? 1) === 1;
  const behind = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const color = getComputedStyle(e).backgroundColor;
      if (opaque(color)) return color;
    }
    return 'rgb(255, 255, 255)';
  };
  const faint = [];
  for (const element of document.querySelectorAll('body *')) {
    const said = [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim() !== '');
    if (!said || element.closest('svg, script, style, noscript, .unseen') || element.offsetWidth === 0) continue;
    const [a, b] = [luminance(getComputedStyle(element).color), luminance(behind(element))].sort((x, y) => y - x);
    const contrast = (a + 0.05) / (b + 0.05);
    if (contrast < 4.5) faint.push(`${element.tagName} ${element.className} "${element.textContent.slice(0, 30)}" ${contrast.toFixed(2)}`);
  }
  return faint;
}

for (const colorScheme of ['light', 'dark']) {
  onPage(`texts stand out from what is behind them: ${colorScheme}`, { colorScheme }, async (page) => {
    await page.check('#show-rejected');
    await send(page);
    assert.deepEqual(await page.evaluate(faintTexts), []);
    await image(page, colorScheme);
    // The control: a grey that must be found.
    await page.evaluate(() => { document.querySelector('h1').style.color = '#777'; });
    assert.equal((await page.evaluate(faintTexts)).length, 1);
  });
}

onPage('a narrow screen shows all without scrolling sideways', { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }, async (page) => {
  await send(page);
  await page.tap('.answer .token.accepted .mark');
  assert.ok(await page.locator('#card').isVisible());
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390);
  await image(page, 'narrow');
});

for (const width of [390, 1400]) {
  onPage(`the state of a copy displaces nothing, ${width} wide`, { viewport: { width, height: 844 } }, async (page) => {
    const place = async (id) => page.locator(id).boundingBox();
    const before = [await place('h1'), await place('#theme'), await place('#model')];
    const error = `memory: ${'5 MiB of 4 MiB are available; '.repeat(8)}`;
    await page.route('**/v1/speculation', async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, json: { ...(await response.json()), copy: { state: 'refused', error } } });
    });
    await page.reload();
    await page.waitForSelector('#copy:not([hidden])');
    assert.deepEqual([await place('h1'), await place('#theme'), await place('#model')], before);
    const model = await place('#model');
    assert.ok((await place('#copy')).y >= model.y + model.height);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width);
  });
}

onPage('who wants less motion gets none', { reducedMotion: 'reduce' }, async (page) => {
  await page.route('**/completions', () => {}); // never answered
  await page.fill('#prompt', kPrompt);
  await page.press('#prompt', 'Enter');
  await page.waitForSelector('.answer.running');
  assert.equal(await page.evaluate(() => getComputedStyle(document.querySelector('.answer .text'), '::after').animationName), 'none');
});

test('the built page asks nobody else and is one document', { skip }, async () => {
  const response = await fetch(`${address}/`);
  assert.match(response.headers.get('content-type'), /^text\/html/);
  const page = await response.text();
  assert.doesNotMatch(page.replaceAll('http://www.w3.org/2000/svg', ''), /(https?:)?\/\/[a-z]+\.[a-z]/i);
  assert.match(page, /default-src 'none'/);
});

