import { closeSync, openSync, readFileSync, readSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { packageVersion } from '../../version.ts';

/** The addon's file, in a build directory and in a platform package alike; programs that it starts lie beside it. */
const ADDON_FILE = 'sandbox_run.node';

/** The C library that a program is linked with; an addon has to have the same. */
type Libc = 'gnu' | 'musl';

/** A place where the addon may lie. */
export interface AddonLocation {
  readonly path: string;
  /** The package.json of a platform package, which has its version. */
  readonly manifest?: string;
}

/** The platform package for a kind of host; scripts/native-artifacts.mjs lists those that are made. */
export function platformPackage(architecture: string, libc: Libc): string {
  return `@sandbox-run/linux-${architecture}-${libc}`;
}

/**
 * The root of this package, seen from one of its modules: in `dist/`, in `src/confine/native/` (tests run the sources), or in a folder
 * of a folder, where tests put bundles of their own.
 */
export function packageRoot(moduleDirectory: string): string {
  if (basename(moduleDirectory) === 'dist') return join(moduleDirectory, '..');
  return join(moduleDirectory, moduleDirectory.endsWith('/src/confine/native') ? '../../..' : '../..');
}

/** Where a build in this package puts the addon. */
export function builtAddon(root: string): AddonLocation {
  return { path: join(root, 'build/Release', ADDON_FILE) };
}

/**
 * Where package managers put the platform package: within this package, or beside it. Not looked up as `require()`
 * does, which asks NODE_PATH, the home directory and every directory above this one too.
 */
export function installedAddons(root: string, architecture: string, libc: Libc): readonly AddonLocation[] {
  const name = platformPackage(architecture, libc);
  const beside = dirname(root);
  return [join(root, 'node_modules'), ...(basename(beside) === 'node_modules' ? [beside] : [])].map(
    (modules) => ({
      path: join(modules, name, ADDON_FILE),
      manifest: join(modules, name, 'package.json'),
    }),
  );
}

/**
 * Why a platform package cannot be used, undefined if it can: the two are released together, and what one expects of
 * the other is written nowhere else.
 */
export function unfitFor(location: AddonLocation): string | undefined {
  if (location.manifest === undefined) return undefined;
  let version: unknown;
  try {
    version = JSON.parse(readFileSync(location.manifest, 'utf8')).version;
  } catch {
    return `${location.manifest} cannot be read`;
  }
  return version === packageVersion
    ? undefined
    : `${dirname(location.path)} is version ${version}, sandbox-run is ${packageVersion}`;
}

/** The C library of this process, by the dynamic loader that its program names (process.report takes milliseconds). */
export function hostLibc(program = '/proc/self/exe'): Libc {
  const head = Buffer.alloc(4096);
  try {
    const fd = openSync(program, 'r');
    try {
      readSync(fd, head);
    } finally {
      closeSync(fd);
    }
  } catch {
    // Without /proc: what most hosts have; the dynamic loader has the last word anyway.
  }
  return head.includes('/ld-musl-') ? 'musl' : 'gnu';
}
