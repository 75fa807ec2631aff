import { resolve } from 'node:path';
import { isBeneath } from '../../util/absolute-path.ts';
import type { ImportPlace } from './importer.ts';

/** A path of the source. */
export interface SourcePath {
  /** Canonical as far as it exists: the path, or of a pattern what stands before it. */
  readonly root: string;
  /** It is about more, or less, than `root` and what is beneath it. */
  readonly isPattern: boolean;
  /** Of a pattern what stands behind `root`. */
  readonly rest: string;
  /** A link in the workspace is on the way to it, which a command can put another in place of. */
  readonly isByLink: boolean;
}

const GLOB = /[*?[\]{}!]/;

/**
 * Reads a path or a pattern: `base` is what relative ones are relative to. `dir/**` is `dir` and what is beneath it. Links
 * are followed after `..` is taken away by text, as the products do.
 */
export function sourcePath(text: string, base: string, where: ImportPlace, literal = false): SourcePath {
  const read = textualPath(text, base, where.home, literal);
  const { canonical, links } = where.lookup.resolve(read.root);
  const isByLink = links.some(({ path }) => path !== where.workspace && isBeneath(path, where.workspace));
  return { ...read, root: canonical, isByLink };
}

function textualPath(
  text: string,
  base: string,
  home: string,
  literal: boolean,
): Omit<SourcePath, 'isByLink'> {
  const expanded = /^~(?=\/|$)/.test(text) ? `${home}${text.slice(1)}` : text;
  if (literal) return { root: resolve(base, expanded), isPattern: false, rest: '' };
  const whole = /^\*\*(\/\*)?$/.test(expanded) ? '.' : expanded.replace(/\/\*\*(\/\*)?$/, '') || '/';
  const parts = whole.split('/');
  const first = parts.findIndex((part) => GLOB.test(part));
  if (first === -1) return { root: resolve(base, whole), isPattern: false, rest: '' };
  const before = parts.slice(0, first).join('/');
  const isAbsolute = whole.startsWith('/');
  return {
    root: resolve(base, before === '' && isAbsolute ? '/' : before || '.'),
    isPattern: true,
    rest: parts.slice(first).join('/'),
  };
}
