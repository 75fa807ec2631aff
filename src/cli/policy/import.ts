import { isUtf8 } from 'node:buffer';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { accountOf, importPolicy, invalid, type Part, placeText } from '../../agents/index.ts';
import { orElse } from '../../base/or-else.ts';
import { createPathLookup, homeDirectory, readRegular } from '../../workspace/index.ts';
import { caller, currentDirectory } from '../shared/caller.ts';
import { jsonLine, printError, printNote, printOut } from '../shared/print.ts';
import { writeNewPolicy } from './init.ts';

/** Exit statuses of `policy import`. */
const EXIT = { equal: 0, narrower: 10, wider: 11 } as const;

/** Options of `policy import`. */
export interface ImportArguments {
  readonly from: string;
  readonly output?: string;
  readonly workspace?: string;
  readonly json?: boolean;
  readonly allowWider?: boolean;
}

/**
 * Prints or writes a policy made of settings of another sandbox, and what has no equivalent. Returns the exit status. A
 * policy that allows what the source forbids is made only for who says so.
 */
export async function printImported(source: string, options: ImportArguments): Promise<number> {
  const { from, allowWider = false, json = false } = options;
  const file = resolve(source);
  const lookup = createPathLookup();
  const canonical = (path: string) => lookup.resolve(path).canonical;
  const workspace = canonical(resolve(options.workspace ?? currentDirectory()));
  const place = {
    workspace,
    home: canonical(homeDirectory()),
    env: caller().env,
    file,
    exists: existsSync,
    lookup,
  };
  const imported = await importPolicy(from, readSource(file, canonical(file)), place);
  const { losses, remarks, toml, translated } = imported;
  const isWider = losses.some(({ effect }) => effect === 'wider');
  const isUsable = !isWider || allowWider;
  const output = options.output !== undefined && isUsable ? resolve(options.output) : undefined;
  if (output !== undefined)
    writeNewPolicy(output, toml, { instead: 'remove it, or name another file', workspace });
  if (json) {
    const withPath = ({ place: at, ...rest }: Part) => ({ path: placeText(at), ...rest });
    const told = { translated: translated.map(withPath), losses: losses.map(withPath) };
    printOut(jsonLine({ file, from, ...imported, output: output ?? null, ...told }));
  } else {
    printNote([...remarks, ...losses.map(accountOf)].map((line) => `${line}\n`).join(''));
    if (output !== undefined) printOut(`wrote ${output}\n`);
    else if (isUsable) printOut(toml);
  }
  if (!isUsable)
    printError(
      'the policy would allow what the source forbids (marked "wider"), so it is not written; mend the source, or add --allow-wider and look at each of them',
    );
  if (isWider) return EXIT.wider;
  return losses.some(({ effect }) => effect === 'narrower') ? EXIT.narrower : EXIT.equal;
}

/** Far beyond what a person writes. */
const MOST_BYTES = 256 * 1024;

/**
 * The text of the settings. A link is followed, as people keep their settings elsewhere; a pipe or device is not read.
 * @throws {SandboxError} `import.invalid`.
 */
function readSource(file: string, canonical: string): string {
  const content = orElse(() => readRegular(canonical, MOST_BYTES), undefined);
  if (content === undefined)
    throw invalid(file, `it is no file that can be read, or it is larger than ${MOST_BYTES} bytes`);
  if (!isUtf8(content)) throw invalid(file, 'it is no UTF-8 text');
  return content.toString();
}
