// The stopwatch in C, compiled into a temporary directory and kept running.
import { execFileSync } from 'node:child_process';
import { closeSync, constants, openSync, writeSync } from 'node:fs';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const SOURCE = fileURLToPath(new URL('./posix-spawn-timer.c', import.meta.url));

/**
 * `measure(count, argv)` runs a program `count` times from C and resolves to the durations in milliseconds.
 *
 * The stopwatch is no child of this process: as long as libuv has one, every process that ends wakes this thread by a
 * signal, whoever started it, and that would be charged to each run.
 */
export function startStopwatch(directory, cwd) {
  const path = (name) => join(directory, name);
  execFileSync(process.env.CC ?? 'gcc', ['-O2', '-o', path('posix-spawn-timer'), SOURCE]);
  execFileSync('mkfifo', [path('questions'), path('answers')]);
  const script = '"$0" 3<>"$1" 4<>"$2" < /dev/null > /dev/null &';
  const names = ['posix-spawn-timer', 'questions', 'answers'].map(path);
  execFileSync('/bin/sh', ['-c', script, ...names], { cwd, stdio: ['ignore', 'ignore', 'inherit'] });
  // Not a Socket: one that may read would take its own question back out of the pipe.
  const questions = openSync(path('questions'), constants.O_RDWR);
  const answers = new Socket({ fd: openSync(path('answers'), constants.O_RDWR | constants.O_NONBLOCK) });
  const lines = createInterface({ input: answers })[Symbol.asyncIterator]();
  return {
    async measure(count, argv) {
      writeSync(questions, `${[count, ...argv].join('\t')}\n`);
      const { value } = await lines.next();
      const durations = value
        .trim()
        .split(' ')
        .map((text) => Number(text) / 1e6);
      if (durations.some((duration) => duration < 0)) throw new Error(`${argv.join(' ')} failed`);
      return durations;
    },
    stop() {
      writeSync(questions, '0\n');
      closeSync(questions);
      answers.destroy();
    },
  };
}
