import { resolve } from 'node:path';
import { homeDirectory } from '../../host/home-directory.ts';
import { createPathLookup } from '../../host/resolve-path.ts';
import { type ImportedPolicy, importPolicy } from '../../integrations/import/import-policy.ts';
import type { Loss } from '../../integrations/import/importer.ts';
import { placeText } from '../../integrations/import/place.ts';
import { isThere, readSource } from '../../integrations/import/read-source.ts';
import { visibleJson, visibleLine } from '../../util/visible-text.ts';
import { printError, printNote, printOut } from '../shared/print.ts';
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
  const place = { workspace, home, file, exists: isThere, lookup };
  const imported = await importPolicy(options.from, await readSource(file), place);
  const { losses, remarks, toml } = imported;
  const isWider = losses.some(({ effect }) => effect === 'wider');
  const isUsable = !isWider || options.allowWider === true;
  const output = options.output !== undefined && isUsable ? resolve(options.output) : undefined;
  if (output !== undefined) writeNewPolicy(output, toml, 'remove it, or name another file');
  if (options.json === true)
    printOut(`${visibleJson(JSON.stringify(asJson(file, options.from, imported, output)))}\n`);
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
