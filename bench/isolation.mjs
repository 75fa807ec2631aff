// Measures what sandboxes for commands hold on this machine: each attack and each piece of everyday work is tried outside and in
// every sandbox that is installed, in a fresh home, and the start of `true` is timed.
//   npm run -s bench:isolation -- [--rounds 15] [--codex FILE] > bench/isolation.json      (as an ordinary user)
// Then `npx vitest run test/unit/docs -u` writes the tables of README.md and docs/which-isolation.md.
// --codex: the program of @openai/codex. A sandbox that is absent, or does not start, is left out and named in "absent".
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { homedir, release } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { inProcess, inTurns, summarize } from './measure.mjs';

const ROOT = resolve(import.meta.dirname, '..');
const { values: options } = parseArgs({
  options: { rounds: { type: 'string', default: '15' }, codex: { type: 'string' } },
});
if (process.getuid() === 0) throw new Error('run it as an ordinary user: root is held by other means');

/** Beneath the home of the user, because Firejail asks the user database for it and not HOME. */
const base = mkdtempSync(join(homedir(), 'sandbox-run-isolation-'));
const SECRET = 'c2VjcmV0LW9mLXRoZS11c2Vy';
/** Variables of a developer, a token among them. */
const variables = (home) => ({
  ...{ PATH: '/usr/local/bin:/usr/bin:/bin', HOME: home, USER: process.env.USER ?? 'user', LANG: 'C.UTF-8' },
  API_TOKEN: SECRET,
});

/** A home with a project, with what lies beside it and with what is kept in a home. */
function makePlace() {
  const home = mkdtempSync(join(base, 'h-'));
  const project = join(home, 'project');
  for (const [path, text] of [
    ['.ssh/id_ed25519', SECRET],
    ['.bashrc', '# mine\n'],
    ['other/source.txt', SECRET],
    ['project/.env', SECRET],
    ['project/main.c', 'int main(void) { return 0; }\n'],
    ['project/Makefile', 'all: a b\na b:\n\techo $@ > $@\n'],
    ['project/package.json', '{"name":"p","version":"1.0.0"}'],
    ['package/package.json', '{"name":"tiny","version":"1.0.0"}'],
    // Of Anthropic's runtime: what its README shows first, for this project and no host.
    [
      '.srt-settings.json',
      '{"network":{"allowedDomains":[],"deniedDomains":[]},"filesystem":{"denyRead":[],"allowWrite":["."],"denyWrite":[]}}',
    ],
  ]) {
    mkdirSync(dirname(join(home, path)), { recursive: true });
    writeFileSync(join(home, path), text);
  }
  execFileSync('tar', ['-C', home, '-czf', join(project, 'tiny.tgz'), 'package']);
  const git = (...args) => execFileSync('git', args, { cwd: project, env: variables(home), stdio: 'ignore' });
  git('init', '-q');
  git('config', 'user.name', 'a');
  git('config', 'user.email', 'a@example.org');
  git('commit', '-q', '--allow-empty', '-m', 'first');
  return { home, project, marker: join(home, 'marker'), socket: join(home, 'daemon.sock') };
}

const links = ['bin', 'sbin', 'lib', 'lib64'].filter((name) => existsSync(`/${name}`));
/** Every sandbox: how it runs a program. */
const SANDBOXES = {
  outside: { start: (_, command) => command },
  'sandbox-run': {
    what: 'without options',
    start: (_, command) => [process.execPath, join(ROOT, 'dist/cli.cjs'), '--', ...command],
  },
  bubblewrap: {
    what: '`--unshare-all`, a root with `/usr` and `/etc` read-only and the project, `--clearenv`',
    start: ({ home, project }, command) => [
      ...['bwrap', '--unshare-all', '--die-with-parent', '--new-session', '--clearenv'],
      ...['--setenv', 'PATH', '/usr/bin:/bin', '--setenv', 'HOME', home],
      ...['--ro-bind', '/usr', '/usr', '--ro-bind', '/etc', '/etc'],
      ...links.flatMap((name) => ['--symlink', `usr/${name}`, `/${name}`]),
      ...[
        '--proc',
        '/proc',
        '--dev',
        '/dev',
        '--tmpfs',
        '/tmp',
        '--bind',
        project,
        project,
        '--chdir',
        project,
      ],
      ...command,
    ],
  },
  Firejail: {
    what: '`--noprofile --whitelist=PROJECT --net=none --caps.drop=all --nonewprivs --seccomp --private-tmp --private-dev`',
    start: ({ project }, command) => [
      ...['firejail', '--quiet', '--noprofile', `--whitelist=${project}`, '--net=none', '--caps.drop=all'],
      ...['--nonewprivs', '--seccomp', '--private-tmp', '--private-dev', ...command],
    ],
  },
  'Anthropic runtime': {
    what: 'the settings that its README shows first: no host, `allowWrite: ["."]`',
    start: ({ home }, command) => [
      ...[process.execPath, join(ROOT, 'node_modules/@anthropic-ai/sandbox-runtime/dist/cli.js')],
      ...['--settings', join(home, '.srt-settings.json'), ...command],
    ],
  },
  'Codex sandbox': {
    what: '`codex sandbox -P :workspace`',
    start: (_, command) => [options.codex ?? 'codex', 'sandbox', '-P', ':workspace', '--', ...command],
  },
};

const python = (text) => `python3 - <<'END'\n${text}\nEND\n`;
const connects = (address) =>
  python(`import socket\ns = socket.socket(socket.AF_UNIX)\ns.settimeout(5)\ns.connect(${address})`);
/** Whether git, used outside by the user, runs what was left behind. */
function marksOnce({ project, home, marker }, ...git) {
  spawnSync('git', git, { cwd: project, env: variables(home), stdio: 'ignore' });
  return existsSync(marker);
}

/** Attacks. `script` runs in the sandbox; `came` looks from outside whether it came to what it wanted. */
const ATTACKS = {
  'read a key in the home (`~/.ssh`)': {
    script: ({ home }) => `cat ${home}/.ssh/id_ed25519`,
    came: (_, { stdout }) => stdout.includes(SECRET),
  },
  'read another project': {
    script: ({ home }) => `cat ${home}/other/source.txt`,
    came: (_, { stdout }) => stdout.includes(SECRET),
  },
  'read a token in the environment': {
    script: () => 'printenv API_TOKEN',
    came: (_, { stdout }) => stdout.includes(SECRET),
  },
  'read the environment of other processes': {
    script: () => `cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep ^BYSTANDER=`,
    came: (_, { stdout }) => stdout.includes(`BYSTANDER=${SECRET}`),
  },
  'read `.env` of the project itself': {
    script: () => 'cat .env',
    came: (_, { stdout }) => stdout.includes(SECRET),
  },
  'write `~/.bashrc`': {
    script: ({ home }) => `echo echo >> ${home}/.bashrc`,
    came: ({ home }) => readFileSync(join(home, '.bashrc'), 'utf8').includes('echo'),
  },
  'write another project': {
    script: ({ home }) => `echo x > ${home}/other/source.txt`,
    came: ({ home }) => !readFileSync(join(home, 'other/source.txt'), 'utf8').includes(SECRET),
  },
  'leave a git hook that your next commit runs': {
    script: ({ marker }) =>
      `mkdir -p .git/hooks; printf '#!/bin/sh\\ntouch ${marker}\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit`,
    came: (place) => marksOnce(place, 'commit', '-q', '--allow-empty', '-m', 'x'),
  },
  'leave a git setting that your next `git status` runs': {
    script: ({ marker }) => `git config core.fsmonitor 'touch ${marker}; false'`,
    came: (place) => marksOnce(place, 'status'),
  },
  'leave tasks for your editor (`.vscode/tasks.json`)': {
    script: () => `mkdir -p .vscode; echo '{}' > .vscode/tasks.json`,
    came: ({ project }) => existsSync(join(project, '.vscode/tasks.json')),
  },
  'leave settings for your agent (`.claude/settings.json`)': {
    script: () => `mkdir -p .claude; echo '{}' > .claude/settings.json`,
    came: ({ project }) => existsSync(join(project, '.claude/settings.json')),
  },
  'connect to a server of this machine (TCP)': {
    script: ({ port }) => `exec 3<> /dev/tcp/127.0.0.1/${port}`,
    came: ({ connections }) => connections.includes('tcp'),
  },
  'connect to a daemon (a socket in the home)': {
    script: ({ socket }) => connects(`'${socket}'`),
    came: ({ connections }) => connections.includes('unix'),
  },
  'connect to a daemon (an abstract socket)': {
    script: ({ abstract }) => connects(`'\\0${abstract}'`),
    came: ({ connections }) => connections.includes('abstract'),
  },
  'end another process of yours': {
    script: ({ bystander }) => `kill ${bystander.pid}`,
    came: ({ bystander }) => bystander.exitCode !== null || bystander.signalCode !== null,
  },
  'leave a process that lives on': {
    script: ({ lives }) => `setsid sleep ${lives} > /dev/null 2>&1 < /dev/null & sleep 0.2`,
    came: ({ lives }) => {
      const found = spawnSync('pgrep', ['-fx', `sleep ${lives}`], { encoding: 'utf8' }).stdout.trim();
      for (const pid of found.split('\n').filter(Boolean)) process.kill(Number(pid), 'SIGKILL');
      return found !== '';
    },
  },
  'make a user namespace (a way to bugs of the kernel)': {
    script: () => 'unshare -Ur true && echo made',
    came: (_, { stdout }) => stdout.includes('made'),
  },
  'call io_uring (the same)': {
    // EFAULT: the kernel looked at the arguments.
    script: () =>
      python(
        'import ctypes\nc = ctypes.CDLL(None, use_errno=True)\nc.syscall(425, 1, 0)\nprint("errno", ctypes.get_errno())',
      ),
    came: (_, { stdout }) => stdout.includes('errno 14'),
  },
};

/** Everyday work: it ends with 0 outside, and has to inside. */
const WORK = {
  'git commit': () => 'git add main.c && git commit -qm work && git log --oneline | grep -q work',
  'compile and run (gcc)': () => 'gcc -o main main.c && ./main',
  'make -j4': () => 'make -s -j4 && test -s a && test -s b',
  'npm install of a package in the project': () => 'npm install --offline --no-audit --no-fund ./tiny.tgz',
  'a test that starts a server on localhost': () =>
    `node -e 'const h = require("http"); const s = h.createServer((q, r) => r.end("x")).listen(0, "127.0.0.1", () => h.get({ port: s.address().port, agent: false }, (r) => { r.resume(); r.on("end", () => s.close()); }));'`,
  'a server on a socket in the project': () =>
    python(
      "import socket\ns = socket.socket(socket.AF_UNIX)\ns.bind('s')\ns.listen()\nc = socket.socket(socket.AF_UNIX)\nc.connect('s')",
    ),
  'python multiprocessing': () =>
    python(
      'import multiprocessing as m\nq = m.get_context("fork").Queue()\np = m.get_context("fork").Process(target=q.put, args=(1,))\np.start()\nassert q.get(timeout=20) == 1\np.join()',
    ),
  'temporary files and here-documents': () =>
    'f=$(mktemp) && cat > "$f" <<EOF\nb\na\nEOF\ndiff <(sort "$f") <(printf "a\\nb\\n")',
  'a tool that writes to `~/.config`': ({ home }) =>
    `mkdir -p ${home}/.config/tool && echo 1 > ${home}/.config/tool/state && cat ${home}/.config/tool/state`,
  'debugger (gdb)': () => 'gcc -g -o main main.c && gdb -q -batch -ex run ./main | grep -q exited',
};

/** Runs a script in a sandbox: by its file, so that no text is judged. */
function run(sandbox, place, script) {
  const file = join(place.project, 'step.sh');
  writeFileSync(file, `${script}\n`);
  const [program, ...args] = sandbox.start(place, ['bash', file]);
  return new Promise((done) => {
    const child = spawn(program, args, {
      ...{
        cwd: place.project,
        env: variables(place.home),
        stdio: ['ignore', 'pipe', 'pipe'],
        timeout: 60_000,
      },
    });
    let [stdout, stderr] = ['', ''];
    child.stdout.on('data', (bytes) => (stdout += bytes));
    child.stderr.on('data', (bytes) => (stderr += bytes));
    child.on('error', (error) => done({ status: 127, stdout, stderr: error.message }));
    child.on('exit', (code) =>
      setTimeout(done, 100, {
        status: code ?? 1,
        get stdout() {
          return stdout;
        },
        stderr,
      }),
    );
  });
}

/** What an attack may reach: servers, and another process of the user. */
async function withNeighbours(place, work) {
  const connections = [];
  const listen = (kind, ...at) =>
    new Promise((done) => {
      const server = createServer((socket) => {
        connections.push(kind);
        socket.on('error', () => {});
        socket.end();
      });
      server.listen(...at, () => done(server));
    });
  const abstract = `sandbox-run-isolation-${process.pid}-${Math.random()}`;
  const servers = await Promise.all([listen('tcp', 0, '127.0.0.1'), listen('unix', place.socket)]);
  // Node has no such sockets.
  const daemon = spawn('python3', [
    ...[
      '-uc',
      'import socket,sys\ns=socket.socket(socket.AF_UNIX)\ns.bind("\\0"+sys.argv[1])\ns.listen()\nprint("up")\ns.accept()\nprint("came")',
    ],
    abstract,
  ]);
  await new Promise((up) =>
    daemon.stdout.on('data', (text) => (String(text).includes('came') ? connections.push('abstract') : up())),
  );
  const bystander = spawn('sleep', ['600'], { env: { ...process.env, BYSTANDER: SECRET }, stdio: 'ignore' });
  const lives = 600_000 + Math.floor(Math.random() * 300_000);
  try {
    return await work({ ...place, connections, abstract, bystander, lives, port: servers[0].address().port });
  } finally {
    for (const child of [bystander, daemon]) child.kill('SIGKILL');
    for (const server of servers) server.close();
  }
}

const versionOf = (...command) =>
  /\d+\.\d+(?:\.\d+)?/.exec(spawnSync(command[0], command.slice(1), { encoding: 'utf8' }).stdout ?? '')?.[0];
const VERSIONS = {
  'sandbox-run': () => JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).version,
  bubblewrap: () => versionOf('bwrap', '--version'),
  Firejail: () => versionOf('firejail', '--version'),
  'Anthropic runtime': () =>
    JSON.parse(readFileSync(join(ROOT, 'node_modules/@anthropic-ai/sandbox-runtime/package.json'), 'utf8'))
      .version,
  'Codex sandbox': () => versionOf(options.codex ?? 'codex', '--version'),
};

const report = {
  kernel: /^\d+\.\d+/.exec(release())?.[0],
  node: process.version,
  date: new Date().toISOString().slice(0, 10),
  absent: [],
  sandboxes: {},
};
try {
  const timed = [];
  for (const [name, sandbox] of Object.entries(SANDBOXES)) {
    const first = await run(sandbox, makePlace(), 'echo works');
    if (first.stdout.trim() !== 'works') {
      report.absent.push(name);
      process.stderr.write(`${name} is left out: ${first.stderr.trim().slice(0, 300)}\n`);
      continue;
    }
    const attacks = {};
    for (const [what, { script, came }] of Object.entries(ATTACKS))
      attacks[what] = await withNeighbours(makePlace(), async (place) => {
        const result = await run(sandbox, place, script(place));
        await pause(300);
        return came(place, result) ? 'open' : 'held';
      });
    const work = {};
    for (const [what, script] of Object.entries(WORK)) {
      const place = makePlace();
      const { status, stderr } = await run(sandbox, place, script(place));
      work[what] = status === 0 ? 'works' : 'fails';
      if (status !== 0) process.stderr.write(`${name}: ${what}: ${stderr.trim().slice(-300)}\n`);
    }
    report.sandboxes[name] = { version: VERSIONS[name]?.(), what: sandbox.what, attacks, work };
    const place = makePlace();
    const start = (words) => () =>
      new Promise((done, failed) =>
        spawn(words[0], words.slice(1), {
          cwd: place.project,
          env: variables(place.home),
          stdio: 'ignore',
        }).on('exit', (code) => (code === 0 ? done() : failed(new Error(`${name}: ${code}`)))),
      );
    timed.push(inProcess(name, start(sandbox.start(place, ['true']))));
    if (name === 'sandbox-run')
      timed.push(inProcess(`${name} --warm`, start([join(ROOT, 'dist/cli.cjs'), '--warm', '--', 'true'])));
  }
  // An attack or a piece of work that does not succeed outside says nothing of a sandbox.
  const { attacks, work } = report.sandboxes.outside;
  const vain = [...Object.entries(attacks), ...Object.entries(work)].filter(
    ([, came]) => !['open', 'works'].includes(came),
  );
  if (vain.length > 0)
    throw new Error(`not possible outside either: ${vain.map(([what]) => what).join(', ')}`);
  const samples = await inTurns(timed, { rounds: Number(options.rounds), perTurn: 2 });
  report.startMs = Object.fromEntries(
    [...samples].map(([name, list]) => [name, Number(summarize(list).median.toFixed(1))]),
  );
  process.stdout.write(`${JSON.stringify(report, undefined, 2)}\n`);
} finally {
  rmSync(base, { recursive: true, force: true });
}
