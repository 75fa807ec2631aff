import type { Entry, LayerName } from './layers.ts';
import { locateKey } from './locate-key.ts';

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
