import { describe, expect, it } from 'vitest';
import { CLASSIC_ALLOW_LIST, HOME, judgeText, WORKSPACE, type World } from '../../../support/policy-world.ts';

function shown(command: string, world: World = { autonomy: 'supervised' }): string {
  const reasons = judgeText(command, world).reasons.filter(({ check }) => check === 'paths');
  return [...new Set(reasons.map(({ verdict, code }) => `${verdict}:${code}`))].join(' ');
}

/** Where nobody holds what is read: a gate, or the backend `application`. */
const unheld: World = {
  autonomy: 'supervised',
  rules: { held: { files: false, network: true, signals: true } },
};

describe('paths', () => {
  it.each([
    'cat a.txt',
    'cat ./src/../a.txt',
    `cat ${WORKSPACE}/a.txt`,
    'cat "$PWD/a.txt"',
    'cat src/*.ts',
    'cat /tmp/x',
    'cat /usr/include/x.h',
    'cat /etc/passwd',
    'cat x > /dev/null',
    'cat < /dev/stdin',
    'cat $x',
    'cat "$x/../y"',
    'cd src && cat ../a.txt',
    'cd "$x" && cat ../../y',
    'git show HEAD:../x',
    'git commit -m /etc/shadow',
    'echo /etc/shadow',
    'grep /etc/shadow a.txt',
    'sed s,/etc/shadow,x, a.txt',
    'curl http://x/../../y',
    'some-tool https://x/../../y',
    '/usr/bin/ls',
    './evil.sh',
    'cat missing/dir/file',
    'rm .git/index.lock',
    'cat .git/config',
    'cat .envrc',
    'echo x > .github/workflows/x.yml',
  ])('%s stays inside', (command) => {
    expect(shown(command)).toBe('');
  });

  describe('where the kernel holds what is read (contained)', () => {
    const contained = (command: string) => shown(command, { autonomy: 'contained' });

    it.each(['node cli.js /api/users', './configure --prefix=/opt/x', 'some-tool /srv/x'])(
      '%s is no reason: it only looks like a path',
      (command) => {
        expect(contained(command)).toBe('');
        expect(shown(command, unheld)).toBe('deny:escapes_workspace');
      },
    );

    it.each([
      ...['cat /srv/x', 'grep x /srv/x', 'sort < /srv/x', 'cp /srv/x a', 'cat ../x'],
      ...['cat /etc/shadow', 'cat somelink', 'cd src; cat ../../x', 'make -C ..'],
    ])('%s only looks, and the kernel answers', (command) => {
      expect(contained(command)).toBe('allow:looks_outside');
      expect(shown(command, { autonomy: 'autonomous' })).toBe('allow:looks_outside');
      expect(shown(command, unheld)).toBe('deny:escapes_workspace');
    });

    it.each(['ls /', 'ls ..', 'cd .. && ls'])('%s looks at what leads to the workspace', (command) => {
      expect(contained(command)).toBe('');
      expect(shown(command, unheld)).toBe('deny:escapes_workspace');
    });

    it.each([
      ...['rm /srv/x', 'mv /srv/x a', 'cp a.txt /srv/x', 'cat a.txt > ../x', 'cat < /srv/x > /srv/y'],
      ...['cd .. && touch x', 'sed -i s/a/b/ /srv/x', 'tee ../x < /srv/y'],
    ])('%s writes outside', (command) => {
      expect(contained(command)).toMatch(/^(?:allow:looks_outside )?deny:escapes_workspace$/);
    });

    it('what a granted directory has that may be secret is refused', () => {
      const hidden = ['/etc/shadow'];
      const rules = { readable: ['/etc'], hidden, shown: hidden };
      expect(shown('cat /etc/shadow', { autonomy: 'contained', rules })).toBe('deny:escapes_workspace');
      expect(shown('cat /etc/shadow', { autonomy: 'contained', rules: { ...rules, shown: [] } })).toBe(
        'allow:looks_outside',
      );
    });

    it('a server behind a socket reads with its own rights, a program of this machine does not', () => {
      const rules = { asksServers: true, opened: 'the socket /run/docker.sock was granted' };
      expect(shown('some-client --file=/srv/x', { autonomy: 'supervised', rules })).toBe(
        'deny:escapes_workspace',
      );
      expect(shown('cat /srv/x', { autonomy: 'supervised', rules })).toBe('allow:looks_outside');
    });

    it.each([`node cli.js ${HOME}/.ssh/id_rsa`, 'node cli.js ~somebody/x'])(
      '%s is refused whatever reads it',
      (command) => {
        expect(contained(command)).toMatch(/^deny:/);
      },
    );
  });

  it.each([
    'cat ../x',
    'cat /etc/shadow',
    'cat \\/etc/shadow',
    'cat src/../../x',
    'cat /home/agent/project-evil/x',
    'cat somelink',
    'cat outside/x',
    'cat src/../outside/../etc/x',
    'cat /etc/*',
    'cat /etc/"$x"',
    'cat src/*/../../../x',
    'cat {a.txt,/etc/shadow}',
    'cat < /etc/shadow',
    'echo x > /etc/x',
    'echo x >> /usr/x',
    'cp a.txt /usr/bin/x',
    'cd ..',
    'cd / && ls',
    'cd /etc && cat shadow',
    'cd outside && cat shadow',
    'grep -f/etc/shadow x',
    'grep -rf/etc/shadow .',
    'sort --files0-from=/etc/shadow',
    'sort -o /etc/x a.txt',
    'git diff --no-index /dev/null \\/etc/shadow',
    'git diff --output=/etc/x',
    'git -C .. status',
    'some-tool --file=/etc/shadow',
    'some-tool -f/etc/shadow',
    'some-tool ../../x',
    '/opt/x/tool',
    '../x.sh',
    'cat x://../../../../../etc/shadow',
    'tar xf a.tar -C /etc',
    'find /etc -name x',
  ])('%s leads outside', (command) => {
    expect(shown(command, unheld)).toBe('deny:escapes_workspace');
    expect(shown(command, { ...unheld, autonomy: 'autonomous' })).toBe('deny:escapes_workspace');
  });

  it.each(['cat ~root/x', 'ls ~other'])('%s leads to the home of somebody else', (command) => {
    expect(shown(command)).toBe('deny:foreign_home');
  });

  it.each(['cat ~/.ssh/id_rsa', 'cat "$HOME/.aws/credentials"', 'cat ~/.netrc'])(
    '%s is secret',
    (command) => {
      expect(shown(command, { rules: { writable: ['/tmp', HOME] } })).toBe('deny:secret_path');
    },
  );

  it.each([
    'echo x > .git/hooks/pre-commit',
    'echo x >> .git/config',
    'echo x > hooks/pre-commit',
    'cp a.txt .git/hooks/x',
    'cp -r a .git',
    'mv a.txt .vscode/tasks.json',
    'tee .envrc',
    'touch .husky/pre-commit',
    'mkdir -p .claude/commands',
    'sed -i s/a/b/ .git/config',
    'cd .git && echo x > config',
    'ln -s x .git/hooks/post-commit',
    'dd of=.git/config',
  ])('%s writes what is protected', (command) => {
    expect(shown(command)).toBe('deny:protected');
  });

  describe('a directory with something protected in it', () => {
    const rules = { protected: [`${WORKSPACE}/src/deploy/key`] };
    const held = { files: false, network: false, signals: false };

    it.each(['cp -r a src', 'rsync -a a/ src/', 'touch src', 'tsc --outDir src'])(
      '%s fills it where the kernel holds what is protected',
      (command) => {
        expect(shown(command, { rules })).not.toBe('deny:protected');
      },
    );

    it.each(['cp -r a src', 'rsync -a a/ src/', 'touch src'])(
      '%s is refused where nothing does',
      (command) => {
        expect(shown(command, { rules: { ...rules, held } })).toBe('deny:protected');
      },
    );

    it.each(['rm -rf src', 'mv src x', 'rm -r src/deploy'])('%s takes it away', (command) => {
      expect(shown(command, { rules })).toBe('deny:protected');
    });
  });

  it('a workspace that can only be read is called that', () => {
    const { reasons } = judgeText('touch a.txt', { rules: { protected: [WORKSPACE] } });
    expect(reasons.find(({ check }) => check === 'paths')).toMatchObject({
      ...{ code: 'protected', message: 'a.txt cannot be written: the workspace can only be read' },
    });
  });

  it('a directory that may not have been entered is asked about, and left to the kernel if autonomous', () => {
    expect(shown('cd src; cat ../../x', unheld)).toBe('deny:escapes_workspace');
    expect(shown('cd src; cat ../a.txt', unheld)).toBe('ask:may_escape_workspace');
    expect(shown('cd src; cat ../a.txt', { ...unheld, autonomy: 'autonomous' })).toBe('');
  });

  it('under an allow-list only the workspace and the temporary directory are meant', () => {
    const world: World = { rules: { allow: CLASSIC_ALLOW_LIST } };
    expect(shown('cat /etc/passwd', world)).toBe('deny:escapes_workspace');
    expect(shown('/bin/cat a.txt', world)).toBe('');
  });

  // `somelink` in the workspace leads to /etc/shadow, `outside` to /etc.
  it.each([
    ['cat somelink', 'deny:escapes_workspace'],
    ['cat *', 'deny:escapes_workspace'],
    ['cat some*', 'deny:escapes_workspace'],
    ['cat ./*', 'deny:escapes_workspace'],
    ['cat outs*/passwd', 'deny:escapes_workspace'],
    ['for f in *; do cat "$f"; done', 'deny:escapes_workspace'],
    ['for f in a.txt somelink; do cat "$f"; done', 'deny:escapes_workspace'],
    ['x=somelink; cat "$x"', 'deny:escapes_workspace'],
    ['d=outside; cat "$d/passwd"', 'deny:escapes_workspace'],
    ['cat < "$x"', 'deny:dynamic_path'],
    ['cat -- "$x"', 'deny:dynamic_path'],
    ['x=a.txt; read x; cat "$x"', 'deny:dynamic_path'],
    ['cat "$(ls)"', 'deny:dynamic_path'],
    ['ls | xargs cat', 'deny:dynamic_path'],
    ['find . -exec cat {} +', 'deny:dynamic_path'],
    ['find . -type f -o -name x -exec cat {} +', 'deny:dynamic_path'],
    ['find -L . -type f -exec cat {} +', 'deny:dynamic_path'],
    ['find . -type f -exec cat {} +', ''],
    ['cd - && cat a.txt', 'deny:unknown_directory'],
    ['popd; cat ../x', 'deny:unknown_directory'],
    ['popd; cat "$PWD/x"', 'deny:unknown_directory'],
    ['popd; cat < a.txt', 'deny:unknown_directory'],
    ['cd -- -d && cat ../../x', 'deny:escapes_workspace'],
    ['cd src; cat ../a.txt', 'deny:may_escape_workspace'],
    ['cd src && cat ../a.txt', ''],
    ['popd; ls | cat -', ''],
    ['find . -type f -execdir cat {} +', ''],
    ['cat *.txt', ''],
    ['cat src/*', ''],
    ['for f in *.txt; do cat "$f"; done', ''],
    ['for f in src/*.ts; do cat "$f"; done', ''],
    ['x=a.txt; cat "$x"', ''],
    ['cat nothing*', ''],
    ['ls', ''],
  ])('under an allow-list, where %s leads is known: "%s"', (command, expected) => {
    const allow = [...CLASSIC_ALLOW_LIST, 'find', 'xargs', 'read', 'cd', 'popd'];
    expect(shown(command, { autonomy: 'contained', rules: { allow } })).toBe(expected);
  });

  it('names the path', () => {
    const { reasons } = judgeText('cat ../x', unheld);
    expect(reasons.find(({ check }) => check === 'paths')?.message).toBe(
      '../x lies outside of the workspace',
    );
  });
});
