import type { CommandView } from '../../../../approvals/approval-view.ts';
import type { ApprovalScope, PersonalAnswer } from '../../../../model/approval.ts';
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
const NAMES: Readonly<Record<ApprovalScope, string>> = { once: 'Once', session: 'Session', always: 'Always' };

/** @see RequestCard */
export function createRequestCard(request: PendingRequest, { send, resized }: RequestCardParts): RequestCard {
  const countdown = make('span', 'countdown');
  const actions = make('div', 'actions');
  const live = createLiveCard(request.id, resized);
  const { element: card, button, deafen } = live;
  card.append(...describe(request, countdown), actions);

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
      commandList(request.command),
      make('dl', '', ...remembered(request, scope)),
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
  actions.append(button('Deny', 'deny', denied, () => answer({ approved: false })));

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

/** A command, numbered by lines or by words. */
function commandList(command: CommandView): HTMLOListElement {
  const lines = command.kind === 'shell' ? command.lines : command.words;
  const items = lines.map((line) => make('li', '', make('span', '', shown(line))));
  const element = make('ol', `command ${command.kind}`, ...items);
  element.setAttribute('aria-label', command.kind === 'shell' ? 'command, by lines' : 'command, by words');
  return element;
}

/** A list under a title; nothing if it is empty. */
function section(title: string, items: readonly HTMLLIElement[], className: string): readonly Node[] {
  return items.length === 0 ? [] : [make('h3', '', title), make('ul', className, ...items)];
}

function describe(request: PendingRequest, countdown: HTMLElement): readonly Node[] {
  const risk = make('span', request.risk, `risk ${request.risk}`);
  const remarks = request.remarks.map(({ check, verdict, message }) =>
    make('li', '', `${check} (${verdict}): `, shown(message)),
  );
  const who = request.session === undefined ? '' : `, session ${request.session}`;
  const facts = [
    ...fact('Directory', request.cwd),
    ...fact('Environment', ...request.environment),
    ...fact('Profile', request.profile),
    ...fact('Confinement', ...request.confinement),
    ...fact('Unknown', ...request.unseen.map((one) => `approves whatever ${one} then is`)),
    ...fact('Asked by', `${request.principal}${who}`),
    ...fact('From', ...request.from),
  ];
  return [
    make('div', 'head', make('span', 'facts', risk, `, reach ${request.reach}`), countdown),
    ...(request.connection === undefined ? [] : [make('dl', '', ...fact('Connection', request.connection))]),
    commandList(request.command),
    ...section('What the policy says', remarks, 'remarks'),
    ...section('Its parts', request.parts.map(partItem), 'parts'),
    make('dl', '', ...facts),
  ];
}

function partItem({ source, executable, remarks }: PendingRequest['parts'][number]): HTMLLIElement {
  const runs =
    executable === undefined
      ? ['runs no program that was found']
      : ['runs ', make('code', '', shown(executable))];
  return make(
    'li',
    '',
    make('code', '', shown(source)),
    make('div', 'runs', ...runs),
    make('ul', 'remarks', ...remarks.map((remark) => make('li', '', shown(remark)))),
  );
}

function remembered(request: PendingRequest, scope: ApprovalScope): readonly Node[] {
  const programs = request.parts.flatMap(({ executable }) => (executable === undefined ? [] : [executable]));
  const environment = request.environment.length > 0 ? request.environment : ['as the policy gives it'];
  const who = scope === 'always' ? 'every session' : `session ${request.session}`;
  return [
    ...fact('Directory', request.cwd),
    ...fact('Programs', ...programs),
    ...fact('Environment', ...environment),
    ...fact('Profile', request.profile),
    ...fact('Confinement', ...request.confinement),
    ...fact('For', `${request.principal}, ${who}`),
    ...fact('Fingerprint', request.fingerprint),
  ];
}
