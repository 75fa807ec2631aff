// What the page does: a card for each request and each change set that waits, as long as the server can be heard.
import type { PendingRequest, PendingRequests, WaitingChanges, WaitingSet } from '../page-messages.ts';
import { createChangesCard } from './changes-card.ts';
import { make, shown } from './elements.ts';
import type { LiveCard } from './live-card.ts';
import { createRequestCard, type RequestCard } from './request-card.ts';
import { askOfChanges, listen, type Said, sendAnswer } from './server.ts';

const TICK_MS = 500;
const RETRY_MS = 1000;

const list = element('requests');
const empty = element('empty');
const connection = element('connection');
const log = element('log');
const cards = new Map<string, RequestCard>();
const changes = element('changes');
const changesTitle = element('changes-title');
/** A card is made anew when its set is another one. */
const changesCards = new Map<string, { readonly as: string; readonly card: LiveCard }>();
/** The diffs that are open, by set and path. */
const opened = new Map<string, Map<string, string>>();
/** The server's clock, seen from ours. */
let clockOffset = 0;

function element(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no #${id}`);
  return found;
}

/** Notes what the server did, and about what. Resolves to why it did nothing, or to nothing. */
async function noted(asked: Promise<Said>, about: string): Promise<string | undefined> {
  try {
    const { ok, sentence } = await asked;
    if (!ok) return sentence;
    log.prepend(make('li', '', make('span', 'lines', shown(sentence)), ' ', make('code', '', shown(about))));
    return undefined;
  } catch {
    return 'The server cannot be reached; nothing was answered.';
  }
}

function textOf({ command }: PendingRequest): string {
  return command.kind === 'shell' ? command.lines.join(' \u23ce ') : command.words.join(' ');
}

/** Whoever moved is deaf again. */
function noticeMoves(): void {
  for (const card of cards.values()) card.noticeMove();
  for (const { card } of changesCards.values()) card.noticeMove();
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
      send: (answer) => noted(sendAnswer(request.id, answer), textOf(request)),
      resized: noticeMoves,
    });
    cards.set(request.id, card);
    list.append(card.element);
  }
  shownOthers();
  tick();
}

/** What waits is more or less, and stands elsewhere. */
function shownOthers(): void {
  const waiting = cards.size + changesCards.size;
  empty.hidden = waiting > 0;
  changesTitle.hidden = changesCards.size === 0;
  document.title = `${waiting > 0 ? `(${waiting}) ` : ''}Approvals: sandbox-run`;
  noticeMoves();
}

function showChanges({ sets }: WaitingChanges): void {
  const ids = new Set(sets.map(({ id }) => id));
  for (const [id, { card }] of changesCards) {
    if (ids.has(id)) continue;
    card.element.remove();
    changesCards.delete(id);
    opened.delete(id);
  }
  for (const set of sets) {
    const as = JSON.stringify(set);
    const before = changesCards.get(set.id);
    if (before?.as === as) continue;
    const card = cardOfChanges(set);
    if (before === undefined) changes.append(card.element);
    else before.card.element.replaceWith(card.element);
    changesCards.set(set.id, { as, card });
  }
  shownOthers();
}

function cardOfChanges(set: WaitingSet): LiveCard {
  const { id, command } = set;
  const diffs = opened.get(id) ?? new Map<string, string>();
  opened.set(id, diffs);
  return createChangesCard(set, {
    apply: (path) => noted(askOfChanges('apply', id, path), command),
    discard: (path) => noted(askOfChanges('discard', id, path), command),
    diff: (path) =>
      askOfChanges('diff', id, path).catch(() => ({ ok: false, sentence: 'The server cannot be reached.' })),
    opened: diffs,
    resized: noticeMoves,
  });
}

function connected({ now, requests }: PendingRequests): void {
  connection.textContent = 'Live';
  connection.classList.remove('lost');
  clockOffset = now - Date.now();
  show(requests);
}

/** Shows that the connection is lost, and removes questions that cannot be answered. */
function lost(why: string): void {
  connection.textContent = why;
  connection.classList.add('lost');
  show([]);
  showChanges({ sets: [] });
  empty.hidden = true;
}

async function keepListening(): Promise<void> {
  for (;;) {
    try {
      await listen({ pending: connected, changes: showChanges });
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
