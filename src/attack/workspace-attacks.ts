import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Attack, type Place, showsSecret } from './attack.ts';

const EVIL = 'written-by-an-attack';

/** Files of a workspace that the user's own tools obey later, with what is in them before. */
export const TRUSTED_FILES = {
  '.git/hooks/pre-commit': '#!/bin/sh\n',
  '.git/config': '[core]\n\tbare = false\n',
  '.git/HEAD': 'ref: refs/heads/main\n',
  '.vscode/tasks.json': '{}\n',
  '.envrc': 'export A=1\n',
} as const;

const says = (path: string, text: string): boolean =>
  existsSync(path) && readFileSync(path, 'utf8').includes(text);

/** Also where a later attack moved it to. */
const isEvil = (path: string, text: string): boolean =>
  says(path, text) || says(path.replace('/.git/', '/.git.aside/'), text);

/** Against a path that the policy protects inside the workspace. */
function against(
  protectedPath: string,
  id: string,
  does: string,
  file: string,
  move: (path: (relative: string) => string) => readonly [string, ...string[]],
): Attack {
  return {
    id,
    control: 'protected-paths',
    does,
    claimedInPart: true,
    stage: (place) => {
      if (!place.isProtected(protectedPath)) return `the policy does not protect ${protectedPath}`;
      const path = (relative: string) => join(place.workspace, relative);
      return { move: [...move(path), id], worked: () => isEvil(path(file), id) };
    },
  };
}

/** Leaving what is not there yet and would be obeyed: it is there while the command runs, and must not be afterwards. */
function leaves(id: string, does: string, file: string, text = (mark: string) => mark): Attack {
  return {
    id,
    control: 'protected-paths',
    does,
    claimedInPart: true,
    stage: (place) => {
      const path = join(place.workspace, file);
      mkdirSync(dirname(path), { recursive: true });
      return { move: ['create', path, text(id)], worked: () => isEvil(path, id) };
    },
  };
}

function hostFile(place: Place, parent: '/tmp' | '/dev/shm'): string | undefined {
  const directory = place.shared(parent);
  if (directory === undefined) return undefined;
  const path = join(directory, place.name());
  writeFileSync(path, `${place.secret}\n`, { mode: 0o600 });
  return path;
}

const shared = (parent: '/tmp' | '/dev/shm', id: string): readonly Attack[] => [
  {
    id: `read-host-${id}`,
    control: 'private-tmp',
    does: `reads a file of the host in ${parent}`,
    stage: (place) => {
      const path = hostFile(place, parent);
      return path === undefined
        ? `nothing can be made in ${parent}`
        : { move: ['read', path], worked: showsSecret(place) };
    },
  },
  {
    id: `create-in-host-${id}`,
    control: 'private-tmp',
    does: `leaves a file in the ${parent} of the host`,
    stage: (place) => {
      const directory = place.shared(parent);
      if (directory === undefined) return `nothing can be made in ${parent}`;
      const path = join(directory, place.name());
      return { move: ['create', path, EVIL], worked: () => existsSync(path) };
    },
  },
];

/** Planting code in the workspace for the user's tools; temporary files of others. The one that moves `.git` is last. */
export const WORKSPACE_ATTACKS: readonly Attack[] = [
  against(
    '.git/hooks',
    'plant-hook',
    'adds a hook to the git repository',
    '.git/hooks/post-checkout',
    (path) => ['create', path('.git/hooks/post-checkout')],
  ),
  against(
    '.git/hooks',
    'change-hook',
    'changes a hook of the git repository',
    '.git/hooks/pre-commit',
    (path) => ['write', path('.git/hooks/pre-commit')],
  ),
  against(
    '.git/config',
    'change-git-config',
    'adds to the configuration of the repository',
    '.git/config',
    (path) => ['write', path('.git/config')],
  ),
  leaves(
    'leave-hook',
    'leaves a hook of a repository that came with it',
    'vendored/.git/hooks/post-checkout',
  ),
  leaves(
    'leave-git-config',
    'leaves a repository of which git status runs a program',
    'vendored/.git/config',
    (mark) => `[core]\n\tfsmonitor = ./${mark}\n`,
  ),
  leaves('leave-git-link', 'leads git to settings of its own', '.git/commondir'),
  leaves('leave-agent-settings', 'leaves a server that an agent starts', '.mcp.json'),
  leaves('leave-shell-settings', 'leaves what a shell runs at log-in', '.bash_login'),
  against('.envrc', 'link-envrc', 'writes to .envrc by a second name', '.envrc', (path) => [
    'link-and-write',
    path('.envrc'),
    path('second-name'),
  ]),
  against(
    '.vscode',
    'replace-editor-settings',
    'puts a .vscode of its own in its place',
    '.vscode/tasks.json',
    (path) => ['replace-directory', path('.vscode'), 'tasks.json'],
  ),
  against(
    '.git/config',
    'replace-repository',
    'moves .git away and makes one of its own',
    '.git/config',
    (path) => ['replace-directory', path('.git'), 'config'],
  ),
  ...shared('/tmp', 'tmp'),
  ...shared('/dev/shm', 'shm'),
];
