import { readFileSync } from 'node:fs';

/**
 * Where something is mounted beneath a directory, absolute, each byte of the path a character. From proc_pid_mountinfo(5): the
 * fifth field, in which `\\ooo` stands for a byte.
 */
export function mountPointsWithin(directory: string): readonly string[] {
  return readFileSync('/proc/self/mountinfo', 'latin1')
    .split('\n')
    .map((line) => line.split(' ')[4] ?? '')
    .map((at) =>
      at.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8))),
    )
    .filter((at) => at.startsWith(`${directory}/`));
}
