import type { Word } from '../model/command-line.ts';
import { literalWord } from '../model/word.ts';
import { both, changed, type Directories, type Flow } from './directories.ts';

/** The effect of builtins on where the shell stands, and on whether it goes on. */
export function moves(name: string, args: readonly Word[], directories: Directories): Flow | undefined {
  switch (name) {
    case 'cd':
      return afterCd(args, directories);
    case 'pushd':
    case 'popd':
      return both(undefined);
    case 'exit':
      // With two arguments bash complains and goes on.
      return args.length < 2 && args.every((word) => word.value !== undefined) ? both([]) : both(directories);
    case 'source':
    case '.':
      return /(?:^|\/)bin\/activate$/.test(args[0]?.value ?? '') ? both(directories) : both(undefined);
    default:
      return undefined;
  }
}

function afterCd(args: readonly Word[], directories: Directories): Flow {
  let rest = args;
  while (/^-[LPe]+$/.test(rest[0]?.value ?? '')) rest = rest.slice(1);
  if (rest[0]?.value === '--') rest = rest.slice(1);
  const [target, ...others] = rest;
  if (others.length > 0) return both(undefined);
  if (target === undefined) {
    const span = args[0]?.span ?? { start: 0, end: 0 };
    return changed(directories, {
      ...literalWord('~', span),
      value: undefined,
      parts: [{ kind: 'tilde', user: '' }],
    });
  }
  if (/^-|^\+/.test(target.value ?? '')) return both(undefined);
  // An empty word leaves the directory as it is in bash; it is not worth a possibility of its own.
  return target.value === '' ? both(directories) : changed(directories, target);
}
