/** What a line editor tells. */
interface LineEditorEvents {
  readonly echo: (text: string) => void;
  /** A line with an escape in it is told as that one character. */
  readonly onLine: (line: string) => void;
  /** Ctrl-D or Ctrl-\. */
  readonly onEnd: () => void;
  /** Ctrl-C. */
  readonly onInterrupt: () => void;
}

/** A line of short words, typed on a terminal that neither echoes nor edits. */
interface LineEditor {
  /** `isDeaf` is asked for each key: a line may begin a time in which nothing is heard. Ctrl-C and its kin always are. */
  type(text: string, isDeaf: () => boolean): void;
}

const LONGEST = 20;

/** Makes one. */
export function createLineEditor({ echo, onLine, onEnd, onInterrupt }: LineEditorEvents): LineEditor {
  let line = '';
  /**
   * An escape came: an arrow key, a paste, or what the terminal itself answers to whoever writes the right thing to it.
   * None of it is an answer of a person, up to the end of the line.
   */
  let strange = false;
  function key(character: string): void {
    if (character === '\r' || character === '\n') {
      const whole = strange ? '\x1b' : line;
      line = '';
      strange = false;
      echo('\n');
      onLine(whole);
    } else if (character === '\x1b' || strange) {
      strange = true;
    } else if (character === '\x7f' || character === '\b') {
      if (line === '') return;
      line = line.slice(0, -1);
      echo('\b \b');
    } else if (character === '\x15') {
      echo('\b \b'.repeat(line.length));
      line = '';
    } else if (/^[ -~]$/.test(character) && line.length < LONGEST) {
      line += character;
      echo(character);
    }
  }
  return {
    type(text, isDeaf) {
      for (const character of text) {
        if (character === '\x03') onInterrupt();
        else if (character === '\x04' || character === '\x1c') onEnd();
        else if (!isDeaf()) key(character);
      }
    },
  };
}
