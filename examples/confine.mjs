// Containment without judging: a program gets what a grant says and nothing else. No policy is read and nobody is asked:
// `npm run build`, then `node examples/confine.mjs`.
// prints: The secret stays outside.
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { confine, isUnenforceable } from 'sandbox-run/confine';

const root = realpathSync(mkdtempSync(join(tmpdir(), 'example-')));
const [workspace, secret] = [join(root, 'work'), join(root, 'secret')];
mkdirSync(workspace);
writeFileSync(secret, 'of the user\n');

const system = ['/usr', '/bin', '/lib', '/lib64', '/etc/ld.so.cache'].filter((path) => existsSync(path));
const confinement = await confine().prepare(
  { workspace, read: system, devices: ['/dev/null'] },
  { controls: { filesystem: 'required', network: 'required' } },
);
if (isUnenforceable(confinement)) throw confinement.error;

const script = `cat ${secret} 2>/dev/null || echo 'The secret stays outside.'`;
const running = confinement.start({
  program: '/bin/sh',
  argv: ['sh', '-c', script],
  env: { PATH: '/usr/bin:/bin' },
});
const { failure, stdout } = await running.exited;
console.log(failure === undefined ? String(stdout).trim() : `nothing was started: ${failure.stage}`);

confinement.close();
rmSync(root, { recursive: true });
