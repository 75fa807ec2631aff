import { describe, expect, it } from 'vitest';
import { parseShellArguments } from '../../../src/cli/sh/arguments.ts';

const PLAIN = { kind: 'run', interactive: false, options: [], name: undefined, args: [] };
const ofString = (text: string, more = {}) => ({ ...PLAIN, source: { from: 'string', text }, ...more });
const ofFile = (path: string, more = {}) => ({
  ...PLAIN,
  source: { from: 'file', path },
  name: path,
  ...more,
});
const ofInput = (more = {}) => ({ ...PLAIN, source: { from: 'input' }, ...more });

describe('the arguments of a shell', () => {
  it.each<[readonly string[], object]>([
    [['-c', 'x'], ofString('x')],
    [['-c', '--', '-x'], ofString('-x')],
    [['-c', '-', 'x'], ofString('x')],
    [['-c', 'x', 'name', '-a', 'b'], ofString('x', { name: 'name', args: ['-a', 'b'] })],
    [['-lc', 'x'], ofString('x')],
    [['-l', '-c', 'x'], ofString('x')],
    [['--login', '-c', 'x'], ofString('x')],
    [['-login', '-c', 'x'], ofString('x')],
    [['--noprofile', '--norc', '-c', 'x'], ofString('x')],
    [['-ic', 'x'], ofString('x', { interactive: true })],
    [['-ec', 'x'], ofString('x', { options: ['-e'] })],
    [['-c', '-e', 'x'], ofString('x', { options: ['-e'] })],
    [['-euxo', 'pipefail', '-c', 'x'], ofString('x', { options: ['-eux', '-o', 'pipefail'] })],
    [['-ceo', 'pipefail', 'x'], ofString('x', { options: ['-e', '-o', 'pipefail'] })],
    [['-oo', 'errexit', 'nounset', '-c', 'x'], ofString('x', { options: ['-eu'] })],
    [['-o', 'noglob', '-c', 'x'], ofString('x', { options: ['-f'] })],
    [['-e', '+e', '-c', 'x'], ofString('x')],
    [['-o', 'pipefail', '+o', 'pipefail', '-c', 'x'], ofString('x')],
    [['-hB', '-c', 'x'], ofString('x')],
    [['--verbose', '-c', 'x'], ofString('x', { options: ['-v'] })],
    [['file'], ofFile('file')],
    [['-e', 'file', '-c', 'x'], ofFile('file', { options: ['-e'], args: ['-c', 'x'] })],
    [['--', '-file', 'a'], ofFile('-file', { args: ['a'] })],
    [[], ofInput()],
    [['-'], ofInput()],
    [['-s'], ofInput()],
    [['-s', 'a', 'b'], ofInput({ args: ['a', 'b'] })],
    [['-i'], ofInput({ interactive: true })],
    [['-il'], ofInput({ interactive: true })],
    [['--help'], { kind: 'help' }],
    [['--version'], { kind: 'version' }],
  ])('%j', (argv, expected) => {
    expect(parseShellArguments(argv)).toEqual(expected);
  });

  it.each<[readonly string[], RegExp]>([
    [['-c'], /-c: option requires an argument/],
    [['-o'], /-o: option requires an argument/],
    [['--nosuch', '-c', 'x'], /--nosuch: invalid option/],
    [['--help', '-c', 'x'], /--help: invalid option/],
    [['-c', '--norc', 'x'], /--: invalid option/],
    [['-Q', '-c', 'x'], /-Q: invalid option/],
    [['--rcfile', 'evil', '-i'], /--rcfile: start-up files are not read/],
    [['--init-file', 'evil', '-i'], /--init-file: start-up files are not read/],
    [['--debugger', '-c', 'x'], /--debugger: .* not taken/],
    [['--posix', '-c', 'x'], /--posix: .* not taken/],
    [['-O', 'extglob', '-c', 'x'], /-O: .* use shopt in the command/],
    [['+B', '-c', 'x'], /\+B: .* use set in the command/],
    [['-o', 'posix', '-c', 'x'], /-o posix: .* use set in the command/],
    [['-m', '-c', 'x'], /-m: .* use set in the command/],
    [['--workspace', '/', '-c', 'x'], /--workspace: invalid option/],
    [['--policy=evil.toml', '-c', 'x'], /--policy=evil\.toml: invalid option/],
    [['--approved', '-c', 'x'], /--approved: invalid option/],
  ])('%j is refused in one line', (argv, expected) => {
    const parsed = parseShellArguments(argv);
    expect(parsed).toMatchObject({ kind: 'refused', message: expect.stringMatching(expected) });
    expect(JSON.stringify(parsed)).not.toContain('\\n');
  });

  it('that name things every object has are no options', () => {
    for (const name of ['constructor', 'toString', '__proto__'])
      expect(parseShellArguments(['-o', name, '-c', 'x'])).toMatchObject({ kind: 'refused' });
  });
});
