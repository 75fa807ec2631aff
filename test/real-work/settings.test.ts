import { execFileSync } from 'node:child_process';
import { createServer, type Server } from 'node:http';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { everywhere, expectPrinted, type Lab, type Project } from './support/lab.ts';

const NETWORKED = { sandbox: { profile: 'networked' } };

// Who configured a registry of the company gets its packages from there. Asked elsewhere, anybody could answer.
everywhere(
  (lab) => {
    let registry: Listener;
    /** Where everything would go that leaves the machine. */
    let outside: Listener;
    let project: Project;

    beforeAll(async () => {
      const wheel = wheelOf(lab);
      registry = await listen((path, url) => answer(path, url, wheel));
      outside = await listen(() => undefined);
    });
    beforeEach(() => {
      registry.asked.length = 0;
      outside.asked.length = 0;
      project = lab.project();
      forget(lab);
    });
    afterAll(() => Promise.all([registry.close(), outside.close()]));

    const ways = () => ({ https_proxy: outside.url, HTTPS_PROXY: outside.url, no_proxy: '127.0.0.1' });
    const run = (script: string) => project.run(script, { ...NETWORKED, env: ways() });

    /** Without the user's settings the public registry is asked; with them only theirs. */
    const expectOnlyTheirs = (path: RegExp) => {
      expect(registry.asked.join('\n')).toMatch(path);
      expect(outside.asked).toEqual([]);
    };

    const NPM =
      'npm view leftish version --fetch-retries=0 --no-update-notifier; npm view @acme/inner version';

    it('npm asks the registries of ~/.npmrc, of a scope too', async () => {
      lab.writeHome({
        '.npmrc': `registry=${registry.url}/npm/\n@acme:registry=${registry.url}/acme/\nignore-scripts=true\n`,
      });
      expectPrinted(await run(`${NPM}; npm config get ignore-scripts`), '1.0.0\n2.0.0\ntrue\n');
      expectOnlyTheirs(/\/npm\/leftish\n.*\/acme\/@acme/s);
    });

    it('npm asks others without: what is tested here can happen', async () => {
      await run(NPM);
      expect([registry.asked, outside.asked[0]]).toEqual([[], expect.stringMatching(/^CONNECT /)]);
    });

    it('what a project says of its registry counts more, as outside', async () => {
      lab.writeHome({ '.npmrc': `registry=${outside.url}/\n` });
      project.write({ '.npmrc': `registry=${registry.url}/npm/\n`, 'package.json': '{}' });
      expectPrinted(await run('npm view leftish version'), '1.0.0\n');
      expectOnlyTheirs(/\/npm\/leftish/);
    });

    const PIP = '/usr/bin/python3 -m pip download -q --no-deps --no-cache-dir --retries 0 leftish && ls';

    it('pip asks the index of pip.conf', async () => {
      lab.writeHome({ '.config/pip/pip.conf': `[global]\nindex-url = ${registry.url}/simple\n` });
      expectPrinted(await run(PIP), /leftish-1\.0-py3-none-any\.whl/);
      expectOnlyTheirs(/\/simple\/leftish/);
    });

    it('pip asks others without', async () => {
      expect((await run(PIP)).outcome).not.toBe('exited 0');
      expect([registry.asked, outside.asked[0]]).toEqual([[], expect.stringMatching(/^CONNECT /)]);
    });

    const CARGO = 'export CARGO_NET_RETRY=0; timeout 50 /usr/bin/cargo fetch 2>&1 | tail -3';
    const CRATE = {
      'Cargo.toml': '[package]\nname = "p"\nversion = "1.0.0"\n[dependencies]\nleftish = "1"\n',
      'src/lib.rs': '',
    };

    it('cargo asks the source that takes the place of the public one', async () => {
      lab.writeHome({
        '.cargo/config.toml': `[source.crates-io]\nreplace-with = "ours"\n[source.ours]\nregistry = "${registry.url}/index"\n[build]\nrustc-wrapper = "/nonexistent/wrapper"\n`,
      });
      project.write(CRATE);
      const { stdout } = await run(`${CARGO}; grep -c . ~/.cargo/config.toml; cat ~/.cargo/config.toml`);
      expect(stdout).not.toContain('wrapper');
      expectOnlyTheirs(/\/index\/info\/refs/);
    });

    it('cargo asks others without', async () => {
      project.write(CRATE);
      await run(CARGO);
      expect([registry.asked, outside.asked[0]]).toEqual([[], expect.stringMatching(/^CONNECT /)]);
    });

    const GO = 'go list -m -f "{{.Version}}" leftish.example/inner@v1.2.3';

    it('go asks the proxy that go env -w was told', async () => {
      const settings = `GOPROXY=${registry.url}/go\nGOSUMDB=off\nGOPRIVATE=\nGOFLAGS=-mod=mod\nCC=/nonexistent/compiler\n`;
      lab.writeHome({ '.config/go/env': settings });
      expectPrinted(await run(`${GO}; go env CC | grep -c nonexistent || true`), 'v1.2.3\n0\n');
      expectOnlyTheirs(/\/go\/leftish\.example\/inner\/@v\/v1\.2\.3\.info/);
    });

    it('go asks others without', async () => {
      await run(GO);
      expect([registry.asked, outside.asked[0]]).toEqual([[], expect.stringMatching(/^CONNECT /)]);
    });

    it('the settings are those of the user only: a command does not change them for the next', async () => {
      lab.writeHome({ '.npmrc': `registry=${registry.url}/npm/\n` });
      const script = `npm config get registry; echo registry=${outside.url} > ~/.npmrc; echo index-url=x > ~/.config; chmod 0 ~/.npmrc`;
      for (let round = 0; round < 2; round += 1) expectPrinted(await run(script), `${registry.url}/npm/\n`);
      expect(lab.project().outside('cat', [`${lab.home}/.npmrc`])).toBe(`registry=${registry.url}/npm/\n`);
    });

    it('no credential comes along, however it is written', async () => {
      const at = registry.url.slice('http://'.length);
      lab.writeHome({
        '.npmrc': `registry=http://me:SECRET1@${at}/npm/\n//${at}/npm/:_authToken=SECRET2\n_auth=SECRET3\nscript-shell=/SECRET4\nnode-options=--require /SECRET4\n`,
        '.config/pip/pip.conf': `[global]\nindex-url = http://me:SECRET5@${at}/simple\nextra-index-url =\n  http://SECRET6@${at}/more\n`,
        '.cargo/config.toml': `[registries.a]\nindex = "sparse+http://me:SECRET7@${at}/i/"\ntoken = "SECRET8"\ncredential-provider = "SECRET9"\n`,
        '.cargo/credentials.toml': '[registry]\ntoken = "SECRET10"\n',
        '.config/go/env': `GOPROXY=http://me:SECRET11@${at}/go\nGOFLAGS=-toolexec=/SECRET12\nGOAUTH=SECRET13\n`,
        '.yarnrc.yml': `npmRegistryServer: "http://me:SECRET14@${at}/npm"\nnpmAuthToken: SECRET15\nnpmScopes:\n  acme:\n    npmRegistryServer: "${registry.url}/acme"\n    npmAuthToken: SECRET16\n`,
        '.yarnrc': `registry "http://me:SECRET17@${at}/npm"\nyarn-path "/SECRET18"\n`,
        '.netrc': 'machine 127.0.0.1 login me password SECRET19\n',
        '.gitconfig': `[url "http://me:SECRET20@${at}/"]\n\tinsteadOf = https://example.org/\n[http]\n\textraHeader = SECRET21\n[credential]\n\thelper = !echo SECRET22\n`,
      });
      const answer = await run(
        'grep -rn SECRET ~ ; env | grep SECRET; npm view leftish version; npm config get registry; cat ~/.yarnrc ~/.yarnrc.yml',
      );
      expect(`${answer.stdout}${answer.stderr}`).not.toContain('SECRET');
      expect(answer.stdout).toContain(
        `1.0.0\n${registry.url}/npm/\nregistry "${registry.url}/npm"\nnpmRegistryServer: "${registry.url}/npm"\nnpmScopes:\n  acme:\n    npmRegistryServer: "${registry.url}/acme"\n`,
      );
    });
  },
  { home: 'fresh', few: true },
);

const WHO = '[user]\n\tname = A\n\temail = a@example.org\n';

everywhere(
  (lab) => {
    let project: Project;
    beforeEach(() => {
      project = lab.project();
      forget(lab);
    });

    it.each([
      ['commit.gpgsign', 'git commit -qm x', '[commit]\n\tgpgsign = true\n'],
      ['commit.gpgsign alone', 'git commit -qm x', '[commit]\n\tgpgsign\n'],
      [
        'ssh',
        'git commit -qm x',
        '[commit]\n\tgpgsign = true\n[gpg]\n\tformat = ssh\n[user]\n\tsigningkey = ~/.ssh/id.pub\n',
      ],
      ['tag.gpgsign', 'git commit -qm x && git tag -m t v1', '[tag]\n\tgpgsign = true\n'],
    ])('what is to be signed is not left unsigned: %s', async (_, command, settings) => {
      lab.writeHome({ '.gitconfig': `${WHO}${settings}` });
      const start = 'git init -q . && echo x > f && git add f';
      const refused = await project.run(`${start} && ${command}`);
      expect(refused.outcome).toBe('exited 128');
      expect(refused.stderr).toMatch(
        /the signing key stays outside of the sandbox: commit outside, or with --no-gpg-sign/,
      );
      const how = command.includes('tag') ? 'git tag --no-sign -m t v1' : 'git commit -qm x --no-gpg-sign';
      expectPrinted(await project.run(`${how} && git log --format=%G?`), 'N\n');
    });

    it('what is ignored everywhere is not added, what has attributes everywhere has them', async () => {
      lab.writeHome({
        '.gitconfig': `${WHO}[core]\n\texcludesFile = ~/.ignored\n\tattributesFile = ~/.attributes\n`,
        '.ignored': '*.swp\n.idea/\n',
        '.attributes': '*.bin -diff\n',
        '.config/git/ignore': '*.other\n',
      });
      project.write({ 'a.swp': '', '.idea/x': '', 'a.bin': 'x', 'b.other': '' });
      const script =
        'git init -q . && git add -A && git ls-files && git check-attr diff a.bin && echo y >> ~/.gitconfig; rm ~/.gitconfig-*';
      for (let round = 0; round < 2; round += 1)
        expectPrinted(await project.run(script), 'a.bin\nb.other\na.bin: diff: unset\n');
      lab.writeHome({ '.gitconfig': WHO });
      expectPrinted(
        await project.run('rm -rf .git; git init -q . && git add -A && git ls-files'),
        '.idea/x\na.bin\na.swp\n',
      );
    });

    it('aliases, values and addresses; nothing that runs a program', async () => {
      lab.writeHome({
        '.gitconfig': `${WHO}[alias]\n\tst = status -s\n\trun = "!touch ran"\n[pull]\n\trebase = true\n[push]\n\tautoSetupRemote = true\n[merge]\n\tconflictStyle = zdiff3\n[diff]\n\talgorithm = histogram\n\texternal = touch ran\n[rerere]\n\tenabled = true\n[url "https://mirror.example/"]\n\tinsteadOf = https://example.org/\n[core]\n\tpager = touch ran\n\tfsmonitor = touch ran\n`,
      });
      const answer = await project.run(
        'git init -q .; touch f; git st; git run; git diff; git config --get-regexp "pull|push|merge|diff|rerere"; git remote add o https://example.org/x; git remote get-url o; ls',
      );
      expect(answer.stdout).toBe(
        '?? f\npull.rebase true\npush.autosetupremote true\nmerge.conflictstyle zdiff3\ndiff.algorithm histogram\nrerere.enabled true\nhttps://mirror.example/x\nf\n',
      );
      expect(answer.stderr).toMatch(/'run' is not a git command/);
    });

    it('what is included comes too, and what has a condition if it holds here', async () => {
      const other = lab.project();
      lab.writeHome({
        '.gitconfig': `${WHO}[include]\n\tpath = .gitconfig.d/all\n[includeIf "gitdir:${project.directory}/"]\n\tpath = ~/.gitconfig.d/here\n[includeIf "gitdir:~/elsewhere/"]\n\tpath = ~/.gitconfig.d/elsewhere\n[includeIf "onbranch:topic"]\n\tpath = ~/.gitconfig.d/topic\n`,
        '.gitconfig.d/all': '[alias]\n\tst = status -s\n',
        '.gitconfig.d/here': '[user]\n\temail = here@example.org\n[commit]\n\tgpgsign = true\n',
        '.gitconfig.d/elsewhere': '[user]\n\temail = elsewhere@example.org\n',
        '.gitconfig.d/topic': '[user]\n\tname = Topic\n',
      });
      const script =
        'git init -q -b main . && git st && git config user.email; git checkout -q -b topic; git config user.name; git commit -q --allow-empty -m x';
      const here = await project.run(script);
      expect(here.stdout).toBe('here@example.org\nTopic\n');
      expect(here.outcome).toBe('exited 128');
      expectPrinted(await other.run(script), 'a@example.org\nTopic\n');
    });

    it('files of the workspace are nobody’s settings: what leads there is not read', async () => {
      project.write({ planted: '[user]\n\tname = planted\n', rc: 'registry=http://127.0.0.1:1/planted\n' });
      lab.writeHome({ '.gitconfig': `${WHO}[include]\n\tpath = ${project.directory}/planted\n` });
      lab.project().outside('ln', ['-sf', `${project.directory}/rc`, `${lab.home}/.npmrc`]);
      const answer = await project.run('git config user.name; cat ~/.npmrc; npm config get registry');
      expect(answer.stdout).toMatch(/^A\n/);
      expect(answer.stdout).not.toContain('planted');
    });
  },
  { home: 'fresh', few: true },
);

everywhere(
  (lab) => {
    it('certificates that are named can be read, not written; what holds a key or something else cannot be read', async () => {
      forget(lab);
      const project = lab.project();
      const { certificate, key } = certificateOf(project);
      lab.writeHome({
        'ca/ca.pem': certificate,
        'ca/key.pem': key,
        'ca/both.pem': `${certificate}${key}`,
        notes: 'SECRET\n',
      });
      const look = (path: string) =>
        project.run(`cat ${lab.home}/${path}; echo x >> ${lab.home}/${path}; npm config get cafile`);
      lab.writeHome({ '.npmrc': 'cafile=~/ca/ca.pem\n' });
      const seen = await look('ca/ca.pem');
      expect(seen.stdout).toBe(`${certificate}${lab.home}/ca/ca.pem\n`);
      expect(lab.project().outside('cat', [`${lab.home}/ca/ca.pem`])).toBe(certificate);
      for (const path of ['ca/key.pem', 'ca/both.pem', 'notes', 'ca']) {
        lab.writeHome({ '.npmrc': `cafile=${lab.home}/${path}\n` });
        expect((await look(path)).stdout).not.toMatch(/SECRET|BEGIN|ca\//);
      }
    });
  },
  { home: 'fresh', few: true },
);

everywhere(
  (lab) => {
    it('where the home is that of the host nothing is put into it', async () => {
      forget(lab);
      const project = lab.project();
      const settings = {
        '.npmrc': 'registry=http://127.0.0.1:1/\n',
        '.gitconfig': `${WHO}[commit]\n\tgpgsign = true\n`,
      };
      lab.writeHome(settings);
      const policy = { filesystem: { home: 'host' as const } };
      const { stdout } = await project.run(
        'cat ~/.npmrc ~/.gitconfig; ls -d ~/.gitconfig-* ~/.cargo 2> /dev/null',
        {
          sandbox: { policy },
        },
      );
      expect(stdout).toBe(Object.values(settings).join(''));
    });
  },
  // Without namespaces a policy may not open what this program keeps there.
  { home: 'fresh', tier: 'view' },
);

function forget(lab: Lab): void {
  const names =
    '.npmrc .gitconfig .gitconfig.d .cargo .config .yarnrc .yarnrc.yml .netrc .ignored .attributes ca notes';
  lab.project().outside('rm', ['-rf', ...names.split(' ').map((name) => `${lab.home}/${name}`)]);
}

function certificateOf(project: Project): { readonly certificate: string; readonly key: string } {
  execFileSync(
    'openssl',
    'req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=test -keyout key -out certificate'.split(' '),
    {
      cwd: project.directory,
      stdio: 'ignore',
    },
  );
  return { certificate: project.read('certificate'), key: project.read('key') };
}

interface Listener {
  readonly url: string;
  /** Methods and paths, in order. */
  readonly asked: string[];
  close(): Promise<void>;
}

/** A server on loopback; what has no answer is not there. */
function listen(answerTo: (path: string, url: string) => string | Buffer | undefined): Promise<Listener> {
  const asked: string[] = [];
  const server: Server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    const content = answerTo(decodeURIComponent(request.url ?? ''), url);
    if (content === undefined) response.statusCode = 404;
    else if (typeof content === 'string' && content.startsWith('<'))
      response.setHeader('content-type', 'text/html');
    else if (typeof content === 'string') response.setHeader('content-type', 'application/json');
    response.end(content);
  });
  // Who asks for a way out is told that there is none.
  server.on('connect', (request, socket) => {
    asked.push(`CONNECT ${request.url}`);
    socket.end('HTTP/1.1 403 Forbidden\r\n\r\n');
  });
  let url = '';
  return new Promise((done) => {
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : address}`;
      const close = () =>
        new Promise<void>((closed) => {
          server.closeAllConnections();
          server.close(() => closed());
        });
      done({ url, asked, close });
    });
  });
}

/** The registries of npm, pip and go in one. */
function answer(path: string, url: string, wheel: Buffer): string | Buffer | undefined {
  const manifest = (name: string, version: string) =>
    JSON.stringify({
      name,
      'dist-tags': { latest: version },
      versions: { [version]: { name, version, dist: {} } },
    });
  switch (path) {
    case '/npm/leftish':
      return manifest('leftish', '1.0.0');
    case '/acme/@acme/inner':
      return manifest('@acme/inner', '2.0.0');
    case '/simple/leftish/':
      return `<!DOCTYPE html><html><body><a href="${url}/leftish-1.0-py3-none-any.whl">leftish-1.0-py3-none-any.whl</a></body></html>`;
    case '/leftish-1.0-py3-none-any.whl':
      return wheel;
    case '/go/leftish.example/inner/@v/v1.2.3.info':
      return '{"Version":"v1.2.3","Time":"2024-01-01T00:00:00Z"}';
    case '/go/leftish.example/inner/@v/v1.2.3.mod':
      return 'module leftish.example/inner\n';
    default:
      return undefined;
  }
}

function wheelOf(lab: Lab): Buffer {
  const project = lab.project();
  const script = `import zipfile
z = zipfile.ZipFile('wheel', 'w')
z.writestr('leftish.py', '')
z.writestr('leftish-1.0.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: leftish\\nVersion: 1.0\\n')
z.writestr('leftish-1.0.dist-info/WHEEL', 'Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
z.writestr('leftish-1.0.dist-info/RECORD', '')
z.close()
`;
  project.outside('/usr/bin/python3', ['-c', script]);
  return project.readBytes('wheel');
}
