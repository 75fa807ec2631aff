import { assertNever } from '../../base/assert-never.ts';
import { leadingText, type Redirect, type SimpleCommand, type Word } from '../../model/index.ts';
import { type Argument, inherited, type PathUse, type Use } from './behaviour.ts';
import { grammarOf } from './grammars.ts';
import { argumentOf, isSink } from './options.ts';

/** The paths that a command names: option values, operands, redirect targets, and the program itself. */
export function pathUses(command: SimpleCommand, use: Use | undefined): readonly PathUse[] {
  const found: PathUse[] = [];
  for (const redirect of command.redirects) {
    if (redirect.operator === '<') found.push({ argument: argumentOf(redirect.target), effect: 'reads' });
    else if (writesFile(redirect)) found.push({ argument: argumentOf(redirect.target), effect: 'writes' });
  }
  if (use === undefined) return found;
  const program = command.words[0];
  if (program !== undefined && leadingText(program).includes('/')) {
    found.push({ argument: argumentOf(program), effect: 'reads' });
  }
  const targetOptions = inherited(use, 'targetOptions')?.split(' ') ?? [];
  for (const { name, effect, value, inPlace } of use.options) {
    if (value === undefined || inPlace) continue;
    if (effect === 'reads' || effect === 'loads')
      found.push({ argument: value, effect: 'reads', byOption: true });
    else if (effect === 'writes' || effect === 'produces')
      found.push({
        ...{ argument: value, effect: 'writes' },
        ...(targetOptions.includes(name) ? { directory: true } : {}),
      });
    else if (effect === 'executes' && looksLikePath(value)) found.push({ argument: value, effect: 'reads' });
  }
  found.push(...(inherited(use, 'paths')?.(use) ?? operandPaths(use)));
  found.push(...(inherited(use, 'morePaths')?.(use) ?? []));
  return found;
}

function operandPaths(use: Use): readonly PathUse[] {
  const kind = inherited(use, 'operands') ?? 'guess';
  const { operands } = use;
  const plain: Pick<PathUse, 'effect' | 'replaced'> = use.options.some(({ inPlace }) => inPlace)
    ? { effect: 'writes', replaced: true }
    : { effect: 'reads' };
  switch (kind) {
    case 'none':
      return [];
    case 'reads':
      return all(operands, plain);
    case 'writes':
      return all(operands, { effect: kind });
    case 'removes':
      return all(operands, { effect: kind, replaced: true });
    case 'reads-then-writes':
    case 'moves-then-writes': {
      const sources =
        kind === 'reads-then-writes'
          ? ({ effect: 'reads' } as const)
          : ({ effect: 'removes', replaced: true } as const);
      const targetOptions = inherited(use, 'targetOptions')?.split(' ') ?? [];
      if (use.options.some(({ name }) => targetOptions.includes(name)) || operands.length === 1)
        return all(operands, sources);
      const [source, ...others] = operands.slice(0, -1);
      const target = {
        effect: 'writes' as const,
        ...(kind === 'moves-then-writes'
          ? { replaced: true as const }
          : source === undefined || others.length > 0
            ? {}
            : { receives: source }),
      };
      return [...all(operands.slice(0, -1), sources), ...all(operands.slice(-1), target)];
    }
    case 'script-then-reads': {
      const given = inherited(use, 'scriptOptions')?.split(' ') ?? [];
      const hasScript = use.options.some(({ name }) => given.includes(name));
      return all(hasScript ? operands : operands.slice(1), plain);
    }
    case 'revisions': {
      const noIndex = use.options.some(({ name }) => name === 'no-index');
      return noIndex ? all(operands, plain) : all(operands.slice(use.afterDashes), plain);
    }
    case 'guess':
      return [
        ...all(operands.filter(looksLikePath), plain),
        ...all([...use.unknown, ...attachedTo(use)].flatMap(attachedPath), { effect: 'reads' }),
      ].map((found) => ({ ...found, guessed: true }));
    default:
      return assertNever(kind);
  }
}

/** Options of a program without a complete table. */
function attachedTo({ command, program }: Use): readonly Word[] {
  return program.grammar === undefined || grammarOf(program)?.open === true
    ? command.words.slice(1).filter((word) => leadingText(word).startsWith('-'))
    : [];
}

/** `--file=/x`, `-I../x`: what is attached to an option that is not in the table, if it looks like a path. */
function attachedPath(word: Word): readonly Argument[] {
  const match = /^(?:--[\w.-]+=|-[A-Za-z]=?)(?=[/~]|\.\.?\/|\.\.$)/.exec(leadingText(word));
  return match === null ? [] : [argumentOf(word, match[0].length)];
}

function all(operands: readonly Argument[], use: Omit<PathUse, 'argument'>): readonly PathUse[] {
  return operands.map((argument) => ({ argument, ...use }));
}

/** For words whose meaning is unknown. URLs, expressions and text are not paths. */
function looksLikePath({ text, word }: Argument): boolean {
  if (/^(?:\/|~|\.\.?(?:\/|$))/.test(text)) return !/[\n;(){}|<>"']/.test(text);
  if (text === '' && word.value === undefined)
    return word.parts.some(({ kind }) => kind === 'brace' || kind === 'parameter');
  return /(?:^|\/)\.\.(?:\/|$)/.test(text) && !/^\w+:\/\//.test(text) && !/[\s:]/.test(text);
}

/** True if a redirect creates or changes a file. */
export function writesFile(redirect: Redirect): boolean {
  const target = redirect.target.value;
  switch (redirect.operator) {
    case '<':
    case '<&':
    case '<<':
    case '<<-':
    case '<<<':
      return false;
    case '>&':
      // Else a descriptor, which was opened elsewhere.
      return target === undefined || !/^(?:\d+|-)$/.test(target);
    case '>':
    case '>>':
    case '>|':
    case '<>':
    case '&>':
    case '&>>':
      return target === undefined || !isSink(target);
    default:
      return assertNever(redirect.operator);
  }
}
