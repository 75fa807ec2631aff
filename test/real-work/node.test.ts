import { everywhere, works } from './support/lab.ts';

everywhere((lab) => {
  const node = (name: string, script: string, prints: string | RegExp) =>
    works(lab, name, { script: 'node main.mjs', files: { 'main.mjs': script }, prints });

  node(
    'files, threads, crypto and CPU counts',
    `
import { Worker } from 'node:worker_threads'; import { cpus, tmpdir, homedir, userInfo } from 'node:os'; import { randomUUID } from 'node:crypto';
import { writeFileSync, mkdtempSync } from 'node:fs'; import { join } from 'node:path';
writeFileSync(join(mkdtempSync(join(tmpdir(), 'x-')), 'f'), randomUUID()); writeFileSync(join(homedir(), 'f'), ''); userInfo();
new Worker('require("worker_threads").parentPort.postMessage(7)', { eval: true }).on('message', (n) => console.log(n, cpus().length > 0));
`,
    '7 true\n',
  );
  node(
    'child processes',
    `
import { execFileSync, spawn, fork } from 'node:child_process'; import { promisify } from 'node:util';
console.log(execFileSync('echo', ['sync'], { encoding: 'utf8' }).trim());
spawn('cat', { stdio: ['pipe', 'inherit', 'inherit'] }).on('close', (c) => console.log('closed', c)).stdin.end('piped\\n');
`,
    'sync\npiped\nclosed 0\n',
  );
  node(
    'fork with messages',
    `
import { fork } from 'node:child_process'; import { fileURLToPath } from 'node:url';
if (process.send) { process.send('from the child'); process.disconnect(); }
else fork(fileURLToPath(import.meta.url)).on('message', (m) => console.log(m));
`,
    'from the child\n',
  );
  node(
    'fs.watch',
    `
import { watch, writeFileSync } from 'node:fs';
const w = watch('.', (e, f) => { if (f === 'new') { console.log('seen'); w.close(); } }); writeFileSync('new', '');
`,
    'seen\n',
  );
  node(
    'root certificates',
    `
import tls from 'node:tls'; import { readFileSync, existsSync } from 'node:fs';
const system = '/etc/ssl/certs/ca-certificates.crt'; if (existsSync(system)) readFileSync(system);
console.log(tls.rootCertificates.length > 50);
`,
    'true\n',
  );
  works(lab, 'node --test', {
    script: 'node --test 2>&1',
    files: {
      'x.test.mjs':
        "import test from 'node:test'; import assert from 'node:assert'; test('adds', () => assert.equal(1 + 1, 2));",
    },
    prints: /pass 1/,
  });
  works(lab, 'npm run and npm test', {
    script: 'npm run -s hello && npm test --silent',
    files: {
      'package.json': '{"name":"p","version":"1.0.0","scripts":{"hello":"echo hello","test":"node -p 6*7"}}',
    },
    prints: 'hello\n42\n',
  });
  if (lab.setting.tier === 'view') {
    node(
      'a server on localhost and a client',
      `
import { createServer } from 'node:http';
const s = createServer((q, r) => r.end('served')).listen(0, async () => {
  for (const host of ['127.0.0.1', 'localhost']) console.log(await (await fetch('http://' + host + ':' + s.address().port)).text());
  s.close();
});
`,
      'served\nserved\n',
    );
    node(
      'a socket by path',
      `
import net from 'node:net'; import { tmpdir } from 'node:os';
for (const path of ['s', tmpdir() + '/s']) { const s = net.createServer((c) => c.end('hi')).listen(path, () => net.connect(path).on('data', (d) => { console.log(String(d)); s.close(); })); }
`,
      'hi\nhi\n',
    );
    node(
      'cluster',
      `
import cluster from 'node:cluster'; import http from 'node:http';
if (cluster.isPrimary) { const w = cluster.fork(); cluster.on('listening', async (_, a) => { console.log(await (await fetch('http://127.0.0.1:' + a.port)).text()); w.kill(); }); }
else http.createServer((q, r) => r.end('clustered')).listen(0, '127.0.0.1');
`,
      'clustered\n',
    );
  }
});

everywhere(
  (lab) => {
    works(lab, 'npm install of a directory', {
      script: 'npm install --silent ./tool && npx --no tool && npm ls --depth 0',
      files: {
        'package.json': '{"name":"p","version":"1.0.0"}',
        'tool/package.json': '{"name":"tool","version":"1.0.0","bin":"cli.js"}',
        'tool/cli.js': '#!/usr/bin/env node\nconsole.log("tool")\n',
      },
      prints: /^tool\n.*tool@1\.0\.0/s,
    });
    works(lab, 'npm says at once that a package is not there', {
      script: 'npm install no-such-package-here >log 2>&1; echo $?; grep -c "npm error code" log',
      files: { 'package.json': '{"name":"p","version":"1.0.0"}' },
      prints: '1\n1\n',
      options: { timeout: 15_000 },
    });
  },
  { home: 'fresh', few: true },
);
