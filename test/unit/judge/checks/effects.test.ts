import { describe, expect, it } from 'vitest';
import { effectsOf, secretAmong } from '../../../../src/judge/checks/effects.ts';
import { contextOf } from '../../../support/check-context.ts';

const effects = (source: string) => effectsOf(contextOf(source), [], source);

describe('what a line touches', () => {
  it('is told part by part', () => {
    const { parts } = effects('cd sub && cat a > b; git status');
    expect(parts.map(({ source, executable }) => [source, executable])).toEqual([
      ['cd sub', undefined],
      ['cat a > b', '/usr/bin/cat'],
      ['git status', '/usr/bin/git'],
    ]);
    expect(parts[1]?.directories).toEqual(['/w/sub']);
  });

  it('shows what a runner starts as a shell would read it', () => {
    expect(effects("env git commit -m 'a b'").parts.at(-1)?.source).toBe("git commit -m 'a b'");
  });

  it.each([
    ['cat a b', ['/w/a', '/w/b'], []],
    ['cat < a > b', ['/w/a'], ['/w/b']],
    ['rm -r c', [], ['/w/c']],
    ['ls', [], []],
  ])('%s', (source, reads, writes) => {
    expect(effects(source)).toMatchObject({ reads, writes });
  });

  it('is a script, for an interpreter', () => {
    expect(effects('sh build/x.sh a').executes).toEqual(['/w/build/x.sh']);
    expect(effects('python3 -u tool.py').executes).toEqual(['/w/tool.py']);
    expect(effects('pypy3 tool.py').executes).toEqual(['/w/tool.py']);
    expect(effects('cat tool.py').executes).toEqual([]);
  });

  it.each([
    ['bash script.sh', 0, '/w/script.sh'],
    ['python3 < in.py', 0, '/w/in.py'],
    ['make -fother.mk', 0, '/w/other.mk'],
    ['make --file=other.mk', 0, '/w/other.mk'],
    ['python3 -m pkg.tool', 0, '/w/pkg/tool.py'],
    ['npm run deploy', 0, '/w/package.json'],
    ['cd sub && npm run deploy', 1, '/w/sub/package.json'],
  ])('that decides what it does: %s', (source, part, file) => {
    expect(effects(source).parts[part]?.files()).toContain(file);
  });

  it('that it writes anyway decides nothing', () => {
    expect(effects('cat a > out').parts[0]?.files()).not.toContain('/w/out');
  });

  it.each([
    ['python3', true],
    ['python3 -', true],
    ['cat x | sh', true],
    ['bash x.*', true],
    ['xargs rm', true],
    ['python3 x.py', false],
    ["python3 -c 'print(1)'", false],
    ['bash x.sh', false],
    ['rm x.*', false],
    ['cat', false],
  ])('that nobody can see beforehand: %s %s', (source, isOpen) => {
    expect(effects(source).parts.some((part) => part.isOpen)).toBe(isOpen);
  });
});

describe('a secret', () => {
  const SECRETS = ['/w/.env', '/w/keys', '/home/sandbox/.aws'];

  it.each([
    'cat .env',
    'cat keys/a.pem',
    'ls -R /home/sandbox/.aws',
    'cat .e*',
    'cat */a',
    'cat keys/*',
    'rg password',
    'grep -r password',
    'grep --recursive password',
    'grep --dereference-rec password',
    'grep -d recurse password',
    'grep -nRA1 password',
    'grep -~r password',
    'rgrep password',
    'source .env',
    'F=.env; cat "$F"',
    'cp .env copy',
    'mv keys elsewhere',
    'git show HEAD:.env',
    'python3 -c \'open(".env")\'',
    'xargs cat <<< .env',
  ])('is named by %s', (source) => {
    expect(secretAmong(effects(source), SECRETS)).toBeDefined();
  });

  it.each(['ls', 'cat environment', 'echo monkeys', 'cat a.env.example', 'cat x*', 'grep password notes'])(
    'is not named by %s',
    (source) => {
      expect(secretAmong(effects(source), SECRETS)).toBeUndefined();
    },
  );
});
