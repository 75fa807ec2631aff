/** Words that do not change what is done, but that an agent adds when it tries again. */
const AROUND = new Set([
  'sudo',
  'env',
  'command',
  'exec',
  'nohup',
  'nice',
  'time',
  'sh',
  'bash',
  'dash',
  '-c',
  '-lc',
  '--',
]);
const MOST_WORDS = 200;

/** The words that make a command what it is: without quotes, directories of programs and spellings of options. */
export function commandWords(command: string): ReadonlySet<string> {
  const words = command
    .slice(0, 4096)
    .split(/[\s;|&()<>{}'"`\\]+/)
    .filter((word) => word !== '' && !AROUND.has(word))
    .slice(0, MOST_WORDS)
    .map((word) => word.replace(/^(?:\.\/)+|^\/(?:usr\/)?(?:local\/)?s?bin\//, ''))
    // -rf, -r -f and -fr
    .flatMap((word) =>
      /^-[A-Za-z]{2,4}$/.test(word) ? [...word.slice(1)].map((letter) => `-${letter}`) : [word],
    )
    .filter((word) => word !== '' && !AROUND.has(word));
  return new Set(words);
}
