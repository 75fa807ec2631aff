import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { everywhere, expectPrinted, type Lab, type Project } from './support/lab.ts';
import { packageTarball, type Registry, startRegistry } from './support/npm-registry.ts';

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

    it('the networked profile gets what the lock file names, and nothing else of that cache', async () => {
      const networked = { sandbox: { profile: 'networked' } };
      const answer = await project.run('npm ci --silent && npm test --silent', networked);
      expectPrinted(answer, 'leftish 42\n');
      const cache = `${lab.home}/.npm/_cacache`;
      const look = `find ${cache} ~/.npm/_cacache/ -type f; true`;
      const other = lab.project({ 'package.json': MANIFEST });
      expect((await other.run(look, networked)).stdout).toBe('');
      // A command made room for others: nothing is written where they lead.
      const lock = { 'package-lock.json': project.read('package-lock.json') };
      for (const attack of [
        'rm -rf ~/.npm/* ~/.npm/_*; ln -s "$PWD/victim" ~/.npm/_cacache',
        'v="$PWD/victim"; cd ~/.npm/; cd "$(pwd -P)/.."; rm -rf npm; ln -s "$v" npm',
      ]) {
        const attacked = lab.project({ 'victim/kept': '' });
        // With the network off the user's own cache may lie there, read-only: then it fails.
        expect((await attacked.run(`echo x > ~/.cache/x; { ${attack}; } 2>/dev/null; true`)).outcome).toBe(
          'exited 0',
        );
        attacked.write(lock);
        expectPrinted(await attacked.run('ls victim', networked), 'kept\n');
      }
    });

    it('the networked profile uses a cache of its own', async () => {
      // At the place of the user's, in a home of its own.
      const script = 'cd "$(npm config get cache)" && echo x > mine && cat mine';
      expectPrinted(await project.run(script, { sandbox: { profile: 'networked' } }), 'x\n');
      expect(existsSync(join(lab.home, '.npm/mine'))).toBe(false);
    });
  },
  { home: 'fresh', few: true },
);

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
