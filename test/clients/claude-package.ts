import { execFileSync } from 'node:child_process';
import { existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** What the tests were written with. `SANDBOX_RUN_CLAUDE_CODE=latest`: another one. */
const VERSION = process.env.SANDBOX_RUN_CLAUDE_CODE ?? '2.1.331';
const INSTALL_LIMIT_MS = 240_000;

/** The real Claude Code, or why it cannot be had here. */
export type ClaudePackage =
  | { readonly program: string; readonly version: string }
  | { readonly missing: string };

/**
 * Takes Claude Code from npm into a cache beneath the temporary directory, once for all users of this machine. None of the
 * package's scripts is run: the program is in its platform package.
 */
export function claudePackage(): ClaudePackage {
  const cache = trustedCache();
  const place = join(cache, `claude-code-${VERSION}`);
  if (!existsSync(place)) {
    const fresh = mkdtempSync(join(cache, '.new-'));
    try {
      install(fresh);
      programIn(fresh);
      execFileSync('chmod', ['-R', 'go+rX', fresh]);
      // Another process may have been faster; then its copy is as good.
      if (!existsSync(place)) renameSync(fresh, place);
    } catch (error) {
      return { missing: `npm gave no @anthropic-ai/claude-code@${VERSION}: ${whatFailed(error)}` };
    } finally {
      rmSync(fresh, { recursive: true, force: true });
    }
  }
  const program = programIn(place);
  return { program, version: execFileSync(program, ['--version'], { encoding: 'utf8' }).split(' ')[0] ?? '' };
}

/** Programs in it are executed, so nobody but root and this user may have been able to write there. */
function trustedCache(): string {
  for (const name of ['sandbox-run-test-clients', `sandbox-run-test-clients-${process.getuid?.()}`]) {
    const path = join(tmpdir(), name);
    if (!existsSync(path)) mkdirSync(path, { mode: 0o755 });
    const { uid, mode } = lstatSync(path);
    const isOwn = uid === process.getuid?.();
    const isComplete = uid === 0 && existsSync(join(path, `claude-code-${VERSION}`));
    if ((isOwn || isComplete) && (mode & 0o170_022) === 0o040_000) return path;
  }
  throw new Error(`${tmpdir()}/sandbox-run-test-clients belongs to somebody else: remove it`);
}

function install(directory: string): void {
  const options = [
    ...['--ignore-scripts', '--no-audit', '--no-fund', '--no-package-lock', '--loglevel=error'],
    ...['--fetch-retries=1', '--fetch-retry-mintimeout=2000'],
  ];
  execFileSync(
    'npm',
    ['install', ...options, '--prefix', directory, `@anthropic-ai/claude-code@${VERSION}`],
    { cwd: directory, timeout: INSTALL_LIMIT_MS, stdio: ['ignore', 'ignore', 'pipe'] },
  );
}

function programIn(directory: string): string {
  const scope = join(directory, 'node_modules/@anthropic-ai');
  const platform = readdirSync(scope).find((name) => existsSync(join(scope, name, 'claude')));
  if (platform === undefined) throw new Error('the package has no program for this platform');
  return join(scope, platform, 'claude');
}

/** What npm says, in one line. */
function whatFailed(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  const said = text.split('\n').find((line) => /^npm error (?!code |A complete log)/.test(line));
  return said ?? text.split('\n')[0] ?? text;
}
