// What became of the tests of a virtual machine, out of what it said on its console.

/**
 * - `held`: the attack was tried in a sandbox and did not work.
 * - `reported`: it may work, and the enforcement report says that its control is not (fully) enforced there.
 * - `escaped`: a claim about an attack in a sandbox turned out to be untrue, and no report took it back.
 * - `failed`: whatever else went wrong.
 * - `other`: the same attack without a sandbox, where it has to work, and what is no attack.
 */
export const OUTCOMES = ['held', 'reported', 'escaped', 'failed', 'other'];

/** The words of `doctor --attack`. */
const OF_ATTACKS = {
  held: 'held',
  'not-covered': 'reported',
  escaped: 'escaped',
  failed: 'failed',
  'not-tried': 'other',
};

/** These say what a report contains and what a result looks like; nothing gets out if they are wrong. */
const NO_ATTACKS = /^(declared|run-on-an-older-kernel|results|lifetime)/;
const IN_A_TIER = /with(out)? namespaces|under (landlock|namespaces|firejail|application)/;

/** What became of a test: {file, name, outcome, reason}; undefined: it was skipped. */
export function outcomeOf(file, test) {
  const row = { file, name: test.name, ms: test.ms };
  if (test.state === 'skip' || test.state === 'todo') return undefined;
  const attack = !NO_ATTACKS.test(file) && (test.sandboxed || IN_A_TIER.test(test.name));
  if (test.state !== 'pass') {
    const reason = test.errors.map(({ message }) => message).join('; ') || `it is in the state ${test.state}`;
    // A time-out, the test's or the command's, and an exception say nothing about the attack; an assertion does, or may.
    const untrue = test.errors.some(
      ({ name, message }) => name === 'AssertionError' && !message.includes("'timed-out'"),
    );
    return { ...row, outcome: attack && untrue ? 'escaped' : 'failed', reason };
  }
  if (!attack) return { ...row, outcome: 'other' };
  if (test.reported.length === 0) return { ...row, outcome: 'held' };
  return { ...row, outcome: 'reported', reason: [...new Set(test.reported)].join(', ') };
}

export const isBad = ({ outcome }) => outcome === 'escaped' || outcome === 'failed';

/** Reads the lines of a machine's console one by one. */
export class Console {
  /** `attacks` are those of `doctor --attack`. */
  outcomes = { host: undefined, files: [], rows: [], skipped: [], attacks: [] };
  done = false;
  #log;

  /** Returns a line of progress, where there is any. The first line comes after what the firmware draws. */
  hear(line) {
    const [, kind, rest] = /@@ (\w+) ?(.*)$/.exec(line.trimEnd()) ?? [];
    if (kind === undefined) {
      if (this.#log !== undefined) this.#log.reason += `\n${line}`;
      return undefined;
    }
    this.#log = undefined;
    switch (kind) {
      case 'booted':
        return `Linux ${rest}`;
      case 'done':
        this.done = true;
        return undefined;
      case 'host':
        return this.#host(rest);
      case 'file':
        return this.#file(JSON.parse(rest));
      case 'attacks':
        return this.#attacks(rest);
      case 'crash':
        return this.#crash(rest);
      default:
        return undefined;
    }
  }

  #host(text) {
    const user = this.outcomes;
    try {
      const { error, ...host } = JSON.parse(text);
      if (error !== undefined) throw new Error(error);
      user.host = host;
    } catch (error) {
      const reason = `${error.message}: ${text}`;
      user.rows.push({ file: 'probe', name: 'a sandbox is made', outcome: 'failed', reason });
    }
    return text;
  }

  #crash(text) {
    const [name, reason] = text.split(': ');
    this.#log = { file: name, name: 'the file as a whole', outcome: 'failed', reason };
    this.outcomes.files.push(name);
    this.outcomes.rows.push(this.#log);
    return `${name}: ${reason}`;
  }

  /** What `sandbox-run doctor --attack --json` found there. */
  #attacks(text) {
    const user = this.outcomes;
    try {
      const { controls, problem } = JSON.parse(text);
      if (problem !== null) throw new Error(problem.message);
      user.attacks = controls.flatMap(({ id, attacks }) =>
        attacks.map(({ id: name, result, detail }) => ({
          ...{ file: 'doctor --attack', name: `${id}: ${name}`, outcome: OF_ATTACKS[result] ?? 'failed' },
          reason: detail,
        })),
      );
    } catch (error) {
      const reason = `${error.message}: ${text.slice(0, 500)}`;
      user.attacks = [{ file: 'doctor --attack', name: 'the report', outcome: 'failed', reason }];
    }
    return `doctor --attack: ${user.attacks.length} attacks`;
  }

  #file({ file, tests, errors }) {
    const name = file.replace(/\.test$/, '');
    const user = this.outcomes;
    const failure = (reason) =>
      user.rows.push({ file: name, name: 'the file as a whole', outcome: 'failed', reason });
    user.files.push(file);
    for (const { message } of errors) failure(message);
    const rows = tests.map((test) => outcomeOf(name, test));
    const ran = rows.filter((row) => row !== undefined);
    user.rows.push(...ran);
    user.skipped.push(
      ...tests.filter((_, at) => rows[at] === undefined).map((test) => `${name}: ${test.name}`),
    );
    if (ran.length === 0) failure('no test of it ran');
    const bad = user.rows.filter((row) => row.file === name && isBad(row));
    const seconds = Math.round(ran.reduce((sum, { ms }) => sum + ms, 0) / 1000);
    const good = `${name}: ${ran.length} ran in ${seconds} s, ${bad.length} of them not well`;
    return [good, ...bad.map((row) => `  ${row.outcome}: ${row.name}: ${row.reason.slice(0, 300)}`)].join(
      '\n',
    );
  }
}
