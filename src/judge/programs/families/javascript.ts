import { prefixOf, type Word } from '../../../model/index.ts';
import {
  type Behaviour,
  type Call,
  type Finding,
  finding,
  type PathUse,
  type ProgramRow,
  programs,
  type Runs,
  type Use,
  verbs,
  withVersion,
} from '../behaviour.ts';
import { grammarNamed } from '../grammars.ts';
import {
  argumentOf,
  behindOptions,
  hasOption,
  NOTHING,
  optionValue,
  parseOptions,
  readOptions,
  refused,
  runText,
  runWords,
} from '../options.ts';
import { scriptsOfManager } from '../package-scripts.ts';
import { npmStays } from '../stays-local.ts';

/** The options of these names load a module unless their value is known, or at least no path. */
function modules(names: string, known?: ReadonlySet<string>): (use: Use) => readonly Finding[] {
  const wanted = new Set(names.split(' '));
  return ({ options }) =>
    options
      .filter(({ name, value }) => {
        if (!wanted.has(name) || value === undefined) return false;
        if (!value.complete) return true;
        return known === undefined ? /^[./~]/.test(value.text) : !known.has(value.text);
      })
      .map(({ name, word }) =>
        finding('loads', 'loads_by_option', `runs code from a file through --${name}`, word.source),
      );
}

/** Formats that come with eslint, in one version or another. */
const ESLINT_FORMATS: ReadonlySet<string> = new Set(
  'stylish json json-with-metadata html compact unix tap junit checkstyle jslint-xml visualstudio codeframe table'.split(
    ' ',
  ),
);
const MOCHA_REPORTERS: ReadonlySet<string> = new Set(
  'spec dot nyan tap landing list progress json json-stream html min doc markdown xunit base github'.split(
    ' ',
  ),
);

/** Files that mocha's reporters write: `--reporter-option output=FILE`. */
function outputsOfMocha({ options }: Use): readonly PathUse[] {
  return options.flatMap(({ name, value }) => {
    const match = /^O$|^reporter-options?$/.test(name)
      ? /(?:^|,)(?:output|filename|mochaFile)=/.exec(value?.text ?? '')
      : null;
    return match === null || value === undefined
      ? []
      : [
          {
            argument: argumentOf(value.word, value.start + match.index + match[0].length),
            effect: 'writes' as const,
          },
        ];
  });
}

/** `tsc @FILE` reads more options from that file. */
function inspectTsc({ operands }: Use): readonly Finding[] {
  return operands
    .filter(({ text }) => text[0] === '@')
    .map(({ word }) => finding('loads', 'response_file', 'reads more options from a file', word.source));
}

/** Compilers, linters and test runners. Their configuration is code of the workspace, like a test that they run. */
const JAVASCRIPT_TOOLS: readonly ProgramRow[] = [
  ...programs('tsc tsgo vue-tsc', 'low', 'unknown', () => ({ grammar: 'tsc', inspect: inspectTsc })),
  ...programs('eslint', 'low', 'unknown', () => ({
    grammar: 'eslint',
    inspect: modules('f format', ESLINT_FORMATS),
  })),
  ...programs('jest', 'low', 'unknown', () => ({
    grammar: 'jest',
    inspect: modules(
      'env testEnvironment test-environment reporters preset coverageReporters coverage-reporters',
    ),
  })),
  ...programs('vitest', 'low', 'unknown', () => ({
    grammar: 'vitest',
    inspect: modules('reporter environment pool coverage.reporter'),
  })),
  ...programs('mocha', 'low', 'unknown', () => ({
    grammar: 'mocha',
    inspect: (use) => [...modules('R reporter', MOCHA_REPORTERS)(use), ...modules('u ui')(use)],
    morePaths: outputsOfMocha,
  })),
  ...programs('biome', 'low', 'unknown', () => ({ grammar: 'biome' })),
  ...programs(
    'ava tap karma xo standard knip depcheck madge ncu attw publint tsd dpdm size-limit',
    'low',
    'unknown',
    () => ({
      grammar: 'ava',
    }),
  ),
  ...programs('stylelint', 'low', 'unknown', () => ({ grammar: 'stylelint' })),
  ...programs('c8', 'low', 'unknown', () => ({
    operands: 'none',
    // c8's verbs `report` and `check-coverage` run no command.
    runs: behindOptions((read) =>
      /^(?:report|check-coverage)$/.test(read.rest[0]?.value ?? '') ? NOTHING : runWords(read.rest),
    ),
    grammar: 'c8',
  })),
  ...programs('nyc', 'low', 'unknown', () => ({
    operands: 'none',
    runs: behindOptions((read) =>
      /^(?:report|check-coverage|instrument|merge)$/.test(read.rest[0]?.value ?? '')
        ? NOTHING
        : runWords(read.rest),
    ),
    grammar: 'nyc',
  })),
  ...programs('oxlint', 'low', 'unknown', () => ({ grammar: 'oxlint' })),
  ...programs('prettier', 'low', 'unknown', () => ({ grammar: 'prettier' })),
];

const CHANGES: Behaviour = { risk: 'medium', reach: 'network', operands: 'none', onlyFetches: false };
const SCRIPT: Behaviour = { risk: 'low', reach: 'network', operands: 'none' };
const READS: Behaviour = { risk: 'low', reach: 'network', operands: 'none', onlyFetches: true };
const PUBLISHES: Behaviour = { ...CHANGES, outward: 'changes what is published' };

/** `npm audit --fix` is `npm audit fix`. */
function fixes({ command, verbs: [, inner] }: Use): readonly Finding[] {
  return command.words
    .filter(({ value }) => inner === undefined && value !== undefined && /^--fix(?:=(?!false)|$)/.test(value))
    .map(({ source }) => finding('writes', 'rewrites', 'changes what is installed', source));
}

/** Programs of packages with the same name that only print their version with `--version`. */
const TOOLS_ASKED: ReadonlySet<string> = new Set(
  'tsc eslint prettier jest vitest mocha vite webpack rollup esbuild tsx stylelint'.split(' '),
);

/** `npx tsc --version`: the inner command is judged separately, and only prints a version. */
function asksVersion({ program, command }: Use): boolean {
  const words = command.words.slice(1).map(({ value }) => value);
  if (words[0] === '--no-install') words.shift();
  const [tool, option] = words;
  return (
    program.name === 'npx' &&
    words.length === 2 &&
    TOOLS_ASKED.has(tool ?? '') &&
    (option === '--version' || option === '--help' || (option === '-v' && tool === 'tsc'))
  );
}

/** `npx [options] [--] program words`, or `-c text`. */
function execute({ name, args }: Call): Runs {
  const read = readOptions(
    args,
    /^(?:pnpm|pnpx|yarn)$/.test(name) ? grammarNamed('npx pnpm') : grammarNamed('npx'),
  );
  if (!read.ok) return refused(`${name}: ${read.message}`, read.word);
  const text = optionValue(read.options, 'c call');
  if (text !== undefined) return runText([text]);
  if (hasOption(read, 'version help v h')) return NOTHING;
  const dashes = read.rest.findIndex((word) => word.value === '--');
  // npm takes away the first "--" behind the program's name.
  const command = name === 'npm' && dashes === 1 ? read.rest.filter((_, index) => index !== 1) : read.rest;
  const elsewhere = hasOption(read, 'w workspace C prefix dir recursive filter');
  return runWords(command, elsewhere ? 'unknown' : undefined);
}

/** Programs that the package manager starts in place of its own. */
const EXECUTING =
  /^--?(?:script-shell|shell|editor|viewer|browser|git|node-options|init-module|ignore-scripts=false)\b/;

const EXECUTING_VERBS: Readonly<Record<string, RegExp>> = {
  npm: /^(?:exec|x|ex|exe)$/,
  pnpm: /^(?:exec|dlx)$/,
  yarn: /^(?:exec|dlx)$/,
  bun: /^(?:x)$/,
};

/** Programs that verbs of npm, pnpm, yarn and bun run. For scripts of package.json see `scriptsOfManager`. */
function runsOfManager(call: Call): Runs {
  const { args } = call;
  const setting = args.find((word) => EXECUTING.test(prefixOf(word)));
  if (setting !== undefined)
    return refused(`${call.name}: ${setting.source} names a program to run.`, setting);
  const at = parseOptions(args, 0, call.grammar, true).next;
  const verb = args[at];
  if (verb === undefined) return NOTHING;
  if (verb.value === undefined)
    return refused(`${call.name}: the verb ${verb.source} must be written out.`, verb);
  if (call.name === 'npm' && verb.value === 'explore') return explore(args.slice(at + 2));
  if (EXECUTING_VERBS[call.name]?.test(verb.value) !== true) return NOTHING;
  return execute({ ...call, args: args.slice(at + 1) });
}

/** `npm explore package -- text`: a shell runs it in the package's folder. */
function explore(args: readonly Word[]): Runs {
  const text = args[0]?.value === '--' ? args.slice(1) : args;
  if (text.length === 0) return refused('npm explore would start a shell: name the command.', args[0]);
  return runText(text, 'posix', 'unknown');
}

/** Verbs of npm and its kin, with their aliases. */
const verbsOfManagers = (): Readonly<Record<string, Behaviour>> => ({
  ...verbs(
    'install i in ins inst insta instal isnt isnta isntal isntall add a ci clean-install ic install-clean isntall-clean install-test it install-ci-test cit update up upgrade udpate uninstall un unlink remove rm r link ln rebuild rb dedupe ddp prune shrinkwrap import fetch',
    CHANGES,
  ),
  ...verbs(
    'pack version set config c get pkg cache init create innit exec x dlx start restart stop edit explore store patch patch-commit env setup self-update global workspace workspaces plugin set-script approve-builds licenses node server docs repo bugs',
    CHANGES,
  ),
  ...verbs(
    'publish unpublish deprecate undeprecate dist-tag dist-tags owner access team org token login logout adduser add-user star unstar hook profile trust deploy',
    PUBLISHES,
  ),
  ...verbs('run run-script rum urn test t tst build lint', SCRIPT),
  ...verbs('ls list la ll explain why root prefix', { ...READS, staysLocal: npmStays }),
  ...verbs(
    'outdated view info show v doctor help bin ping whoami search fund query diff sbom completion find-dupes',
    READS,
  ),
  audit: { ...READS, verbs: verbs('fix', CHANGES), inspect: fixes },
  config: { ...CHANGES, verbs: verbs('get list ls', READS) },
  c: { ...CHANGES, verbs: verbs('get list ls', READS) },
});

const managing = (grammar: string) => ({
  versionOption: '-v',
  runs: runsOfManager,
  recipes: scriptsOfManager,
  optionsAnywhere: true,
  operands: 'none' as const,
  grammar,
  verbs: verbsOfManagers(),
});

const NODE: Behaviour = {
  code: 'language',
  interprets: 'script',
  grammar: 'esno',
};

/** Node and what comes with it. */
export const JAVASCRIPT: readonly ProgramRow[] = [
  ...programs('npm', 'medium', 'network', () => managing('npm')),
  ...programs('pnpm', 'medium', 'network', () => managing('pnpm')),
  ...programs('yarn', 'medium', 'network', () => managing('yarn')),
  ...programs('bun', 'medium', 'network', () => ({
    code: 'language',
    interprets: 'script',
    runs: runsOfManager,
    recipes: scriptsOfManager,
    grammar: 'bun',
    verbs: {
      ...verbsOfManagers(),
      ...verbs('run x create upgrade', CHANGES),
      test: { ...SCRIPT, grammar: 'bun test' },
      build: { ...CHANGES, grammar: 'bun build' },
    },
  })),
  ...programs('npx bunx pnpx', 'medium', 'network', () => ({
    operands: 'none',
    onlyReads: asksVersion,
    runs: execute,
  })),
  ...programs('yarnpkg corepack nvm fnm volta n', 'medium', 'network', () => ({
    operands: 'none',
    onlyReads: asksVersion,
  })),
  ...programs(
    'node nodejs',
    'medium',
    'network',
    () => ({
      ...NODE,
      grammar: 'node',
      versionOption: '-v',
    }),
    withVersion('node'),
  ),
  ...programs('deno', 'medium', 'network', () => ({ ...NODE, grammar: 'deno' })),
  ...programs('tsx', 'medium', 'network', () => ({ ...NODE, grammar: 'tsx' })),
  ...programs('ts-node ts-node-esm', 'medium', 'network', () => ({ ...NODE, grammar: 'ts-node' })),
  ...programs('esno swc-node babel-node zx electron', 'medium', 'network', () => NODE),
  ...JAVASCRIPT_TOOLS,
  ...programs(
    'vercel netlify firebase wrangler changeset lerna semantic-release',
    'medium',
    'unknown',
    () => ({
      outward: ({ command, program }) =>
        program.name === 'semantic-release' ||
        command.words.some(({ value }) =>
          /^(?:deploy(?::.*)?|publish|promote|rollback|--prod)$/.test(value ?? ''),
        )
          ? 'changes what runs or is published elsewhere'
          : undefined,
    }),
  ),
  ...programs('rimraf del-cli', 'high', 'unknown', () => ({ operands: 'removes' })),
  ...programs(
    'vite next nuxt astro webpack rollup esbuild parcel turbo nx tsup rslib rspack unbuild storybook svelte-kit gatsby ng vue expo metro remix playwright cypress puppeteer lighthouse husky lint-staged prisma drizzle-kit typeorm sequelize http-server serve npm-run-all run-s run-p dotenv pm2 gulp grunt bower lefthook nest',
    'medium',
    'unknown',
  ),
];
