import { BUILTIN_RUNNERS } from './builtins.ts';
import { env } from './env.ts';
import { devbox, nix, nixShell } from './environments.ts';
import { fd } from './fd.ts';
import { find } from './find.ts';
import { git } from './git.ts';
import { launch } from './launch.ts';
import { LAUNCHERS } from './launchers.ts';
import { make } from './make.ts';
import { hyperfine, perf } from './measuring.ts';
import { busybox, LOADER_NAME, loader, PROC_NAME, procRoot } from './multi-call.ts';
import { npx, packageManager } from './node-tools.ts';
import { doas, su, sudo } from './privilege.ts';
import { PROJECT_TOOLS, projectTool, toolRunner } from './project-tools.ts';
import { container, ssh } from './remote.ts';
import type { Runner } from './runner.ts';
import { FOREIGN_SHELLS, foreignShell, SHELLS, shell } from './shells.ts';
import { entr, flock, gdb, multiplexer, script, UNREADABLE, unreadable, watch } from './terminal.ts';
import { parallel, xargs } from './xargs.ts';

/** Programs that run other commands, one line each. */
const RUNNERS: Readonly<Record<string, Runner>> = {
  env,
  find,
  fd,
  fdfind: fd,
  xargs,
  parallel,
  sudo,
  doas,
  su,
  runuser: su,
  busybox,
  toybox: busybox,
  ssh,
  git,
  nix,
  'nix-shell': nixShell,
  devbox,
  npm: packageManager,
  pnpm: packageManager,
  yarn: packageManager,
  bun: packageManager,
  npx,
  pnpx: npx,
  bunx: npx,
  uvx: toolRunner,
  pipx: toolRunner,
  docker: container,
  podman: container,
  nerdctl: container,
  make,
  gmake: make,
  watch,
  flock,
  script,
  entr,
  gdb,
  hyperfine,
  perf,
  tmux: multiplexer,
  screen: multiplexer,
};

const REGISTRY: ReadonlyMap<string, Runner> = new Map([
  ...Object.entries(LAUNCHERS).map(([name, launcher]): [string, Runner] => [
    name,
    (call) => launch(launcher, call),
  ]),
  ...Object.keys(SHELLS).map((name): [string, Runner] => [name, shell]),
  ...FOREIGN_SHELLS.map((name): [string, Runner] => [name, foreignShell]),
  ...UNREADABLE.map((name): [string, Runner] => [name, unreadable]),
  ...PROJECT_TOOLS.map((name): [string, Runner] => [name, projectTool]),
  ...Object.entries(RUNNERS),
]);

/** The runner that a command name stands for; `inShell`: a shell looks it up, so that builtins count. */
export function runnerOf(name: string, inShell: boolean): Runner | undefined {
  if (inShell && Object.hasOwn(BUILTIN_RUNNERS, name)) return BUILTIN_RUNNERS[name];
  if (PROC_NAME.test(name)) return procRoot;
  const base = name.slice(name.lastIndexOf('/') + 1);
  return REGISTRY.get(base) ?? (LOADER_NAME.test(base) ? loader : undefined);
}
