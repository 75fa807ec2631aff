import { BUILTIN_RUNNERS } from './builtins.ts';
import { env, LAUNCHERS, launch } from './launchers.ts';
import type { Runner } from './runner.ts';
import { SHELLS, shell } from './shells.ts';

/** Programs that run other commands; one line each. */
const RUNNERS: Readonly<Record<string, Runner>> = {
  env,
};

const REGISTRY: ReadonlyMap<string, Runner> = new Map([
  ...Object.entries(LAUNCHERS).map(([name, launcher]): [string, Runner] => [
    name,
    (call) => launch(launcher, call),
  ]),
  ...Object.keys(SHELLS).map((name): [string, Runner] => [name, shell]),
  ...Object.entries(RUNNERS),
]);

/** The runner that a command name stands for; `inShell`: a shell looks it up, so that builtins count. */
export function runnerOf(name: string, inShell: boolean): Runner | undefined {
  if (inShell && Object.hasOwn(BUILTIN_RUNNERS, name)) return BUILTIN_RUNNERS[name];
  return REGISTRY.get(name.slice(name.lastIndexOf('/') + 1));
}
