// Writes the compiled code of a part-product.cjs (cf. product.mjs) after using it as tests and launchers do: node warm-product.mjs
// FILE. Where nothing can be confined, what was needed to say so is compiled.
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { writeCompiledCode } from '../compiled-code.mjs';

const workspace = mkdtempSync(join(realpathSync(tmpdir()), 'sandbox-run-warm-'));
try {
  await writeCompiledCode(process.argv[2], async (product) => {
    // Tests that launch nothing through the library do not have it.
    const library = product['src/index.ts']?.();
    if (library === undefined) return;
    try {
      const sandbox = await library.createSandbox({
        workspace,
        policy: { unsafe: { unjudged_commands: true } },
      });
      await sandbox.run(['/bin/sh', '-c', 'echo text > file; cat file; exit 1']);
      await sandbox.close();
    } catch (error) {
      console.error(`warm-product: ${error.message}`);
    }
  });
} finally {
  rmSync(workspace, { recursive: true, force: true });
}
process.exitCode = 0;
