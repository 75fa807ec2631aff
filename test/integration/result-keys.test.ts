import { describe, expect, it } from 'vitest';
import { ShellOutput } from '../../src/agents/index.ts';
import { createSandbox, type ToolResult } from '../../src/index.ts';
import { ExecutionResult, TurnResult } from '../../src/model/index.ts';
import { CommandResult, SentTurn } from '../../src/serve/index.ts';
import { cli } from '../cli/support.ts';
import { connectTo } from './mcp-client.ts';
import { makeServeWorld } from './serve-world.ts';

const { place, stdio, judged } = makeServeWorld();

type Result = Readonly<Record<string, unknown>>;

/** What a door says of a result and the library does not, each with its reason. */
const ONLY_THERE: Readonly<Record<string, readonly string[]>> = {
  '--json': ['messageForModel'],
  // Bytes are sent as text, in stdout and stderr.
  serve: ['messageForModel', 'gapAt'],
  // The job: of a command in the background.
  MCP: ['messageForModel', 'job'],
  hooks: [],
};

const keysOf = (results: { readonly options: readonly { readonly shape: object }[] }) =>
  new Set(results.options.flatMap(({ shape }) => Object.keys(shape)));

/** The same command through each door; what was said of it. */
async function throughEveryDoor(command: string): Promise<Readonly<Record<string, Result>>> {
  let told: ToolResult | undefined;
  const hook = {
    name: 'listens',
    beforeToolUse: () => ({ allowed: true }) as const,
    afterToolUse: (_name: string, _input: unknown, result: ToolResult) => {
      told = result;
    },
  };
  await using sandbox = await createSandbox({ workspace: place.workspace, gate: { hooks: [hook] } });
  const library = await sandbox.run(command);
  const printed = JSON.parse((await cli(place, ['--json', '-c', command], { env: judged })).stdout);
  const { client } = stdio([], judged);
  await client.initialize();
  const { result: sent } = await client.ask('run', { command });
  const mcp = await connectTo({ ...place, outside: place.root, env: { ...place.env, ...judged } }, []);
  const { structuredContent = {} } = await mcp.shell(command);
  await mcp.client.close();
  return {
    ...{ library, '--json': printed, serve: sent as unknown as Result, MCP: structuredContent },
    ...(told === undefined ? {} : { hooks: { ...told } }),
  };
}

describe('a result', () => {
  it.each(['echo out; echo err >&2; exit 3', 'true', 'kill -9 $$', 'sudo reboot'])(
    'has the same keys with the same meaning in every door: %s',
    async (command) => {
      const { library = {}, ...doors } = await throughEveryDoor(command);
      const known = Object.keys(library);
      for (const [door, result] of Object.entries(doors)) {
        const unknown = Object.keys(result).filter((key) => !known.includes(key));
        expect(
          unknown.filter((key) => ONLY_THERE[door]?.includes(key) !== true),
          door,
        ).toEqual([]);
        for (const key of [
          'status',
          'ok',
          'exitCode',
          'signal',
          'stdout',
          'stderr',
          'truncated',
          'outputHeld',
        ])
          if (key in result) expect(result[key] ?? undefined, `${door}: ${key}`).toEqual(library[key]);
        for (const key of ['status', 'exitCode'])
          expect(key in result || library[key] === undefined, `${door}: ${key}`).toBe(true);
      }
    },
  );

  it.each([
    ['serve', CommandResult, ExecutionResult],
    ['serve', SentTurn, TurnResult],
    ['MCP', ShellOutput, ExecutionResult],
  ] as const)('may have no other key in %s either', (door, schema, results) => {
    const known = keysOf(results);
    const unknown = Object.keys(schema.shape).filter((key) => !known.has(key));
    expect(unknown.filter((key) => ONLY_THERE[door]?.includes(key) !== true)).toEqual([]);
  });

  it('has in serve all that the library has, but for what is said once or is a file', () => {
    const sent = Object.keys(SentTurn.shape);
    const missing = [...keysOf(TurnResult)].filter((key) => !sent.includes(key));
    expect(missing.sort()).toEqual(['bytes', 'report', 'spilled']);
  });
});
