import { isatty } from 'node:tty';
import { answerRequest } from '../../approvals/answer-request.ts';
import { watchPending } from '../../approvals/watch-pending.ts';
import { SandboxError } from '../../errors/sandbox-error.ts';
import type { ApprovalStore, StoredApproval } from '../../model/state.ts';
import { terminalApprover } from '../shared/ask-here.ts';
import { jsonLine, printError, printOut } from '../shared/print.ts';
import { untilEnded } from '../shared/signals.ts';
import { describeRequest, requestAsJson } from './show.ts';

/** `approvals watch`: until a signal comes. */
export async function watchRequests(store: ApprovalStore, json: boolean): Promise<string> {
  if (!json) printOut('Watching for requests; Ctrl-C ends.\n');
  await untilEnded((over) => (!json && isatty(0) ? askAll(store, over) : tellAll(store, json, over.signal)));
  return '';
}

function tellAll(store: ApprovalStore, json: boolean, signal: AbortSignal): Promise<void> {
  return watchPending(
    store,
    ({ come, gone }) => {
      for (const stored of come) {
        if (json) printOut(jsonLine({ type: 'pending', request: requestAsJson(stored) }));
        else printOut(`\n${describeRequest(stored)}`);
      }
      for (const stored of gone) {
        if (json) printOut(jsonLine({ type: 'settled', id: stored.id, state: stored.state }));
        else printOut(`\n${stored.id}  ${stored.state}\n`);
      }
    },
    { signal },
  );
}

/** Asks about each request, the longest waiting first; gives up on one that is answered elsewhere. */
async function askAll(store: ApprovalStore, over: AbortController): Promise<void> {
  const approver = await terminalApprover(() => over.abort());
  const asked = new Map<string, AbortController>();
  const answers: Promise<void>[] = [];

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
    }
  }

  try {
    await watchPending(
      store,
      ({ come, gone }) => {
        for (const { id } of gone) asked.get(id)?.abort();
        answers.push(...come.map(ask));
      },
      { signal: over.signal },
    );
  } finally {
    over.abort();
    await Promise.all(answers);
  }
}
