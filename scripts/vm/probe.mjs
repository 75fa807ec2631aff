// Says, in a virtual machine, what a sandbox is made of there.
import { mkdtempSync } from 'node:fs';
import { createSandbox } from '/app/dist/index.js';

try {
  const sandbox = await createSandbox({ workspace: mkdtempSync('/tmp/probe-'), policyFiles: false });
  const { report, namespaces } = sandbox.plan;
  const result = await sandbox.run(['/bin/true']);
  await sandbox.close();
  if (result.status !== 'exited' || result.exitCode !== 0) throw new Error(JSON.stringify(result));
  const { landlockAbi: abi, backend } = report;
  console.log(JSON.stringify({ abi, backend, namespaces: namespaces !== undefined }));
} catch (error) {
  console.log(JSON.stringify({ error: `${error.code}: ${error.message}` }));
}
