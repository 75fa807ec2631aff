import { resolve } from 'node:path';
import type { SimpleCommand } from '../model/command-line.ts';
import type { ResolvedPath } from '../model/path-lookup.ts';
import type { Argument } from '../programs/behaviour.ts';
import type { IsForeign } from '../programs/describe.ts';
import { wordTexts } from '../programs/word-texts.ts';
import { isBeneath } from '../util/absolute-path.ts';
import type { CheckContext } from './check.ts';

/** Where one argument may lead, with one of the directories that may be in force. */
export interface Location {
  /** As the program will see it, expansions that are known resolved. */
  readonly text: string;
  /** `undefined`: it could not be resolved. */
  readonly resolved: ResolvedPath | undefined;
  /** Only the directory is known; what follows is decided when it runs. */
  readonly partial: boolean;
}

/** Why an argument has no locations to judge. */
type Unlocated = 'foreign-home';

/** The directories in which a command may run; `undefined` for one that cannot be told. */
export function directoriesOf(
  command: SimpleCommand,
  context: CheckContext,
): readonly (string | undefined)[] {
  if (command.directories === undefined) return [undefined];
  return command.directories.map((targets) => {
    let cwd: string | undefined = context.cwd;
    for (const target of targets) {
      if (cwd === undefined && !(target.value ?? '').startsWith('/')) return undefined;
      const texts = wordTexts(target, { home: context.rules.home, cwd });
      const [only] = texts ?? [];
      if (only === undefined || texts?.length !== 1 || !only.complete || only.text === '-') return undefined;
      // bash's own idea of the directory: `..` after a link goes back where it came from.
      cwd = only.text === '' ? context.rules.home : resolve(cwd ?? '/', only.text);
    }
    return cwd;
  });
}

/** Every place an argument may lead to. Relative ones in an unknown directory are left to the kernel. */
export function locationsOf(
  argument: Argument,
  cwds: readonly (string | undefined)[],
  context: CheckContext,
): readonly Location[] | Unlocated {
  const locations: Location[] = [];
  for (const cwd of cwds) {
    const texts = wordTexts(argument.word, { home: context.rules.home, cwd });
    if (texts === undefined) return 'foreign-home';
    for (const { text: whole, complete } of texts) {
      const text = whole.slice(argument.start);
      const known = complete ? text : text.slice(0, text.lastIndexOf('/') + 1);
      if (known === '') continue;
      const absolute = known.startsWith('/') ? known : cwd === undefined ? undefined : `${cwd}/${known}`;
      if (absolute === undefined) continue;
      locations.push({
        text: complete ? text : argument.word.source,
        resolved: lookUp(absolute, context),
        partial: !complete,
      });
    }
  }
  return locations;
}

function lookUp(path: string, context: CheckContext): ResolvedPath | undefined {
  try {
    return context.paths.resolve(path);
  } catch {
    return undefined;
  }
}

/** Devices that every command may read and write. */
const DEVICES: ReadonlySet<string> = new Set(
  'null zero full random urandom tty stdin stdout stderr'.split(' ').map((name) => `/dev/${name}`),
);

/** True for devices that every command may use, and for its own descriptors. */
export function isHarmlessDevice(path: string): boolean {
  return DEVICES.has(path) || /^\/(?:dev\/fd|proc\/self\/fd)\/\d+$/.test(path);
}

/** True if a command may write there, as far as places go. */
export function mayWrite(path: string, { rules }: CheckContext): boolean {
  if ([rules.workspace, ...rules.granted].some((root) => isBeneath(path, root))) return true;
  if (rules.hidden.some((root) => isBeneath(path, root))) return false;
  return rules.writable.some((root) => isBeneath(path, root));
}

/** True if a command may read there. */
export function mayRead(path: string, context: CheckContext): boolean {
  return mayWrite(path, context) || context.rules.readable.some((root) => isBeneath(path, root));
}

/** Names that stand for files of the workspace, or of other places where commands can write. */
export function isForeignTo(context: CheckContext): IsForeign {
  return (name) => {
    const path = context.findExecutable(name, context.cwd);
    return path !== undefined && mayWrite(path, context);
  };
}
