// Removes directories in which root mounted something.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** Unmounts what is mounted beneath `place` and removes it; never goes into what cannot be unmounted. */
export function removeTree(place) {
  const mounts = readFileSync('/proc/self/mounts', 'utf8')
    .split('\n')
    .map((line) => (line.split(' ')[1] ?? '').replaceAll('\\040', ' '))
    .filter((path) => path.startsWith(`${place}/`))
    .sort((a, b) => b.length - a.length);
  for (const path of mounts) spawnSync('umount', [path]);
  spawnSync('rm', ['-rf', '--one-file-system', place], { stdio: ['ignore', 'ignore', 'inherit'] });
}
