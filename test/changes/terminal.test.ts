import { execFileSync } from 'node:child_process';
import { existsSync, lstatSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { CLI, cli, makePlace, type Place, PTY_DRIVER } from '../cli/support.ts';
import { HOST } from '../support/tiers.ts';

/** Changes can be held back here. */
const it_ = it.skipIf(!HOST.namespaces);

type Step =
  | { readonly expect: string }
  | { readonly send: string }
  | { readonly insist: string; readonly until: string };

const PROMPT: Step = { expect: 'apply / diff / list / discard .keep waiting.: ' };
/** Typed until it stands there: the question hears nothing at first. */
const answer = (line: string): readonly Step[] => [
  { insist: `\x15${line}`, until: `\\x08?${line}$` },
  { send: '\r' },
];
/** The shell that follows has the terminal again. */
const END: Step = { expect: 'STATUS \\d+' };

describe('a preview on a terminal (needs namespaces)', () => {
  let place: Place;
  beforeAll(() => {
    place = makePlace();
  });
  afterAll(() => place.dispose());
  beforeEach(() => {
    execFileSync('find', [place.workspace, '-mindepth', '1', '-delete']);
    rmSync(join(place.root, 'home/.local/state/sandbox-run/changes'), { recursive: true, force: true });
  });

  async function onTerminal(script: string, steps: readonly Step[], how = '') {
    const command = `stty -g > ${place.root}/before; '${process.execPath}' '${CLI}' --preview -c "$1" ${how}; s=$?; stty -g | cmp ${place.root}/before - && echo "STATUS $s"`;
    const argv = ['/bin/bash', '-c', command, 'bash', script];
    const input = JSON.stringify({ argv, cwd: place.workspace, env: place.env, size: [24, 80], steps });
    const { stdout } = await execa('python3', [PTY_DRIVER], { input });
    const talk = JSON.parse(stdout) as { readonly output: string; readonly failed: Step | null };
    expect([talk.failed, talk.failed === null ? '' : talk.output]).toEqual([null, '']);
    return talk.output.replaceAll('\r', '');
  }
  const waiting = async () => (await cli(place, ['changes', 'list'])).stdout;
  const read = (name: string) => readFileSync(join(place.workspace, name), 'utf8');

  it_('shows what changed, and applies it when told so', async () => {
    writeFileSync(join(place.workspace, 'a'), 'one\n');
    const output = await onTerminal('echo two >> a; echo new > b; exit 3', [
      PROMPT,
      ...answer('diff 1'),
      PROMPT,
      ...answer('apply'),
      END,
    ]);
    expect(output).toContain('    1 ~     | a (4 -> 8 bytes)\n    2 +     | b (4 bytes)\n');
    expect(output).toContain('| +two\n');
    expect(output).toContain('2 changes are applied');
    expect(output).toContain('STATUS 3');
    expect([read('a'), read('b')]).toEqual(['one\ntwo\n', 'new\n']);
  });

  it_('applies some of it, and the rest waits', async () => {
    const output = await onTerminal('mkdir d; echo 1 > d/x; echo 2 > e; echo 3 > f; ln -s /etc l', [
      { expect: '4 \\+ +\\| l .*leads out of the workspace' },
      PROMPT,
      ...answer('apply 1 3-4'),
      END,
    ]);
    expect(readdirSync(place.workspace).sort()).toEqual(['d', 'f', 'l']);
    expect(lstatSync(join(place.workspace, 'l')).isSymbolicLink()).toBe(true);
    const id = /changes apply (\S+)/.exec(output)?.[1] ?? '';
    expect((await cli(place, ['changes', 'show', id])).stdout).toContain('+ e (2 bytes)\n');
    expect((await cli(place, ['changes', 'apply', id])).exitCode).toBe(0);
    expect(existsSync(join(place.workspace, 'e'))).toBe(true);
  });

  it_.each([
    ['Enter', [{ insist: '\r', until: '--- it waits' }]],
    ['Ctrl-C', [{ send: '\x03' }]],
    ['Ctrl-D', [{ send: '\x04' }]],
    ['keep', answer('keep')],
  ] as const)('%s lets it wait', async (_, steps) => {
    const output = await onTerminal('echo new > b', [PROMPT, ...steps, END]);
    expect(output).toContain('look: sandbox-run changes diff');
    expect(readdirSync(place.workspace)).toEqual([]);
    expect(await waiting()).toContain('waiting');
  });

  it_('discards it for the whole word only', async () => {
    await onTerminal('echo new > b', [
      PROMPT,
      ...answer('dis'),
      { expect: 'Please type apply' },
      ...answer('discard'),
      END,
    ]);
    expect(await waiting()).toContain('no changes wait here, and none were applied lately\n');
  });

  it_('discards a part, which is gone then', async () => {
    const output = await onTerminal('echo 1 > a; echo 2 > b', [PROMPT, ...answer('discard 1'), END]);
    const id = /changes apply (\S+)/.exec(output)?.[1] ?? '';
    expect((await cli(place, ['--on', id, '-c', 'ls'])).stderr).toMatch(/a part .* was discarded/);
    expect((await cli(place, ['changes', 'diff', id])).stdout).not.toContain('b/a');
    expect((await cli(place, ['changes', 'apply', id])).exitCode).toBe(0);
    expect(readdirSync(place.workspace)).toEqual(['b']);
  });

  it_.each(['0', '3', '1-3', 'x'])('takes no number that the list does not have: %s', async (number) => {
    await onTerminal('echo 1 > a; echo 2 > b', [
      PROMPT,
      ...answer(`apply ${number}`),
      { expect: 'Numbers are those of the list, 1 to 2' },
      { send: '\x03' },
      END,
    ]);
    expect(readdirSync(place.workspace)).toEqual([]);
  });

  it_('a name, a content or what the command left on the screen neither answers nor hides', async () => {
    const evil = `printf '\\e[6n\\e[8m\\e[2;3r\\e]0;apply\\r'; echo $'x\\e]0;t\\a\\u202ey' > $'n\\n    1 +     | harmless\\e[2K'`;
    const output = await onTerminal(evil, [PROMPT, ...answer('diff'), PROMPT, { send: '\x03' }, END]);
    const asked = output.slice(output.lastIndexOf('\x1b[J'));
    expect(asked).toContain('\\u{1b}[2K');
    expect(asked).toContain('+x\\u{1b}]0;t\\u{7}\\u{202e}y');
    const ours = asked.slice(3, asked.indexOf('--- it'));
    for (const obeyed of ['\x1b', '\x07', '\u202e']) expect(ours).not.toContain(obeyed);
    expect(asked).not.toMatch(/^ {4}1 \+ {5}\| harmless/m);
    expect(readdirSync(place.workspace)).toEqual([]);
  });

  it_('what was typed while the command ran does not answer', async () => {
    // It goes on once all of it can be read, and reads nothing.
    const typed = `import fcntl, struct, termios; print(struct.unpack("i", fcntl.ioctl(0, termios.FIONREAD, bytes(4)))[0])`;
    await onTerminal(`echo new > b; echo ready; until [ "$(python3 -c '${typed}')" = 12 ]; do :; done`, [
      { expect: 'ready' },
      { send: 'apply\rapply\r' },
      PROMPT,
      { send: '\x03' },
      END,
    ]);
    expect(readdirSync(place.workspace)).toEqual([]);
  });

  it_.each([
    ['where standard input is none', '< /dev/null', false],
    ['where standard error is none', '2> err', false],
    ['with --json', '--json', true],
    ['with --quiet', '--quiet', true],
    ['for a model', '--for-model', true],
    ['where the policy asks in the queue', '--ask queue', true],
  ])('nothing is asked %s', async (_, how, isOption) => {
    const options = isOption ? `${how} ` : '';
    const command = `'${process.execPath}' '${CLI}' ${options}--preview -c 'echo new > b' ${isOption ? '' : how}; echo "STATUS $?"`;
    const input = JSON.stringify({
      argv: ['/bin/bash', '-c', command],
      ...{ cwd: place.workspace, env: place.env, size: [24, 80], steps: [END] },
    });
    const { stdout } = await execa('python3', [PTY_DRIVER], { input });
    expect(stdout).not.toContain('keep waiting');
    expect(existsSync(join(place.workspace, 'b'))).toBe(false);
    expect(await waiting()).toContain('waiting');
  });
});
