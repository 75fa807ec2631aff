import { setTimeout as sleep } from 'node:timers/promises';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import type { ChangeSetDetail } from '../../model/index.ts';
import { ChangeSets } from './change-sets.ts';

const POLL_MS = 500;

/** The change sets of which something waits to be applied, for the page, the lists and the questions: each is looked through once. */
export class WaitingChanges {
  readonly #sets = new ChangeSets();
  readonly #most: number;
  readonly #known = new Map<
    string,
    { readonly version: string; readonly set: ChangeSetDetail | undefined }
  >();

  /** `most`: changes that are listed of each set at most. */
  constructor(most: number) {
    this.#most = most;
  }

  /** Those that wait now, the oldest first. */
  list(versions: ReadonlyMap<string, string> = this.#sets.versions()): readonly ChangeSetDetail[] {
    for (const id of this.#known.keys()) if (!versions.has(id)) this.#known.delete(id);
    const waiting = [...versions].flatMap(([id, version]) => {
      const known = this.#known.get(id);
      if (known?.version === version) return known.set ?? [];
      const set = this.#look(id);
      this.#known.set(id, { version, set });
      return set ?? [];
    });
    // Their names have no more than the second.
    return waiting.toSorted((one, other) => one.at - other.at);
  }

  /** Tells of what waits: at once, and whenever it changes; ends with the signal. */
  async watch(onChange: (sets: readonly ChangeSetDetail[]) => void, signal: AbortSignal): Promise<void> {
    let told: string | undefined;
    while (!signal.aborted) {
      const versions = this.#sets.versions();
      const now = [...versions].join();
      if (now !== told) onChange(this.list(versions));
      told = now;
      await sleep(POLL_MS, undefined, { signal }).catch(() => {});
    }
  }

  /** `undefined`: nothing of it waits. */
  #look(id: string): ChangeSetDetail | undefined {
    try {
      if (!this.#sets.mayWait(id)) return undefined;
      const found = this.#sets.show(id, this.#most);
      return found.state === 'waiting' || found.left > 0 ? found : undefined;
    } catch (error) {
      // Leave out a change set that was discarded just now or is damaged, and report the others.
      if (error instanceof SandboxError) return undefined;
      throw error;
    }
  }
}
