import { lstatSync } from 'node:fs';
import { SandboxError } from '../../errors/sandbox-error.ts';
import type { FirejailFacility, HostFeatures } from '../../model/host-features.ts';
import type { Backend } from '../backend.ts';
import { confinementSpec } from '../confinement-spec.ts';
import { probeFirejail, trySpec } from './probe.ts';
import { canChangeRoot, topEntries } from './root-directory.ts';
import { type FirejailHost, firejailLauncher, notShown } from './settings.ts';

/**
 * Firejail makes mounts and namespaces, and starts `sandbox-run-begin`, which adds our filter and starts the command. So
 * nothing of a command is ever among Firejail's options.
 */
export const firejail: Backend = {
  id: 'firejail',
  summary: 'the set-uid program Firejail (0.9.68 or later), and seccomp',
  async probe(features, tryCommand) {
    const found = await probeFirejail(tryCommand);
    return 'reason' in found
      ? { usable: false, reason: found.reason }
      : { usable: true, features: { ...features, firejail: found } };
  },
  async confinement(plan, features, tryCommand) {
    const found = facilityOf(features);
    const missing = notShown(plan);
    if (missing.length > 0) {
      throw new SandboxError(
        'backend.unavailable',
        `Firejail cannot show ${missing.join(', ')}, which the policy requires`,
      );
    }
    const launcher = firejailLauncher(plan, hostOf(found));
    const spec = { ...(await confinementSpec(plan, features)), setUidLauncher: launcher };
    await trySpec(
      tryCommand,
      found,
      spec,
      plan.paths.map(({ path }) => path),
    );
    return spec;
  },
};

function facilityOf({ firejail: found }: HostFeatures): FirejailFacility {
  if (found === undefined) throw new SandboxError('backend.unavailable', 'Firejail was not asked for');
  return found;
}

function hostOf({ path, version }: FirejailFacility): FirejailHost {
  const user = process.getuid?.();
  return {
    path,
    version,
    isRoot: user === 0,
    top: topEntries(),
    canChangeRoot: canChangeRoot(),
    isForeign: (one) => {
      const owner = lstatSync(one, { throwIfNoEntry: false })?.uid;
      return owner !== undefined && owner !== user;
    },
  };
}
