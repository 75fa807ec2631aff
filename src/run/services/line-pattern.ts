import { stripVTControlCharacters } from 'node:util';
import { createContext, Script } from 'node:vm';
import { SandboxError } from '../../base/errors/sandbox-error.ts';

const LONGEST_PATTERN = 512;
/** Characters of a line that are looked at. */
const LONGEST_LINE = 4096;
/** For the lines of one piece of output. A pattern that backtracks is interrupted by then. */
const PIECE_MS = 100;
/** One that was interrupted before it had so much processor time is tried again: others had it, and no line is to be missed for that. */
const LEAST_CPU_MS = 25;
/** After so many pieces that took too long the pattern is not tried any more. */
const MOST_LATE = 3;

/** What {@link TEST} sees. */
interface Globals {
  readonly pattern: RegExp;
  lines: readonly string[];
}

const TEST = new Script('lines.some((line) => pattern.test(line))');

/**
 * A regular expression for lines of output, which a program that is not trusted writes. Node's expressions may backtrack for
 * hours, so each line is cut, and a match that takes long is interrupted: such a line does not match. Colours are left out, as
 * many programs write them into pipes, too, where CI or FORCE_COLOR is set: somebody who writes a pattern has read plain text.
 */
export class LinePattern {
  readonly source: string;
  readonly #context: Globals;
  #late = 0;
  #rest = '';

  /** @throws {SandboxError} `usage.invalid` for text that is no regular expression, or too long. */
  constructor(source: string) {
    this.source = source;
    if (source === '' || source.length > LONGEST_PATTERN)
      throw new SandboxError(
        'usage.invalid',
        `the pattern of a line must have 1 to ${LONGEST_PATTERN} characters`,
      );
    let pattern: RegExp;
    try {
      pattern = new RegExp(source, 'u');
    } catch (error) {
      throw new SandboxError('usage.invalid', `${JSON.stringify(source)} is no regular expression`, {
        cause: error,
      });
    }
    this.#context = createContext({ pattern, lines: [] }) as unknown as Globals;
  }

  /** Whether matching took so long that the pattern is not tried any more. */
  get isGivenUp(): boolean {
    return this.#late >= MOST_LATE;
  }

  /** Whether a line of this piece of output matches, the one included that has not ended yet. */
  take(text: string): boolean {
    if (this.isGivenUp) return false;
    const lines = (this.#rest + text).split('\n').map((line) => line.slice(0, LONGEST_LINE));
    this.#rest = lines.at(-1) ?? '';
    this.#context.lines = lines.map((line) => stripVTControlCharacters(line).replace(/\r$/, ''));
    for (;;) {
      const before = process.cpuUsage();
      try {
        return TEST.runInContext(this.#context, { timeout: PIECE_MS }) === true;
      } catch {
        const { user, system } = process.cpuUsage(before);
        if ((user + system) / 1_000 < LEAST_CPU_MS) continue;
        this.#late += 1;
        return false;
      }
    }
  }
}
