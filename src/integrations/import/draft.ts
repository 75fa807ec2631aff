import type { Autonomy } from '../../model/decision.ts';
import type { ApproverName, PolicyFile, RuleInFile } from '../../model/policy-keys.ts';
import type { Imported, Loss, LossEffect, Place, Translated } from './importer.ts';
import { isTable, isWithin, type Leaf, leavesOf } from './place.ts';

/** A path that the source lets commands use, or keeps from them. Absolute, without a pattern. */
export interface PathEntry {
  readonly path: string;
}

/** How a part of the source is translated. */
export type Outcome = Pick<Translated, 'to'> | Pick<Loss, 'effect' | 'why' | 'what'>;

/** It is represented. */
export const as = (to: string): Outcome => ({ to });

/** It has no equivalent, or not the same one. */
export const loss = (effect: LossEffect, why: string, what: string): Outcome => ({ effect, why, what });

/** A policy that is being made, and the account of how the source was translated. */
export interface Draft {
  profile: 'workspace-write' | 'read-only';
  autonomy: Autonomy | undefined;
  ask: ApproverName | undefined;
  network: 'off' | 'open';
  unixSockets: 'contained' | 'allowed';
  /** The source keeps commands out of /tmp, also where they can have none of their own. */
  tmp: 'private' | undefined;
  readonly rules: RuleInFile[];
  readonly read: PathEntry[];
  readonly write: PathEntry[];
  readonly protect: string[];
  readonly secret: string[];
  readonly pass: string[];
  readonly set: Record<string, string>;
  readonly remarks: string[];
  /** Notes how a part of the source is translated. */
  note(at: Leaf, outcome: Outcome): void;
  /** A setting that no rule mentions becomes a loss by `unknown`. */
  finish(source: unknown, unknown: (place: Place) => Omit<Loss, 'place' | 'value'>): Imported;
}

export function createDraft(): Draft {
  const translated: Translated[] = [];
  const losses: Loss[] = [];
  const draft: Draft = {
    profile: 'workspace-write',
    autonomy: undefined,
    ask: undefined,
    network: 'off',
    unixSockets: 'contained',
    tmp: undefined,
    ...{ rules: [], read: [], write: [], protect: [], secret: [], pass: [], set: {}, remarks: [] },
    note({ place, value }, outcome) {
      if ('to' in outcome) translated.push({ place, value, ...outcome });
      else losses.push({ place, value, ...outcome });
    },
    finish(source, unknown) {
      const known = [...translated, ...losses].map(({ place }) => JSON.stringify(place));
      const seen = new Set(known);
      const isKnown = (place: Place) =>
        place.some((_, index) => seen.has(JSON.stringify(place.slice(0, index + 1)))) ||
        (place.length === 0 && [...translated, ...losses].some((entry) => isWithin(entry.place, place)));
      for (const { place, value } of leavesOf(source)) {
        if (isKnown(place)) continue;
        // An empty table allows and forbids nothing.
        if (isTable(value)) translated.push({ place, value, to: 'nothing, as it is empty' });
        else losses.push({ place, value, ...unknown(place) });
      }
      return { policy: policyOf(draft), translated, losses, remarks: draft.remarks };
    },
  };
  return draft;
}

const unique = (all: readonly string[]) => [...new Set(all)];

function policyOf(draft: Draft): PolicyFile {
  const { autonomy, ask, rules, read, write, protect, secret, pass, set } = draft;
  const list = (key: string, all: readonly string[]) => (all.length === 0 ? {} : { [key]: unique(all) });
  const filesystem = {
    ...list(
      'read',
      read.map(({ path }) => path),
    ),
    ...list(
      'write',
      write.map(({ path }) => path),
    ),
    ...list('protect', protect),
    ...list('secret', secret),
    ...(draft.tmp === undefined ? {} : { tmp: draft.tmp }),
  };
  const environment = {
    ...list('pass', pass),
    ...(Object.keys(set).length === 0 ? {} : { set }),
  };
  const table = (key: string, content: object) =>
    Object.keys(content).length === 0 ? {} : { [key]: content };
  return {
    profile: draft.profile,
    ...table('security', autonomy === undefined ? {} : { autonomy }),
    ...table('approval', ask === undefined ? {} : { ask }),
    ...table('filesystem', filesystem),
    network: {
      mode: draft.network,
      ...(draft.unixSockets === 'allowed' ? { unix_sockets: 'allowed' as const } : {}),
    },
    ...table('environment', environment),
    ...table('commands', rules.length === 0 ? {} : { rules }),
  };
}
