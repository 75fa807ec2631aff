import type { ParsedScript } from 'unbash';
import type { ShellText } from './shell-text.ts';

/** What the words of one command need to know about where they stand. */
export interface Context {
  readonly text: ShellText;
  /** In a substitution that bash may get wrong when it prints and reads it again: no here-documents, no arrays. */
  readonly nested: boolean;
  /** Reads the script of a substitution, and lists it with the command. */
  readonly substitute: (script: ParsedScript, nested: boolean) => void;
}

/** What stands around a part of a word. */
export type Quoting = 'none' | 'double' | 'document';
