import type { Word } from '../../model/command-line.ts';
import { prefixOf } from '../../model/word.ts';
import type { Call, Grammar, Runs, Use } from '../behaviour.ts';
import { type Behaviour, type Finding, finding, type ProgramRow, programs, verbs } from '../behaviour.ts';
import { hasOption, optionValue, readOptions } from '../options.ts';
import { NOTHING, refused, runText, runWords } from '../runs.ts';
import { JAVASCRIPT_TOOLS } from './javascript-tools.ts';

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

/** Programs of packages with the same name, which print their version and no more. */
const TOOLS_ASKED: ReadonlySet<string> = new Set(
  'tsc eslint prettier jest vitest mocha vite webpack rollup esbuild tsx stylelint'.split(' '),
);

/** `npx tsc --version`: what it would run is listed beside it, and does nothing. */
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

const EXEC: Grammar = {
  flags:
    'y q v h s yes no no-install quiet silent offline prefer-offline version help bun workspaces include-workspace-root ignore-existing recursive parallel',
  values: 'p w c C package workspace registry call loglevel prefix filter dir',
};

/** `npx [options] [--] program words`, or `-c text`. */
function execute({ name, args }: Call): Runs {
  const read = readOptions(args, EXEC);
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

/** Options before the verb that take a value. */
const WITH_VALUE =
  /^(?:-C|-w|-F|--prefix|--workspace|--registry|--loglevel|--filter|--cwd|--dir|--package|-p|--userconfig|--cache)$/;
/** Programs that the package manager starts in place of its own. */
const EXECUTING =
  /^--?(?:script-shell|shell|editor|viewer|browser|git|node-options|init-module|ignore-scripts=false)\b/;

const EXECUTING_VERBS: Readonly<Record<string, RegExp>> = {
  npm: /^(?:exec|x|ex|exe)$/,
  pnpm: /^(?:exec|dlx)$/,
  yarn: /^(?:exec|dlx)$/,
  bun: /^(?:x)$/,
};

/** npm, pnpm, yarn and bun, with the verbs that run a program. Scripts of package.json are a file's business. */
function runsOfManager(call: Call): Runs {
  const { args } = call;
  const setting = args.find((word) => EXECUTING.test(prefixOf(word)));
  if (setting !== undefined)
    return refused(`${call.name}: ${setting.source} names a program to run.`, setting);
  let at = 0;
  while (prefixOf(args[at] ?? EMPTY).startsWith('-')) at += WITH_VALUE.test(args[at]?.value ?? '') ? 2 : 1;
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

const EMPTY: Word = { value: '', parts: [], source: '', span: { start: 0, end: 0 } };

/** Verbs of npm and its kin, with their aliases. */
const VERBS: Readonly<Record<string, Behaviour>> = {
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
  ...verbs(
    'ls list la ll outdated view info show v why explain doctor help root prefix bin ping whoami search fund query diff sbom completion find-dupes',
    READS,
  ),
  audit: { ...READS, verbs: verbs('fix', CHANGES), inspect: fixes },
  config: { ...CHANGES, verbs: verbs('get list ls', READS) },
  c: { ...CHANGES, verbs: verbs('get list ls', READS) },
};

/** Node and what comes with it. */
export const JAVASCRIPT: readonly ProgramRow[] = [
  ...programs('npm pnpm yarn', 'medium', 'network', {
    runs: runsOfManager,
    optionsAnywhere: true,
    operands: 'none',
    grammar: {
      open: true,
      flags:
        's silent q quiet d dd ddd g global D save-dev no-audit no-fund offline prefer-offline r recursive ws if-present json',
      values: 'w workspace F filter loglevel registry tag otp',
      reads: 'C prefix dir cwd',
      writes: 'cache userconfig globalconfig',
      executes: 'script-shell shell node-options git viewer editor browser onload-script init-module',
    },
    verbs: VERBS,
  }),
  ...programs('bun', 'medium', 'network', {
    code: 'language',
    runs: runsOfManager,
    operands: 'guess',
    verbs: { ...VERBS, ...verbs('test', SCRIPT), ...verbs('run build x create upgrade', CHANGES) },
  }),
  ...programs('npx bunx pnpx', 'medium', 'network', {
    operands: 'none',
    onlyReads: asksVersion,
    runs: execute,
  }),
  ...programs('yarnpkg corepack nvm fnm volta n', 'medium', 'network', {
    operands: 'none',
    onlyReads: asksVersion,
  }),
  ...programs(
    'node nodejs deno tsx ts-node ts-node-esm esno swc-node babel-node zx electron',
    'medium',
    'network',
    {
      code: 'language',
      grammar: {
        open: true,
        flags: 'c check i interactive watch test enable-source-maps no-warnings',
        values: 'e eval p print input-type C conditions test-name-pattern test-reporter',
        // A module by name or path, loaded before the script.
        loads: 'r require import loader experimental-loader env-file',
      },
      operands: 'guess',
    },
  ),
  ...JAVASCRIPT_TOOLS,
  ...programs(
    'vite next nuxt astro webpack rollup esbuild parcel turbo nx lerna tsup rslib rspack unbuild storybook svelte-kit gatsby ng vue expo metro remix rimraf playwright cypress puppeteer lighthouse husky lint-staged changeset semantic-release prisma drizzle-kit typeorm sequelize wrangler vercel netlify firebase http-server serve npm-run-all run-s run-p nyc cross-env dotenv pm2 gulp grunt bower lefthook nest',
    'medium',
    'unknown',
    { operands: 'guess' },
  ),
];
