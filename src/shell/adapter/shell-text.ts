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
