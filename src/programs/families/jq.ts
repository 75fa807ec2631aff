import { leadingText } from '../../model/word.ts';
import type { Argument, PathUse, Use } from '../behaviour.ts';
import { argumentOf } from '../options.ts';
import { plainPaths } from '../plain-paths.ts';

/** Options of jq that take a name and a text, or a name and a file: the tables know one value only. */
const NAMES_TEXT: ReadonlySet<string> = new Set(['--arg', '--argjson']);
const NAMES_FILE: ReadonlySet<string> = new Set(['--rawfile', '--slurpfile', '--argfile']);
const ONE_VALUE: ReadonlySet<string> = new Set(['--indent', '-L', '--library-path']);

/** The files that jq reads: behind names, with -f the program, and the operands behind the program. */
export function pathsOfJq({ command }: Use): readonly PathUse[] {
  const files: Argument[] = [];
  const operands: Argument[] = [];
  let fromFile = false;
  let options = true;
  let texts = false;
  for (let index = 1; index < command.words.length; index++) {
    const word = command.words[index];
    if (word === undefined) break;
    const text = leadingText(word);
    if (!options || text[0] !== '-') {
      if (!texts || operands.length === 0) operands.push(argumentOf(word));
    } else if (text === '--') options = false;
    else if (NAMES_TEXT.has(text)) index += 2;
    else if (ONE_VALUE.has(text)) index++;
    else if (NAMES_FILE.has(text)) {
      const file = command.words[index + 2];
      if (file !== undefined) files.push(argumentOf(file));
      index += 2;
    } else if (/^(?:-[A-Za-z]*f|--from-file)/.test(text)) fromFile = true;
    // The operands behind --args are texts, but for the program.
    else if (text === '--args' || text === '--jsonargs') texts = true;
  }
  return plainPaths([...files, ...(fromFile ? operands : operands.slice(1))], 'reads');
}

/** True for a program of jq that takes no modules. */
export function isPlainJq(program: string): boolean {
  return !/\b(?:import|include|modulemeta|get_search_list)\b/.test(program);
}
