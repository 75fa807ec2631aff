import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';

/** A process of the command line, as `startCli` starts it. */
type Running = Promise<unknown> & { readonly exitCode: number | null; kill(signal: 'SIGKILL'): boolean };

/** Kills processes while they apply changes or take them back. `state`: their state directory. */
export function watchJournals(state: string) {
  const journals = join(state, 'changes/journals');
  const textOf = (name: string) => {
    try {
      return readFileSync(join(journals, name), 'utf8');
    } catch {
      return '';
    }
  };
  /** What is under way, or was cut short. A journal that is being written has another name: nothing has begun then. */
  const begun = (): readonly string[] => {
    try {
      return readdirSync(journals).filter((name) => !name.endsWith('.new'));
    } catch {
      return [];
    }
  };
  const lines = () => begun().reduce((sum, name) => sum + textOf(name).split('\n').length, 0);
  return {
    begun,
    /** Kills it once so many lines stand in its journal. Returns whether that cut something short. */
    async kill(running: Running, after: number): Promise<boolean> {
      while (running.exitCode === null && (begun().length === 0 || lines() < after)) await turn();
      running.kill('SIGKILL');
      await running;
      return begun().length > 0;
    },
  };
}
