// Runs a command in a virtual machine and says what its sandbox is made of there.
import { mkdtempSync } from 'node:fs';
import { createSandbox } from '/app/dist/index.js';

try {
  const sandbox = await createSandbox({ workspace: mkdtempSync('/tmp/probe-'), policyFiles: false });
  const { report, namespaces } = sandbox.plan;
  const result = await sandbox.run('echo text > file && cat file && uname -m');
  await sandbox.close();
  if (result.exitCode !== 0 || result.stdout !== `text\n${process.env.SANDBOX_RUN_EXPECT_MACHINE}\n`)
    throw new Error(JSON.stringify(result));
  const { landlockAbi: abi, backend } = report;
  console.log(JSON.stringify({ abi, backend, namespaces: namespaces !== undefined }));
} catch (error) {
  console.log(JSON.stringify({ error: `${error.code}: ${error.message}` }));
}
