import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { LIBRARY, makePlace } from '../library/support.ts';
import { lacks } from '../support/programs.ts';

// Its node:fs gives the bytes of a link as text, by which /lib64 was taken for missing.
it.skipIf(lacks('deno'))('a command runs under Deno as under Node', () => {
  // Here, not above: where all tests of a file are skipped, nothing of it is run at its end.
  const place = makePlace();
  onTestFinished(() => place.dispose());
  const program = join(place.root, 'program.mjs');
  writeFileSync(
    program,
    `import { createSandbox } from ${JSON.stringify(LIBRARY)};
await using sandbox = await createSandbox({ workspace: ${JSON.stringify(place.workspace)} });
const { status, exitCode, stdout } = await sandbox.run('ls -d /lib64/.. && echo ran');
console.log(JSON.stringify({ status, exitCode, stdout }));`,
  );
  const said = execFileSync('deno', ['run', '--allow-all', program], { encoding: 'utf8' });
  expect(JSON.parse(said)).toEqual({ status: 'exited', exitCode: 0, stdout: '/lib64/..\nran\n' });
});
