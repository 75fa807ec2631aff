import { z } from 'zod';
import { visibleLine, visibleText } from '../../../base/visible-text.ts';
import type { ChangeSetDetail } from '../../../model/index.ts';
import {
  ChangeSets,
  changeLine,
  countsInWords,
  inItsWorkspace,
  linesOfApplied,
  markOf,
  WaitingChanges,
} from '../../../run/index.ts';
import type { Surroundings } from '../../../workspace/index.ts';
import type { CHANGE_REQUESTS, WaitingChange, WaitingSet } from './page-messages.ts';

/** So many changes of a set are listed on the page, and so many lines of a diff. */
const MOST = { changes: 200, lines: 2_000 };
const LONGEST_LINE = 8192;

/** The parameters that each of {@link CHANGE_REQUESTS} takes. */
export const changeRequestSchema = z.strictObject({
  id: z.string().max(100).describe('of the change set'),
  path: z.string().min(1).max(20_000).optional().describe('only what is at or beneath it'),
});

/** What waits to be applied, for all pages of a server. */
export class ChangesForPage {
  readonly #sets = new ChangeSets();
  readonly #waiting = new WaitingChanges(MOST.changes);
  readonly #around: Surroundings;

  constructor(around: Surroundings) {
    this.#around = around;
  }

  /** Tells of what waits: at once, and whenever it changes; ends with the signal. */
  watch(onChange: (sets: readonly WaitingSet[]) => void, signal: AbortSignal): Promise<void> {
    return this.#waiting.watch((sets) => onChange(sets.map(setForPage)), signal);
  }

  /**
   * What came of a request, in lines that are fit to be shown.
   * @throws {SandboxError} as `ChangeSets`.
   */
  async answer(
    what: keyof typeof CHANGE_REQUESTS,
    { id, path }: z.infer<typeof changeRequestSchema>,
  ): Promise<string> {
    const paths = path === undefined ? [] : [path];
    switch (what) {
      case 'diff':
        return this.#diff(id, path);
      case 'apply': {
        const { applied, workspace } = await inItsWorkspace(id, this.#around, (sets, prepared) =>
          sets.apply(prepared, id, paths),
        );
        const lines = linesOfApplied(applied, 'applied', workspace);
        return lines.map((line) => visibleText(line, { keep: '\\' })).join('\n');
      }
      case 'discard':
        await this.#sets.discard(id, paths);
        return path === undefined ? 'It is discarded' : `Discarded: ${visibleText(path)}`;
    }
  }

  /** Of what is at a path alone: beneath it may be very much. */
  #diff(id: string, path: string | undefined): string {
    const lines = this.#sets
      .diff(id, path, path !== undefined)
      .split('\n')
      .slice(0, -1);
    const shown = visibleText(lines.slice(0, MOST.lines).join('\n'), { keep: '\n\t' });
    const more = lines.length - MOST.lines;
    return more <= 0
      ? shown
      : `${shown}\n${more.toLocaleString('en-US')} more lines: sandbox-run changes diff ${id}`;
  }
}

function setForPage({ id, command, workspace, on, counts, changes, more }: ChangeSetDetail): WaitingSet {
  return {
    id,
    command: visibleLine(command, LONGEST_LINE),
    workspace: visibleLine(workspace, LONGEST_LINE),
    on,
    counts: countsInWords(counts),
    changes: changes.map((change): WaitingChange => {
      const text = visibleLine(changeLine(change), LONGEST_LINE);
      return { path: change.path, mark: markOf(change), text, isApplied: change.applied === true };
    }),
    more,
  };
}
