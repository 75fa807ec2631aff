import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, describe, expect, it } from 'vitest';
import { makePlace, ROOT } from '../library/support.ts';
import { expectNothingLeft } from '../support/leftovers.ts';

const place = makePlace();
afterAll(async () => {
  await expectNothingLeft(place);
  place.dispose();
});

const EXAMPLES = join(ROOT, 'examples');
const NAMES = ['ai-sdk.mjs', 'confine.mjs', 'library.mjs', 'openai.mjs'];

/** What the adapters are for takes them as they are. */
const CONSUMER = `
import { type Shell, shellTool as openaiTool } from '@openai/agents';
import { generateText, type ToolSet } from 'ai';
import { createBashTool, type Sandbox as BashSandbox } from 'bash-tool';
import OpenAI from 'openai';
import { createSandbox } from 'sandbox-run';
import { bashToolSandbox, shellTool, type ShellToolOutput } from 'sandbox-run/ai';
import { createShell, runShellCall } from 'sandbox-run/openai';

export async function use(client: OpenAI, model: Parameters<typeof generateText>[0]['model']): Promise<void> {
  await using sandbox = await createSandbox({ workspace: '.' });
  const shell = createShell(sandbox, { maxOutput: 100, timeout: 1000, signal: AbortSignal.timeout(10) });
  const plain: Shell = shell;
  openaiTool({ shell: plain, needsApproval: shell.needsApproval });
  const { output } = await client.responses.create({ model: 'm', input: 'go' });
  const input: OpenAI.Responses.ResponseInputItem[] = [];
  for (const item of output) if (item.type === 'shell_call') input.push(await runShellCall(sandbox, item));
  const tools = { shell: shellTool(sandbox, { maxOutput: 100 }) } satisfies ToolSet;
  const { toolResults } = await generateText({ model, tools, prompt: 'go' });
  for (const result of toolResults) if (!result.dynamic) result.output satisfies ShellToolOutput;
  const files: BashSandbox = bashToolSandbox(sandbox);
  await createBashTool({ sandbox: files, destination: sandbox.workspace });
}
`;

/** Needs nothing of the package beside it: what others declare wrongly is no fault of their compiler's settings. */
const ALONE = `
import { createSandbox } from 'sandbox-run';
import { createFleet, type Downloaded, type FleetOptions } from 'sandbox-run/fleet';
import { type Confinement, confine, type Demands, type Grant, isUnenforceable, type Running } from 'sandbox-run/confine';
import { createShell } from 'sandbox-run/openai';
export async function hold(grant: Grant, demands: Demands): Promise<string> {
  const made = await confine().prepare(grant, demands);
  if (isUnenforceable(made)) return (made.control ?? 'nothing') + made.why;
  const confinement: Confinement = made;
  const running: Running = confinement.start({ program: '/bin/true' });
  running.events((event) => event.kind === 'chunk' && running.acknowledge(event.bytes.length));
  running.signal(15);
  const { failure, exitCode, stdout } = await running.exited;
  confinement.close();
  return failure === undefined ? exitCode + String(stdout) : failure.stage;
}
export async function use(options: FleetOptions): Promise<Downloaded> {
  await using sandbox = await createSandbox({ workspace: '.' });
  createShell(sandbox);
  await using fleet = await createFleet(options);
  const result = await fleet.run('make', { workspaceFrom: sandbox.workspace, artefacts: ['**'] });
  return fleet.download(result.fleet.artefacts ?? '', 'out');
}
`;

describe('the types of the package', () => {
  it.each(['nodenext', 'node16'])(
    'pass without skipLibCheck, as %s',
    async (module) => {
      const consumer = join(ROOT, 'build', `alone-${process.pid}-${module}`);
      const settings = join(place.root, `tsconfig-${module}.json`);
      const files = [`${consumer}.mts`, `${consumer}.cts`];
      writeFileSync(
        settings,
        JSON.stringify({
          compilerOptions: {
            ...{ strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true },
            ...{ module, target: 'es2022', lib: ['es2022', 'esnext.disposable'], noEmit: true },
            ...{ skipLibCheck: false, types: ['node'], typeRoots: [join(ROOT, 'node_modules/@types')] },
          },
          files,
        }),
      );
      for (const file of files) writeFileSync(file, ALONE);
      try {
        const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
        const { stdout } = await execa(process.execPath, [tsc, '-p', settings, '--listFiles'], {
          reject: false,
        });
        const lines = stdout.split('\n');
        expect(lines.filter((line) => !line.startsWith('/'))).toEqual([]);
        // What is installed here for other reasons need not be there for those who install the package.
        const { dependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
        const packages = lines.flatMap(
          (line) => /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(line)?.[1] ?? [],
        );
        const others = packages.filter(
          (name) =>
            !Object.hasOwn(dependencies, name) &&
            !/^(@?typescript(\/|$)|@types\/|undici-types$|buffer$)/.test(name),
        );
        expect([...new Set(others)]).toEqual([]);
      } finally {
        for (const file of files) rmSync(file, { force: true });
      }
    },
    120_000,
  );

  it('serve programs that are compiled strictly, and the examples', async () => {
    // Beside the examples, in the package: it finds the libraries, and itself as a package does.
    const consumer = join(ROOT, 'build', `consumer-${process.pid}.mts`);
    const settings = join(place.root, 'tsconfig.json');
    writeFileSync(
      settings,
      JSON.stringify({
        compilerOptions: {
          ...{ strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true },
          ...{ module: 'nodenext', target: 'es2022', lib: ['es2022', 'esnext.disposable', 'dom'] },
          ...{ allowJs: true, checkJs: true, noEmit: true, skipLibCheck: true },
          ...{ types: ['node'], typeRoots: [join(ROOT, 'node_modules/@types')] },
        },
        files: [consumer, ...NAMES.map((name) => join(EXAMPLES, name))],
      }),
    );
    writeFileSync(consumer, CONSUMER);
    try {
      const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
      const { stdout } = await execa(process.execPath, [tsc, '-p', settings], { reject: false });
      expect(stdout).toBe('');
    } finally {
      rmSync(consumer, { force: true });
    }
  });
});
