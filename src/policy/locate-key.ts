import { type AST, parseTOML } from 'toml-eslint-parser';
import type { Entry, LayerName } from './layers.ts';

type Place = readonly (string | number)[];

/** The line in which a key of a TOML text stands; of a key that is not there, its table's. `undefined`: not found. */
export function locateKey(text: string, place: Place): number | undefined {
  try {
    const [top] = parseTOML(text, { tomlVersion: 'next' }).body;
    return search(top.body, place, 0)?.line;
  } catch {
    // A dialect that only the other parser takes: then without a line.
    return undefined;
  }
}

interface Found {
  readonly depth: number;
  readonly line: number;
}

/** The deepest node whose key is a beginning of `place`. */
function search(
  nodes: readonly (AST.TOMLKeyValue | AST.TOMLTable | AST.TOMLContentNode)[],
  place: Place,
  depth: number,
): Found | undefined {
  let best: Found | undefined;
  const take = (found: Found | undefined) => {
    if (found !== undefined && (best === undefined || found.depth > best.depth)) best = found;
  };
  nodes.forEach((node, index) => {
    switch (node.type) {
      case 'TOMLTable':
        if (!startsWith(place, node.resolvedKey, depth)) return;
        take({ depth: depth + node.resolvedKey.length, line: node.loc.start.line });
        take(search(node.body, place, depth + node.resolvedKey.length));
        return;
      case 'TOMLKeyValue': {
        const names = node.key.keys.map((key) => (key.type === 'TOMLBare' ? key.name : key.value));
        if (!startsWith(place, names, depth)) return;
        take({ depth: depth + names.length, line: node.loc.start.line });
        take(inside(node.value, place, depth + names.length));
        return;
      }
      default:
        if (place[depth] !== index) return;
        take({ depth: depth + 1, line: node.loc.start.line });
        take(inside(node, place, depth + 1));
    }
  });
  return best;
}

function inside(node: AST.TOMLContentNode, place: Place, depth: number): Found | undefined {
  if (node.type === 'TOMLArray') return search(node.elements, place, depth);
  return node.type === 'TOMLInlineTable' ? search(node.body, place, depth) : undefined;
}

function startsWith(place: Place, names: Place, from: number): boolean {
  return names.every((name, index) => place[from + index] === name);
}

/** Where a value comes from. */
export interface Source {
  readonly layer: LayerName;
  readonly path?: string;
  readonly line?: number;
}

/** Where an entry was said. Not beside the merging, which each start does: this one takes a parser of TOML. */
export function sourceOf({ layer: { name, path, text }, place }: Entry): Source {
  const line = text === undefined ? undefined : locateKey(text, place);
  return {
    layer: name,
    ...(path === undefined ? {} : { path }),
    ...(line === undefined ? {} : { line }),
  };
}
