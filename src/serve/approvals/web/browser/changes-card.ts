import type { WaitingChange, WaitingSet } from '../page-messages.ts';
import { fact, make, shown } from './elements.ts';
import { createLiveCard, type LiveCard } from './live-card.ts';

/** What a card needs of its page. */
interface ChangesCardParts {
  /** Does it; resolves to why that failed, or to nothing. `path`: what it is about; missing: all of it. */
  apply(path?: string): Promise<string | undefined>;
  discard(path?: string): Promise<string | undefined>;
  diff(path: string): Promise<{ readonly ok: boolean; readonly sentence: string }>;
  /** The diffs that are open, by path: they stay when the card is made anew. */
  readonly opened: Map<string, string>;
  resized(): void;
}

/** Changes that wait, on the page. */
export function createChangesCard(set: WaitingSet, parts: ChangesCardParts): LiveCard {
  const card = createLiveCard(set.id, parts.resized);
  const left = set.changes.filter(({ isApplied }) => !isApplied).length + set.more;
  const all = left === 1 ? 'it' : `all ${left.toLocaleString('en-US')}`;
  const actions = make(
    'div',
    'actions',
    card.button(`Apply ${all}`, 'apply-all', 'Puts what can be applied into the workspace.', () =>
      card.attempt(() => parts.apply(), false),
    ),
    card.button(`Discard ${all}`, 'deny', 'Forgets what is not applied; it has to be confirmed.', () =>
      confirm(card, actions, set, parts),
    ),
  );
  const more =
    set.more === 0
      ? []
      : [make('p', 'facts', `${set.more.toLocaleString('en-US')} more: sandbox-run changes show ${set.id}`)];
  const rows = set.changes.map((change) => rowOf(change, card, parts));
  card.element.append(
    make('div', 'head', make('span', 'facts', `${set.counts} wait`), make('span', 'facts', set.id)),
    make('dl', '', ...fact('Command', set.command), ...fact('Workspace', set.workspace)),
    ...(set.on === undefined ? [] : [make('dl', '', ...fact('Lie on', set.on))]),
    make('ul', 'changes', ...rows),
    ...more,
    actions,
  );
  return card;
}

function rowOf(change: WaitingChange, card: LiveCard, parts: ChangesCardParts): HTMLLIElement {
  const { path, mark, text, isApplied } = change;
  const place = make('div', 'diff');
  const show = (diff: string | undefined) => {
    place.replaceChildren(...(diff === undefined ? [] : diff.split('\n').map(diffLine)));
    place.hidden = diff === undefined;
  };
  show(parts.opened.get(path));
  const toggle = async () => {
    if (parts.opened.delete(path)) show(undefined);
    else {
      const { ok, sentence } = await parts.diff(path);
      if (ok) parts.opened.set(path, sentence);
      show(sentence);
    }
    parts.resized();
  };
  const row = make(
    'li',
    '',
    make('div', 'change', make('span', 'mono', `${mark} `, shown(text))),
    make(
      'div',
      'actions',
      card.button('Diff', 'show-diff', 'Shows what changed.', () => void toggle()),
      ...(isApplied
        ? []
        : [
            card.button('Apply', 'apply', 'Puts it into the workspace, with what is in it.', () =>
              card.attempt(() => parts.apply(path), false),
            ),
            card.button('Discard', 'deny', 'Forgets it, with what is in it.', () =>
              card.attempt(() => parts.discard(path), false),
            ),
          ]),
    ),
    place,
  );
  return row;
}

const KINDS: Readonly<Record<string, string>> = { '+': 'added', '-': 'removed', '@': 'place' };

function diffLine(line: string): HTMLDivElement {
  return make('div', KINDS[line.charAt(0)] ?? '', shown(line === '' ? ' ' : line));
}

/** All of it goes: that takes a second click. */
function confirm(card: LiveCard, actions: HTMLElement, set: WaitingSet, parts: ChangesCardParts): void {
  const sure = card.button('Discard all of it', 'confirm-discard', 'It cannot be had back.', () =>
    card.attempt(() => parts.discard(), false),
  );
  const back = card.button('Back', 'back', 'It waits as before.', () => {
    panel.remove();
    actions.hidden = false;
    parts.resized();
    card.element.focus();
  });
  const panel = make(
    'div',
    'confirm',
    make('p', '', `${set.counts}: what is not applied of it is gone then, and cannot be had back.`),
    make('div', 'actions', sure, back),
  );
  panel.setAttribute('role', 'group');
  panel.setAttribute('aria-label', 'What is going to be discarded');
  actions.hidden = true;
  card.element.append(panel);
  card.deafen();
  parts.resized();
  back.focus({ preventScroll: true });
  panel.scrollIntoView({ block: 'nearest' });
}
