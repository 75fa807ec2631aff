import { join, resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { orElse } from '../../base/or-else.ts';
import type { MaybePromise } from '../../base/promise.ts';
import { APPROVAL_SCOPES } from '../../base/words.ts';
import { loadAddon } from '../../confine/native/load.ts';
import {
  answerRequest,
  confirmRuleOn,
  offeredRule,
  requestOf,
  scopeSentence,
  viewOf,
  withTerminal,
} from '../../gate/index.ts';
import type { ApprovalScope, ApprovalStore, ChangeSetDetail, PersonalAnswer } from '../../model/index.ts';
import {
  ChangeSets,
  defaultPrincipal,
  openOwnState,
  type StateSettings,
  stateDirectory,
} from '../../run/index.ts';
import {
  fitsAddress,
  isOurs,
  type Listener,
  LONGEST_PATH,
  listenForClients,
  queueOffer,
} from '../../serve/index.ts';
import { ensureStateDirectory, isTimedId } from '../../workspace/index.ts';
import { caller } from '../shared/caller.ts';
import { applyChanges, describeChanges, discardChanges } from '../shared/change-sets.ts';
import { wholeNumber } from '../shared/options.ts';
import { withSubcommands } from '../shared/parse.ts';
import { jsonLine, printError, printOut } from '../shared/print.ts';
import { ruleWriter } from '../shared/rule-writer.ts';
import { aborted, untilEnded } from '../shared/signals.ts';
import {
  describeGrant,
  describeRequest,
  listGrants,
  listRequests,
  showRequest,
  watchRequests,
} from './show.ts';

const HELP_AFTER = `
A request waits in the state directory ($XDG_STATE_HOME/sandbox-run, ~/.local/state without it)
until it is answered, or until it expires. The first answer counts. It is valid for exactly the
command that was shown, once, unless a scope says more:
  once      this time
  session   whenever the same is asked in the same session
  always    whenever the same is asked, until it is revoked

Changes of previews wait there, too: approve applies them, deny discards them, watch asks about them
while no command waits (sandbox-run changes does it by paths, and with diffs).

Examples:
  sandbox-run approvals list
  sandbox-run approvals show 5c1f0e9b7a3d48c2f6e0b1a9
  sandbox-run approvals approve 5c1f0e9b7a3d48c2f6e0b1a9 --scope session
  sandbox-run approvals approve 5c1f0e9b7a3d48c2f6e0b1a9 --rule
  sandbox-run approvals watch
  sandbox-run approvals serve --port 8022
  sandbox-run approvals grants; sandbox-run approvals revoke 0d9e8f7a6b5c4d3e2f1a0b9c

Exit status: 0; 1 if a part of changes was not applied; 125 if there is no such request or grant, if it was answered or expired, or if
anything else failed.`;

const SERVE_HELP = `
The web page can be reached only from this machine, at the address that is printed. Every program that
knows the address can answer, and can apply or discard the changes of previews that the page shows. The socket is for programs of the same user: JSON-RPC 2.0, one message per line, as
sandbox-run serve --schema has it, with initialize ("approvals": true to be told of requests as they
come and go), approvals.list and approvals.answer {"question", "approved", "scope"?}.
Choose a path that sandboxed commands cannot reach. Programs that are confined by seccomp or
no_new_privs are rejected, unless the server is confined, too. Ends with Ctrl-C or SIGTERM.`;

interface Format {
  readonly json?: boolean;
}

/** Whose requests: what a command that shows and answers them is called, and where they are. */
export interface ApprovalsOf<Options> {
  readonly name: string;
  readonly about: string;
  readonly helpAfter: string;
  /** Adds the options that say where. */
  readonly options: (command: Command) => Command;
  /** What they say; `undefined`: what the policy says. */
  readonly settings: (options: Options) => MaybePromise<StateSettings | undefined>;
}

const OF_POLICY: ApprovalsOf<object> = {
  name: 'sandbox-run approvals',
  about: 'Shows and answers what the policy asks about.',
  helpAfter: HELP_AFTER,
  options: (command) => command,
  settings: () => undefined,
};

/** `sandbox-run approvals`: requests that wait for an answer, and what is remembered. */
export async function approvals(args: readonly string[]): Promise<number> {
  return approvalsOf(OF_POLICY, args);
}

/** The same of what another place keeps. */
export async function approvalsOf<Where>(of: ApprovalsOf<Where>, args: readonly string[]): Promise<number> {
  const { command: plainCommand, does, run } = withSubcommands(of.name, of.about, of.helpAfter);
  const command = (usage: string, about: string, help?: string) =>
    of.options(plainCommand(usage, about, help));
  /** A command that works with the store, which is closed when it is done. */
  const withStore = (where: Where, work: (store: ApprovalStore) => Promise<string>): void =>
    does(async () => {
      const { state } = await openOwnState(defaultPrincipal(), await of.settings(where));
      try {
        return await work(state.approvals);
      } finally {
        await state.close();
      }
    });

  command('list', 'requests that wait for an answer, and changes of previews')
    .option('--all', 'also the answered and expired ones of the last day')
    .option('--json', 'one JSON object per line')
    .action((options: Where & Format & { readonly all?: boolean }) =>
      withStore(options, (store) =>
        listRequests(store, { all: options.all === true, json: options.json === true }),
      ),
    );
  command('show <id>', 'all that is known of a request, or of changes')
    .option('--json', 'one JSON object')
    .action((id: string, options: Where & Format) =>
      isTimedId(id)
        ? does(() => showChanges(id, options.json === true))
        : withStore(options, (store) => showRequest(store, id, options.json === true)),
    );
  command('approve <id>', 'lets the command of a request run, or applies changes; prints what that is')
    .addOption(
      new Option('--scope <scope>', 'how long the approval is valid')
        .choices(APPROVAL_SCOPES)
        .default('once'),
    )
    .addOption(
      new Option(
        '--rule',
        'shows a rule that allows the same from then on, and writes it into your policy after a yes on the terminal',
      ).conflicts('scope'),
    )
    .action((id: string, options: Where & { readonly scope: ApprovalScope; readonly rule?: true }) => {
      if (isTimedId(id) && options.rule === undefined) does(() => approveChanges(id, options.scope));
      else
        withStore(options, (store) =>
          options.rule === true
            ? approveWithRule(store, id)
            : answerFromHere(store, id, { approved: true, scope: options.scope }),
        );
    });
  command('deny <id>', 'refuses the command of a request, or discards changes').action(
    (id: string, options: Where) =>
      isTimedId(id)
        ? does(() => denyChanges(id))
        : withStore(options, (store) => answerFromHere(store, id, { approved: false })),
  );
  command('watch', 'shows requests and changes as they come; asks, if standard input is a terminal')
    .option('--json', 'one JSON object per line, and no questions')
    .action((options: Where & Format) =>
      withStore(options, (store) => watchRequests(store, options.json === true)),
    );
  command('grants', 'what was approved for longer than once, in full')
    .option('--json', 'one JSON object per line')
    .action((options: Where & Format) =>
      withStore(options, (store) => listGrants(store, options.json === true)),
    );
  command('revoke <id>', 'forgets a grant, so that it is asked again').action((id: string, options: Where) =>
    withStore(options, (store) => revokeGrant(store, id)),
  );
  command('serve', 'a web page and a Unix socket to answer by', SERVE_HELP)
    .option('--port <number>', 'the port of the web page on 127.0.0.1 (default: a free one)', parsePort)
    .option('--socket <path>', 'the path of the socket (default: approvals.sock in the state directory)')
    .action((options: Where & { readonly port?: number; readonly socket?: string }) =>
      withStore(options, (store) => serveApprovals(store, options)),
    );
  return run(args);
}

const parsePort = wholeNumber(0, 65_535, 'It must be 0 to 65535.');

/** `approvals approve` and `approvals deny`: says what was answered. */
async function answerFromHere(store: ApprovalStore, id: string, answer: PersonalAnswer): Promise<string> {
  const stored = await answerRequest(store, id, answer, 'command line');
  const { request } = stored;
  const outcome = answer.approved
    ? `Approved (${answer.scope}). ${scopeSentence(answer.scope, viewOf(request))}`
    : 'Denied.';
  return `${describeRequest(stored)}${outcome}\n`;
}

/** `approvals approve --rule`: the same offer, question and file as on the terminal of a command. */
async function approveWithRule(store: ApprovalStore, id: string): Promise<string> {
  const { request, state, expiresAt } = await requestOf(store, id);
  const rule = offeredRule(request);
  if (rule === undefined || state !== 'pending')
    throw new SandboxError(
      'usage.invalid',
      state === 'pending'
        ? `no rule can answer the request ${id}: it concerns lost work, a secret, more than one command, or another machine`
        : `the request ${id} does not wait any more, so that no rule is written`,
    );
  const rules = ruleWriter();
  const talk = { end: performance.now() + Math.max(expiresAt - Date.now(), 0), signal: undefined };
  const talked = await withTerminal(
    (terminal) => confirmRuleOn(terminal, request, rule, rules, { ...talk, onInterrupt: undefined }),
    { ...talk, tryLock: orElse(() => loadAddon().tryLock, undefined) },
  );
  if (!talked.used)
    throw new SandboxError(
      'usage.invalid',
      'no rule is written, because a person has to say yes on a terminal, and there is none here',
    );
  if (!talked.result) return 'Nothing was written; the request still waits.\n';
  rules.write(rule);
  await answerRequest(store, id, { approved: true, scope: 'once' }, 'command line, with a rule');
  return 'Approved (once), and the rule was written.\n';
}

/** `approvals show` of changes. */
function showChanges(id: string, json: boolean): string {
  const set = new ChangeSets().show(id);
  return json ? jsonLine(set) : describeChanges(set);
}

/** `approvals approve` of changes: applies all that can be. */
async function approveChanges(id: string, scope: ApprovalScope): Promise<number> {
  if (scope !== 'once')
    throw new SandboxError('usage.invalid', 'changes are applied once; leave --scope out');
  printOut(describeChanges(thatWait(id)));
  return applyChanges(id);
}

/** `approvals deny` of changes: what is not applied of them is gone. */
async function denyChanges(id: string): Promise<string> {
  const set = thatWait(id);
  return `${describeChanges(set)}${await discardChanges(id)}\n`;
}

function thatWait(id: string): ChangeSetDetail {
  const sets = new ChangeSets();
  const set = sets.show(id);
  if (sets.mayWait(id)) return set;
  throw new SandboxError(
    'changes.state',
    `the changes ${id} do not wait any more: ${set.state}; see sandbox-run changes show ${id}`,
  );
}

/** `approvals revoke`: says what is forgotten. */
async function revokeGrant(store: ApprovalStore, id: string): Promise<string> {
  const grant = (await store.grants()).find((known) => known.id === id);
  if (grant === undefined || !(await store.revoke(id)))
    throw new SandboxError(
      'approval.unknown',
      `there is no grant ${id}; \`sandbox-run approvals grants\` shows them`,
    );
  return `${describeGrant(grant)}Revoked.\n`;
}

/** `approvals serve`: until a signal comes. */
async function serveApprovals(
  store: ApprovalStore,
  { port = 0, socket }: { readonly port?: number; readonly socket?: string },
): Promise<string> {
  const { serveApprovalPage } = await import('../../serve/approvals/web/web-server.ts');
  const path = socket === undefined ? defaultSocket() : resolve(socket);
  await untilEnded(async (over) => {
    const listener = path === undefined ? undefined : await listen(store, path);
    try {
      const pageServer = await serveApprovalPage({ store, port, around: caller() });
      try {
        const place = listener === undefined ? '' : `socket    ${listener.path}\n`;
        printOut(`web page  ${pageServer.address}\n${place}`);
        await aborted(over.signal);
      } finally {
        await pageServer.close();
      }
    } finally {
      await listener?.close('the server is stopping');
    }
  });
  return '';
}

function listen(store: ApprovalStore, path: string): Promise<Listener> {
  return listenForClients(queueOffer(store, printError), {
    ...{ path, name: 'approvals serve', sharedDirectory: true, admits: isOurs, addon: loadAddon() },
  });
}

/** In the state directory; `undefined`, and said, if no socket can be there. Nobody chose that path for it. */
function defaultSocket(): string | undefined {
  const path = join(stateDirectory(), 'approvals.sock');
  if (fitsAddress(path)) {
    // Where a server keeps the state nothing else has made it.
    ensureStateDirectory(stateDirectory());
    return path;
  }
  printError(
    `there is no socket: ${path} is longer than ${LONGEST_PATH} bytes; --socket gives it another path`,
  );
  return undefined;
}
