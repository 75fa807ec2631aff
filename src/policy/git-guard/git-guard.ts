import type { Parsed } from '../../model/command-line.ts';
import type { GitGuard, GuardAnswer } from '../../model/gate-ports.ts';
import type { MaybePromise } from '../../util/promise.ts';
import { examine } from './examine.ts';
import type { Aliases } from './git-command.ts';
import { addAlias } from './invocation.ts';

/** What the guard needs from others. */
interface GitGuardPorts {
  /** Reads a text for a shell, as it stands behind the `!` of an alias. */
  readonly parse: (text: string) => Parsed;
  /** The aliases that git would know in a directory. A failure means that nobody knows. */
  readonly aliasesAt: (directory: string) => MaybePromise<Iterable<readonly [name: string, value: string]>>;
}

/** A line that needs more is nothing that anybody wrote. */
const MAX_LOOKUPS = 32;

/**
 * Refuses push, pull and rebase, and what amounts to them. It goes by the text alone: it keeps an agent from doing by
 * habit what is left to a person, and is not what keeps commits from leaving, which is the network being off.
 */
export function createGitGuard({ parse, aliasesAt }: GitGuardPorts): GitGuard {
  return {
    judge(parsed, cwd, text = '') {
      // For one line: the next one may find other aliases.
      const known = new Map<string, Aliases>();
      const missing = new Set<string>();
      const look = (directory: string) => {
        const aliases = known.get(directory);
        if (aliases === undefined) missing.add(directory);
        return aliases;
      };

      function answer(): GuardAnswer | Promise<GuardAnswer> {
        const reason = examine(parsed, text, cwd, { parse, aliasesAt: look });
        // Further aliases could only refuse as well.
        if (reason !== undefined) return { allowed: false, reason };
        if (missing.size === 0) return { allowed: true };
        if (known.size + missing.size > MAX_LOOKUPS)
          return { allowed: false, reason: 'the line uses aliases of git in too many directories' };
        return lookUp([...missing]).then(answer);
      }

      async function lookUp(directories: readonly string[]): Promise<void> {
        await Promise.all(
          directories.map(async (directory) => {
            known.set(directory, await aliasesOrFailure(directory));
            missing.delete(directory);
          }),
        );
      }

      return answer();
    },
  };

  async function aliasesOrFailure(directory: string): Promise<Aliases> {
    try {
      const aliases = new Map<string, string>();
      for (const [name, value] of await aliasesAt(directory)) addAlias(aliases, name, value);
      return aliases;
    } catch {
      return 'unreadable';
    }
  }
}
