import type { Finding, Judge } from './mechanisms.ts';

/** Some of many paths. */
export const named = (paths: readonly string[]): string =>
  `${paths.slice(0, 3).join(', ')}${paths.length > 3 ? ` and ${paths.length - 3} more` : ''}`;

/** The reason in the report for `hidden-paths` where the paths are mounted over. */
export const emptyAndShut = (paths: readonly string[]): string =>
  `${paths.length === 1 ? '1 path is' : `${paths.length} paths are`} empty and shut (mounts): what matched when the command started`;

/** A hidden file that can perhaps be read by another name. */
export const otherNames = (elsewhere: readonly string[]): Finding => [
  'degraded',
  `${named(elsewhere)} has other names (hard links) that were not found where commands can read; remove them, or make it a file of its own (cp)`,
];

/** The finding for the control `denials` where calls are not observed. */
export const notTold = (why: string): Finding => [
  'unsupported',
  `what a command is denied is not known: ${why}`,
];

/** What the report says of the control `workspace-changes`, which is off unless a preview is asked for. */
export const workspaceChanges: Judge = (
  { view, backend },
  _,
  { namespaces, layersRefused },
  { layer, onlyReads },
) => {
  const why = namespaces.available ? `not with ${backend}` : namespaces.reason;
  const impossible = view
    ? layersRefused && `a preview needs a layer: ${layersRefused}`
    : `a preview needs a mount namespace of ours (${why})`;
  if (onlyReads === true)
    return ['enforced', 'the command only reads, as far as its words tell, so it cannot write the workspace'];
  if (layer === undefined)
    return ['off', `commands change the workspace at once; ${impossible ?? '--preview holds changes back'}`];
  if (impossible !== undefined)
    return [
      'unsupported',
      `changes cannot be held back: ${impossible}; see sandbox-run doctor; a copy of the workspace serves the same end`,
    ];
  const shut = layer.shut.length === 0 ? '' : `; ${named(layer.shut)} can only be read`;
  return ['enforced', `changes wait in a layer over the workspace until they are applied (overlayfs)${shut}`];
};
