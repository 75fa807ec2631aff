import type { Assignment, ParsedScript, Redirection, Word } from 'unbash';
import type { Span } from '../../model/command-line.ts';
import type { Numbers } from '../numbers.ts';
import { type Report, refuse } from '../report.ts';

/** What is known about the text that is being read. */
export interface Reading {
  readonly report: Report;
  readonly numbers: Numbers;
  /** Nodes may not stand deeper than this. */
  readonly maxDepth: number;
  /** Place in the whole source that stands for every place in this text; `undefined`: this is the whole source. */
  readonly place: Span | undefined;
}

/** A place as the parser gives it: offsets into the text that it was given. */
interface Located {
  readonly pos: number;
  readonly end: number;
}

type Code = 'construct' | 'ambiguous' | 'syntax_error' | 'too_deep' | 'too_many_commands';

/** One text, and what is noted about the whole of it while its parts are read. */
export class ShellText {
  readonly source: string;
  readonly reading: Reading;
  /** Spans in which a backslash before a line feed is just text. */
  readonly literals: Span[] = [];
  /** Here-documents so far. */
  documents = 0;
  /** Places behind their closing lines: another body may begin there. */
  readonly documentEnds = new Set<number>();

  constructor(source: string, reading: Reading) {
    this.source = source;
    this.reading = reading;
  }

  /** Where messages say that it stands. */
  span(node: Located): Span {
    return this.reading.place ?? { start: node.pos, end: node.end };
  }

  /** The text as written. */
  of(node: Located): string {
    return this.source.slice(node.pos, node.end);
  }

  refuse(code: Code, message: string, node: Located): void {
    refuse(this.reading.report, code, message, this.span(node));
  }
}

/** What the words of one command need to know about where they stand. */
export interface Context {
  readonly text: ShellText;
  /** In a substitution that bash may get wrong when it prints and reads it again: no here-documents, no arrays. */
  readonly nested: boolean;
  /** Reads the script of a substitution, and lists it with the command. */
  readonly substitute: (script: ParsedScript, nested: boolean) => void;
}

type Piece = Word | Assignment | Redirection;

/**
 * Between two pieces of a command stand blanks and line continuations. Only a redirect that begins with its operator
 * may touch what stands before it.
 */
export function checkNeighbours(nodes: readonly Piece[], text: ShellText): void {
  nodes.forEach((node, index) => {
    const before = nodes[index - 1];
    if (before === undefined) return;
    const gap = text.source.slice(before.end, node.pos);
    const mayTouch = isRedirection(node) && /^[<>&]/.test(text.of(node));
    if (!/^(?:[ \t]|\\\n)*$/.test(gap) || (gap === '' && !mayTouch)) {
      text.refuse('ambiguous', 'Two words touch: put a blank between them.', node);
    }
  });
}

function isRedirection(node: Piece): boolean {
  return node.type !== 'Word' && node.type !== 'Assignment';
}
