// SPDX-License-Identifier: Apache-2.0
// The page at "/": joins its parts and passes on what the user does.
import { Announcer } from './announcer.js';
import { Chat } from './chat.js';
import { Comparison } from './comparison.js';
import { Context } from './context.js';
import { copyText } from './copy.js';
import { compact } from './figures.js';
import { Inspector } from './inspector.js';
import { drawAcceptance, drawCosts, drawLengths, drawSpeeds, Plot } from './plots.js';
import { Rounds } from './rounds.js';
import { Service } from './service.js';
import { Settings } from './settings.js';
import { followTheme } from './theme.js';

const find = (id) => document.getElementById(id);
const kExamples = {
  chat: ['Tell me a story about a dragon who is afraid of the dark.',
    'Tell me about a small boat that wanted to see the sea.',
    'What did the fox say to the crow?'],
  text: ['Once upon a time, there was a little girl named Lily. She loved to',
    'The little dragon lived in a cave by the sea. One day',
    '"Where are you going?" asked the fox. "I am going to'],
};

const plots = {
  speed: new Plot(find('plot-speed')),
  acceptance: new Plot(find('plot-acceptance')),
  length: new Plot(find('plot-length')),
  cost: new Plot(find('plot-cost')),
};
const page = {
  service: new Service(),
  settings: new Settings(find('settings')),
  rounds: new Rounds(),
  announcer: new Announcer(find('log')),
  context: new Context(find('context')),
  inspector: new Inspector(find('card'), find('spoken')),
  replot,
  follow,
};
const panels = {
  chat: { tab: find('tab-chat'), panel: find('chat'), verb: 'Send' },
  compare: { tab: find('tab-compare'), panel: find('compare'), verb: 'Run both' },
};
panels.chat.view = new Chat(page, panels.chat.panel);
panels.compare.view = new Comparison(page, panels.compare.panel);
let shown = panels.chat;
let running = null; // the AbortController of what runs
let copyTimer = 0; // asks for the state of the model's copy again

let frame = null;
function replot() {
  frame ??= requestAnimationFrame(() => {
    frame = null;
    drawSpeeds(plots.speed, page.rounds);
    drawAcceptance(plots.acceptance, page.rounds);
    drawLengths(plots.length, page.rounds);
    followed?.keepEndInSight();
  });
}

// The answer whose end stays in sight as it grows, until the user scrolls up.
let followed = null;
function follow(answer) {
  followed = answer;
}
addEventListener('wheel', (event) => {
  if (event.deltaY < 0) follow(null);
}, { passive: true });
addEventListener('touchmove', () => follow(null), { passive: true });

function show(name) {
  for (const [key, { tab, panel }] of Object.entries(panels)) {
    tab.setAttribute('aria-selected', key === name);
    tab.tabIndex = key === name ? 0 : -1;
    panel.hidden = key !== name;
  }
  shown = panels[name];
  find('context').hidden = name !== 'chat';
  if (!running) find('send').textContent = shown.verb;
}

async function send() {
  const prompt = find('prompt').value;
  if (running || prompt.trim() === '' || !page.settings.valid()) return;
  running = new AbortController();
  setSending(true);
  find('prompt').value = '';
  const { view } = shown;
  try {
    await view.send(prompt, running.signal);
  } catch (error) {
    find('prompt').value ||= prompt;
    if (error.status === 401) askForKey();
  } finally {
    if (view === panels.compare.view) find('prompt').value ||= prompt;
    running = null;
    setSending(false);
    refresh();
  }
}

function setSending(sending) {
  const button = find('send');
  button.classList.toggle('stop', sending);
  button.textContent = sending ? 'Stop' : shown.verb;
  for (const { tab } of Object.values(panels)) tab.disabled = sending;
  find('clear').disabled = sending;
}

function askForKey() {
  find('key-row').hidden = false;
  find('key').focus();
}

// Asks the server what it measured meanwhile.
async function refresh() {
  try {
    const speculation = await page.service.speculation();
    page.settings.offer(speculation);
    drawCosts(plots.cost, speculation.verify_us);
    showCopy(speculation.copy);
  } catch (error) {
    if (error.status === 401) askForKey();
  }
}

// Asks again while the copy is being made.
function showCopy(copy) {
  const words = copyText(copy);
  find('copy').hidden = words === '';
  find('copy').textContent = words;
  clearTimeout(copyTimer);
  if (words && copy.state !== 'refused') copyTimer = setTimeout(refresh, 2000);
}

async function greet() {
  try {
    const model = await page.service.model();
    find('model').textContent = modelText(model);
    document.title = `${model.id} · foretoken`;
    page.context.setSize(model.meta.context_size ?? 0);
    welcome(model.chats);
  } catch (error) {
    find('model').textContent = error.message;
    if (error.status === 401) askForKey();
  }
  refresh();
}

function modelText({ id, meta, draft }) {
  const size = ({ parameters }) => `${compact(parameters)} parameters`;
  const parts = [id, `${meta.architecture}, ${size(meta)}, ${meta.type}`];
  if (draft) parts.push(`drafts by ${draft.architecture}, ${size(draft)}, ${draft.type}`);
  return parts.join(' · ');
}

function welcome(chats) {
  if (!chats) {
    find('welcome-title').textContent = 'Begin a text, and the model continues it';
    find('prompt').placeholder = 'Begin a text; this model has no chat template and continues it';
  }
  find('examples').replaceChildren(...kExamples[chats ? 'chat' : 'text'].map((words) => {
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = words;
    button.addEventListener('click', () => {
      find('prompt').value = words;
      find('prompt').focus();
    });
    return button;
  }));
}

function listen() {
  find('composer').addEventListener('submit', (event) => {
    event.preventDefault();
    if (running) running.abort();
    else send();
  });
  find('prompt').addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    send();
  });
  addEventListener('keydown', (event) => {
    if (event.key === 'Escape') running?.abort();
  });
  find('clear').addEventListener('click', () => {
    shown.view.clear();
    find('prompt').focus();
  });
  find('show-rejected').addEventListener('input', (event) => {
    document.body.classList.toggle('show-rejected', event.target.checked);
  });
  find('key').addEventListener('change', (event) => {
    page.service.setKey(event.target.value);
    find('key-row').hidden = true; // until it is refused
    greet();
  });
  for (const [name, { tab }] of Object.entries(panels)) {
    tab.addEventListener('click', () => show(name));
    tab.addEventListener('keydown', (event) => {
      if (!['ArrowLeft', 'ArrowRight'].includes(event.key)) return;
      const other = name === 'chat' ? 'compare' : 'chat';
      show(other);
      panels[other].tab.focus();
    });
  }
}

followTheme(find('theme'));
listen();
show('chat');
greet();
