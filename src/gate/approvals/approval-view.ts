import { hostAndPort } from '../../base/host-and-port.ts';
import { readableWord, shellWord } from '../../base/shell-quote.ts';
import { visibleLine, visibleText } from '../../base/visible-text.ts';
import {
  type ApprovalRequest,
  decisiveReason,
  isLoss,
  type Reach,
  type Risk,
  type Verdict,
} from '../../model/index.ts';

/** A request ready to be shown: every text is whole, and nothing in it is invisible. Only lines of a command are lines. */
export interface ApprovalView {
  readonly command: CommandView;
  /** Why it is asked, in a sentence. */
  readonly question: string;
  /** What would be lost, reached or changed by name, and what else the decision needs: a label of ours and names. */
  readonly stakes: readonly Stake[];
  readonly cwd: string;
  readonly principal: string;
  readonly session: string | undefined;
  /** Which machine asks, and for which job of a fleet, where several have one queue. */
  readonly from: readonly string[];
  readonly verdict: Verdict;
  readonly risk: Risk;
  readonly reach: Reach;
  /** What the checks of the policy said that did not simply allow. */
  readonly remarks: readonly {
    readonly check: string;
    readonly verdict: Verdict;
    readonly message: string;
  }[];
  readonly parts: readonly PartView[];
  readonly environment: readonly string[];
  readonly profile: string;
  readonly lost: readonly string[];
  readonly reached: readonly string[];
  readonly confinement: readonly string[];
  /** What it may run that nobody can know beforehand. */
  readonly unseen: readonly string[];
  readonly fingerprint: string;
  /** Host and port, where it is not the command that is asked about but a connection of it. */
  readonly connection?: string;
}

/** What is at stake. */
export interface Stake {
  readonly label: 'Lost' | 'Reached' | 'Written' | 'Unknown' | 'With';
  /** At most {@link MOST_NAMES}. */
  readonly names: readonly string[];
  /** How many more there are. */
  readonly more: number;
}

const MOST_NAMES = 6;
/** Characters of a sentence at most: a long word of the command in it must not push the lines above out of sight. */
const LONGEST_SENTENCE = 400;
/** Characters of a name in a question; the details of the request have the whole name. */
const LONGEST_NAME = 300;

/** A shell string by its lines; or an argument vector, each word as a shell would have it written. */
export type CommandView =
  | { readonly kind: 'shell'; readonly lines: readonly string[] }
  | { readonly kind: 'argv'; readonly words: readonly string[] };

/** One simple command. */
interface PartView {
  readonly source: string;
  readonly executable: string | undefined;
  readonly remarks: readonly string[];
}

/** Makes a request fit to be shown. */
export function viewOf(request: ApprovalRequest): ApprovalView {
  const { command, decision } = request;
  const whole = typeof command === 'string' ? undefined : command.join(' ');
  const visible = (text: string) => visibleText(text);
  return {
    command:
      typeof command === 'string'
        ? { kind: 'shell', lines: visibleText(command, { keep: '\n' }).split('\n') }
        : { kind: 'argv', words: command.map(shownWord) },
    question: visibleLine(whyAsked(request), LONGEST_SENTENCE),
    stakes: stakesOf(request),
    cwd: visible(request.cwd),
    principal: visible(request.principal),
    session: request.session === undefined ? undefined : visible(request.session),
    from: fromOf(request).map(visible),
    verdict: decision.verdict,
    risk: decision.risk,
    reach: decision.reach,
    remarks: decision.reasons.flatMap(({ check, verdict, message }) =>
      verdict === undefined || verdict === 'allow' ? [] : [{ check, verdict, message: visible(message) }],
    ),
    parts: request.parts.map(({ source, executable, remarks }) => ({
      // What a part of an argument vector was written as does not tell its words apart.
      source:
        typeof command !== 'string' && source === whole ? command.map(shownWord).join(' ') : visible(source),
      executable: executable === undefined ? undefined : visible(executable),
      remarks: remarks.map(visible),
    })),
    environment: request.environment.map(visible),
    profile: visible(request.profile),
    lost: (request.lost ?? []).map(visible),
    reached: (request.reached ?? []).map(visible),
    confinement: request.confinement.map(visible),
    unseen: (request.unseen ?? []).map(visible),
    fingerprint: visible(request.fingerprint),
    ...(request.connection === undefined
      ? {}
      : { connection: visible(hostAndPort(request.connection.host, request.connection.port)) }),
  };
}

/** Checks about risk: their reasons are left out where another check has a more specific one. */
const OF_RISK: ReadonlySet<string> = new Set(['autonomy', 'risk']);

/** In one sentence, of each kind of question the first. */
function whyAsked({ decision, lost = [] }: ApprovalRequest): string {
  const asked = decision.reasons.filter(({ verdict }) => verdict === 'ask');
  const special = asked.filter(({ check }) => !OF_RISK.has(check));
  const first = decisiveReason(decision);
  if (special.length === 0) return first?.message ?? 'no reason was given';
  const kinds = new Map<string, string>();
  for (const reason of special) {
    const kind = `${reason.check} ${reason.code}`;
    // Files are named below.
    const [file = ''] = isLoss(reason) && lost.length > 1 ? reason.words : [];
    const message =
      file === '' ? reason.message : reason.message.replace(` ${file},`, ` ${lost.length} files,`);
    if (!kinds.has(kind)) kinds.set(kind, message.replace(/\.$/, ''));
  }
  return [...new Set(kinds.values())].join('; ');
}

/** Where programs are that no command has made. */
const OF_SYSTEM = /^\/(?:usr|bin|sbin|lib|lib64)\//;

/** Only what the decision needs: of a loss the files, else where it leads and what it writes; and what is not usual. */
function stakesOf(request: ApprovalRequest): readonly Stake[] {
  const { lost = [], reached = [], touches = [], unseen = [], connection } = request;
  const programs = request.parts.flatMap(({ executable = '/usr/' }) =>
    OF_SYSTEM.test(executable) ? [] : [`the program ${quoted(executable)}`],
  );
  const writes = lost.length > 0 ? [] : touches.filter((name) => name !== NETWORK);
  const network = reached.length > 0 ? reached : touches.filter((name) => name === NETWORK);
  const leads = connection === undefined ? network : [hostAndPort(connection.host, connection.port)];
  return [
    stakeOf('Lost', lost.map(quoted)),
    stakeOf('Reached', leads),
    stakeOf('Written', writes.map(quoted)),
    stakeOf('Unknown', unseen),
    stakeOf('With', [...request.environment.map(quoted), ...programs]),
  ].filter(({ names }) => names.length > 0);
}

/** In `touches`, beside paths. */
const NETWORK = 'the network';

/** A name as one word: no comma or blank in it looks like one of ours. */
const quoted = (name: string) => (name.includes(',') ? shellWord(name) : readableWord(name));

function stakeOf(label: Stake['label'], given: readonly string[]): Stake {
  const names = [...new Set(given)];
  return {
    label,
    names: names.slice(0, MOST_NAMES).map((name) => visibleLine(name, LONGEST_NAME)),
    more: Math.max(0, names.length - MOST_NAMES),
  };
}

function fromOf({ host, job }: ApprovalRequest): readonly string[] {
  return [
    ...(host === undefined ? [] : [host]),
    ...(job === undefined ? [] : [`queue ${job.queue}`, `job ${job.id}`, `worker ${job.worker}`]),
  ];
}

/** A word of an argument vector: its beginning and its end can be seen. */
function shownWord(word: string): string {
  return readableWord(visibleText(word));
}
