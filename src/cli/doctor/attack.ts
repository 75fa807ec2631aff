import type { AttackedControl, AttackReport, AttackResult, SandboxOptions } from '../../model/index.ts';
import { endedBy } from '../../run/index.ts';
import { type AttackParts, attackHost } from '../attack/attack-host.ts';
import { caller } from '../shared/caller.ts';
import { jsonText, type Mood, type Paint, paintFor, printOut, startProgress, wrap } from '../shared/print.ts';
import { ENDING, onSignals } from '../shared/signals.ts';
import { examineHost } from './examine.ts';

/** What `sandbox-run doctor --attack` is asked for. */
interface DoctorAttackOptions extends Pick<AttackParts, 'prepare' | 'attacks'> {
  readonly sandbox: Pick<SandboxOptions, 'profile' | 'policy' | 'backend'>;
  readonly json: boolean;
  /** Default: standard output. */
  readonly print?: (text: string) => void;
}

/**
 * Attacks the sandbox that a command would get here, and prints what held. Returns the exit status.
 * @throws {SandboxError} for what is wrong with the options, and if the attacks themselves cannot be prepared.
 */
export async function doctorAttack(options: DoctorAttackOptions): Promise<number> {
  const { sandbox, json, print = printOut, ...internal } = options;
  const ending = new AbortController();
  let ended: NodeJS.Signals | undefined;
  using _ = onSignals([...ENDING, 'SIGQUIT'], (signal) => {
    ended ??= signal;
    ending.abort();
  });
  const progress = startProgress();
  progress.show('attacking: making the sandbox');
  try {
    const report = await attackHost({
      ...internal,
      sandbox,
      around: caller(),
      examine: examineHost,
      signal: ending.signal,
      onProgress: (done, of, control) => progress.show(`attacking, ${done} of ${of} commands: ${control}`),
    });
    progress.clear();
    print(json ? jsonText(report) : attackTable(report, paintFor(1)));
    return report.ok ? 0 : 1;
  } catch (error) {
    progress.clear();
    if (ended === undefined) throw error;
    return endedBy(ended);
  }
}

const WIDTH = 100;
const MOODS: Readonly<Record<AttackResult, Mood>> = {
  escaped: 'worst',
  'not-covered': 'part',
  failed: 'part',
  held: 'good',
  'not-tried': 'plain',
};
const WORTH_A_LINE: readonly AttackResult[] = ['escaped', 'not-covered', 'failed'];

/** The report for people, at most 100 columns wide except commands to copy. */
export function attackTable(report: AttackReport, paint: Paint): string {
  const bold = (text: string) => paint('strong', text);
  const verdict = wrap(verdictOf(report), WIDTH).map((line) => paint(report.ok ? 'good' : 'worst', line));
  if (report.problem !== null) return `${verdict.join('\n')}\n`;
  const rows = report.controls.map((control) => {
    const cells = [control.id.padEnd(20), control.claimed.padEnd(12)];
    return `  ${cells.join('')}${paint(MOODS[control.result], control.result.padEnd(12))} ${countOf(control)}`;
  });
  const details = report.controls.flatMap(({ attacks }) =>
    attacks
      .filter(({ result }) => WORTH_A_LINE.includes(result))
      .flatMap(({ id, result, detail }) => [
        `  ${paint(MOODS[result], result.padEnd(12))} ${id}`,
        ...indented(detail),
      ]),
  );
  return [
    ...verdict,
    '',
    bold(`  ${'Control'.padEnd(20)}${'Claimed'.padEnd(12)}${'Result'.padEnd(12)} Attacks held`),
    ...rows,
    '',
    ...(details.length === 0 ? [] : [bold('What worked or could not be carried out'), ...details, '']),
    ...improvements(report.controls, bold),
  ].join('\n');
}

function verdictOf({ version, problem, backend, profile, controls }: AttackReport): string {
  if (problem !== null)
    return `sandbox-run ${version}: nothing was attacked, because commands are refused on this host: ${problem.message}`;
  const escaped = controls.filter(({ result }) => result === 'escaped').map(({ id }) => id);
  const open = controls.filter(({ result }) => result === 'not-covered').map(({ id }) => id);
  const failed = controls.filter(({ attacks }) => attacks.some(({ result }) => result === 'failed'));
  const what =
    escaped.length > 0
      ? `ESCAPED, although the report claims otherwise: ${escaped.join(', ')}`
      : failed.length > 0
        ? `NOT EVERYTHING COULD BE CARRIED OUT, so nothing is known about: ${failed.map(({ id }) => id).join(', ')}`
        : controls.every(({ result }) => result === 'not-tried')
          ? 'NOTHING COULD BE TRIED, so nothing is known'
          : 'nothing escaped that the report says is enforced';
  const rest = open.length === 0 ? '' : `; not covered, as the report says: ${open.join(', ')}`;
  return `sandbox-run ${version}: profile ${profile}, backend ${backend}: ${what}${rest}`;
}

function countOf({ attacks }: AttackedControl): string {
  const tried = attacks.filter(({ result }) => result !== 'not-tried');
  const held = tried.filter(({ result }) => result === 'held').length;
  const not = attacks.length - tried.length;
  return `${held} of ${tried.length}${not === 0 ? '' : `, ${not} not tried`}`;
}

/** Each advice once, with the controls that it is for. */
function improvements(
  controls: readonly AttackedControl[],
  bold: (text: string) => string,
): readonly string[] {
  const advice = new Map<string, string[]>();
  for (const { id, improve } of controls) {
    if (improve !== null) advice.set(improve, [...(advice.get(improve) ?? []), id]);
  }
  if (advice.size === 0) return [];
  const lines = [...advice].flatMap(([text, ids]) => [
    ...wrap(ids.join(', '), WIDTH - 2).map((line) => `  ${line}`),
    ...text.split(/ Or: /).flatMap((way) => {
      const [sentence = '', command] = way.split(' $ ');
      return [...indented(sentence), ...(command === undefined ? [] : [`      $ ${command}`])];
    }),
  ]);
  return [bold('How to improve'), ...lines, ''];
}

function indented(text: string): readonly string[] {
  return wrap(text, WIDTH - 6).map((line) => `      ${line}`);
}
