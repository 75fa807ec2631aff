import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { CarriedSettings, SettingsOwner } from '../../../../src/workspace/host/settings/carried.ts';
import { carrySettings } from '../../../../src/workspace/host/settings/carry.ts';
import { SETTING_VARIABLES, SETTINGS_TOOLS } from '../../../../src/workspace/host/settings/table.ts';

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'carry-settings-'));
});
afterEach(() => rmSync(home, { recursive: true }));

function write(name: string, content: string | Buffer): void {
  mkdirSync(dirname(join(home, name)), { recursive: true });
  writeFileSync(join(home, name), content);
}

/** What commands get of a user of this home, and of nothing of the machine. */
function carry(
  environment: Record<string, string> = {},
  more: Partial<SettingsOwner> = {},
): Promise<CarriedSettings> {
  return carrySettings({
    home,
    machine: join(home, 'machine'),
    environment,
    variables: Object.keys(environment),
    hasNetwork: true,
    reaches: (host, port) => host.endsWith('.example') && port !== 23,
    writable: [],
    isGranted: () => false,
    ...more,
  });
}

/** A file of those that are carried; by path. */
const fileOf = ({ files }: CarriedSettings, path: string) =>
  files.find((file) => file.path === path)?.content;

/** As npm has it in its files. */
const variable = (name: string) => `$\{${name}}`;

it('aliases of ssh lead to hosts that commands reach, and nothing else of its settings comes', async () => {
  write(
    '.ssh/config',
    `ServerAliveInterval 5
Host build b2
  HostName build.example
  User deploy
  Port 2222
  IdentityFile ~/.ssh/id_secret
  ProxyCommand evil %h
Host private
  HostName inside.lan
Host telnet
  HostName old.example
  Port 23
Host *.example !x
  User wild
Host quoted.example
  User="git"
  HostName $(evil)
Match host build.example
  User matched
Host *
  HostName all.example
  User me
`,
  );
  const carried = `Host build b2
  hostname build.example
  user deploy
  port 2222
Host *
  user me
`;
  expect(fileOf(await carry(), '.ssh/config')).toBe(carried);
  expect(fileOf(await carry({}, { hasNetwork: false }), '.ssh/config')).toBeUndefined();
  expect(fileOf(await carry({}, { reaches: () => false }), '.ssh/config')).toBeUndefined();
  // What the policy grants is there itself.
  expect(fileOf(await carry({}, { isGranted: () => true }), '.ssh/config')).toBeUndefined();
});

describe('files keep what is harmless as it was written', () => {
  it.each([
    ['.npmrc', 'registry=http://a.example/\n; a comment\n# another\n', 'registry=http://a.example/\n'],
    ['.npmrc', '  registry = "http://a.example/"  \r\n', '  registry = "http://a.example/"  \n'],
    ['.npmrc', '\ufeffregistry=http://a.example/', 'registry=http://a.example/\n'],
    ['.npmrc', 'ignore-scripts\nshell=/evil\n', 'ignore-scripts = true\n'],
    ['.npmrc', 'omit[]=dev\nomit[]=peer\n', 'omit[]=dev\nomit[]=peer\n'],
    ['.npmrc', '"@acme:registry"=http://a.example/\n', '"@acme:registry"=http://a.example/\n'],
    ['.npmrc', `registry=${variable('HOST')}/npm/\n`, 'registry=http://h.example/npm/\n'],
    ['.npmrc', `registry=http://h.example/${variable('NPM_TOKEN')}/\nfund=false\n`, 'fund=false\n'],
    ['.npmrc', 'fund=false\n[section]\nregistry=http://a.example/\n', 'fund=false\n'],
    [
      '.config/pnpm/rc',
      'registry=http://a.example/\nnode-linker=hoisted\n',
      'registry=http://a.example/\nnode-linker=hoisted\n',
    ],
    [
      '.yarnrc',
      '# yarn lockfile v1\n\nregistry "http://a.example/"\n"@acme:registry" "http://b.example/"\nyarn-path "/evil"\n--install.ignore-engines true\n',
      'registry "http://a.example/"\n"@acme:registry" "http://b.example/"\n',
    ],
    [
      '.yarnrc.yml',
      'npmScopes:\n  "acme":\n    npmRegistryServer: https://a.example # ours\n    npmAuthToken: x\nyarnPath: /evil\nunsafeHttpWhitelist:\n  - a.example\nplugins:\n  - /evil\n',
      'npmScopes:\n  "acme":\n    npmRegistryServer: https://a.example # ours\nunsafeHttpWhitelist:\n  - a.example\n',
    ],
    [
      '.cargo/config',
      '[registries]\na = { index = "https://a.example/", token = "x" }\n',
      '[registries.a]\nindex = "https://a.example/"\n\n',
    ],
    [
      '.cargo/config.toml',
      '[target.x86_64-unknown-linux-gnu]\nlinker = "/evil"\nrunner = "/evil"\n[net]\nretry = 1\n[alias]\nb = ["build", "--release"]\n',
      '[net]\nretry = 1\n\n[alias]\nb = [ "build", "--release" ]\n\n',
    ],
    [
      '.config/uv/uv.toml',
      'keyring-provider = "subprocess"\n[[index]]\nname = "a"\nurl = "https://u:p@a.example/simple"\ndefault = true\n',
      '[[index]]\nname = "a"\nurl = "https://a.example/simple"\ndefault = true\n\n',
    ],
    [
      '.config/go/env',
      'GOPROXY=https://u:p@a.example,direct\nGOFLAGS=-mod=mod -tags=a,b\nCC=/evil\n',
      'GOPROXY=https://a.example,direct\nGOFLAGS=-mod=mod -tags=a,b\n',
    ],
    [
      '.config/go/env',
      'GOFLAGS=-mod=mod -toolexec=/evil\nGOTOOLCHAIN=go1.22.1+auto\n',
      'GOTOOLCHAIN=go1.22.1+auto\n',
    ],
  ])('%s: %j', async (path, content, kept) => {
    write(path, content);
    const into = path === '.cargo/config' ? '.cargo/config.toml' : path;
    expect(fileOf(await carry({ HOST: 'http://h.example', NPM_TOKEN: 'abc' }), into)).toBe(kept);
  });

  it('pip.conf: what several files say, once', async () => {
    write('.pip/pip.conf', '[global]\nindex_url: http://old.example/\ntimeout = 1\n');
    write(
      '.config/pip/pip.conf',
      '[global]\nindex-url = http://u:p@a.example/\nextra-index-url =\n    http://b.example/\n  # no\n    http://c.example/\nkeyring-provider = subprocess\n[install]\npython = /evil\nuser = no\n',
    );
    write('named.conf', '[global]\ntimeout = 9\n');
    const content = fileOf(await carry({ PIP_CONFIG_FILE: join(home, 'named.conf') }), '.pip/pip.conf');
    expect(content).toMatch(/\nindex-url = http:\/\/a\.example\/\n/);
    expect(content).toMatch(/extra-index-url = http:\/\/b\.example\/\n {4}http:\/\/c\.example\/\n/);
    expect(content).toMatch(/\[install\]\nuser = no\n$/);
    expect(content).toMatch(/timeout = 9\n/);
    expect(content).not.toMatch(/keyring|python/);
    expect(fileOf(await carry({ PIP_CONFIG_FILE: '/dev/null' }), '.pip/pip.conf')).toBeUndefined();
  });

  it('variables that name the file, and directories', async () => {
    write('other/rc', 'registry=http://other.example/\n');
    write('cargo/config.toml', '[net]\nretry = 7\n');
    write('xdg/go/env', 'GOPROXY=off\n');
    const carried = await carry({
      npm_config_userconfig: join(home, 'other/rc'),
      CARGO_HOME: join(home, 'cargo'),
      XDG_CONFIG_HOME: join(home, 'xdg'),
    });
    expect(fileOf(carried, '.npmrc')).toBe('registry=http://other.example/\n');
    expect(fileOf(carried, '.cargo/config.toml')).toBe('[net]\nretry = 7\n\n');
    expect(fileOf(carried, '.config/go/env')).toBe('GOPROXY=off\n');
    // A relative one would be a file of whatever directory this is.
    expect(fileOf(await carry({ XDG_CONFIG_HOME: 'xdg' }), '.config/go/env')).toBeUndefined();
  });
});

it('what the machine says counts as well, and less', async () => {
  write('machine/etc/npmrc', 'registry=http://machine.example/\nfund=false\n');
  write('.npmrc', 'registry=http://a.example/\n');
  write('machine/etc/uv/uv.toml', 'index-url = "http://machine.example/"\noffline = true\n');
  write('.config/uv/uv.toml', 'index-url = "http://a.example/"\n');
  const carried = await carry();
  expect(fileOf(carried, '.npmrc')).toBe(
    'registry=http://machine.example/\nfund=false\nregistry=http://a.example/\n',
  );
  expect(fileOf(carried, '.config/uv/uv.toml')).toBe('index-url = "http://a.example/"\noffline = true\n\n');
});

describe('variables', () => {
  it('say where packages come from and whom to trust; no credential and no program', async () => {
    const { variables } = await carry({
      npm_config_registry: 'http://u:p@a.example/',
      NPM_CONFIG_STRICT_SSL: 'false',
      npm_config_script_shell: '/evil',
      npm_config__auth: 'abc',
      PIP_INDEX_URL: 'http://a.example/simple',
      PIP_CLIENT_CERT: '/key',
      UV_INDEX_URL: 'http://abc@a.example/simple',
      UV_INDEX_A_PASSWORD: 'abc',
      YARN_NPM_REGISTRY_SERVER: 'http://a.example/',
      YARN_NPM_AUTH_TOKEN: 'abc',
      CARGO_REGISTRIES_ACME_INDEX: 'sparse+https://u:p@a.example/',
      CARGO_REGISTRIES_ACME_TOKEN: 'abc',
      CARGO_BUILD_RUSTC_WRAPPER: '/evil',
      GOPROXY: 'http://a.example',
      GOFLAGS: '-toolexec=/evil',
      GOAUTH: 'abc',
      https_proxy: 'http://u:p@proxy.example:3128',
      NODE_OPTIONS: '--require /evil',
    });
    expect(variables).toEqual({
      npm_config_registry: 'http://a.example/',
      NPM_CONFIG_STRICT_SSL: 'false',
      PIP_INDEX_URL: 'http://a.example/simple',
      UV_INDEX_URL: 'http://a.example/simple',
      YARN_NPM_REGISTRY_SERVER: 'http://a.example/',
      CARGO_REGISTRIES_ACME_INDEX: 'sparse+https://a.example/',
      GOPROXY: 'http://a.example',
      https_proxy: 'http://proxy.example:3128',
    });
  });

  it('a proxy is of no use where there is no network', async () => {
    expect((await carry({ https_proxy: 'http://a.example' }, { hasNetwork: false })).variables).toEqual({});
  });
});

describe('what is said', () => {
  it('nothing where nothing is lost', async () => {
    write('.npmrc', 'registry=http://a.example/\nscript-shell=zsh\n');
    write('.gitconfig', '[user]\n\tname = A\n[credential]\n\thelper = store\n');
    expect((await carry()).remarks).toEqual([]);
  });

  it('credentials that a network would ask for, in one sentence without them', async () => {
    write('.npmrc', '//a.example/:_authToken=abc123\n');
    write('.netrc', 'machine a.example login b password abc123\n');
    const { remarks } = await carry({ PIP_INDEX_URL: 'http://u:abc123@a.example/' });
    expect(remarks).toHaveLength(1);
    expect(remarks[0]).toMatch(/^credentials stay outside.*_authtoken.*PIP_INDEX_URL.*netrc/);
    expect(remarks[0]).not.toContain('abc123');
    expect((await carry({}, { hasNetwork: false })).remarks).toEqual([]);
  });

  it('a file that is not what its tool reads, that is not text, that is a directory', async () => {
    write('.cargo/config.toml', '[broken\n');
    write('.config/pip/pip.conf', 'index-url = http://a.example/\n');
    write('.yarnrc.yml', 'npmRegistryServer: &anchor http://a.example/\n');
    write('.npmrc', Buffer.from('registry=http://\xff.example/\n', 'latin1'));
    mkdirSync(join(home, '.yarnrc'));
    const { remarks, files } = await carry();
    expect(remarks).toEqual([
      expect.stringMatching(/^~\/\.npmrc is not UTF-8/),
      expect.stringMatching(/^~\/\.yarnrc is no regular file/),
      expect.stringMatching(/^~\/\.yarnrc\.yml is not understood here/),
      expect.stringMatching(/pip\.conf is not understood here/),
      expect.stringMatching(/^~\/\.cargo\/config\.toml is not understood here/),
    ]);
    expect(files).toEqual([]);
  });

  it('an escape, behind which anything could be, is not passed on', async () => {
    write('.npmrc', 'registry="http://u:p\\u0040a.example/"\n');
    const { files, remarks } = await carry();
    expect([files, remarks.length]).toEqual([[], 1]);
  });

  it('a file that cannot be read', async () => {
    symlinkSync('.npmrc', join(home, '.npmrc'));
    expect((await carry()).remarks).toEqual([expect.stringMatching(/^~\/\.npmrc cannot be read \(ELOOP\)/)]);
  });

  it('a file that commands can write', async () => {
    write('workspace/rc', 'registry=http://a.example/\n');
    symlinkSync(join(home, 'workspace/rc'), join(home, '.npmrc'));
    const { remarks, files } = await carry({}, { writable: [join(home, 'workspace')] });
    expect(remarks).toEqual([expect.stringMatching(/^~\/\.npmrc leads to .*, which commands can write/)]);
    expect(files).toEqual([]);
  });

  it('a certificate that is none', async () => {
    write('notes', 'secret\n');
    const { variables, readable, remarks } = await carry({ NODE_EXTRA_CA_CERTS: join(home, 'notes') });
    expect([variables, readable]).toEqual([{}, []]);
    expect(remarks).toEqual([
      expect.stringMatching(/^NODE_EXTRA_CA_CERTS names .*which is not a file of certificates only/),
    ]);
  });

  it('tools whose settings are not carried at all, where they can reach others', async () => {
    write('.m2/settings.xml', '<settings/>\n');
    expect((await carry()).remarks).toEqual([expect.stringMatching(/^~\/\.m2\/settings\.xml stays outside/)]);
    expect((await carry({}, { hasNetwork: false })).remarks).toEqual([]);
  });
});

describe('variables by which a tool chain is chosen', () => {
  const isGranted = (path: string) => path === '/usr' || path.startsWith('/usr/');

  it.each([
    ['JAVA_HOME', '/usr/lib'],
    ['CC', 'ccache gcc-12'],
    ['CC', '/usr/bin/cc -m64'],
    ['CFLAGS', '-O2 -g -I/usr/include -DX="a b"'],
    ['LDFLAGS', '-L/usr/lib -Wl,-rpath,/usr/lib'],
    ['PYTHONPATH', '/usr/lib:/usr/not/there'],
    ['MAKEFLAGS', '-j8 --no-print-directory'],
    ['MAKEFLAGS', 'ks'],
    ['NODE_OPTIONS', '--max-old-space-size=4096 --enable-source-maps'],
    ['MAVEN_OPTS', '-Xmx2g -XX:+UseG1GC'],
    ['LC_COLLATE', 'de_DE.UTF-8'],
  ])('%s=%s is carried', async (name, value) => {
    const { variables, remarks } = await carry({ [name]: value }, { isGranted });
    expect([variables, remarks]).toEqual([{ [name]: value }, []]);
  });

  it.each([
    [
      'JAVA_HOME',
      '/etc',
      /^JAVA_HOME stays outside, as commands cannot read \/etc: .* add that with the option readable$/,
    ],
    ['CFLAGS', '-O2 -I/etc', /cannot read \/etc/],
    ['LDFLAGS', '-Wl,-rpath=/etc', /cannot read \/etc/],
    ['PYTHONPATH', '/usr/lib:/etc', /cannot read \/etc/],
    ['PYTHONPATH', 'src:/usr/lib', /commands can write src/],
    ['PYTHONPATH', '/work/src', /commands can write \/work\/src/],
    ['CC', '"/etc/passwd" -x', /cannot read \/etc\/passwd/],
    ['CFLAGS', '-DTOKEN=ghp_0123456789abcdefghijABCDEFGHIJ012345', /may hold a secret/],
    ['RUSTFLAGS', '--cfg https://me:password@host.example/', /may hold a secret/],
    ['MAKEFLAGS', '-j8 --jobserver-auth=3,4', /more than plain options/],
    ['MAKEFLAGS', '-f /usr/x.mk', /more than plain options/],
    ['NODE_OPTIONS', '--require /usr/x.js', /more than plain options/],
    ['NODE_OPTIONS', '--max-old-space-size=1 --import=x', /more than plain options/],
    ['NODE_OPTIONS', '-r x', /more than plain options/],
    ['JAVA_TOOL_OPTIONS', '-Xmx1g -javaagent:x.jar', /more than plain options/],
  ])('%s=%s is not, which is said', async (name, value, said) => {
    const { variables, remarks } = await carry(
      { [name]: value },
      { isGranted, hasNetwork: false, writable: ['/work'] },
    );
    expect([variables, remarks]).toEqual([{}, [expect.stringMatching(said)]]);
  });

  it.each(['CARGO_HOME', 'LD_PRELOAD', 'RUSTC_WRAPPER', 'MAKEFILES', 'GOPATH'])(
    '%s is not in the table',
    async (name) => {
      const { variables } = await carry({ [name]: '/usr/lib' }, { isGranted });
      expect(variables).toEqual({});
    },
  );

  it.each(['-j ', 'k', '--conditions=x--no-warnings', '-ea ', '-XX:+a', '-I/', ' '])(
    'a value that repeats %j is read in one pass',
    async (part) => {
      const value = `${part.repeat(20_000)}!`;
      for (const name of ['MAKEFLAGS', 'NODE_OPTIONS', 'JAVA_OPTS', 'CFLAGS', 'PYTHONPATH'])
        expect((await carry({ [name]: value }, { isGranted: () => true })).files).toEqual([]);
    },
  );
});

it('each row of the table has a reason, and no key is there twice', () => {
  for (const rows of [...SETTINGS_TOOLS.map((tool) => tool.rows), SETTING_VARIABLES]) {
    expect(rows.filter(({ reason }) => reason === '')).toEqual([]);
    const keys = rows.map(({ key }) => key);
    expect(keys.filter((key, at) => keys.indexOf(key) !== at)).toEqual([]);
  }
});

describe('a token that is not called one, in an address', () => {
  const TOKENS = {
    'letters and digits': 'Xk4mT9bQ2wL7pR1sV6zA',
    'sixteen of them': 'aB3dE5fG7hJ9kL1m',
    'hexadecimal digits': '3f786850e387550fdab836ed7e6dc881de23001b',
    'a UUID': '6ba7b810-9dad-11d1-80b4-00c04fd430c8',
    'one that is marked': 'glpat-AbCdEf1234567890AbCd',
  };
  /** Where `@` is put in. The key is what is said of it. */
  const FILES: Readonly<Record<string, readonly [path: string, content: string, key: string]>> = {
    'npm, in the path': ['.npmrc', 'registry=https://npm.example/@/org/\n', 'registry'],
    'npm, of a scope': ['.npmrc', '@a:registry=https://npm.example/private/@/\n', '@a:registry'],
    'npm, in the query': ['.npmrc', 'registry=https://npm.example/?x=@\n', 'registry'],
    'npm, in the fragment': ['.npmrc', 'registry=https://npm.example/#@\n', 'registry'],
    'pip, one of several': [
      '.config/pip/pip.conf',
      '[global]\nextra-index-url = https://a.example/simple\n    https://b.example/@/simple\n',
      'extra-index-url',
    ],
    'pip, encoded': [
      '.config/pip/pip.conf',
      '[global]\nindex-url = https://b.example/%2F@/simple\n',
      'index-url',
    ],
    uv: ['.config/uv/uv.toml', '[[index]]\nurl = "https://b.example/@/simple"\n', 'index.url'],
    cargo: [
      '.cargo/config.toml',
      '[registries.own]\nindex = "sparse+https://b.example/@/index/"\n',
      'registries.own.index',
    ],
    go: ['.config/go/env', 'GOPROXY=https://b.example/@,direct\n', 'GOPROXY'],
    yarn: ['.yarnrc.yml', 'npmRegistryServer: "https://b.example/@/"\n', 'npmregistryserver'],
    'git, in what is put in place of another address': [
      '.gitconfig',
      '[url "https://git.example/@/"]\n\tinsteadOf = gh:\n',
      'insteadof',
    ],
    'git, in the query of that': [
      '.gitconfig',
      '[url "https://git.example/?x=@&a="]\n\tinsteadOf = gh:\n',
      'insteadof',
    ],
    'git, in the address that is replaced': [
      '.gitconfig',
      '[url "https://git.example/"]\n\tinsteadOf = https://old.example/@/\n',
      'insteadof',
    ],
    'git, in a section of an address': [
      '.gitconfig',
      '[http "https://git.example/@/"]\n\tsslVerify = false\n',
      'sslverify',
    ],
  };

  it.each(Object.entries(FILES))('is left out, and said once: %s', async (_, [path, content, key]) => {
    for (const token of Object.values(TOKENS)) {
      write(
        path,
        content.replaceAll('@', (mark, at) => (content.startsWith('@a', at) ? mark : token)),
      );
      const carried = await carry();
      const all = JSON.stringify(carried);
      expect([token, all.includes(token)]).toEqual([token, false]);
      const said = carried.remarks.filter((remark) => remark.toLowerCase().includes(key.toLowerCase()));
      expect([token, said.length, said[0]?.split(key).length]).toEqual([token, 1, 2]);
      // The same without a token is carried (control).
      write(path, content.replaceAll(/@(?!a:)/g, 'team'));
      expect(JSON.stringify((await carry()).files)).toContain('team');
    }
  });

  it.each([
    'PIP_INDEX_URL',
    'UV_DEFAULT_INDEX',
    'npm_config_registry',
    'GOPROXY',
    'CARGO_REGISTRIES_OWN_INDEX',
    'https_proxy',
  ])('is left out of the variable %s', async (name) => {
    for (const token of Object.values(TOKENS)) {
      const { variables, remarks } = await carry({ [name]: `https://b.example/${token}/x` });
      expect([variables, remarks.join()]).toEqual([{}, expect.stringContaining(name)]);
      expect(remarks.join()).not.toContain(token);
    }
    const plain = 'https://b.example/artifactory/api/npm-virtual-2024/';
    expect((await carry({ [name]: plain })).variables).toEqual({ [name]: plain });
  });

  it('is not in what is said of a key that is a credential', async () => {
    write('.npmrc', `//npm.example/${TOKENS['a UUID']}/:_authToken=x\n`);
    const { remarks } = await carry();
    expect(remarks.join()).toContain('_authtoken');
    expect(remarks.join()).not.toContain(TOKENS['a UUID']);
  });
});
