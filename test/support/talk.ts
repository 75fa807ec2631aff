import type { TerminalProcess } from '../../src/index.ts';

/** Reads a terminal and types on it. */
export interface Talk {
  /** Everything that was shown so far. */
  shown(): string;
  type(text: string): void;
  /** Waits until this is shown, after what was waited for before. */
  expect(pattern: RegExp): Promise<RegExpExecArray>;
}

const PATIENCE_MS = 60_000;

/** Takes over a process's terminal. */
export function talkTo({ terminal, result }: TerminalProcess): Talk {
  let shown = '';
  let position = 0;
  let wake = () => {};
  terminal.setEncoding('utf8');
  terminal.on('data', (text: string) => {
    shown += text;
    wake();
  });
  let ended = false;
  terminal.on('end', () => {
    ended = true;
    wake();
  });
  void result.catch(() => {});
  return {
    shown: () => shown,
    type: (text) => void terminal.write(text),
    async expect(pattern) {
      const until = Date.now() + PATIENCE_MS;
      for (;;) {
        const found = pattern.exec(shown.slice(position));
        if (found !== null) {
          position += found.index + found[0].length;
          return found;
        }
        if (ended || Date.now() > until)
          throw new Error(
            `waited for ${pattern} ${ended ? 'to the end' : 'in vain'}; after what was found: ${shown.slice(position)}`,
          );
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, until - Date.now());
          wake = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      }
    },
  };
}
