import { afterAll, beforeAll, expect, it } from 'vitest';
import { everywhere, expectPrinted, type Lab } from './support/lab.ts';
import { packageTarball, type Registry, startRegistry } from './support/npm-registry.ts';

const MANIFEST =
  '{"name":"p","version":"1.0.0","dependencies":{"leftish":"^1.0.0"},"scripts":{"test":"leftish"}}';
const NETWORKED = { sandbox: { profile: 'networked' } };

everywhere(
  (lab) => {
    let registry: Registry;
    beforeAll(async () => {
      registry = await startRegistry(packageTarball(lab));
    });
    afterAll(() => registry.close());

    const npmProject = (of: Lab) =>
      of.project({
        'package.json': MANIFEST,
        '.npmrc': `registry=${registry.url}\nomit-lockfile-registry-resolved=false\naudit=false\nfund=false\n`,
      });

    it('npm downloads once for a workspace, and finds it with the network off', async () => {
      const project = npmProject(lab);
      const before = registry.downloads();
      expectPrinted(
        await project.run('npm install --silent && npm test --silent', NETWORKED),
        'leftish 42\n',
      );
      expect(registry.downloads()).toBe(before + 1);
      const again = 'rm -rf node_modules; npm ci --silent && npm test --silent';
      expectPrinted(await project.run(again, NETWORKED), 'leftish 42\n');
      expectPrinted(await project.run(again), 'leftish 42\n');
      expect(registry.downloads()).toBe(before + 1);
      // Of another workspace nothing is known.
      expectPrinted(await npmProject(lab).run('npm install --silent', NETWORKED), '');
      expect(registry.downloads()).toBe(before + 2);
    });

    it('four npm ci at once, in one workspace', async () => {
      const project = npmProject(lab);
      const lock = npmProject(lab);
      expectPrinted(await lock.run('npm install --silent', NETWORKED), '');
      const files = {
        'package.json': MANIFEST,
        '.npmrc': lock.read('.npmrc'),
        'package-lock.json': lock.read('package-lock.json'),
      };
      for (const at of [1, 2, 3, 4])
        for (const [name, content] of Object.entries(files)) project.write({ [`d${at}/${name}`]: content });
      const answers = await Promise.all(
        [1, 2, 3, 4].map((at) => project.run(`cd d${at} && npm ci --silent && npm test --silent`, NETWORKED)),
      );
      for (const answer of answers) expectPrinted(answer, 'leftish 42\n');
      // Not beside the others: it takes away the temporary files of whoever downloads at the same time, with or without us.
      expectPrinted(await project.run('npm cache verify', NETWORKED), /Content verified: [1-9]/);
      expectPrinted(await project.run('cd d1 && npm ci --silent && npm test --silent'), 'leftish 42\n');
    });
  },
  { home: 'fresh', few: true },
);
