import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { expect } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { CLI, type Place } from './support.ts';
import type { WarmPlace } from './warm-support.ts';

interface CallOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** What the call is started by, such as `nice`. */
  readonly by?: readonly string[];
}

/** Starts the program as its users do: by the first lines of dist/cli.cjs, which a shell reads. */
export function begin(
  place: Pick<Place, 'workspace' | 'env'>,
  words: readonly string[],
  { cwd, env, by = [] }: CallOptions = {},
) {
  const [program = '', ...before] = [...by, '/bin/sh', CLI];
  return execa(program, [...before, ...words], {
    cwd: cwd ?? place.workspace,
    env: { ...place.env, ...env },
    extendEnv: false,
    reject: false,
    stripFinalNewline: false,
    stdin: 'ignore',
  });
}

/** The same to its end. */
export async function sr(
  place: Pick<Place, 'workspace' | 'env'>,
  words: readonly string[],
  options: CallOptions = {},
) {
  const { exitCode, stdout, stderr } = await begin(place, words, options);
  return { exitCode, stdout, stderr };
}

/** What `ps` tells, as a program reads it. */
export async function services(place: Pick<Place, 'workspace' | 'env'>) {
  const { stdout, exitCode, stderr } = await sr(place, ['ps', '--json']);
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
  return stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}

/** Records of services on the disk, and `undefined` if there is no place for them, either. */
export const recordsOf = ({ state }: WarmPlace) =>
  existsSync(join(state, 'services')) ? readdirSync(join(state, 'services')) : undefined;

/** The processes whose command line has a word, wherever they are. */
export function processesWith(word: string): readonly number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        // A client, and the program that it starts, have the words of the service, too.
        const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
        return words.includes(word) && !words.some((one) => one.endsWith('cli.cjs'));
      } catch {
        return false;
      }
    });
}

/** Nothing is left of any service: no process, no record, no place of records. */
export async function expectNothingLeft(place: WarmPlace, word: string): Promise<void> {
  await eventually(() => {
    expect(processesWith(word)).toEqual([]);
    expect(recordsOf(place)).toBeUndefined();
  });
}

/** A server that answers each connection with its name; it needs nothing but Node. */
export const serverWords = (port: number, name: string): readonly string[] => [
  process.execPath,
  '-e',
  `require('node:net').createServer((s) => s.end(${JSON.stringify(name)})).listen(${port}, '127.0.0.1')`,
];

/** Reads what such a server says, or prints why not. */
export const clientWords = (port: number): readonly string[] => [
  process.execPath,
  '-e',
  `require('node:net').connect(${port}, '127.0.0.1').on('error', (e) => console.log(e.code)).on('data', (d) => console.log(String(d)))`,
];
