import { leadingText } from '../../../model/index.ts';
import {
  type Argument,
  type Finding,
  finding,
  type PathUse,
  type ProgramRow,
  programs,
  type Use,
  withVersion,
} from '../behaviour.ts';
import { argumentOf, hasOption, pathInside, plainPaths, takesNamesFrom, writtenAt } from '../options.ts';

/** `+!id`, `+:q`: a command of the editor may run a program. */
function inspectEditor({ command }: Use): readonly Finding[] {
  return command.words
    .slice(1)
    .flatMap(({ value, source }) =>
      value !== undefined && /^\+(?!\d*$)/.test(value)
        ? [finding('executes', 'editor_command', 'runs a command of the editor', source)]
        : [],
    );
}

/** Editors, which run commands and write any file they are asked to. */
const EDITORS: readonly ProgramRow[] = [
  ...programs(
    'vi vim nvim view ex vimdiff gvim rvim rview',
    'medium',
    'unknown',
    () => ({
      grammar: 'vi',
      operands: 'writes',
      code: 'editor',
      inspect: inspectEditor,
    }),
    withVersion('vim'),
  ),
  ...programs('ed red', 'medium', 'unknown', () => ({
    grammar: 'ed',
    operands: 'writes',
    code: 'editor',
    inspect: ({ operands }) =>
      operands
        .filter(({ text }) => text.startsWith('!'))
        .map(({ word: { source } }) =>
          finding('executes', 'editor_command', 'runs a command of the editor', source),
        ),
  })),
  ...programs('emacs', 'medium', 'unknown', () => ({ grammar: 'emacs', operands: 'writes', code: 'editor' })),
  ...programs('nano', 'medium', 'unknown', () => ({ grammar: 'nano', operands: 'writes', code: 'editor' })),
  ...programs('micro', 'medium', 'unknown', () => ({ grammar: 'micro', operands: 'writes', code: 'editor' })),
  ...programs('kak', 'medium', 'unknown', () => ({ grammar: 'kak', operands: 'writes', code: 'editor' })),
  ...programs('hx helix', 'medium', 'unknown', () => ({ grammar: 'hx', operands: 'writes', code: 'editor' })),
  ...programs('emacsclient pico joe jed mcedit', 'medium', 'unknown', () => ({
    grammar: 'emacsclient',
    operands: 'writes',
    code: 'editor',
  })),
];

/** Programs that turn text into other text, and editors. */
export const TEXT: readonly ProgramRow[] = [
  ...EDITORS,
  ...programs('sort', 'low', 'local', () => ({
    strict: takesNamesFrom('files0-from'),
    grammar: 'sort',
    operands: 'reads',
    passesOn:
      'b ignore-leading-blanks d dictionary-order f ignore-case g general-numeric-sort h human-numeric-sort i ignore-nonprinting M month-sort n numeric-sort R random-sort r reverse V version-sort s stable u unique z zero-terminated k key t field-separator sort',
    application: { without: 'files0-from T temporary-directory' },
  })),
  ...programs('uniq', 'low', 'local', () => ({
    grammar: 'uniq',
    paths: ({ operands }) => writtenAt(operands, 1),
    operands: 'reads',
    passesOn:
      'd repeated D i ignore-case u unique z zero-terminated f skip-fields s skip-chars w check-chars',
    // The second file of uniq is its output.
    inspect: ({ operands }) =>
      operands[1] === undefined
        ? []
        : [finding('writes', 'writes_output', 'writes its second file', operands[1].word.source)],
    application: {},
  })),
  ...programs('shuf', 'low', 'local', () => ({ grammar: 'shuf', operands: 'reads', application: {} })),
  ...programs('cut', 'low', 'local', () => ({ grammar: 'cut', operands: 'reads', application: {} })),
  ...programs('paste', 'low', 'local', () => ({ grammar: 'paste', operands: 'reads', application: {} })),
  ...programs('join', 'low', 'local', () => ({ grammar: 'join', operands: 'reads', application: {} })),
  ...programs('column', 'low', 'local', () => ({ grammar: 'column', operands: 'reads' })),
  ...programs('nl', 'low', 'local', () => ({ grammar: 'nl', operands: 'reads', application: {} })),
  ...programs('fold', 'low', 'local', () => ({ grammar: 'fold', operands: 'reads', application: {} })),
  ...programs('fmt', 'low', 'local', () => ({ grammar: 'fmt', operands: 'reads' })),
  ...programs('expand unexpand', 'low', 'local', () => ({ grammar: 'expand', operands: 'reads' })),
  ...programs('rev', 'low', 'local', () => ({ grammar: 'rev', operands: 'reads', application: {} })),
  ...programs('pr', 'low', 'local', () => ({ grammar: 'pr', operands: 'reads' })),
  ...programs('look', 'low', 'local', () => ({ grammar: 'look', operands: 'reads' })),
  ...programs('tsort', 'low', 'local', () => ({ grammar: 'tsort', operands: 'reads' })),
  ...programs('iconv', 'low', 'local', () => ({ grammar: 'iconv', operands: 'reads' })),
  ...programs('dos2unix unix2dos ptx', 'medium', 'local', () => ({ operands: 'writes' })),
  ...programs('envsubst', 'low', 'local', () => ({ operands: 'none' })),
  ...programs('tr', 'low', 'local', () => ({ operands: 'none', application: { words: 'any' } })),
  ...programs('jq gojq jaq', 'low', 'local', () => ({
    grammar: 'jq',
    paths: pathsOfJq,
    application: {
      names: 'jq',
      without: 'seq stream unbuffered jsonargs stream-errors raw-output0 argfile f from-file L library-path',
      // `env` and `$ENV`, wherever in its program.
      obeysEnvironment: ({ command }) => command.words.some(({ value }) => /env/i.test(value ?? 'env')),
      objection: ({ command }) =>
        command.words.every(({ value }) => isPlainJq(value ?? '')) ? undefined : 'takes no modules here',
    },
  })),
  ...programs('yq', 'low', 'local', () => ({ grammar: 'yq', paths: pathsOfYq, morePaths: filesOfYq })),
  ...programs('xmllint', 'low', 'local', () => ({
    grammar: 'xmllint',
    operands: 'reads',
    inspect: inspectXml,
  })),
  ...programs('base64 base32 basenc', 'low', 'local', () => ({
    grammar: 'base64',
    operands: 'reads',
    application: { names: 'base64 base32' },
  })),
  ...programs('pandoc', 'medium', 'local', () => ({
    grammar: 'pandoc',
    inspect: (use) => [...fetches(use), ...loadsFormat(use)],
  })),
  ...programs('csvcut csvlook csvgrep csvstat', 'medium', 'local', () => ({ grammar: 'csvcut' })),
  ...programs('mlr miller', 'medium', 'local', () => ({ code: 'language', grammar: 'mlr' })),
  ...programs('xsv fx gron dasel tomlq hjson', 'medium', 'local', () => ({ grammar: 'xsv' })),
];

/** The first operand of yq is an expression, or a file where that is left out. */
function pathsOfYq(use: Use): readonly PathUse[] {
  const [first, ...rest] = /^(?:e|ea|eval|eval-all)$/.test(use.operands[0]?.text ?? '')
    ? use.operands.slice(1)
    : use.operands;
  const isFile =
    hasOption(use, 'from-file expression') ||
    /^(?:[/~]|\.\.?\/)|^[^.\s()[\]|][^\s()[\]|]*\.(?:ya?ml|json|xml|toml|csv|tsv|ini|hcl|lua|properties)$/.test(
      first?.text ?? '',
    );
  return plainPaths(
    isFile ? [first, ...rest] : rest,
    use.options.some(({ inPlace }) => inPlace) ? 'writes' : 'reads',
  );
}

/** Readers and writers of pandoc may be scripts: `-t ./mine.lua`. */
function loadsFormat({ options }: Use): readonly Finding[] {
  return options
    .filter(
      ({ name, value }) =>
        /^(?:[ftrw]|from|to|read|write)$/.test(name) &&
        value !== undefined &&
        (!value.complete || /\.lua\b|\//.test(value.text)),
    )
    .map(({ word }) =>
      finding('loads', 'loads_by_option', 'runs code from a file through its format', word.source),
    );
}

/** `load("file")` and its kin in an expression of yq. */
function filesOfYq({ operands }: Use): readonly PathUse[] {
  return operands.flatMap((operand) =>
    [...operand.text.matchAll(/\bload(?:_\w+)?\(\s*"([^"\\]+)"/g)].map(([, path = '']) => ({
      argument: pathInside(operand, path),
      effect: 'reads' as const,
    })),
  );
}

/** A URL among the words, which the program fetches. */
function fetches({ command }: Use): readonly Finding[] {
  return command.words
    .slice(1)
    .filter((word) => /^(?:--?[\w-]+=)?(?:https?|ftp):\/\//i.test(leadingText(word)))
    .map(({ source }) => finding('network', 'fetches', 'fetches what is at a URL', source));
}

/** Documents name others, which are fetched with these options. */
function inspectXml(use: Use): readonly Finding[] {
  const { words } = use.command;
  const follows = words.filter(({ value }) =>
    /^--?(?:noent|valid|postvalid|loaddtd|dtdattr|xinclude|noxincludenode)$/.test(value ?? ''),
  );
  const isKept = words.some(({ value }) => /^--?nonet$/.test(value ?? ''));
  return [
    ...fetches(use),
    ...(isKept ? [] : follows).map(({ source }) =>
      finding('network', 'follows', 'fetches what a document names', source),
    ),
  ];
}

/** Options of jq that take a name and a text, or a name and a file: the tables know one value only. */
const NAMES_TEXT: ReadonlySet<string> = new Set(['--arg', '--argjson']);
const NAMES_FILE: ReadonlySet<string> = new Set(['--rawfile', '--slurpfile', '--argfile']);
const ONE_VALUE: ReadonlySet<string> = new Set(['--indent', '-L', '--library-path']);

/** The files that jq reads: behind names, with -f the program, and the operands behind the program. */
function pathsOfJq({ command }: Use): readonly PathUse[] {
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
    // The operands behind --args are texts, except the program.
    else if (text === '--args' || text === '--jsonargs') texts = true;
  }
  return plainPaths([...files, ...(fromFile ? operands : operands.slice(1))], 'reads');
}

/** True for a program of jq that takes no modules. */
export function isPlainJq(program: string): boolean {
  return !/\b(?:import|include|modulemeta|get_search_list)\b/.test(program);
}
