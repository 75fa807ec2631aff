import { assertNever } from '../../base/assert-never.ts';
import { APPROVAL_SCOPES } from '../../base/words.ts';
import { type ApprovalRequest, type ApprovalScope, isLoss } from '../../model/index.ts';
import { type ApprovalView, viewOf } from './approval-view.ts';

/** How wide the text may be. */
interface PresentationOptions {
  readonly columns?: number;
}

/** How much a question says. */
interface QuestionOptions extends PresentationOptions {
  /** Another program shows the whole command beside it, and breaks lines: so many rows of it, and one for all that is at stake. */
  readonly commandRows?: number;
}

const NARROWEST = 24;
const GUTTER = 14;
/** Columns before each row of a question, so that no text of others begins at the left edge. */
const MARGIN = 2;

/**
 * A request as a question: the command as it was written, why it is asked, and what would be lost or reached. Short, so that it is
 * read; {@link presentRequest} has the rest. No text of others reaches the left edge: lines of the command stand behind `| `, and
 * behind `: ` where they go on; sentences are indented, and further where they go on.
 */
export function presentQuestion(
  request: ApprovalRequest,
  { columns = 100, commandRows: most }: QuestionOptions = {},
): string {
  const view = viewOf(request);
  const width = most === undefined ? Math.max(columns - MARGIN, NARROWEST) : Number.POSITIVE_INFINITY;
  const [why = '', ...others] = sentences(view);
  const rows = most === undefined ? [why, ...others] : [why, others.join('; ')];
  return page([
    ...commandShown(view, request, width, most),
    ...rows.flatMap((text) => indented(text, width)),
  ]);
}

/** What stands behind the command in a question. */
function sentences(view: ApprovalView): readonly string[] {
  const rows = view.stakes.map(
    ({ label, names, more }) => `${label}: ${names.join(', ')}${more === 0 ? '' : `, and ${more} more`}`,
  );
  return [view.question, ...rows, ...whereabouts(view).map(shortened)];
}

/** Where the command would run, and which machine asks. */
const whereabouts = ({ cwd, from }: ApprovalView): readonly string[] => [
  `In: ${cwd}`,
  ...(from.length === 0 ? [] : [`From: ${from.join(', ')}`]),
];

/** The most characters of a path or host that a question names; the rest is left out. */
const LONGEST_PLACE = 300;
const shortened = (text: string) => (text.length > LONGEST_PLACE ? `${text.slice(0, LONGEST_PLACE)}…` : text);

/** A sentence with its further rows indented, so that none of them can look like a line of ours. */
const indented = (text: string, width: number): readonly string[] =>
  wrapped(text, Math.max(width - 2 * MARGIN, NARROWEST - MARGIN), true).map(
    (piece, at) => `${' '.repeat(at === 0 ? MARGIN : 2 * MARGIN)}${piece}`,
  );

/** A sentence of ours, which may hold names, as it stands in a question. */
export function presentSentence(text: string, { columns = 100 }: PresentationOptions = {}): string {
  return page(indented(text, Math.max(columns - MARGIN, NARROWEST)));
}

function commandShown(
  { command }: ApprovalView,
  request: ApprovalRequest,
  width: number,
  most = Number.POSITIVE_INFINITY,
): readonly string[] {
  const lines = command.kind === 'shell' ? command.lines : [command.words.join(' ')];
  const rows = lines.flatMap((line) =>
    wrapped(line, width).map((piece, at) => `${at === 0 ? '|' : ':'} ${piece}`),
  );
  return rows.length <= most ? rows : [...rows.slice(0, most - 1), `  … ${sizeOfCommand(request)} in all`];
}

/** A request as text for people: the question, and all else that is known of it, however long. */
export function presentRequest(
  request: ApprovalRequest,
  { columns = 100 }: PresentationOptions = {},
): string {
  const view = viewOf(request);
  const said = new Set<string>([view.question]);
  const isNew = (text: string) => !said.has(text) && said.add(text).size > 0;
  const others = view.remarks.filter(({ message }) => !view.question.includes(message.replace(/\.$/, '')));
  const cut = view.stakes.filter(({ more }) => more > 0).map(({ label }) => label);
  const rest = [
    ...others.map(({ check, verdict, message }) => `${check} (${verdict}): ${message}`),
    ...whereabouts(view).filter((text) => text !== shortened(text)),
    `Risk ${view.risk}, reach ${view.reach}`,
    ...(cut.includes('Lost') ? [`All that would be lost: ${view.lost.join(', ')}`] : []),
    ...(cut.includes('Reached') ? [`All that would be reached: ${view.reached.join(', ')}`] : []),
    ...view.parts.flatMap(({ source, executable, remarks }) => [
      `${source} runs ${executable ?? 'no program that was found'}`,
      ...remarks.filter((remark) => !view.remarks.some(({ message }) => message === remark)),
    ]),
    ...view.environment.map((one) => `Variable: ${one}`),
    `Profile: ${view.profile}`,
    ...view.confinement.map((one) => `Held: ${one}`),
    `Asked by: ${view.principal}${view.session === undefined ? '' : `, session ${view.session}`}`,
  ].filter(isNew);
  const width = Math.max(columns - MARGIN, NARROWEST);
  return `${presentQuestion(request, { columns })}${page(rest.flatMap((text) => indented(text, width)))}`;
}

/** What an answer takes in that nobody can know. */
export const whateverThatIs = (unseen: readonly string[]): string =>
  `approves whatever ${unseen.slice(0, MOST_UNSEEN).join(', ')}${unseen.length > MOST_UNSEEN ? ' and more' : ''} then ${unseen.length === 1 ? 'is' : 'are'}`;

const MOST_UNSEEN = 5;

const page = (rows: readonly string[]) => rows.map((row) => `${row}\n`).join('');

/** How much there is to read, for those who do not see all of it at once. */
export function sizeOfCommand({ command }: ApprovalRequest): string {
  if (typeof command !== 'string') return `${command.length} words`;
  const lines = command.split('\n').length;
  return `${lines} ${lines === 1 ? 'line' : 'lines'}, ${[...command].length} characters`;
}

/**
 * How a request can be approved: for longer than once only if all that runs is known and no work is lost with it, for a
 * session only if it belongs to one.
 */
export function scopesOf(request: Approvable): readonly ApprovalScope[] {
  const isOnlyOnce = whyOnlyOnce(request) !== undefined;
  return APPROVAL_SCOPES.filter(
    (scope) => scope === 'once' || (!isOnlyOnce && (scope === 'always' || request.session !== undefined)),
  );
}

/** What of a request says how it can be approved. */
type Approvable = Pick<ApprovalRequest, 'session' | 'unseen' | 'decision'>;

/** Why a request cannot be approved for longer than once; `undefined`: it can. */
export function whyOnlyOnce({ unseen = [], decision }: Approvable): string | undefined {
  if (unseen.length > 0) return `what the command runs cannot be known beforehand (${unseen.join(', ')})`;
  const loss = decision.reasons.find(isLoss);
  return loss && `the next time other work would be lost (${loss.message})`;
}

/** What an answer would allow, in a sentence. */
export function scopeSentence(
  scope: ApprovalScope,
  { session, principal, connection, unseen }: ApprovalView,
): string {
  if (connection !== undefined) return scopeOfConnection(scope, connection, session, principal);
  const exactly =
    'exactly this command, in this directory, with these program files, environment, profile and confinement under this version of the policy';
  switch (scope) {
    case 'once':
      return unseen.length === 0
        ? `Allows ${exactly}, once.`
        : `Allows ${exactly}, once. It ${whateverThatIs(unseen)}.`;
    case 'session':
      return `Allows ${exactly}, without asking again, in the session ${session ?? '(none)'} of ${principal}.`;
    case 'always':
      return `Allows ${exactly}, without asking again, in every session of ${principal}, until it is revoked.`;
    default:
      return assertNever(scope);
  }
}

/** The scope of an approval for a connection. It holds for all programs, because a program chooses its own name. */
function scopeOfConnection(
  scope: ApprovalScope,
  connection: string,
  session: string | undefined,
  principal: string,
): string {
  const what = `connections to ${connection}`;
  switch (scope) {
    case 'once':
      return `Allows this command ${what}, until it ends.`;
    case 'session':
      return `Allows commands in this workspace ${what}, without asking again, in the session ${session ?? '(none)'} of ${principal}.`;
    case 'always':
      return `Allows commands in this workspace ${what}, without asking again, in every session of ${principal}, until it is revoked.`;
    default:
      return assertNever(scope);
  }
}

/** One row for each text, and further ones behind `:` where it is too long; the label stands before the first. */
function labelled(
  label: string,
  texts: readonly string[],
  width: number,
  gutter: number = GUTTER,
): readonly string[] {
  return texts.flatMap((text, index) =>
    wrapped(text, width).map((piece, part) => {
      const head = index === 0 && part === 0 ? label : '';
      return `${head.padEnd(gutter - 2)}${part === 0 ? '|' : ':'} ${piece}`;
    }),
  );
}

/** Texts that others wrote, each behind a label of ours, so that none reaches the left edge. They have to be visible. */
export function presentRows(
  rows: readonly { readonly label: string; readonly text: string }[],
  { columns = 100, gutter = GUTTER }: PresentationOptions & { readonly gutter?: number } = {},
): string {
  const width = Math.max(columns - gutter, NARROWEST);
  return page(rows.flatMap(({ label, text }) => labelled(label, [text], width, gutter)));
}

/**
 * Cut by columns, so that what stands on a line is what is there; of a sentence behind a blank, which stays. Anything but ASCII may be
 * two columns wide.
 */
function wrapped(text: string, width: number, atBlanks = false): readonly string[] {
  const pieces: string[] = [];
  let piece = '';
  let used = 0;
  for (const character of text) {
    const wide = character > '\u{7e}' ? 2 : 1;
    if (used + wide > width) {
      const blank = atBlanks ? piece.lastIndexOf(' ') + 1 : 0;
      const end = blank > piece.length / 2 ? blank : piece.length;
      pieces.push(piece.slice(0, end));
      piece = piece.slice(end);
      used = [...piece].reduce((sum, one) => sum + (one > '\u{7e}' ? 2 : 1), 0);
    }
    piece += character;
    used += wide;
  }
  return [...pieces, piece];
}
