import { forEachChild, type SyntaxNode as ParsedNode, type ParsedScript } from 'unbash';
import type { ShellText } from './shell-text.ts';

/** Kinds of nodes that are read; everything else is refused by name. */
const KNOWN = new Set<ParsedNode['type']>([
  ...(['Script', 'Statement', 'CompoundList', 'CaseItem', 'Elif', 'Command', 'Pipeline', 'AndOr'] as const),
  ...([
    'Time',
    'Negation',
    'Redirected',
    'If',
    'For',
    'ArithmeticFor',
    'While',
    'Function',
    'Subshell',
  ] as const),
  ...(['BraceGroup', 'Case', 'TestCommand', 'ArithmeticCommand', 'Word', 'Literal', 'Glob'] as const),
  ...(['SingleQuoted', 'DoubleQuoted', 'AnsiCQuoted', 'SimpleExpansion', 'ParameterExpansion'] as const),
  ...(['CommandExpansion', 'ArithmeticExpansion', 'ProcessSubstitution', 'BraceExpansion'] as const),
  ...(['Assignment', 'ArrayValue', 'Redirect', 'HereString', 'HereDoc', 'FileDescriptor'] as const),
  ...([
    'HereDocDelimiter',
    'HereDocBody',
    'ArithmeticBinary',
    'ArithmeticUnary',
    'ArithmeticTernary',
  ] as const),
  ...(['ArithmeticGroup', 'ArithmeticWord', 'TestUnary', 'TestBinary', 'TestLogical', 'TestNot'] as const),
  ...(['TestGroup', 'Default', 'Remove', 'Replace', 'Slice', 'CaseModification', 'Transform'] as const),
]);

/** What a kind of node is called where it is refused. */
const NAMES: Partial<Record<ParsedNode['type'], string>> = {
  Coproc: 'A coprocess',
  Select: 'A select loop',
  ExtendedGlob: 'An extended glob',
  LocaleString: '$"…"',
  FileDescriptorVariable: 'A redirect to {variable}',
  ArithmeticCommandExpansion: 'A substitution inside arithmetic',
  Names: 'An expansion to the names of variables',
};

export const TOO_DEEP = 'The command is nested too deeply: split it into several.';

/** Looks at every node once: kinds, depth, number, the errors of nested scripts, and that places fit the source. */
export function sweep(script: ParsedScript, text: ShellText): void {
  new Sweep(text).node(script, 0);
}

class Sweep {
  private readonly text: ShellText;
  private statements = 0;

  constructor(text: ShellText) {
    this.text = text;
  }

  node(node: ParsedNode, depth: number): void {
    if (this.text.reading.report.problem !== undefined) return;
    if (depth > this.text.reading.maxDepth) {
      this.text.refuse('too_deep', TOO_DEEP, node);
      return;
    }
    if (!KNOWN.has(node.type)) {
      this.text.refuse(
        'construct',
        `${NAMES[node.type] ?? `${node.type} syntax`} is not understood here.`,
        node,
      );
      return;
    }
    if (node.type === 'Script') this.script(node);
    if (node.type === 'Command' || node.type === 'Statement') {
      this.statements += 1;
      if (this.statements > this.text.reading.report.maxCommands * 3) {
        this.text.refuse('too_many_commands', 'There are too many commands in one string: split it.', node);
        return;
      }
    }
    if (
      (node.type === 'CommandExpansion' || node.type === 'ProcessSubstitution') &&
      node.script === undefined
    ) {
      this.text.refuse('syntax_error', 'A substitution could not be read.', node);
    }
    if ('text' in node && node.text !== this.text.of(node)) {
      this.text.refuse(
        'ambiguous',
        'A part of the command is not what it looks like: write it more plainly.',
        node,
      );
      return;
    }
    forEachChild(node, (child) => this.node(child, depth + 1));
  }

  private script(script: ParsedScript): void {
    const error = script.errors?.[0];
    if (error !== undefined) {
      const at = { pos: error.pos, end: error.pos + 1 };
      this.text.refuse('syntax_error', `This is not valid shell syntax: ${error.message}.`, at);
    }
    if (script.source !== undefined) {
      this.text.refuse('construct', 'Backslashes inside backticks are not understood: use $(…).', script);
    }
  }
}
