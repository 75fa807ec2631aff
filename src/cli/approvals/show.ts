import { isatty } from 'node:tty';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { orElse } from '../../base/or-else.ts';
import { visibleText } from '../../base/visible-text.ts';
import {
  answerRequest,
  presentQuestion,
  presentRequest,
  presentRows,
  requestOf,
  scopeSentence,
  viewOf,
  watchPending,
} from '../../gate/index.ts';
import type {
  ApprovalGrant,
  ApprovalStore,
  ChangeSet,
  ChangeSetDetail,
  QueuedRequest,
  StoredApproval,
  WatchedRequest,
} from '../../model/index.ts';
import { ChangeSets, changeLine, countsInWords, markOf, WaitingChanges } from '../../run/index.ts';
import { askAboutChanges } from '../shared/ask-changes.ts';
import { terminalApprover } from '../shared/ask-here.ts';
import { jsonLine, type Mood, type Paint, paintFor, printError, printOut } from '../shared/print.ts';
import { untilEnded } from '../shared/signals.ts';

/** The width of the terminal, or 100 columns. */
const outputWidth = () => ({ columns: process.stdout.columns ?? 100 });

/** Changes of a set that are listed at most; `show` lists all. */
const MOST_CHANGES = 20;

/** `approvals list`: requests, and changes of previews. */
export async function listRequests(
  store: ApprovalStore,
  { all, json }: { readonly all: boolean; readonly json: boolean },
): Promise<string> {
  const found = await store.list(all ? 'all' : 'pending');
  const sets = new WaitingChanges(MOST_CHANGES).list();
  if (json)
    return [...found.map(requestAsJson), ...sets.map(({ changes, more, ...set }): ChangeSet => set)]
      .map(jsonLine)
      .join('');
  if (found.length + sets.length === 0)
    return all ? 'No requests within the last day.\n' : 'Nothing waits for an answer.\n';
  return [
    ...found.map(
      (stored) => `${headOf(stored, paintFor(1))}\n${presentQuestion(stored.request, outputWidth())}`,
    ),
    ...sets.map(presentChanges),
  ].join('\n');
}

/** Changes that wait, as a request is shown. */
function presentChanges(set: ChangeSetDetail): string {
  const more = set.more === 0 ? '' : `, of which ${set.changes.length} are shown`;
  const head = `${paintFor(1)('strong', set.id)}  ${paintFor(1)('part', 'waits')}, ${countsInWords(set.counts)}${more}`;
  const rows = set.changes.map((change) => ({
    label: `  ${markOf(change)}`,
    text: visibleText(changeLine(change)),
  }));
  return `${head}\n${headingOf(set, outputWidth())}${presentRows(rows, outputWidth())}`;
}

/** What changes are of. */
function headingOf({ command, workspace, on }: ChangeSet, width: { readonly columns: number }): string {
  return presentRows(
    [
      { label: 'changes of', text: visibleText(command) },
      { label: 'workspace', text: visibleText(workspace) },
      ...(on === undefined ? [] : [{ label: 'lie on', text: on }]),
    ],
    width,
  );
}

/** `approvals show`. */
export async function showRequest(store: ApprovalStore, id: string, json: boolean): Promise<string> {
  const stored = await requestOf(store, id);
  return json ? jsonLine(requestAsJson(stored)) : describeRequest(stored);
}

/** A request as other programs get it. */
function requestAsJson({ id, state, createdAt, expiresAt, request }: StoredApproval): QueuedRequest {
  return { id, state, createdAt, expiresAt, ...request };
}

/** A request in full. */
export function describeRequest(stored: StoredApproval): string {
  return `${headOf(stored, paintFor(1))}\n${presentRequest(stored.request, outputWidth())}`;
}

const MOODS: Readonly<Record<StoredApproval['state'], Mood>> = {
  pending: 'part',
  approved: 'good',
  denied: 'bad',
  expired: 'plain',
  used: 'good',
  withdrawn: 'plain',
  abandoned: 'plain',
};

function headOf({ id, state, scope, expiresAt, answeredBy }: StoredApproval, paint: Paint): string {
  const name = paint('strong', id);
  if (state === 'pending') {
    const left = Math.max(0, Math.ceil((expiresAt - Date.now()) / 1000));
    return `${name}  ${paint(MOODS[state], 'waits')}, expires in ${left} s`;
  }
  const how = scope === undefined ? state : `${state} (${scope})`;
  return `${name}  ${paint(MOODS[state], how)}${answeredBy === undefined ? '' : `, answered by ${visibleText(answeredBy)}`}`;
}

/** `approvals grants`. */
export async function listGrants(store: ApprovalStore, json: boolean): Promise<string> {
  const grants = await store.grants();
  if (json) return grants.map(jsonLine).join('');
  return grants.length === 0 ? 'Nothing is remembered.\n' : grants.map(describeGrant).join('\n');
}

/** A grant in full. */
export function describeGrant({ id, scope, grantedAt, grantedBy, request }: ApprovalGrant): string {
  const since = `granted ${new Date(grantedAt).toISOString()} by ${visibleText(grantedBy)}`;
  const rule = scopeSentence(scope, viewOf(request));
  return `${paintFor(1)('strong', id)}  ${scope}, ${since}\n${rule}\n${presentRequest(request, outputWidth())}`;
}

/** `approvals watch`: until a signal comes. */
export async function watchRequests(store: ApprovalStore, json: boolean): Promise<string> {
  if (!json) printOut('Watching for requests; Ctrl-C ends.\n');
  await untilEnded((over) => (!json && isatty(0) ? askAll(store, over) : tellAll(store, json, over)));
  return '';
}

function tellAll(store: ApprovalStore, json: boolean, over: AbortController): Promise<void> {
  const tell = (line: WatchedRequest, shown: string) => printOut(json ? jsonLine(line) : `\n${shown}`);
  const settled = (id: string, state: Extract<WatchedRequest, { type: 'settled' }>['state']) =>
    tell({ type: 'settled', id, state }, `${id}  ${state}\n`);
  let known: readonly ChangeSetDetail[] = [];
  return watchBoth(
    store,
    ({ come, gone }) => {
      for (const stored of come)
        tell({ type: 'pending', request: requestAsJson(stored) }, describeRequest(stored));
      for (const { id, state } of gone) settled(id, state);
    },
    (sets) => {
      for (const set of without(sets, known)) {
        const { changes, more, ...summary } = set;
        tell({ type: 'changes', changes: summary }, presentChanges(set));
      }
      for (const { id } of without(known, sets))
        settled(
          id,
          orElse(() => new ChangeSets().show(id, 0).state, 'discarded'),
        );
      known = sets;
    },
    over,
  );
}

function without(sets: readonly ChangeSetDetail[], others: readonly ChangeSetDetail[]) {
  const ids = new Set(others.map(({ id }) => id));
  return sets.filter(({ id }) => !ids.has(id));
}

/** Tells of requests and of changes until it is over, which it is for both when one of them cannot be looked at. */
async function watchBoth(
  store: ApprovalStore,
  onRequests: Parameters<typeof watchPending>[1],
  onChanges: (sets: readonly ChangeSetDetail[]) => void,
  over: AbortController,
): Promise<void> {
  try {
    await Promise.all([
      watchPending(store, onRequests, { signal: over.signal }),
      new WaitingChanges(MOST_CHANGES).watch(onChanges, over.signal),
    ]);
  } finally {
    over.abort();
  }
}

/** As long as a timer can wait. */
const VERY_LONG_MS = 2 ** 31 - 1;

/**
 * Asks about each request, the longest waiting first; gives up on one that is answered elsewhere. Changes have time: they are
 * asked about while no command waits.
 */
async function askAll(store: ApprovalStore, over: AbortController): Promise<void> {
  const onInterrupt = () => over.abort();
  const approver = await terminalApprover(
    onInterrupt,
    // The commands that are asked about run elsewhere.
    () => true,
  );
  const asked = new Map<string, AbortController>();
  const answers: Promise<void>[] = [];
  let sets: readonly ChangeSetDetail[] = [];
  /** Change sets that a person has seen. */
  const seen = new Set<string>();
  let shown: { readonly id: string; readonly given: AbortController } | undefined;

  async function ask({ id, request, expiresAt }: StoredApproval): Promise<void> {
    const given = new AbortController();
    asked.set(id, given);
    const signal = AbortSignal.any([over.signal, given.signal]);
    const answer = await approver.ask(request, { timeoutMs: Math.max(expiresAt - Date.now(), 0), signal });
    try {
      if (answer.approved) await answerRequest(store, id, answer, 'watch');
      else if (answer.reason === 'denied') await answerRequest(store, id, { approved: false }, 'watch');
      else if (answer.reason === 'nobody') printError(`${id} is not asked about: there is no terminal`);
      else if (answer.reason === 'failed' && !signal.aborted)
        printError(`${id} is not asked about: ${answer.detail ?? 'asking failed'}`);
    } catch (error) {
      // It was answered elsewhere first.
      if (!(error instanceof SandboxError)) throw error;
      printError(error.message);
    } finally {
      asked.delete(id);
      askNext();
    }
  }

  function askNext(): void {
    if (over.signal.aborted || asked.size > 0 || shown !== undefined) return;
    const set = sets.find(({ id }) => !seen.has(id));
    if (set !== undefined) answers.push(askAbout(set));
  }

  async function askAbout(set: ChangeSetDetail): Promise<void> {
    const { id } = set;
    const given = new AbortController();
    shown = { id, given };
    const signal = AbortSignal.any([over.signal, given.signal]);
    const end = performance.now() + VERY_LONG_MS;
    const heading = headingOf(set, outputWidth());
    let isSeen = true;
    try {
      const answered = await askAboutChanges(id, { end, signal, onInterrupt, heading });
      if (answered === 'unasked') printError(`${id} is not asked about: there is no terminal`);
      // The rest of it, and what a command took the terminal from, is asked about again.
      isSeen = answered !== 'part' && !given.signal.aborted;
    } catch (error) {
      // It was answered elsewhere first.
      if (!(error instanceof SandboxError)) throw error;
      printError(error.message);
    } finally {
      shown = undefined;
      if (isSeen) seen.add(id);
      askNext();
    }
  }

  try {
    await watchBoth(
      store,
      ({ come, gone }) => {
        for (const { id } of gone) asked.get(id)?.abort();
        if (come.length > 0) shown?.given.abort();
        answers.push(...come.map(ask));
      },
      (now) => {
        sets = now;
        if (shown !== undefined && !sets.some(({ id }) => id === shown?.id)) shown.given.abort();
        askNext();
      },
      over,
    );
  } finally {
    over.abort();
    await Promise.all(answers);
  }
}
