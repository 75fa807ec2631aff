import { constants, existsSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { resolve } from 'node:path';
import { createPathLookup } from '../../host/resolve-path.ts';
import { homeDirectory } from '../../host/user-directories.ts';
import { type Loss, placeText } from '../../integrations/import/draft.ts';
import { type ImportedPolicy, importPolicy, invalid } from '../../integrations/import/import-policy.ts';
import { errnoOf } from '../../util/errno-of.ts';
import { visibleLine } from '../../util/visible-text.ts';
import { jsonLine, printError, printNote, printOut } from '../shared/print.ts';
import { writeNewPolicy } from './init.ts';

/** Exit statuses of `policy import`. */
const EXIT = { equal: 0, narrower: 10, wider: 11 } as const;
/** Of a value that is repeated. */
const VALUE_CHARACTERS = 120;

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
  const file = resolve(source);
  const lookup = createPathLookup();
  const workspace = lookup.resolve(resolve(options.workspace ?? '.')).canonical;
  const home = lookup.resolve(homeDirectory()).canonical;
  const place = { workspace, home, file, exists: existsSync, lookup };
  const imported = await importPolicy(options.from, await readSource(file), place);
  const { losses, remarks, toml } = imported;
  const isWider = losses.some(({ effect }) => effect === 'wider');
  const isUsable = !isWider || options.allowWider === true;
  const output = options.output !== undefined && isUsable ? resolve(options.output) : undefined;
  if (output !== undefined) writeNewPolicy(output, toml, 'remove it, or name another file');
  if (options.json === true) printOut(jsonLine(asJson(file, options.from, imported, output)));
  else {
    printNote([...remarks.map((remark) => `${remark}\n`), ...losses.map(describe)].join(''));
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

function describe({ place, value, effect, why, what }: Loss): string {
  const shown = visibleLine(JSON.stringify(value) ?? '', VALUE_CHARACTERS);
  return `${effect.padEnd(8)} ${visibleLine(placeText(place), VALUE_CHARACTERS)} ${shown}\n         ${visibleLine(`${why}; ${what}`, 400)}\n`;
}

function asJson(file: string, from: string, imported: ImportedPolicy, output: string | undefined): object {
  const { policy, toml, translated, losses, remarks } = imported;
  const textOf = <Entry extends Pick<Loss, 'place' | 'value'>>({ place, value, ...rest }: Entry) => ({
    path: placeText(place),
    value,
    ...rest,
  });
  return {
    ...{ file, from, policy, toml, output: output ?? null },
    ...{ translated: translated.map(textOf), losses: losses.map(textOf), remarks },
  };
}

/** Far beyond what a person writes. */
const MOST_BYTES = 256 * 1024;

/**
 * The text of the settings. A link is followed, as people keep their settings elsewhere; a pipe or device is not read.
 * @throws {SandboxError} `import.invalid`.
 */
async function readSource(path: string): Promise<string> {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch((error: unknown) => {
    const code = errnoOf(error) ?? String(error);
    throw invalid(path, `it cannot be read (${code})`);
  });
  try {
    const info = await file.stat();
    if (!info.isFile()) throw invalid(path, 'it is no file');
    if (info.size > MOST_BYTES) throw invalid(path, `it is larger than ${MOST_BYTES} bytes`);
    return new TextDecoder('utf-8', { fatal: true }).decode(await file.readFile());
  } catch (error) {
    if (error instanceof TypeError) throw invalid(path, 'it is no UTF-8 text');
    throw error;
  } finally {
    await file.close();
  }
}
