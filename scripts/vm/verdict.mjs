// What a run of the kernel matrix comes to: what is wrong with it, and the table.
import { isBad, OUTCOMES } from './outcomes.mjs';

/** Each has a machine of its own with every kernel. */
export const USERS = ['root', 'user'];
/**
 * Tests that have nothing to try in these machines, by what their names end in: those for another processor, for a host
 * without namespaces or with a filter of somebody else's, and for a later Landlock than this kernel's.
 */
const NOT_HERE = /\((?:not x64|no namespaces|Seccomp: 2 in \/proc\/self\/status)\)$/;
const FROM_ABI = /\(from ABI (\d+)\)$/;

const mayBeSkipped = (name, abi) => NOT_HERE.test(name) || Number(FROM_ABI.exec(name)?.[1] ?? 0) > abi;

/** One line for each thing that is not as it has to be with a kernel and its machines; none: it is good. */
export function problemsOf(abi, machines, files) {
  const problems = USERS.flatMap((who) => {
    const machine = machines.find((each) => each.who === who);
    if (machine === undefined) return [`${who}: there was no machine`];
    return problemsOfMachine(abi, machine, files).map((problem) => `${who}: ${problem}`);
  });
  // Some tests are for root and some for everybody else; none is for nobody.
  const [first = [], ...others] = machines.map(({ heard }) => heard.outcomes.skipped);
  for (const name of first)
    if (others.length > 0 && others.every((skipped) => skipped.includes(name)) && !mayBeSkipped(name, abi))
      problems.push(`skipped by everybody: ${name}`);
  return problems;
}

function problemsOfMachine(abi, { vm, heard }, files) {
  const { host, files: ran, rows, attacks } = heard.outcomes;
  const problems = vm.ill.map((line) => `the kernel says: ${line.trim()}`);
  if (!vm.ended || !heard.done) problems.push('the machine did not come to its end');
  if (host === undefined) problems.push('no sandbox could be made');
  else if (host.abi !== abi) problems.push(`Landlock ABI ${host.abi} is used, this kernel has ${abi}`);
  for (const file of files) if (!ran.includes(file)) problems.push(`${file} did not run`);
  for (const { file, name, outcome, reason } of [...rows, ...attacks].filter(isBad))
    problems.push(`${outcome.toUpperCase()} ${file}: ${name}: ${reason}`);
  return problems;
}

const HEADINGS = ['kernel', 'ABI', 'user', 'backend', ...OUTCOMES, 'time'];

/** One row per kernel and user. */
export function tableOf(results) {
  const rows = results.flatMap((result) => USERS.map((who) => rowOf(result, who)));
  const lines = [HEADINGS, ...rows];
  const widths = HEADINGS.map((_, at) => Math.max(...lines.map((line) => line[at].length)));
  return lines
    .map((line) =>
      line
        .map((cell, at) => cell.padEnd(widths[at]))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

function rowOf({ version, machine, abi, users, problems }, who) {
  const { host, rows, attacks, seconds } = users[who];
  const first = who === USERS[0];
  const count = (outcome) => [...rows, ...attacks].filter((row) => row.outcome === outcome).length;
  const abiShown = host === undefined ? '?' : host.abi === abi ? `${abi}` : `${host.abi} (not ${abi})`;
  const view = host?.backend === 'landlock' && host.namespaces ? ' + view' : '';
  return [
    first ? `${version}${machine === 'x86_64' ? '' : ` ${machine}`}` : '',
    abiShown,
    who,
    host === undefined ? '?' : `${host.backend}${view}`,
    ...OUTCOMES.map((outcome) => `${count(outcome)}`),
    `${seconds} s${first && problems.length > 0 ? '  BAD' : ''}`,
  ];
}
