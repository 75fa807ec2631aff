import type { GitSetting } from '../host/git/config-file.ts';
import type { LeftBehind } from '../model/left-behind.ts';
import { errnoOf } from '../util/errno-of.ts';
import { describeSetting } from './git-config.ts';
import { type Kept, moveBeside } from './kept.ts';

/** Nothing was done about something: a person starts it, or nothing could be done. */
export const told = (path: string, reason: string, program = 'sandbox-run'): LeftBehind => ({
  path,
  done: 'told',
  program,
  reason,
});

/** Takes away what would be obeyed, and says so. */
export class Shutter {
  readonly workspace: string;
  private readonly kept: Kept;

  constructor(workspace: string, kept: Kept) {
    this.workspace = workspace;
    this.kept = kept;
  }

  /** Moves the object at the path away. Nothing to say where it is gone already. */
  shut(path: string, program: string, reason: string): readonly LeftBehind[] {
    const { workspace } = this;
    try {
      const id = this.kept.keep({ workspace, path, reason: `${program}: ${reason}` });
      return id === undefined ? [] : [{ path, done: 'shut', program, reason, kept: id }];
    } catch (error) {
      const why = errnoOf(error) ?? String(error);
      const beside = moveBeside(workspace, path);
      return beside === undefined
        ? [told(path, `${reason}; it could not be moved away (${why})`, program)]
        : [{ path, done: 'shut', program, reason: `${reason}; it is ${beside} now (${why})` }];
    }
  }

  /** Keeps settings that were taken out of a file, or that did not get into it. */
  settings(path: string, settings: readonly GitSetting[], reason: string): LeftBehind {
    const shut: LeftBehind = {
      ...{ path, done: 'shut', program: 'git', reason },
      settings: settings.map(describeSetting),
    };
    if (settings.length === 0) return shut;
    try {
      const id = this.kept.keep({
        ...{ workspace: this.workspace, path, reason: `git: ${reason}` },
        settings: settings.map(({ key, value }) => [key, value ?? null]),
      });
      return id === undefined ? shut : { ...shut, kept: id };
    } catch (error) {
      const why = errnoOf(error) ?? String(error);
      return { ...shut, reason: `${reason}; they could not be kept (${why})` };
    }
  }
}
