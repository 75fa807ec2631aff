import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { shellWord } from '../../base/shell-quote.ts';
import { packageVersion } from '../../version.ts';
import {
  type AddonLocation,
  builtAddon,
  hostLibc,
  installedAddons,
  packageRoot,
  platformPackage,
  unfitFor,
} from './addon-locations.ts';
import type { NativeAddon } from './contract.ts';

/** What was loaded, and from where. */
interface Loaded {
  readonly addon: NativeAddon;
  readonly path: string;
}

let loaded: Loaded | SandboxError | undefined;

/**
 * The addon, loaded once: the one that was built in this package, else the platform package's.
 * @throws {SandboxError} `addon.unavailable` with the loader's reason.
 */
export function loadAddon(): NativeAddon {
  return addonOnce().addon;
}

/**
 * A program of ours that lies beside the addon.
 * @throws {SandboxError} `addon.unavailable` where it, or the addon, is missing.
 */
export function programBesideAddon(name: string): string {
  const program = join(dirname(addonOnce().path), name);
  if (existsSync(program)) return program;
  throw new SandboxError(
    'addon.unavailable',
    `${program} is missing, which belongs to the addon; install sandbox-run again (in a checkout: npm run build:native)`,
  );
}

function addonOnce(): Loaded {
  loaded ??= tryLoad();
  if (loaded instanceof SandboxError) throw loaded;
  return loaded;
}

/** The root of this package, as it is named where it is loaded from. */
export function packageDirectory(): string {
  return packageRoot(dirname(fileURLToPath(import.meta.url)));
}

function tryLoad(): Loaded | SandboxError {
  const root = packageDirectory();
  const built = load(builtAddon(root));
  if (built !== undefined && typeof built !== 'string') return built;
  const reasons = built === undefined ? [] : [built];
  const libc = hostLibc();
  for (const location of installedAddons(root, process.arch, libc)) {
    const addon = load(location);
    if (addon !== undefined && typeof addon !== 'string') return addon;
    if (addon !== undefined) reasons.push(addon);
  }
  const name = platformPackage(process.arch, libc);
  const absent = isCheckout(root) ? 'it is not built' : `neither ${name} is installed nor is it built`;
  const reason = reasons.length > 0 ? reasons.join('; ') : absent;
  // One that is there and fits, and cannot be loaded, would be no other if it came again.
  const isThere = installedAddons(root, process.arch, libc).some(
    (location) => existsSync(location.path) && unfitFor(location) === undefined,
  );
  return new SandboxError('addon.unavailable', `the native addon cannot be used: ${reason}`, {
    remedy: remedyFor(root, isThere ? undefined : name),
  });
}

/** The command that brings the addon: to a checkout, from a platform package, or where none is made for the host. */
function remedyFor(root: string, name: string | undefined): string {
  if (isCheckout(root)) {
    const directory = /^[\w@%+=:,./-]+$/.test(root) ? root : shellWord(root);
    return `npm --prefix ${directory} run build:native`;
  }
  if (name !== undefined && isReleased(root, name)) return `npm install ${name}@${packageVersion}`;
  return 'npm install --save-dev cmake-js node-addon-api node-api-headers @photostructure/sqlite && npm explore sandbox-run -- npm run build:native';
}

/** No package has the sources. */
function isCheckout(root: string): boolean {
  return existsSync(join(root, 'src'));
}

/** Whether this package was released together with one for such hosts. */
function isReleased(root: string, name: string): boolean {
  try {
    return name in JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).optionalDependencies;
  } catch {
    return false;
  }
}

/** The addon at a place, why it cannot be loaded, or undefined if there is none. */
function load(location: AddonLocation): Loaded | string | undefined {
  if (!existsSync(location.path)) return undefined;
  const unfit = unfitFor(location);
  if (unfit !== undefined) return unfit;
  try {
    const addon = createRequire(import.meta.url)(location.path) as NativeAddon;
    // process.exit() runs no clean-up of addons: without this, private directories would be left behind.
    process.once('exit', () => addon.endAll());
    return { addon, path: location.path };
  } catch (error) {
    return error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error);
  }
}
