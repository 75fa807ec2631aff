import { basename, dirname, join } from 'node:path';
import { isBeneath } from '../../base/absolute-path.ts';
import type { SimpleCommand } from '../../model/index.ts';
import { type Argument, inherited, type Use } from '../programs/behaviour.ts';
import { type CheckContext, commandsOf } from './check.ts';
import { directoriesOf, locationsOf, useOf } from './locations.ts';
import { matchesPattern } from './own-rules.ts';
import { meaningsOf } from './word-values.ts';

/** A name that a line makes lead elsewhere: `ln -s`, and what copies or moves links. */
interface MadeLink {
  /** Its directory is canonical. */
  readonly at: string;
  /** Not resolved; `undefined`: it is known only when it runs. */
  readonly to: string | undefined;
  /** The source of a copy. The copy itself can be lost like any new file; links inside it still lead to the originals. */
  readonly copied?: string;
}

/** The paths to which a path leads through such links. */
interface Reached {
  readonly paths: readonly string[];
  /** Rest of the path behind a link whose target is unknown. */
  readonly anywhere: readonly string[];
}

/** Links within each other are not followed further, as a line may make a ring of them. */
const DEEPEST = 4;

const known = new WeakMap<CheckContext, readonly MadeLink[]>();

/** Tells of an inner line what the outer one makes lead elsewhere. */
export function passLinks(outer: CheckContext, inner: CheckContext): void {
  known.set(inner, [...linksMadeBy(outer), ...madeIn(inner)]);
}

function linksMadeBy(context: CheckContext): readonly MadeLink[] {
  const links = known.get(context) ?? madeIn(context);
  known.set(context, links);
  return links;
}

const madeIn = (context: CheckContext): readonly MadeLink[] =>
  commandsOf(context.parsed).flatMap((command) => {
    const use = useOf(command, context);
    const how = use && inherited(use, 'makesLinks')?.(use);
    return use === undefined || how === undefined ? [] : linksOf(command, use, how, context);
  });

function linksOf(
  command: SimpleCommand,
  use: Use,
  how: 'here' | 'there' | 'copies',
  context: CheckContext,
): readonly MadeLink[] {
  const targetOptions = inherited(use, 'targetOptions')?.split(' ') ?? [];
  const option = use.options.find(({ name }) => targetOptions.includes(name))?.value;
  const isAlone = option === undefined && use.operands.length === 1;
  const target = option ?? (isAlone ? undefined : use.operands.at(-1));
  const sources = use.operands.filter((one) => one !== target);
  return directoriesOf(command, context).flatMap((cwd = context.rules.workspace) => {
    const targets = target === undefined ? [`${cwd}/.`] : textsOf(target, command, cwd, context);
    return sources.flatMap((source) => {
      const texts = textsOf(source, command, undefined, context);
      return targets.flatMap((target) =>
        (texts.length === 0 ? [undefined] : texts).flatMap((text): readonly MadeLink[] => {
          const name = text === undefined ? '*' : basename(text);
          return [target, `${target}/${name}`].map((path) => {
            const at = join(canonical(dirname(path), context), basename(path));
            if (text === undefined) return { at, to: undefined };
            const from = text.startsWith('/') ? '' : `${how === 'there' ? dirname(at) : cwd}/`;
            const to = `${from}${text}`;
            const copied = join(canonical(dirname(to), context), basename(to));
            return { at, to, ...(how === 'copies' ? { copied } : {}) };
          });
        }),
      );
    });
  });
}

/** What an argument may be, as far as that is known: in a directory, or as it is written. */
function textsOf(
  argument: Argument,
  command: SimpleCommand,
  cwd: string | undefined,
  context: CheckContext,
): readonly string[] {
  return meaningsOf(argument, command, context).flatMap((one) => {
    const locations = locationsOf(one, [cwd ?? '/'], context);
    if (locations === 'foreign-home') return [];
    return locations.flatMap(({ text, partial }) => {
      if (partial) return [];
      return cwd === undefined || text.startsWith('/') ? [text] : [`${cwd}/${text}`];
    });
  });
}

function canonical(path: string, { paths }: CheckContext): string {
  try {
    return paths.resolve(path).canonical;
  } catch {
    return path;
  }
}

/**
 * What a path leads to by the names that the line makes links; nothing where it leads by none of them. That of the link itself
 * only as a directory (`link/`).
 */
export function reachedByLinks(path: string, context: CheckContext, depth = DEEPEST): Reached {
  const links = depth === 0 ? [] : linksMadeBy(context);
  const found = { paths: [] as string[], anywhere: [] as string[] };
  if (links.length === 0) return found;
  const names = path.split('/').filter((name) => name !== '' && name !== '.');
  const last = /\/\.?$/.test(path) ? names.length : names.length - 1;
  for (let count = 1; count <= last; count++) {
    const name = names[count - 1] ?? '';
    if (name === '..') continue;
    const at = join(canonical(`/${names.slice(0, count - 1).join('/')}`, context), name);
    const pattern = at.replace(/(?:\*|\?|\[[^\]]*\])+/g, '*');
    const rest = names.slice(count).join('/');
    for (const link of links) {
      if (!matchesPattern(link.at, pattern) && !matchesPattern(at, link.at)) continue;
      if (link.to === undefined) {
        found.anywhere.push(rest);
        continue;
      }
      const next = `${link.to}/${rest}`;
      const leads = canonical(next, context);
      if (link.copied === undefined || !isBeneath(leads, link.copied)) found.paths.push(leads);
      const further = reachedByLinks(next, context, depth - 1);
      found.paths.push(...further.paths);
      found.anywhere.push(...further.anywhere);
    }
  }
  return found;
}
