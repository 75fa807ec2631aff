import type { GitSetting } from '../host/git/config-file.ts';
import type { LeftBehind } from '../model/left-behind.ts';
import { errnoOf } from '../util/errno-of.ts';
import { describeSetting } from './git-config.ts';
import { type Kept, moveBeside } from './kept.ts';

/** Takes away what would be obeyed, and says so. */
export interface Shutter {
  readonly workspace: string;
  /** Moves the object at the path away. Nothing to say where it is gone already. */
  shut(path: string, program: string, reason: string): readonly LeftBehind[];
  /** Keeps settings that were taken out of a file, or that did not get into it. */
  settings(
    path: string,
    settings: readonly GitSetting[],
    reason: string,
    done: 'shut' | 'restored',
  ): LeftBehind;
}

/** @see Shutter */
export function createShutter(workspace: string, kept: Kept): Shutter {
  return {
    workspace,
    shut(path, program, reason) {
      try {
        const id = kept.keep({ workspace, path, reason: `${program}: ${reason}` });
        return id === undefined ? [] : [{ path, done: 'shut', program, reason, kept: id }];
      } catch (error) {
        const why = errnoOf(error) ?? String(error);
        const beside = moveBeside(workspace, path);
        if (beside !== undefined)
          return [{ path, done: 'shut', program, reason: `${reason}; it is ${beside} now (${why})` }];
        return [{ path, done: 'told', program, reason: `${reason}; it could not be moved away (${why})` }];
      }
    },
    settings(path, settings, reason, done) {
      const told = { path, done, program: 'git', reason, settings: settings.map(describeSetting) };
      if (settings.length === 0) return told;
      try {
        const id = kept.keep({
          workspace,
          path,
          reason: `git: ${reason}`,
          settings: settings.map(({ key, value }) => [key, value ?? null]),
        });
        return id === undefined ? told : { ...told, kept: id };
      } catch (error) {
        const why = errnoOf(error) ?? String(error);
        return { ...told, reason: `${reason}; they could not be kept (${why})` };
      }
    },
  };
}
