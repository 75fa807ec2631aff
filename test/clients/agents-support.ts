import { execFileSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { CLI } from '../cli/support.ts';
import { type Answering, startModelServer } from '../support/model-server.ts';
import { ASKS_ABOUT_LOSSES, makeConfiguration } from '../support/unjudged-policy.ts';

/** A call of a tool, in the words of the agent. */
export interface ToolCall {
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
  /** Of a tool of an MCP server. */
  readonly namespace?: string;
}

/** The calls of a model, one after the other; one may depend on what the model saw of those before it. */
export type Script = readonly (ToolCall | ((seen: readonly string[]) => ToolCall))[];

/**
 * The directory with an agent's package, installed from the registry of npm once for this user; `undefined`, with a loud line,
 * where it cannot be had.
 */
export function installedAgent(name: string, version: string): string | undefined {
  const cache = join(tmpdir(), `sandbox-run-agents-${process.getuid?.() ?? 'user'}`);
  const place = join(cache, `${name.replace('/', '-')}-${version}`);
  if (existsSync(place)) return place;
  mkdirSync(cache, { recursive: true, mode: 0o700 });
  const making = mkdtempSync(join(cache, 'making-'));
  try {
    writeFileSync(join(making, 'package.json'), '{"private":true}');
    const words = ['install', '--no-audit', '--no-fund', '--loglevel=error', `${name}@${version}`];
    execFileSync('npm', words, { cwd: making, stdio: ['ignore', 'ignore', 'pipe'], timeout: 280_000 });
    renameSync(making, place);
    return place;
  } catch (error) {
    // Another process was faster.
    if (existsSync(place)) return place;
    const why = String(error).split('\n').slice(0, 3).join(' ');
    process.stderr.write(
      `\n*** NOT TESTED with the real ${name}@${version}: it cannot be installed (${why}) ***\n\n`,
    );
    return undefined;
  } finally {
    rmSync(making, { recursive: true, force: true });
  }
}

/** Where an agent runs: a home, a project under git, and a directory that no command may touch. */
export interface AgentWorld {
  readonly root: string;
  readonly home: string;
  readonly project: string;
  /** A directory beside the project. */
  readonly outside: string;
  readonly env: Readonly<Record<string, string>>;
  install(...args: readonly string[]): Promise<string>;
  dispose(): void;
}

/** `tmp`: an agent's directory for temporary files; Codex wants its home not to be beneath it. */
export function makeAgentWorld(): AgentWorld {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'sandbox-run-agent-test-')));
  const [home, project, outside, tmp] = ['home', 'project', 'outside', 'tmp'].map((name) =>
    join(root, name),
  ) as [string, string, string, string];
  for (const directory of [home, project, outside, tmp]) mkdirSync(directory);
  // For what becomes of a question.
  makeConfiguration(join(home, '.config'), ASKS_ABOUT_LOSSES);
  writeFileSync(join(outside, 'secret'), 'not for the model\n');
  const env = {
    PATH: process.env.PATH ?? '',
    HOME: home,
    TMPDIR: tmp,
    TERM: 'xterm',
    LANG: 'C.UTF-8',
    GIT_CONFIG_GLOBAL: '/dev/null',
    NO_COLOR: '1',
  };
  const git = (...words: readonly string[]) =>
    execFileSync('git', ['-C', project, ...words], { env, stdio: 'ignore' });
  git('init', '-q');
  git('-c', 'user.name=a', '-c', 'user.email=a@example.com', 'commit', '-q', '--allow-empty', '-m', 'first');
  return {
    ...{ root, home, project, outside, env },
    install: async (...args) => {
      const { stdout } = await execa(process.execPath, [CLI, 'install', ...args], {
        cwd: project,
        env,
        extendEnv: false,
      });
      return stdout;
    },
    dispose: () => rmSync(root, { recursive: true, force: true }),
  };
}

/** A program of ours that is somewhere else: what a hook meets once the package is gone. */
export function copiedCli(root: string): string {
  const place = join(root, 'package');
  cpSync(join(CLI, '..'), join(place, 'dist'), { recursive: true });
  return join(place, 'dist/cli.cjs');
}

/** One run of an agent against a model that calls these tools, and what the model saw of each call. */
export async function converse(
  script: Script,
  {
    answering,
    run,
    requests,
  }: {
    /** Makes a server's answer to each request: the next call, or the end. */
    readonly answering: (next: (seen: readonly string[]) => ToolCall | undefined) => Answering;
    readonly run: (url: string) => Promise<unknown>;
    /** Gets the text of each request. */
    readonly requests?: string[] | undefined;
  },
): Promise<readonly string[]> {
  let last: readonly string[] = [];
  let at = 0;
  const answer = answering((seen) => {
    last = seen;
    const step = script[at];
    at += 1;
    return typeof step === 'function' ? step(seen) : step;
  });
  const server = await startModelServer((response, request) => {
    requests?.push(JSON.stringify(request.body));
    return answer(response, request);
  });
  try {
    await run(server.url);
    return last;
  } finally {
    await server.close();
  }
}

/** The parts of an installed hook's line that a test may put something else in place of while the agent runs. */
export interface HookParts {
  /** What ends the rest after its time, what is started, and the program of this package. */
  readonly names: readonly ['timeout', 'start', 'program'];
  /** Puts a program with this text in place of a part; `undefined`: there is none. All other parts are as they were installed. */
  replace(name: HookParts['names'][number], text: string | undefined): void;
}

/** Has the hooks in a file of settings lead to parts that can be replaced. */
export function takeApart({ root }: AgentWorld, settings: string): HookParts {
  const places = join(root, 'parts');
  mkdirSync(places);
  const names = ['timeout', 'start', 'program'] as const;
  const text = readFileSync(settings, 'utf8');
  const line = /'([^']*\/timeout)' '-s' 'KILL' '110' '([^']*)'((?: '[^']*')*?) '([^']*cli\.cjs)'/g;
  const [, timeout = '', start = '', between = '', program = ''] = line.exec(text) ?? [];
  const installed = { timeout, start, program };
  const at = (name: (typeof names)[number]) => join(places, name === 'program' ? 'cli.cjs' : name);
  const led = `'${at('timeout')}' '-s' 'KILL' '110' '${at('start')}'${between} '${at('program')}'`;
  writeFileSync(
    settings,
    text.replaceAll(line, () => led),
  );
  const replace: HookParts['replace'] = (replaced, by) => {
    for (const name of names) {
      rmSync(at(name), { force: true });
      if (name !== replaced) symlinkSync(installed[name], at(name));
      else if (by !== undefined) writeFileSync(at(name), by, { mode: 0o755 });
    }
  };
  return { names, replace };
}

/** For {@link HookParts.replace} of `timeout`: the rest takes too long, by a second in place of 110. */
export const TOO_LONG = '#!/bin/sh\nexec timeout -s KILL 1 sleep 60\n';

/** For {@link HookParts.replace} of `program`: the hook is asked in the words of Claude Code. */
export const AS_CLAUDE_CODE = `process.argv[process.argv.indexOf('hook') + 1] = 'claude-code';
require(${JSON.stringify(CLI)});
`;

/** A write that the policy does not see, and that only a sandbox refuses. */
export const writeTo = (path: string) => `python3 -c 'open("${path}", "w").write("x")'`;
