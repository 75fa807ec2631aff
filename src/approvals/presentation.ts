import type { ApprovalRequest, ApprovalScope } from '../model/approval.ts';
import { APPROVAL_SCOPES } from '../model/words.ts';
import { assertNever } from '../util/assert-never.ts';
import { type ApprovalView, type CommandView, viewOf } from './approval-view.ts';

/** How wide the text may be. */
interface PresentationOptions {
  readonly columns?: number;
}

/** How much a question says. */
interface QuestionOptions extends PresentationOptions {
  /** Another program shows the whole command beside it, and breaks lines: so many rows of it, and one for all the rest. */
  readonly commandRows?: number;
}

const NARROWEST = 24;
const GUTTER = 14;

/**
 * A request as text for people: all of it, however long. What the asker wrote never reaches the left edge: each line
 * begins with a gutter of ours, lines that are too long go on behind one of their own, so that no text can pass for
 * another part of the page.
 */
export function presentRequest(
  request: ApprovalRequest,
  { columns = 100 }: PresentationOptions = {},
): string {
  const view = viewOf(request);
  const width = widthFor(columns);
  return page([
    ...subjectRows(view, width),
    ...labelled('policy', [`${view.verdict}, risk ${view.risk}, reach ${view.reach}`], width),
    ...(view.unseen.length === 0 ? [] : labelled('unknown', [whateverThatIs(view.unseen)], width)),
    ...view.remarks.flatMap((remark) =>
      labelled(remark.check, [`${remark.verdict}: ${remark.message}`], width),
    ),
    ...partsRows(view, width),
    ...labelled('environment', view.environment, width),
    ...labelled('profile', [view.profile], width),
    ...labelled('confinement', view.confinement, width),
    ...labelled(
      'asked by',
      [view.session === undefined ? view.principal : `${view.principal}, session ${view.session}`],
      width,
    ),
    ...fromRows(view, width),
  ]);
}

/** Where programs are that no command has made. */
const OF_SYSTEM = /^\/(?:usr|bin|sbin|lib|lib64)\//;

/**
 * A request as a question: why it is asked, the command, and what it would touch. Short, so that it is read; what it leaves
 * out is what is usual, and {@link presentRequest} has it.
 */
export function presentQuestion(
  request: ApprovalRequest,
  { columns = 100, commandRows: most }: QuestionOptions = {},
): string {
  const view = viewOf(request);
  const width = most === undefined ? widthFor(columns) : Number.POSITIVE_INFINITY;
  const command = commandRows(view.command, width);
  const programs = view.parts.flatMap(({ executable = '/usr/' }) =>
    OF_SYSTEM.test(executable) ? [] : [`runs ${executable}`],
  );
  const unusual = [...new Set([...view.environment, ...programs])];
  const [writes, network] = view.confinement;
  const touched = view.touches.length === 0 ? [] : [view.touches.join(', ')];
  const touches = [...touched, network, writes].filter((text) => text !== undefined);
  const facts = (label: string, texts: readonly string[], rows = 1) =>
    texts.length === 0 ? [] : shortened(labelled(label, [texts.join('; ')], width), rows);
  return page([
    ...facts(view.connection === undefined ? 'Run it?' : 'Let it?', [view.question], 2),
    ...(view.unseen.length === 0 ? [] : facts('unknown', [whateverThatIs(view.unseen)], 2)),
    ...(most === undefined || command.length <= most
      ? command
      : [...command.slice(0, most - 1), ...labelled('', [`… ${sizeOfCommand(request)} in all`], width)]),
    ...(most === undefined
      ? [
          ...labelled('directory', [view.cwd], width),
          ...facts('touches', touches),
          ...facts('with', unusual, 2),
        ]
      : facts('touches', [...touches, `in ${view.cwd}`, ...unusual])),
  ]);
}

/** What an answer takes in that nobody can know. */
export const whateverThatIs = (unseen: readonly string[]): string =>
  `approves whatever ${unseen.slice(0, MOST_UNSEEN).join(', ')}${unseen.length > MOST_UNSEEN ? ' and more' : ''} then ${unseen.length === 1 ? 'is' : 'are'}`;

const MOST_UNSEEN = 5;

function shortened(rows: readonly string[], most: number): readonly string[] {
  if (rows.length <= most) return rows;
  const cut = (row: string) => `${[...row].slice(0, -1).join('')}…`;
  return rows.slice(0, most).map((row, index) => (index === most - 1 ? cut(row) : row));
}

/** What is asked about, and where it would happen. */
const subjectRows = ({ connection, command, cwd }: ApprovalView, width: number) => [
  ...(connection === undefined ? [] : labelled('connection', [connection], width)),
  ...commandRows(command, width),
  ...labelled('directory', [cwd], width),
];

const widthFor = (columns: number) => Math.max(columns - GUTTER, NARROWEST);
const page = (rows: readonly string[]) => rows.map((row) => `${row}\n`).join('');

/** Which command it is, and where it would run: whole, without what was said about it. */
export function presentCommand(
  request: ApprovalRequest,
  { columns = 100 }: PresentationOptions = {},
): string {
  const view = viewOf(request);
  const width = widthFor(columns);
  return page([...subjectRows(view, width), ...fromRows(view, width)]);
}

const fromRows = ({ from }: ApprovalView, width: number) =>
  from.length === 0 ? [] : labelled('from', [from.join(', ')], width);

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
  const loss = decision.reasons.find(({ check, code }) => check === 'losses' && code !== 'nothing');
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

/** It is the same for all programs: what one calls itself is its own affair. */
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

function commandRows(command: CommandView, width: number): readonly string[] {
  if (command.kind === 'argv')
    return command.words.flatMap((word, index) =>
      labelled(index === 0 ? 'program' : `word ${index}`, [word], width),
    );
  return command.lines.flatMap((line, index) =>
    labelled(command.lines.length === 1 ? 'command' : `line ${index + 1}`, [line], width),
  );
}

/** A sentence that stands above already is not said again for each part that it is about. */
function partsRows({ parts, remarks }: ApprovalView, width: number): readonly string[] {
  const said = new Map(remarks.map(({ check, message }) => [message, `as above: ${check}`]));
  return parts.flatMap(({ source, executable, remarks }) => {
    const rows = [
      ...labelled('part', [source], width),
      ...labelled('  runs', [executable ?? 'no program that was found'], width),
      ...[...new Set(remarks.map((remark) => said.get(remark) ?? remark))].flatMap((remark) =>
        labelled('  remark', [remark], width),
      ),
    ];
    for (const remark of remarks) if (!said.has(remark)) said.set(remark, 'as above');
    return rows;
  });
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

/** Cut by columns and not at words: what stands on a line is what is there. Anything but ASCII may be two columns wide. */
function wrapped(text: string, width: number): readonly string[] {
  const pieces: string[] = [];
  let piece = '';
  let used = 0;
  for (const character of text) {
    const wide = character > '\u{7e}' ? 2 : 1;
    if (used + wide > width) {
      pieces.push(piece);
      piece = '';
      used = 0;
    }
    piece += character;
    used += wide;
  }
  return [...pieces, piece];
}
