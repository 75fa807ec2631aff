import type { ApprovalRequest } from '../model/approval.ts';
import type { Reach, Risk, Verdict } from '../model/decision.ts';
import { decisiveReason } from '../model/decisive-reason.ts';
import { hostAndPort } from '../util/host-and-port.ts';
import { readableWord } from '../util/shell-quote.ts';
import { visibleText } from '../util/visible-text.ts';

/** A request ready to be shown: every text is whole, and nothing in it is invisible. Only lines of a command are lines. */
export interface ApprovalView {
  readonly command: CommandView;
  /** Why it is asked, in a sentence. */
  readonly question: string;
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
  readonly touches: readonly string[];
  readonly confinement: readonly string[];
  /** What it may run that nobody can know beforehand. */
  readonly unseen: readonly string[];
  readonly fingerprint: string;
  /** Host and port, where it is not the command that is asked about but a connection of it. */
  readonly connection?: string;
}

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
    question: visible(decisiveReason(decision)?.message ?? 'no reason was given'),
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
    touches: (request.touches ?? []).map(visible),
    confinement: request.confinement.map(visible),
    unseen: (request.unseen ?? []).map(visible),
    fingerprint: visible(request.fingerprint),
    ...(request.connection === undefined
      ? {}
      : { connection: visible(hostAndPort(request.connection.host, request.connection.port)) }),
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
