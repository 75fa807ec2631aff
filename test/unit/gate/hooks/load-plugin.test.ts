import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loadHooks } from '../../../../src/gate/hooks/load-plugin.ts';
import { clearAnswer, type HookPlugin } from '../../../../src/model/index.ts';

const ALLOWING = 'export const before_tool_use = () => ({ allowed: true });';
const INPUT = { command: 'ls', cwd: '/' };

let root: string;
let workspace: string;
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'hooks-')));
  workspace = join(root, 'workspace');
  mkdirSync(workspace, { mode: 0o755 });
});
afterEach(() => {
  rmSync(root, { recursive: true, force: true });
});

/** No module is a program. */
const askProgram = async () => ({ problem: 'was asked' });

const hash = (text: string) => createHash('sha256').update(text).digest('hex');

function write(text: string, path = join(root, 'plugin.mjs'), mode = 0o644): string {
  writeFileSync(path, text);
  chmodSync(path, mode);
  return path;
}

async function load(path: string, sha256?: string, writable: readonly string[] = []) {
  const [hook] = await loadHooks([{ path, sha256 }], { workspace, writable, askProgram });
  if (hook === undefined) throw new Error('no hook');
  return hook;
}

/** What it says about a command; it must not throw for a plug-in that could not be loaded. */
const said = async (path: string, sha256?: string, writable: readonly string[] = []) =>
  (await load(path, sha256, writable)).beforeToolUse('run_command', INPUT);

const refusing = (reason: RegExp) => ({ allowed: false, reason: expect.stringMatching(reason) });

describe('a plug-in', () => {
  it('is asked and told', async () => {
    const path = write(`
      export const seen = [];
      export async function before_tool_use(name, input) {
        seen.push([name, input.command]);
        return { allowed: input.command === 'ls', reason: 'only ls' };
      }
      export function after_tool_use(name, input, result) { seen.push([name, input.command, result]); }
      export function session_start(session) { seen.push(session); return { allowed: session.id !== 'x' }; }
      export function session_end(session) { seen.push(session); if (seen.length !== 5) throw new Error(String(seen.length)); }
    `);
    const hook = await load(path);
    expect(hook.name).toBe('plugin.mjs');
    expect(await hook.beforeToolUse('run_command', INPUT)).toEqual({ allowed: true, reason: 'only ls' });
    expect(await hook.beforeToolUse('t', { command: 'rm' })).toEqual({ allowed: false, reason: 'only ls' });
    await hook.afterToolUse?.('t', INPUT, { status: 'exited', exitCode: 0, durationMs: 1 });
    expect(await hook.sessionStart?.({ id: 'x', principal: 'p' })).toEqual({ allowed: false });
    await hook.sessionEnd?.({ id: 'x', principal: 'p' });
  });

  it('without before_tool_use has nothing against a tool, and has no events that it does not export', async () => {
    const hook = await load(write('export function session_end() {}'));
    expect(await hook.beforeToolUse('t', {})).toEqual({ allowed: true });
    expect(hook.afterToolUse).toBeUndefined();
    expect(hook.sessionStart).toBeUndefined();
    expect(hook.sessionEnd).toBeDefined();
  });

  it('may import what lies beside it, unless it is pinned', async () => {
    write('export const allowed = true;', join(root, 'other.mjs'));
    const text = "import { allowed } from './other.mjs'; export const before_tool_use = () => ({ allowed });";
    const path = write(text);
    expect(await said(path)).toEqual({ allowed: true });
    expect(await said(path, hash(text))).toEqual(refusing(/cannot be used: .*other\.mjs/));
  });

  it('that is pinned may import what belongs to Node', async () => {
    const text =
      "import { ok } from 'node:assert'; export const before_tool_use = () => ({ allowed: !!ok });";
    expect(await said(write(text), hash(text))).toEqual({ allowed: true });
  });

  it('passes on what it returns, throws or never says: the check behind the port judges it', async () => {
    for (const value of ['undefined', 'true', "({ allowed: 'yes' })", 'null']) {
      const hook = await load(write(`export const before_tool_use = () => ${value}; // ${Math.random()}`));
      expect(await hook.beforeToolUse('t', {})).not.toMatchObject({ allowed: true });
    }
    const throwing = await load(write('export const before_tool_use = () => { throw new Error("x"); };'));
    expect(() => throwing.beforeToolUse('t', {})).toThrow('x');
  });

  it('keeps its place among others, of which one fails', async () => {
    const first = write(ALLOWING, join(root, 'a.mjs'));
    const last = write(ALLOWING, join(root, 'c.mjs'));
    const plugins: readonly HookPlugin[] = [first, join(root, 'b.mjs'), last].map((path) => ({
      path,
      sha256: undefined,
    }));
    const hooks = await loadHooks(plugins, { workspace, writable: [], askProgram });
    expect(hooks.map(({ name }) => name)).toEqual(['a.mjs', 'b.mjs', 'c.mjs']);
    const answers = await Promise.all(hooks.map((hook) => hook.beforeToolUse('t', {})));
    expect(answers.map((answer) => clearAnswer(answer)?.allowed)).toEqual([true, false, true]);
  });

  it('runs once as long as it is the same, and anew when it changed', async () => {
    const counting =
      'let n = 0; export const before_tool_use = () => ({ allowed: true, reason: String(++n) });';
    const path = write(counting);
    expect(await said(path)).toEqual({ allowed: true, reason: '1' });
    expect(await said(path)).toEqual({ allowed: true, reason: '2' });
    write(`${counting}\n`);
    expect(await said(path)).toEqual({ allowed: true, reason: '1' });
  });
});

describe('a plug-in refuses everything, and says why, if it', () => {
  const BROKEN: readonly (readonly [what: string, text: string, reason: RegExp])[] = [
    ['has a syntax error', 'export const = ;', /Unexpected token/],
    ['throws while it is loaded', 'throw new Error("boom");', /boom/],
    ['throws nothing that could be said', 'throw Object.create(null);', /no message/],
    ['throws something else', 'throw 7;', /: 7/],
    ['imports what is not there', "import './missing.mjs';", /missing\.mjs/],
    ['exports nothing', '', /exports none of/],
    ['exports by default only', 'export default { before_tool_use() {} };', /exports none of/],
    ['exports no function', 'export const before_tool_use = true;', /not a function/],
    [
      'exports one that is null',
      'export const before_tool_use = () => {}; export const session_end = null;',
      /not a function/,
    ],
    [
      'misspells an event',
      'export function before_tools_use() {} export function befor_tool_use() {}',
      /befor_tool_use.*no event/,
    ],
    [
      'writes an event in another way',
      `${ALLOWING} export function afterToolUse() {}`,
      /afterToolUse.*no event/,
    ],
    [
      'has an event that there is not',
      `${ALLOWING} export function session_pause() {}`,
      /session_pause.*no event/,
    ],
    ['is CommonJS', 'exports.before_tool_use = () => ({ allowed: true });', /exports is not defined/],
  ];
  it.each(BROKEN)('%s', async (_, text, reason) => {
    const path = write(text);
    for (const pin of [undefined, hash(text)]) {
      const hook = await load(path, pin);
      expect(await hook.beforeToolUse('t', {})).toEqual(refusing(reason));
      expect(await hook.sessionStart?.({ id: 'x', principal: 'p' })).toEqual(refusing(reason));
      expect((await hook.beforeToolUse('t', {})).reason).toContain(path);
    }
  });

  it('never finishes loading', async () => {
    const path = write(
      'await new Promise(() => {}); export const before_tool_use = () => ({ allowed: true });',
    );
    const [hook] = await loadHooks([{ path }], { workspace, writable: [], askProgram, loadTimeoutMs: 200 });
    expect(await hook?.beforeToolUse('t', {})).toEqual(refusing(/in time/));
  });

  it('is not there, a directory, a pipe or a device', async () => {
    expect(await said(join(root, 'missing.mjs'))).toEqual(refusing(/ENOENT/));
    expect(await said(join(root, 'missing/plugin.mjs'))).toEqual(refusing(/cannot be resolved \(ENOENT\)/));
    mkdirSync(join(root, 'directory.mjs'));
    expect(await said(join(root, 'directory.mjs'))).toEqual(refusing(/not a regular file/));
    execFileSync('mkfifo', [join(root, 'pipe.mjs')]);
    expect(await said(join(root, 'pipe.mjs'))).toEqual(refusing(/not a regular file/));
    expect(await said('/dev/null')).toEqual(refusing(/not a regular file/));
  });

  it('is very large', async () => {
    const path = write(ALLOWING);
    truncateSync(path, 2 * 1024 * 1024);
    expect(await said(path)).toEqual(refusing(/larger than/));
  });

  it('is a link, or lies behind one', async () => {
    const path = write(ALLOWING);
    symlinkSync(path, join(root, 'link.mjs'));
    symlinkSync(root, join(root, 'way'));
    for (const pin of [undefined, hash(ALLOWING)]) {
      expect(await said(join(root, 'link.mjs'), pin)).toEqual(refusing(/symbolic link/));
      expect(await said(join(root, 'way/plugin.mjs'), pin)).toEqual(refusing(/its real place is/));
    }
    expect(await said(`${root}/workspace/../plugin.mjs`)).toEqual(refusing(/its real place is/));
  });

  it('lies where commands can write, also if it is pinned', async () => {
    const inside = write(ALLOWING, join(workspace, 'plugin.mjs'));
    expect(await said(inside, hash(ALLOWING))).toEqual(refusing(/commands could write it/));
    const path = write(ALLOWING);
    symlinkSync(root, join(root, 'way'));
    for (const writable of [root, '/', join(root, 'way'), path])
      expect(await said(path, hash(ALLOWING), [writable])).toEqual(refusing(/commands could write it/));
    expect(await said(path, undefined, [`${root}-other`, '/does-not-exist'])).toEqual({ allowed: true });
  });

  it.each([0o664, 0o646, 0o666, 0o777])('can be written by others: %o', async (mode) => {
    const path = write(ALLOWING, undefined, mode);
    expect(await said(path)).toEqual(refusing(/can write it/));
    expect(await said(path, hash(ALLOWING))).toEqual({ allowed: true });
  });

  it.each([0o775, 0o757, 0o777])('lies in a directory that others can write: %o', async (mode) => {
    const directory = join(root, 'shared');
    mkdirSync(join(directory, 'inner'), { recursive: true });
    const path = write(ALLOWING, join(directory, 'inner/plugin.mjs'));
    chmodSync(directory, mode);
    expect(await said(path)).toEqual(refusing(/own or can write .*shared/));
    expect(await said(path, hash(ALLOWING))).toEqual({ allowed: true });
    chmodSync(directory, mode | 0o1000);
    expect(await said(path)).toEqual({ allowed: true });
  });

  it('has a second name, which may lie in the workspace', async () => {
    const path = write(ALLOWING);
    linkSync(path, join(workspace, 'same'));
    expect(await said(path)).toEqual(refusing(/second name/));
    expect(await said(path, hash(ALLOWING))).toEqual({ allowed: true });
  });

  it.runIf(process.geteuid?.() === 0)('belongs to somebody else, or its directory does', async () => {
    const path = write(ALLOWING);
    chownSync(path, 12_345, 12_345);
    expect(await said(path)).toEqual(refusing(/owns it/));
    expect(await said(path, hash(ALLOWING))).toEqual({ allowed: true });
    mkdirSync(join(root, 'foreign'));
    chownSync(join(root, 'foreign'), 12_345, 12_345);
    expect(await said(write(ALLOWING, join(root, 'foreign/plugin.mjs')))).toEqual(refusing(/foreign/));
  });

  it('is not what was pinned, also after it was loaded once', async () => {
    const path = write(ALLOWING);
    expect(await said(path, hash('other'))).toEqual(refusing(new RegExp(hash(ALLOWING))));
    expect(await said(path, hash(ALLOWING))).toEqual({ allowed: true });
    write(`${ALLOWING} `);
    expect(await said(path, hash(ALLOWING))).toEqual(refusing(/not that of the policy/));
  });
});

describe('what is imported of a pinned plug-in', () => {
  it('is what was hashed, whatever becomes of the file', async () => {
    const path = write(ALLOWING);
    const loading = load(path, hash(ALLOWING));
    const stop = setInterval(
      () => write('export const before_tool_use = () => ({ allowed: false });', path),
      0,
    );
    const hook = await loading;
    clearInterval(stop);
    const { allowed, reason = '' } = clearAnswer(await hook.beforeToolUse('t', {})) ?? {};
    expect(allowed === true || /not that of the policy/.test(reason)).toBe(true);
  });
});
