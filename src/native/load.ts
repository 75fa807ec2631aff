import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { SandboxError } from '../errors/sandbox-error.ts';
import type { NativeAddon } from './contract.ts';

/** Where the build puts the addon, seen from `dist/` and from `src/native/` (tests run the sources). */
const LOCATIONS = ['../build/Release/sandbox_run.node', '../../build/Release/sandbox_run.node'];

let loaded: NativeAddon | SandboxError | undefined;

/**
 * The addon, loaded once.
 * @throws {SandboxError} `addon.unavailable` with the loader's reason.
 */
export function loadAddon(): NativeAddon {
  loaded ??= tryLoad();
  if (loaded instanceof SandboxError) throw loaded;
  return loaded;
}

function tryLoad(): NativeAddon | SandboxError {
  const require = createRequire(import.meta.url);
  const reasons: string[] = [];
  for (const location of LOCATIONS) {
    const path = fileURLToPath(new URL(location, import.meta.url));
    try {
      const addon = require(path) as NativeAddon;
      // process.exit() runs no clean-up of addons: without this, private directories would be left behind.
      process.once('exit', () => addon.endAll());
      return addon;
    } catch (error) {
      const missing = error instanceof Error && 'code' in error && error.code === 'MODULE_NOT_FOUND';
      if (!missing)
        reasons.push(error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error));
    }
  }
  const reason = reasons.length > 0 ? reasons.join('; ') : 'it is not built';
  return new SandboxError(
    'addon.unavailable',
    `the native addon cannot be used: ${reason}; with g++ and cmake installed, run \`npm rebuild sandbox-run\` (in a checkout: \`npm run build:native\`)`,
  );
}
