// Makes what the documentation shows of real runs: the transcripts that stand behind `<!-- transcript -->` in README.md and docs/,
// the picture of the first one of docs/getting-started.md, and that of the page of approvals.
//   node scripts/pictures.mjs      (after npm run build; needs Chromium)
// test/integration/documented-blocks.test.ts runs the transcripts again, test/unit/docs/pictures.test.ts compares the picture.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { chromium } from 'playwright-core';

const ROOT = resolve(import.meta.dirname, '..');
const PICTURED = 'docs/getting-started.md';

// Not beneath /tmp, of which commands have their own.
const base = realpathSync(mkdtempSync('/var/tmp/sandbox-run-pictures-'));
const home = join(base, 'home/me');
const project = join(home, 'project');
const environment = {
  ...{ PATH: `${join(base, 'bin')}:${process.env.PATH}`, HOME: home, LANG: 'C.UTF-8', TERM: 'xterm' },
  GIT_CONFIG_NOSYSTEM: '1',
};

function makeProject() {
  rmSync(home, { recursive: true, force: true });
  for (const directory of [project, join(base, 'bin'), join(home, '.ssh')])
    mkdirSync(directory, { recursive: true });
  rmSync(join(base, 'bin/sandbox-run'), { force: true });
  symlinkSync(join(ROOT, 'dist/cli.cjs'), join(base, 'bin/sandbox-run'));
  writeFileSync(join(home, '.ssh/id_ed25519'), 'a key\n');
  writeFileSync(
    join(project, 'package.json'),
    JSON.stringify({ name: 'p', version: '1.0.0', scripts: { test: 'node -e "console.log(1)"' } }),
  );
  const git = (...args) => execFileSync('git', args, { cwd: project, env: environment, stdio: 'ignore' });
  git('init', '-q', '-b', 'main');
  git('config', 'user.name', 'Me');
  git('config', 'user.email', 'me@example.org');
  git('remote', 'add', 'origin', 'git@git.example.org:me/project.git');
  git('add', '.');
  git('commit', '-qm', 'first');
  writeFileSync(join(project, 'notes'), 'mine\n');
}

/** The lines of a transcript, each with what it really prints here. */
function transcriptOf(commands) {
  makeProject();
  return commands.flatMap((command) => {
    const { stdout } = spawnSync('bash', ['--norc', '-c', `exec 2>&1\n${command.replace(/\s+#\s.*$/, '')}`], {
      ...{ cwd: project, env: environment, encoding: 'utf8' },
    });
    // Ids differ from run to run, and would change the page each time.
    const printed = stdout
      .replaceAll(home, '/home/me')
      .replaceAll(/\b\d{8}-\d{6}-[0-9a-f]{6}\b/g, '20261123-101500-4fd8a1')
      .split('\n');
    return [`$ ${command}`, ...printed.filter((line) => line.trim() !== '')];
  });
}

/** Writes the transcripts of a page; the lines of the first one. */
function writeTranscripts(page) {
  let first;
  const text = readFileSync(join(ROOT, page), 'utf8');
  const made = text.replaceAll(
    /(<!-- transcript -->\n+```console\n)([\s\S]*?)(```)/g,
    (_, begin, old, end) => {
      const commands = old
        .split('\n')
        .filter((line) => line.startsWith('$ '))
        .map((line) => line.slice(2));
      const lines = transcriptOf(commands);
      first ??= lines;
      return `${begin}${lines.join('\n')}\n${end}`;
    },
  );
  if (made !== text) writeFileSync(join(ROOT, page), made);
  return first;
}

const escaped = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');

/** A terminal with these lines in it. */
function terminalPicture(lines) {
  const [width, step, left, top] = [Math.max(...lines.map((line) => line.length)) * 8.5 + 32, 20, 16, 48];
  const colour = (line) =>
    line.startsWith('$ ') ? '#f0f0f0' : line.startsWith('sandbox-run: ') ? '#f2c14e' : '#a8b3bf';
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" width="${Math.ceil(width)}" height="${top + lines.length * step}" role="img" aria-label="sandbox-run in a terminal">`,
    '<rect width="100%" height="100%" rx="8" fill="#1c2128"/>',
    ...['#ff5f57', '#febc2e', '#28c840'].map(
      (fill, at) => `<circle cx="${20 + at * 18}" cy="18" r="5.5" fill="${fill}"/>`,
    ),
    '<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="14" xml:space="preserve">',
    ...lines.map(
      (line, at) => `<text x="${left}" y="${top + at * step}" fill="${colour(line)}">${escaped(line)}</text>`,
    ),
    '</g>',
    '</svg>',
  ].join('\n')}\n`;
}

/** The page of approvals, with a push that waits for an answer. */
async function pictureOfApprovals(file) {
  makeProject();
  const start = (...args) =>
    spawn('sandbox-run', args, { cwd: project, env: environment, stdio: ['ignore', 'pipe', 'inherit'] });
  const serving = start('approvals', 'serve');
  const asking = start('--autonomy', 'supervised', '--ask', 'queue', '-c', 'git push origin main');
  try {
    const address = await new Promise((done) => {
      let printed = '';
      serving.stdout.on('data', (bytes) => {
        printed += bytes;
        const [found] = /http:\S+/.exec(printed) ?? [];
        if (found !== undefined) done(found);
      });
    });
    // Chromium cannot sandbox itself as root, nor in containers without user namespaces; the page is ours.
    const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
    try {
      const page = await browser.newPage({ viewport: { width: 760, height: 460 }, colorScheme: 'light' });
      await page.goto(address);
      await page.getByText('git push origin main').first().waitFor();
      // The path of the temporary home says nothing.
      await page.evaluate((from) => {
        const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
        while (walker.nextNode())
          walker.currentNode.data = walker.currentNode.data.replaceAll(from, '/home/me');
      }, home);
      await page.screenshot({ path: file, fullPage: true });
    } finally {
      await browser.close();
    }
  } finally {
    for (const child of [asking, serving]) {
      child.kill('SIGTERM');
      if (child.exitCode === null && child.signalCode === null)
        await new Promise((ended) => child.once('exit', ended));
    }
  }
}

try {
  const pages = [
    'README.md',
    ...readdirSync(join(ROOT, 'docs'))
      .filter((name) => name.endsWith('.md'))
      .map((name) => `docs/${name}`),
  ];
  for (const page of pages) {
    const first = writeTranscripts(page);
    if (page === PICTURED) writeFileSync(join(ROOT, 'docs/pictures/terminal.svg'), terminalPicture(first));
  }
  await pictureOfApprovals(join(ROOT, 'docs/pictures/approvals.png'));
} finally {
  rmSync(base, { recursive: true, force: true });
}
