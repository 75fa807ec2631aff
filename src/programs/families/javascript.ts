import { type Behaviour, type Finding, finding, type ProgramRow, programs, verbs } from '../behaviour.ts';
import type { Use } from '../use.ts';
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
    operands: 'guess',
    verbs: { ...VERBS, ...verbs('test', SCRIPT), ...verbs('run build x create upgrade', CHANGES) },
  }),
  ...programs('npx bunx pnpx yarnpkg corepack nvm fnm volta n', 'medium', 'network', {
    operands: 'none',
    onlyReads: asksVersion,
  }),
  ...programs(
    'node nodejs deno tsx ts-node ts-node-esm esno swc-node nodemon babel-node zx electron',
    'medium',
    'network',
    {
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
    'vite next nuxt astro webpack rollup esbuild parcel turbo nx lerna tsup rslib rspack unbuild storybook svelte-kit gatsby ng vue expo metro remix rimraf playwright cypress puppeteer lighthouse husky lint-staged changeset semantic-release prisma drizzle-kit typeorm sequelize wrangler vercel netlify firebase http-server serve concurrently npm-run-all run-s run-p nyc cross-env dotenv pm2 gulp grunt bower lefthook nest',
    'medium',
    'unknown',
    { operands: 'guess' },
  ),
];
