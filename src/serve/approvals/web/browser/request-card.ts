import type { CommandView, Stake } from '../../../../gate/index.ts';
import type { ApprovalScope, PersonalAnswer } from '../../../../model/index.ts';
import type { PendingRequest } from '../page-messages.ts';
import { fact, make, shown } from './elements.ts';
import { createLiveCard } from './live-card.ts';

/** A request on the page, with its buttons. */
export interface RequestCard {
  readonly request: PendingRequest;
  readonly element: HTMLLIElement;
  /** Shows how long it can still be answered. `now` by the server's clock. */
  tick(now: number): void;
  /** If the card moved since the last call, its buttons are deaf again. */
  noticeMove(): void;
}

/** What a card needs of its page. */
interface RequestCardParts {
  /** Sends an answer; resolves to why that failed, or to nothing. */
  send(answer: PersonalAnswer): Promise<string | undefined>;
  /** The card has changed its size. */
  resized(): void;
}

const SOON_S = 30;
const NAMES: Readonly<Record<ApprovalScope, string>> = {
  once: 'Yes, once',
  session: 'Session',
  always: 'Always',
};

/** @see RequestCard */
export function createRequestCard(request: PendingRequest, { send, resized }: RequestCardParts): RequestCard {
  const countdown = make('span', 'countdown');
  const actions = make('div', 'actions');
  const live = createLiveCard(request.id, resized);
  const { element: card, button, deafen } = live;
  card.append(...describe(request, countdown), actions);
  // Buttons that moved are deaf for a moment.
  card.querySelector('details')?.addEventListener('toggle', resized);

  /** Answered: the card goes with the next list. Not answered: it stays and can be tried again. */
  const answer = (given: PersonalAnswer) => live.attempt(() => send(given), true);

  /** What is going to be remembered, to be confirmed. */
  function openPanel(scope: ApprovalScope, meaning: string): void {
    const confirm = button(`Remember: ${NAMES[scope]}`, `confirm-${scope}`, meaning, () =>
      answer({ approved: true, scope }),
    );
    const back = button('Back', 'back', 'Nothing is remembered.', () => {
      panel.remove();
      actions.hidden = false;
      resized();
      card.focus();
    });
    const panel = make(
      'div',
      'confirm',
      make('p', '', shown(meaning)),
      make('div', 'actions', confirm, back),
    );
    panel.setAttribute('role', 'group');
    panel.setAttribute('aria-label', 'What is going to be remembered');
    actions.hidden = true;
    card.append(panel);
    deafen();
    resized();
    back.focus({ preventScroll: true });
    panel.scrollIntoView({ block: 'nearest' });
  }

  for (const { scope, meaning } of request.scopes) {
    const act = () => (scope === 'once' ? answer({ approved: true, scope }) : openPanel(scope, meaning));
    actions.append(button(NAMES[scope], scope, meaning, act));
  }
  const denied =
    request.connection === undefined ? 'The command does not run.' : 'The connection is refused.';
  actions.append(button('No', 'deny', denied, () => answer({ approved: false })));

  return {
    request,
    element: card,
    tick(now) {
      const left = Math.max(0, Math.ceil((request.expiresAt - now) / 1000));
      countdown.textContent = left > 0 ? `expires in ${left} s` : 'expired';
      countdown.classList.toggle('soon', left <= SOON_S);
    },
    noticeMove: live.noticeMove,
  };
}

/** A command as it was written: its lines, with numbers if there are several. */
function commandList(command: CommandView): HTMLOListElement {
  const lines = command.kind === 'shell' ? command.lines : [command.words.join(' ')];
  const items = lines.map((line) => make('li', '', make('span', '', shown(line))));
  const element = make('ol', lines.length === 1 ? 'command' : 'command numbered', ...items);
  element.setAttribute('aria-label', 'command');
  return element;
}

/** The command, why it is asked, and what would be lost or reached; all else stands behind "More". */
function describe(request: PendingRequest, countdown: HTMLElement): readonly Node[] {
  return [
    commandList(request.command),
    make('p', 'why', shown(request.question)),
    make(
      'dl',
      '',
      ...request.stakes.flatMap(stake),
      ...fact('In', request.cwd),
      ...fact('From', ...request.from),
    ),
    more(request),
    make('p', 'facts', countdown),
  ];
}

function stake({ label, names, more }: Stake): readonly HTMLElement[] {
  const items = names.map((name) => make('div', 'mono', shown(name)));
  const rest = more === 0 ? [] : [make('div', 'facts', `and ${more} more`)];
  return [make('dt', '', label), make('dd', '', ...items, ...rest)];
}

/** What most decisions do not need. */
function more(request: PendingRequest): HTMLElement {
  const { stakes, remarks, parts, environment, profile, confinement, principal, session } = request;
  const isCut = (label: Stake['label']) => stakes.some((one) => one.label === label && one.more > 0);
  const reasons = remarks.flatMap(({ message }) =>
    request.question.includes(message.replace(/\.$/, '')) ? [] : [message],
  );
  const programs = parts.map(
    ({ source, executable }) => `${source} runs ${executable ?? 'no program that was found'}`,
  );
  const details = make(
    'details',
    '',
    make('summary', '', 'More'),
    make(
      'dl',
      '',
      ...fact('All that is lost', ...(isCut('Lost') ? request.lost : [])),
      ...fact('All that is reached', ...(isCut('Reached') ? request.reached : [])),
      ...fact('Also asked', ...new Set(reasons)),
      ...fact('Programs', ...programs),
      ...fact('Variables', ...environment),
      ...fact('Profile', profile),
      ...fact('Held', ...confinement),
      ...fact('Asked by', session === undefined ? principal : `${principal}, session ${session}`),
    ),
  );
  return details;
}
