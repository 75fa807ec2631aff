import { stripVTControlCharacters } from 'node:util';
import { createContext, Script } from 'node:vm';
import { SandboxError } from '../../base/errors/sandbox-error.ts';

const LONGEST_PATTERN = 512;
/** Characters of a line that are matched; the rest is ignored. */
const LONGEST_LINE = 4096;
/** Milliseconds for matching the lines of one piece of output. A pattern that backtracks for longer is interrupted. */
const PIECE_MS = 100;
/**
 * Milliseconds of processor time. As long as all attempts at a piece together had less, an interrupted match is repeated: other
 * processes had the processor meanwhile, and a line must not be missed because of that.
 */
const LEAST_CPU_MS = 25;
/** Pieces whose matching was interrupted after which the pattern is no longer tried. */
const MOST_LATE = 3;

/** The global variables of {@link TEST}. */
interface Globals {
  readonly pattern: RegExp;
  lines: readonly string[];
}

const TEST = new Script('lines.some((line) => pattern.test(line))');

/**
 * A regular expression for lines of output of an untrusted program. Node's expressions may backtrack for hours, so each line is cut,
 * and slow matching is interrupted: such a piece of output does not match. Colours are removed before matching, because the author
 * of a pattern has plain text in mind, and many programs write colours even into pipes if CI or FORCE_COLOR is set.
 */
export class LinePattern {
  readonly source: string;
  readonly #context: Globals;
  #late = 0;
  #rest = '';

  /** @throws {SandboxError} `usage.invalid` if `source` is not a regular expression, is empty or is too long. */
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

  /** Whether a line of this piece of output matches, including a last line that is not complete yet. */
  take(text: string): boolean {
    if (this.isGivenUp) return false;
    const lines = (this.#rest + text).split('\n').map((line) => line.slice(0, LONGEST_LINE));
    this.#rest = lines.at(-1) ?? '';
    this.#context.lines = lines.map((line) => stripVTControlCharacters(line).replace(/\r$/, ''));
    const before = process.cpuUsage();
    for (;;) {
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
