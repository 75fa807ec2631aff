/**
 * What the page does. It is text here and no module: it runs in browsers, as it stands. Everything that it shows becomes
 * text (`textContent`, `createTextNode`), never markup; the policy of the page forbids the rest.
 */
export const SCRIPT = String.raw`
'use strict';
(() => {
  // A button that has just come or moved is deaf for a moment: what slid under the pointer must not be clicked.
  const INERT_MS = 500;
  const HEADER = 'x-sandbox-run-token';
  const KEY = 'sandbox-run-token';
  const list = document.getElementById('requests');
  const empty = document.getElementById('empty');
  const connection = document.getElementById('connection');
  const log = document.getElementById('log');
  const cards = new Map();
  let clockOffset = 0;

  // Out of the address at once, so that it is in no history and no screenshot. Storage is kept apart by port, and ends
  // with the tab.
  function takeToken() {
    const given = location.hash.slice(1);
    if (given !== '') {
      sessionStorage.setItem(KEY, given);
      history.replaceState(null, '', location.pathname);
    }
    return given || sessionStorage.getItem(KEY) || '';
  }
  const token = takeToken();
  // A new address of the same server: the token of the old one is worth nothing.
  addEventListener('hashchange', () => location.reload());

  function make(name, className, ...children) {
    const element = document.createElement(name);
    if (className) element.className = className;
    for (const child of children) if (child) element.append(child);
    return element;
  }

  // Escapes stand out. The server has made sure that nothing else looks like one.
  function shown(text) {
    const parts = document.createDocumentFragment();
    for (const piece of text.split(/(\\u\{[0-9a-f]+\})/)) {
      if (piece === '') continue;
      if (/^\\u\{[0-9a-f]+\}$/.test(piece)) {
        const mark = make('mark', '', piece);
        mark.title = 'a character that would not be visible';
        parts.append(mark);
      } else parts.append(piece);
    }
    return parts;
  }

  function commandList(command) {
    const lines = command.kind === 'shell' ? command.lines : command.words;
    const element = make('ol', 'command ' + command.kind);
    element.setAttribute('aria-label', command.kind === 'shell' ? 'command, by lines' : 'command, by words');
    for (const line of lines) element.append(make('li', '', make('span', '', shown(line))));
    return element;
  }

  function fact(facts, name, ...values) {
    if (values.length === 0) return;
    facts.append(make('dt', '', name));
    const cell = make('dd');
    for (const value of values) cell.append(make('div', 'mono', shown(value)));
    facts.append(cell);
  }

  function partItem(part) {
    const remarks = make('ul', 'remarks');
    for (const remark of part.remarks) remarks.append(make('li', '', shown(remark)));
    return make('li', '',
      make('code', '', shown(part.source)),
      make('div', 'runs', part.executable === undefined ? 'runs no program that was found' : 'runs ',
        part.executable === undefined ? null : make('code', '', shown(part.executable))),
      remarks);
  }

  function section(title, element) {
    const fragment = document.createDocumentFragment();
    if (element.children.length > 0) fragment.append(make('h3', '', title), element);
    return fragment;
  }

  function makeCard(request) {
    const card = make('li', 'request');
    card.tabIndex = -1;
    card.dataset.id = request.id;
    const countdown = make('span', 'countdown');
    const actions = make('div', 'actions');
    const entry = { request, card, countdown, actions, readyAt: 0, top: undefined, panel: undefined, busy: false };
    const remarks = make('ul', 'remarks');
    for (const remark of request.remarks)
      remarks.append(make('li', '', remark.check + ' (' + remark.verdict + '): ', shown(remark.message)));
    const parts = make('ul', 'parts');
    for (const part of request.parts) parts.append(partItem(part));
    const facts = make('dl');
    fact(facts, 'Directory', request.cwd);
    fact(facts, 'Environment', ...request.environment);
    fact(facts, 'Profile', request.profile);
    fact(facts, 'Confinement', ...request.confinement);
    fact(facts, 'Asked by', request.principal + (request.session === undefined ? '' : ', session ' + request.session));
    const risk = make('span', request.risk, 'risk ' + request.risk);
    card.append(
      make('div', 'head', make('span', 'facts', risk, ', reach ' + request.reach), countdown),
      commandList(request.command),
      section('What the policy says', remarks),
      section('Its parts', parts),
      facts,
      actions);
    const names = { once: 'Once', session: 'Session', always: 'Always' };
    for (const { scope, meaning } of request.scopes) {
      const act = scope === 'once'
        ? () => answer(entry, { id: request.id, approved: true, scope })
        : () => openPanel(entry, scope, names[scope], meaning);
      actions.append(button(entry, names[scope], scope, meaning, act));
    }
    actions.append(button(entry, 'Deny', 'deny', 'The command does not run.', () => answer(entry, { id: request.id, approved: false })));
    return entry;
  }

  function button(entry, name, className, meaning, act) {
    const element = make('button', className, name);
    element.type = 'button';
    element.title = meaning;
    element.setAttribute('aria-disabled', 'true');
    element.addEventListener('click', (event) => {
      // What a script clicks is not what a person clicks.
      if (!event.isTrusted || entry.busy || performance.now() < entry.readyAt) return;
      act();
    });
    return element;
  }

  function openPanel(entry, scope, name, meaning) {
    if (entry.panel) return;
    const { request, card } = entry;
    const facts = make('dl');
    fact(facts, 'Directory', request.cwd);
    fact(facts, 'Programs', ...request.parts.map((part) => part.executable).filter((path) => path !== undefined));
    fact(facts, 'Environment', ...(request.environment.length > 0 ? request.environment : ['as the policy gives it']));
    fact(facts, 'Profile', request.profile);
    fact(facts, 'Confinement', ...request.confinement);
    fact(facts, 'For', request.principal + (scope === 'always' ? ', every session' : ', session ' + request.session));
    fact(facts, 'Fingerprint', request.fingerprint);
    const confirm = button(entry, 'Remember: ' + name, 'confirm-' + scope, meaning, () =>
      answer(entry, { id: request.id, approved: true, scope }));
    const back = button(entry, 'Back', 'back', 'Nothing is remembered.', () => {
      entry.panel.remove();
      entry.panel = undefined;
      entry.actions.hidden = false;
      settleLayout();
      card.focus();
    });
    entry.panel = make('div', 'confirm', make('p', '', shown(meaning)), commandList(request.command), facts,
      make('div', 'actions', confirm, back));
    entry.panel.setAttribute('role', 'group');
    entry.panel.setAttribute('aria-label', 'What is going to be remembered');
    entry.actions.hidden = true;
    card.append(entry.panel);
    inert(entry);
    settleLayout();
    back.focus({ preventScroll: true });
    entry.panel.scrollIntoView({ block: 'nearest' });
  }

  async function answer(entry, body) {
    entry.busy = true;
    refresh(entry);
    entry.card.querySelector('.problem')?.remove();
    let problem;
    try {
      const response = await fetch('/answer', {
        method: 'POST',
        headers: { 'content-type': 'application/json', [HEADER]: token },
        body: JSON.stringify(body),
      });
      const sentence = (await response.text()).trim();
      if (response.ok) note(sentence, entry);
      else problem = sentence;
    } catch {
      problem = 'The server cannot be reached; nothing was answered.';
    }
    // Answered: it goes with the next list. Not answered: it stays and can be tried again.
    if (problem === undefined) return;
    entry.busy = false;
    entry.card.append(make('p', 'problem', problem));
    inert(entry);
    settleLayout();
  }

  function note(sentence, { request }) {
    const text = request.command.kind === 'shell' ? request.command.lines.join(' \u23ce ') : request.command.words.join(' ');
    log.prepend(make('li', '', sentence + ' ', make('code', '', shown(text))));
  }

  function inert(entry) {
    entry.readyAt = performance.now() + INERT_MS;
    refresh(entry);
    setTimeout(() => refresh(entry), INERT_MS + 20);
  }

  function refresh(entry) {
    const off = entry.busy || performance.now() < entry.readyAt;
    for (const element of entry.card.querySelectorAll('button')) element.setAttribute('aria-disabled', String(off));
  }

  // Whoever moved is deaf again.
  function settleLayout() {
    for (const entry of cards.values()) {
      const box = entry.card.getBoundingClientRect();
      const place = [Math.round(box.top + scrollY), Math.round(box.width), Math.round(box.height)].join();
      if (place !== entry.place) {
        entry.place = place;
        inert(entry);
      }
    }
  }

  function show({ now, requests }) {
    clockOffset = now - Date.now();
    const ids = new Set(requests.map(({ id }) => id));
    for (const [id, entry] of cards) {
      if (ids.has(id)) continue;
      const hadFocus = entry.card.contains(document.activeElement);
      const next = entry.card.nextElementSibling || entry.card.previousElementSibling;
      entry.card.remove();
      cards.delete(id);
      if (hadFocus && next) next.focus();
    }
    for (const request of requests) {
      if (cards.has(request.id)) continue;
      const entry = makeCard(request);
      cards.set(request.id, entry);
      list.append(entry.card);
    }
    empty.hidden = requests.length > 0;
    document.title = (requests.length > 0 ? '(' + requests.length + ') ' : '') + 'Approvals: sandbox-run';
    settleLayout();
    tick();
  }

  function tick() {
    for (const { request, countdown } of cards.values()) {
      const left = Math.max(0, Math.ceil((request.expiresAt - Date.now() - clockOffset) / 1000));
      countdown.textContent = left > 0 ? 'expires in ' + left + ' s' : 'expired';
      countdown.classList.toggle('soon', left <= 30);
    }
  }
  setInterval(tick, 500);
  new ResizeObserver(settleLayout).observe(document.body);

  function connected(text, lost) {
    connection.textContent = text;
    connection.classList.toggle('lost', lost);
    // What cannot be answered is not offered.
    if (lost) show({ now: Date.now() + clockOffset, requests: [] });
    if (lost) empty.hidden = true;
  }

  // Server-sent events by fetch: EventSource cannot send the header with the token.
  async function listen() {
    const response = await fetch('/events', { headers: { [HEADER]: token } });
    if (response.status === 403) return connected('Not admitted: open the address that the server printed.', true), false;
    if (!response.ok) throw new Error('refused');
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let buffer = '';
    for (;;) {
      const { value, done } = await reader.read();
      if (done) throw new Error('ended');
      buffer += value;
      for (let end = buffer.indexOf('\n\n'); end >= 0; end = buffer.indexOf('\n\n')) {
        const data = /^data: (.*)$/m.exec(buffer.slice(0, end));
        buffer = buffer.slice(end + 2);
        if (data) {
          connected('Live', false);
          show(JSON.parse(data[1]));
        }
      }
    }
  }

  async function keepListening() {
    for (;;) {
      try {
        if ((await listen()) === false) return;
      } catch {
        connected('The server is gone. Trying again…', true);
      }
      await new Promise((done) => setTimeout(done, 1000));
    }
  }
  keepListening();
})();
`;
