/** A version of Firejail as numbers, for example [0, 9, 72] or [0, 9, 64, 4]. */
export type FirejailVersion = readonly number[];

/** Of the first line of `firejail --version`; undefined: it says something else. */
export function parseVersion(output: string): FirejailVersion | undefined {
  const match = /^firejail version (\d+(?:\.\d+){1,3})(?![\d.])/m.exec(output);
  return match?.[1]?.split('.').map(Number);
}

/** As people write it. */
export function showVersion(version: FirejailVersion): string {
  return version.join('.');
}

/** Whether a version is the other or a later one. */
function isSince(version: FirejailVersion, since: FirejailVersion): boolean {
  for (let at = 0; at < Math.max(version.length, since.length); at++) {
    const difference = (version[at] ?? 0) - (since[at] ?? 0);
    if (difference !== 0) return difference > 0;
  }
  return true;
}

/** What sandbox-run uses of Firejail that some versions from 0.9.64 on lack. */
export type FirejailFeature = keyof typeof FEATURES;

interface Feature {
  /** The first version that has it. */
  readonly since: FirejailVersion;
  /** The first version that has it no more. */
  readonly until?: FirejailVersion;
  /** What cannot be done without it; undefined: it only adds to what others do. */
  readonly essential?: string;
}

/** THE table of features by version, from Firejail's release notes (0.9.64 to 0.9.80). */
const FEATURES = {
  /** `shell none`, the default from 0.9.72 on, which knows the setting no more. */
  'shell-none': { since: [0, 9, 0], until: [0, 9, 72] },
  noinput: { since: [0, 9, 66] },
  'any-top-directory': {
    since: [0, 9, 66],
    essential: 'it cannot show single paths of every directory in / (whitelist)',
  },
  noprinters: { since: [0, 9, 68] },
  'keep-fd': {
    since: [0, 9, 68],
    essential: 'it does not say which descriptors a command gets (--keep-fd)',
  },
  'deterministic-exit': {
    since: [0, 9, 68],
    essential: 'it does not end what a command leaves behind (--deterministic-shutdown)',
  },
  'restrict-namespaces': { since: [0, 9, 72] },
} as const satisfies Record<string, Feature>;

/** The features in the order of the table. */
export const FIREJAIL_FEATURES = Object.keys(FEATURES) as readonly FirejailFeature[];

/** Whether a version has a feature. */
export function hasFeature(version: FirejailVersion, feature: FirejailFeature): boolean {
  const { since, until }: Feature = FEATURES[feature];
  return isSince(version, since) && (until === undefined || !isSince(version, until));
}

/** Why a version is of no use; undefined: it is. The newest reason, as it names the version that helps. */
export function refuseVersion(version: FirejailVersion): string | undefined {
  const missing = FIREJAIL_FEATURES.filter((feature) => !hasFeature(version, feature)).flatMap((feature) => {
    const { essential, since }: Feature = FEATURES[feature];
    return essential === undefined ? [] : [{ essential, since }];
  });
  const worst = missing.at(-1);
  if (worst === undefined) return undefined;
  return `Firejail ${showVersion(version)} is too old: ${worst.essential}; install ${showVersion(worst.since)} or later`;
}
