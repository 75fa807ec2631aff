import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { everywhere, expectPrinted, type Lab, type Project } from './support/lab.ts';

const MANIFEST =
  '{"name":"p","version":"1.0.0","dependencies":{"leftish":"^1.0.0"},"scripts":{"test":"leftish"}}';

everywhere(
  (lab) => {
    let registry: Registry;
    let project: Project;

    beforeAll(async () => {
      registry = await startRegistry(packageTarball(lab));
      // Outside, with the network, as the user did some time ago.
      project = lab.project({ 'package.json': MANIFEST, '.npmrc': `registry=${registry.url}\n` });
      await outside(lab, project, [
        'npm',
        'install',
        '--no-audit',
        '--no-fund',
        '--omit-lockfile-registry-resolved=false',
      ]);
      project.outside('rm', ['-r', 'node_modules']);
      await registry.close();
    });
    afterAll(() => registry.close());

    it('npm ci, npm test and npx from the cache that is there, with the network off', async () => {
      const answer = await project.run('npm ci --silent && npm test --silent && npx --no leftish && npm ls');
      expectPrinted(answer, /^leftish 42\nleftish 42\n.*leftish@1\.0\.0/s);
    });

    it('the cache outside cannot be written', async () => {
      const cache = `${lab.home}/.npm/_cacache`;
      const script = `for f in $(find ${cache} -type f); do echo x >> $f && echo written; done 2>/dev/null; touch ${cache}/new ${cache}/tmp/new 2>/dev/null && echo made; ls -d ${cache}`;
      expectPrinted(await project.run(script), `${cache}\n`);
    });

    it('nothing else of the home directory is shared with it', async () => {
      lab.writeHome({
        '.npmrc': '//registry.npmjs.org/:_authToken=npm_secret\n',
        '.npm/_logs/log': 'secret\n',
      });
      const answer = await project.run(
        `cat ${lab.home}/.npmrc ${lab.home}/.npm/_logs/log; npm config list -l; env`,
      );
      expect(answer.stdout).not.toContain('secret');
    });

    it('the networked profile uses a cache of its own', async () => {
      const answer = await project.run('npm config get cache', { sandbox: { profile: 'networked' } });
      expect(answer.stdout).not.toContain(lab.home);
    });
  },
  { home: 'fresh', few: true },
);

interface Registry {
  readonly url: string;
  close(): Promise<void>;
}

/** A registry with one package. */
function startRegistry(tarball: Buffer): Promise<Registry> {
  const integrity = `sha512-${createHash('sha512').update(tarball).digest('base64')}`;
  return new Promise((done) => {
    const server: Server = createServer((request, response) => {
      if (request.url?.endsWith('.tgz') === true) {
        response.end(tarball);
        return;
      }
      const dist = { integrity, tarball: `${url}/leftish/-/leftish-1.0.0.tgz` };
      const version = { name: 'leftish', version: '1.0.0', bin: { leftish: 'cli.js' }, dist };
      response.setHeader('content-type', 'application/json');
      response.end(
        JSON.stringify({ name: 'leftish', 'dist-tags': { latest: '1.0.0' }, versions: { '1.0.0': version } }),
      );
    });
    let url = '';
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : address}`;
      done({
        url,
        close: () =>
          new Promise((closed) => {
            server.closeAllConnections();
            server.close(() => closed());
          }),
      });
    });
  });
}

function packageTarball(lab: Lab): Buffer {
  const source = lab.project({
    'package/package.json': '{"name":"leftish","version":"1.0.0","bin":{"leftish":"cli.js"}}',
    'package/cli.js': '#!/usr/bin/env node\nconsole.log("leftish", 42)\n',
  });
  source.outside('tar', ['czf', 'package.tgz', 'package']);
  return source.readBytes('package.tgz');
}

/** While this process serves the registry. */
function outside(lab: Lab, project: Project, argv: readonly string[]): Promise<void> {
  const [program = '', ...args] = argv;
  return new Promise((done, failed) => {
    const child = spawn(program, args, { ...lab.outsideOptions, cwd: project.directory, stdio: 'pipe' });
    let said = '';
    child.stderr.on('data', (chunk) => {
      said += chunk;
    });
    child.once('close', (code) => (code === 0 ? done() : failed(new Error(said))));
  });
}
