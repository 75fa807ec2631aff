// What the page does: a card for each request that waits, as long as the server can be heard.
import type { PersonalAnswer } from '../../../../approvals/answer-request.ts';
import type { PendingRequest, PendingRequests } from '../page-messages.ts';
import { make, shown } from './elements.ts';
import { createRequestCard, type RequestCard } from './request-card.ts';
import { createServer } from './server.ts';

const TICK_MS = 500;
const RETRY_MS = 1000;

const list = element('requests');
const empty = element('empty');
const connection = element('connection');
const log = element('log');
const server = createServer();
const cards = new Map<string, RequestCard>();
/** The server's clock, seen from ours. */
let clockOffset = 0;

function element(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no #${id}`);
  return found;
}

async function send(request: PendingRequest, answer: PersonalAnswer): Promise<string | undefined> {
  try {
    const { ok, sentence } = await server.answer(request.id, answer);
    if (!ok) return sentence;
    note(sentence, request);
    return undefined;
  } catch {
    return 'The server cannot be reached; nothing was answered.';
  }
}

function note(sentence: string, { command }: PendingRequest): void {
  const text = command.kind === 'shell' ? command.lines.join(' \u23ce ') : command.words.join(' ');
  log.prepend(make('li', '', `${sentence} `, make('code', '', shown(text))));
}

/** Whoever moved is deaf again. */
function noticeMoves(): void {
  for (const card of cards.values()) card.noticeMove();
}

function tick(): void {
  for (const card of cards.values()) card.tick(Date.now() + clockOffset);
}

function remove(id: string, card: HTMLElement): void {
  const hadFocus = card.contains(document.activeElement);
  const next = card.nextElementSibling ?? card.previousElementSibling;
  card.remove();
  cards.delete(id);
  if (hadFocus && next instanceof HTMLElement) next.focus();
}

function show(requests: readonly PendingRequest[]): void {
  const ids = new Set(requests.map(({ id }) => id));
  for (const [id, card] of cards) if (!ids.has(id)) remove(id, card.element);
  for (const request of requests) {
    if (cards.has(request.id)) continue;
    const card = createRequestCard(request, {
      send: (answer) => send(request, answer),
      resized: noticeMoves,
    });
    cards.set(request.id, card);
    list.append(card.element);
  }
  empty.hidden = requests.length > 0;
  document.title = `${requests.length > 0 ? `(${requests.length}) ` : ''}Approvals: sandbox-run`;
  noticeMoves();
  tick();
}

function connected({ now, requests }: PendingRequests): void {
  connection.textContent = 'Live';
  connection.classList.remove('lost');
  clockOffset = now - Date.now();
  show(requests);
}

/** What cannot be answered is not offered. */
function lost(why: string): void {
  connection.textContent = why;
  connection.classList.add('lost');
  show([]);
  empty.hidden = true;
}

async function keepListening(): Promise<void> {
  for (;;) {
    try {
      await server.listen(connected);
      return lost('Not admitted: open the address that the server printed.');
    } catch {
      lost('The server is gone. Trying again…');
    }
    await new Promise((done) => setTimeout(done, RETRY_MS));
  }
}

// A new address of the same server: the token of the old one is worth nothing.
addEventListener('hashchange', () => location.reload());
setInterval(tick, TICK_MS);
new ResizeObserver(noticeMoves).observe(document.body);
void keepListening();
