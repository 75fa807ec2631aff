import type {
  ArithmeticExpression,
  Command,
  CommandNode,
  CompoundList,
  HereDoc,
  ParameterExpansionPart,
  Assignment as ParsedAssignment,
  SyntaxNode as ParsedNode,
  WordPart as ParsedPart,
  PipelineNode as ParsedPipeline,
  ParsedScript,
  Word as ParsedWord,
  Redirection,
  Statement,
  TestExpression,
} from 'unbash';
import { forEachChild, parse } from 'unbash';
import type { Assignment, Redirect, Span, Word, WordPart } from '../model/command-line.ts';
import { assertNever } from '../util/assert-never.ts';
import {
  type Numbers,
  needNumber,
  noteArithmeticAssignment,
  noteAssignment,
  noteImplicit,
} from './numbers.ts';
import { type Report, refuse } from './report.ts';
import type { SimpleNode, SyntaxNode } from './syntax.ts';
import {
  ansiText,
  gluingContinuation,
  isPlainDelimiter,
  isPlainOperand,
  isPlainQuoted,
  isPlainUnquoted,
  isVariableName,
  mayExpandBraces,
  nestingOf,
  unescapeQuoted,
  unescapeUnquoted,
} from './text-checks.ts';
import { literalWord, mergeLiterals, tildeParts } from './words.ts';

/*
 * The one file that knows the parser. It accepts a listed set of node kinds and checks, for each, that the source text
 * is what the parser's answer says it is: a parser that is wrong about a text ends in a refusal. The rules were found
 * by comparing the parser with bash; test/support/shell-differential.ts does that again.
 */

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

const TOO_DEEP = 'The command is nested too deeply: split it into several.';
const MAX_DOCUMENTS = 50;

const PARAMETER = /^(?:[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[?#@*$!-])$/;
const ARITHMETIC_WORD =
  /^(?:[0-9]+|0[xX][0-9a-fA-F]+|\$?[A-Za-z_][A-Za-z0-9_]*|\$\{[A-Za-z_][A-Za-z0-9_]*\}|\$[#?])$/;
const NUMERIC_COMPARISONS = new Set(['-eq', '-ne', '-lt', '-le', '-gt', '-ge']);
const ASSIGNING = new Set(['=', '+=', '-=', '*=', '/=', '%=', '<<=', '>>=', '&=', '^=', '|=', '**=']);

/** What is known about the text that is being read. */
export interface Reading {
  readonly report: Report;
  readonly numbers: Numbers;
  /** Nodes may not stand deeper than this. */
  readonly maxDepth: number;
  /** Place in the whole source that stands for every place in this text; `undefined`: this is the whole source. */
  readonly place: Span | undefined;
}

/** Reads shell text; problems go to the report, and the tree is then only good for messages. */
export function readShell(source: string, reading: Reading): SyntaxNode {
  return new Adapter(source, reading).read();
}

type Quoting = 'none' | 'double' | 'document';

class Adapter {
  private readonly source: string;
  private readonly reading: Reading;
  /** Spans in which a backslash before a line feed is just text. */
  private readonly literals: Span[] = [];
  private statements = 0;
  private documents = 0;
  private readonly documentEnds = new Set<number>();

  constructor(source: string, reading: Reading) {
    this.source = source;
    this.reading = reading;
  }

  read(): SyntaxNode {
    if (nestingOf(this.source) > this.reading.maxDepth || this.source.split('coproc').length > 20) {
      // The parser's time grows with the square of the depth where brackets are not closed.
      this.refuse('too_deep', TOO_DEEP, { pos: 0, end: this.source.length });
      return { kind: 'list', items: [] };
    }
    const script = parse(this.source);
    this.sweep(script, 0);
    if (this.reading.report.problem !== undefined) return this.recover(script);
    const tree = this.script(script, false);
    const isLiteral = (at: number) => this.literals.some((span) => span.start <= at && at < span.end);
    const glued = gluingContinuation(this.source, isLiteral);
    if (glued !== undefined) {
      const message =
        'A line continuation stands inside a word or operator: put a blank before the backslash.';
      this.refuse('ambiguous', message, { pos: glued, end: glued + 2 });
    }
    return tree;
  }

  /** For messages only: the tree as far as it goes, whatever it is worth. */
  private recover(script: ParsedScript): SyntaxNode {
    const code = this.reading.report.problem?.code;
    if (code === 'too_deep' || code === 'too_many_commands') return { kind: 'list', items: [] };
    try {
      return this.script(script, false);
    } catch (error) {
      if (error instanceof TypeError || error instanceof RangeError) return { kind: 'list', items: [] };
      throw error;
    }
  }

  private span(node: { readonly pos: number; readonly end: number }): Span {
    return this.reading.place ?? { start: node.pos, end: node.end };
  }

  private refuse(
    code: 'construct' | 'ambiguous' | 'syntax_error' | 'too_deep' | 'too_many_commands',
    message: string,
    node: { readonly pos: number; readonly end: number },
  ): void {
    refuse(this.reading.report, code, message, this.span(node));
  }

  /** Looks at every node once: kinds, depth, number, the errors of nested scripts, and that places fit the source. */
  private sweep(node: ParsedNode, depth: number): void {
    if (this.reading.report.problem !== undefined) return;
    if (depth > this.reading.maxDepth) {
      this.refuse('too_deep', TOO_DEEP, node);
      return;
    }
    if (!KNOWN.has(node.type)) {
      this.refuse('construct', `${NAMES[node.type] ?? `${node.type} syntax`} is not understood here.`, node);
      return;
    }
    if (node.type === 'Script') this.sweepScript(node);
    if (node.type === 'Command' || node.type === 'Statement') {
      this.statements += 1;
      if (this.statements > this.reading.report.maxCommands * 3) {
        this.refuse('too_many_commands', 'There are too many commands in one string: split it.', node);
        return;
      }
    }
    if (
      (node.type === 'CommandExpansion' || node.type === 'ProcessSubstitution') &&
      node.script === undefined
    ) {
      this.refuse('syntax_error', 'A substitution could not be read.', node);
    }
    if ('text' in node && node.text !== this.source.slice(node.pos, node.end)) {
      this.refuse(
        'ambiguous',
        'A part of the command is not what it looks like: write it more plainly.',
        node,
      );
      return;
    }
    forEachChild(node, (child) => this.sweep(child, depth + 1));
  }

  private sweepScript(script: ParsedScript): void {
    const error = script.errors?.[0];
    if (error !== undefined) {
      const at = { pos: error.pos, end: error.pos + 1 };
      this.refuse('syntax_error', `This is not valid shell syntax: ${error.message}.`, at);
    }
    if (script.source !== undefined) {
      this.refuse('construct', 'Backslashes inside backticks are not understood: use $(…).', script);
    }
  }

  private script(script: ParsedScript, nested: boolean): SyntaxNode {
    return this.statementsOf(script.commands, nested);
  }

  private list(list: CompoundList, nested: boolean): SyntaxNode {
    return this.statementsOf(list.commands, nested);
  }

  private statementsOf(statements: readonly Statement[], nested: boolean): SyntaxNode {
    const items = statements.map((statement) => ({
      node: this.statement(statement, nested),
      background: statement.background === true,
    }));
    return { kind: 'list', items };
  }

  private statement(statement: Statement, nested: boolean): SyntaxNode {
    const { command } = statement;
    if (command.type !== 'AndOr') return this.pipeline(command, nested);
    const nodes = command.commands.map((child) => this.pipeline(child, nested));
    return { kind: 'and-or', nodes, operators: command.operators };
  }

  private pipeline(node: ParsedPipeline, nested: boolean): SyntaxNode {
    if (node.type !== 'Pipeline') return this.command(node, nested);
    const negations = node.prefixes.filter((prefix) => prefix.type === 'Negation').length;
    const nodes = node.commands.map((child) => this.command(child, nested));
    return { kind: 'pipeline', nodes, negated: negations % 2 === 1 };
  }

  private command(node: CommandNode, nested: boolean): SyntaxNode {
    switch (node.type) {
      case 'Command':
        return this.simple(node, nested);
      case 'Redirected': {
        const substitutions: SyntaxNode[] = [];
        const body = this.command(node.command, nested);
        this.checkNeighbours(node.redirects);
        const redirects = node.redirects.map((redirect) => this.redirect(redirect, nested, substitutions));
        return { kind: 'redirected', body, redirects, substitutions, span: this.span(node) };
      }
      case 'Subshell':
        if (this.source.startsWith('((', node.pos)) {
          this.refuse(
            'ambiguous',
            '(( that does not begin arithmetic is ambiguous: put a blank between.',
            node,
          );
        }
        return { kind: 'group', subshell: true, body: this.list(node.body, nested) };
      case 'BraceGroup':
        return { kind: 'group', subshell: false, body: this.list(node.body, nested) };
      case 'If':
        return {
          kind: 'if',
          branches: [node, ...node.elif].map((branch) => ({
            condition: this.list(branch.clause, nested),
            body: this.list(branch.then, nested),
          })),
          otherwise: node.else && this.list(node.else, nested),
        };
      case 'While':
        return {
          kind: 'loop',
          condition: this.list(node.clause, nested),
          until: node.kind === 'until',
          body: this.list(node.body, nested),
          substitutions: [],
        };
      case 'For': {
        const substitutions: SyntaxNode[] = [];
        const words = (node.wordlist ?? []).map((word) => this.word(word, nested, substitutions));
        this.checkNeighbours(node.wordlist ?? []);
        const name = this.word(node.name, nested, substitutions).value;
        if (name === undefined || !isVariableName(name)) {
          this.refuse('construct', 'The variable of a for loop must be a plain name.', node.name);
        } else {
          this.reading.numbers.implicit.add(name);
          if (words.length === 0) noteAssignment(this.reading.numbers, name, undefined);
          for (const word of words) noteAssignment(this.reading.numbers, name, word);
        }
        return {
          kind: 'loop',
          condition: undefined,
          until: false,
          body: this.list(node.body, nested),
          substitutions,
        };
      }
      case 'ArithmeticFor':
        for (const part of [node.initialize, node.test, node.update]) if (part) this.arithmetic(part);
        return {
          kind: 'loop',
          condition: undefined,
          until: false,
          body: this.list(node.body, nested),
          substitutions: [],
        };
      case 'Case': {
        const substitutions: SyntaxNode[] = [];
        this.word(node.word, nested, substitutions);
        for (const item of node.items)
          for (const word of item.pattern) this.word(word, nested, substitutions);
        return {
          kind: 'case',
          bodies: node.items.map((item) => this.list(item.body, nested)),
          substitutions,
        };
      }
      case 'Function':
        return this.define(node);
      case 'TestCommand': {
        const substitutions: SyntaxNode[] = [];
        this.test(node.expression, nested, substitutions);
        return { kind: 'expression', substitutions };
      }
      case 'ArithmeticCommand':
        if (node.expression === undefined) this.refuse('construct', '(( )) without an expression.', node);
        else this.arithmetic(node.expression);
        return { kind: 'expression', substitutions: [] };
      case 'Select':
      case 'Coproc':
        // The sweep has refused it; what it runs is read for the message.
        return node.body.type === 'CompoundList'
          ? this.list(node.body, nested)
          : this.command(node.body, nested);
      default:
        return assertNever(node);
    }
  }

  private define(node: Extract<CommandNode, { readonly type: 'Function' }>): SyntaxNode {
    const { body } = node;
    if (body.type !== 'BraceGroup' && body.type !== 'Subshell') {
      this.refuse('construct', 'A function is understood only with a body in { … } or ( … ).', node);
    }
    const read = body.type === 'CompoundList' ? this.list(body, false) : this.command(body, false);
    return { kind: 'function', name: node.name.text, body: read, span: this.span(node) };
  }

  private simple(node: Command, nested: boolean): SimpleNode {
    const substitutions: SyntaxNode[] = [];
    const words: Word[] = [];
    const assignments: Assignment[] = [];
    const redirects: Redirect[] = [];
    let input: string | undefined;
    const all = [...node.prefix, ...(node.name === undefined ? [] : [node.name]), ...node.suffix];
    this.checkNeighbours(all);
    for (const item of all) {
      if (item.type === 'Word') words.push(this.word(item, nested, substitutions));
      else if (item.type !== 'Assignment') {
        redirects.push(this.redirect(item, nested, substitutions));
        if (item.type === 'HereDoc' && item.delimiter?.quoted === true) input = this.inputOf(item);
        else if (!leavesInput(item)) input = undefined;
      } else if (words.length === 0) assignments.push(this.assignment(item, nested, substitutions));
      else words.push(this.assignmentWord(item, nested, substitutions));
    }
    return { kind: 'simple', words, assignments, redirects, input, substitutions, span: this.span(node) };
  }

  private inputOf(document: HereDoc): string | undefined {
    const descriptor = document.descriptor;
    if (descriptor !== undefined && !(descriptor.type === 'FileDescriptor' && descriptor.value === 0))
      return undefined;
    return document.operator === '<<-' ? document.body.text.replace(/^\t+/gm, '') : document.body.text;
  }

  /**
   * Between two pieces of a command stand blanks and line continuations. Only a redirect that begins with its operator
   * may touch what stands before it.
   */
  private checkNeighbours(nodes: readonly (ParsedWord | ParsedAssignment | Redirection)[]): void {
    nodes.forEach((node, index) => {
      const before = nodes[index - 1];
      if (before === undefined) return;
      const gap = this.source.slice(before.end, node.pos);
      const mayTouch = isRedirection(node) && /^[<>&]/.test(this.textOf(node));
      if (!/^(?:[ \t]|\\\n)*$/.test(gap) || (gap === '' && !mayTouch)) {
        this.refuse('ambiguous', 'Two words touch: put a blank between them.', node);
      }
    });
  }

  /** `NAME=value` before a command. */
  private assignment(node: ParsedAssignment, nested: boolean, substitutions: SyntaxNode[]): Assignment {
    const value = this.assigned(node, nested, substitutions);
    return { name: node.name, append: node.append === true, value, span: this.span(node) };
  }

  /** `NAME=value` behind a builtin that declares: one word to everyone else. */
  private assignmentWord(node: ParsedAssignment, nested: boolean, substitutions: SyntaxNode[]): Word {
    if (node.value.type === 'ArrayValue') {
      this.refuse('construct', 'Declaring an array is not understood.', node);
    }
    const value = this.assigned(node, nested, substitutions);
    const prefix = `${node.name}${node.append === true ? '+=' : '='}`;
    return {
      value: value.value === undefined ? undefined : prefix + value.value,
      parts: mergeLiterals([{ kind: 'literal', text: prefix }, ...value.parts]),
      source: node.text,
      span: this.span(node),
    };
  }

  private assigned(node: ParsedAssignment, nested: boolean, substitutions: SyntaxNode[]): Word {
    const { name, value } = node;
    const prefix = `${name}${node.append === true ? '+=' : '='}`;
    if (node.index !== undefined || !isVariableName(name)) {
      this.refuse(
        'construct',
        'An assignment to an array element is not understood: use a plain variable.',
        node,
      );
    } else if (this.source.slice(node.pos, value.pos) !== prefix) {
      this.refuse('ambiguous', 'An assignment is not what it looks like: write it more plainly.', node);
    }
    if (value.type === 'ArrayValue') return this.array(node, nested, substitutions);
    const word = this.word(value, nested, substitutions, true);
    noteAssignment(this.reading.numbers, name, word);
    return word;
  }

  private array(node: ParsedAssignment, nested: boolean, substitutions: SyntaxNode[]): Word {
    const { value } = node;
    if (value.type !== 'ArrayValue') return this.word(value, nested, substitutions);
    this.reading.numbers.arrays.add(node.name);
    if (nested) this.refuse('construct', 'An array inside a substitution is not understood.', node);
    const closed = this.source.startsWith('(', value.pos) && this.source[value.end - 1] === ')';
    if (!closed || node.end !== value.end || /[^\s;&|)]/.test(this.source[value.end] ?? ' ')) {
      this.refuse('ambiguous', 'Text touches the closing bracket of an array: put a blank between.', node);
    }
    this.checkNeighbours(value.elements);
    const words = value.elements.map((element) => this.word(element, nested, substitutions));
    for (const word of words) {
      if (/^\[/.test(word.source)) {
        this.refuse('construct', 'An array value with [index]= is not understood.', node);
      }
    }
    return {
      value: undefined,
      parts: words.flatMap((word) => word.parts),
      source: this.textOf(value),
      span: this.span(value),
    };
  }

  private textOf(node: { readonly pos: number; readonly end: number }): string {
    return this.source.slice(node.pos, node.end);
  }

  private redirect(node: Redirection, nested: boolean, substitutions: SyntaxNode[]): Redirect {
    const descriptor = node.descriptor?.type === 'FileDescriptor' ? node.descriptor.value : undefined;
    if (descriptor !== undefined && descriptor > 255) {
      this.refuse('construct', 'A descriptor above 255 is not understood.', node);
    }
    if (node.descriptor !== undefined && !/^\d{1,3}$/.test(this.textOf(node.descriptor))) {
      this.refuse('construct', 'A redirect to {variable} is not understood.', node);
    }
    const { operator } = node;
    const target =
      node.type === 'HereDoc'
        ? this.document(node, nested, substitutions)
        : this.target(node, nested, substitutions);
    const gap = node.type === 'HereDoc' ? node.delimiter : node.target;
    const start = node.descriptor?.end ?? node.pos;
    if (gap !== undefined && !this.isOperator(operator, start, gap.pos)) {
      this.refuse('ambiguous', 'A redirect is not what it looks like: write it more plainly.', node);
    }
    return { operator, descriptor, target, span: this.span(node) };
  }

  /** Between descriptor and target stands the operator, and nothing but blanks behind it. */
  private isOperator(operator: string, start: number, end: number): boolean {
    const text = this.source.slice(start, end);
    return text.startsWith(operator) && /^(?:[ \t]|\\\n)*$/.test(text.slice(operator.length));
  }

  private target(node: Exclude<Redirection, HereDoc>, nested: boolean, substitutions: SyntaxNode[]): Word {
    if (node.target === undefined) {
      this.refuse('syntax_error', 'A redirect has no target.', node);
      return literalWord('', this.span(node));
    }
    const target = this.word(node.target, nested, substitutions);
    const duplicates = node.operator === '>&' || node.operator === '<&';
    if (duplicates && !/^(?:\d{1,3}|-)$/.test(this.textOf(node.target))) {
      this.refuse(
        'construct',
        `${node.operator} is understood only with a descriptor number or "-": use &> for a file.`,
        node,
      );
    }
    return target;
  }

  private document(node: HereDoc, nested: boolean, substitutions: SyntaxNode[]): Word {
    const { delimiter, closing, body } = node;
    this.documents += 1;
    if (this.documents > MAX_DOCUMENTS) {
      this.refuse('too_many_commands', 'There are too many here-documents in one string: split it.', node);
      return literalWord('', this.span(node));
    }
    if (delimiter === undefined || closing === undefined) {
      this.refuse(
        'construct',
        'A here-document is not closed: end it with its delimiter alone on a line.',
        node,
      );
      return literalWord(delimiter?.value ?? '', this.span(node));
    }
    if (!isPlainDelimiter(delimiter.text)) {
      this.refuse('construct', 'The delimiter of a here-document must be a plain word.', node);
    }
    if (nested)
      this.refuse(
        'construct',
        'A here-document inside this substitution is not understood: keep one command in it.',
        node,
      );
    if (!this.isBodyAsWritten(node, delimiter.value, closing.pos)) {
      this.refuse('ambiguous', 'It is not clear where a here-document ends: write it more plainly.', node);
    }
    if (!delimiter.quoted && body.text.includes('\\\n')) {
      // Bash joins the lines before it reads anything in them, quotes inside a substitution included.
      this.refuse('ambiguous', 'A here-document ends a line in a backslash: quote its delimiter.', node);
    }
    if (delimiter.quoted) this.literals.push({ start: body.pos, end: body.end });
    else for (const part of body.parts ?? []) this.part(part, 'document', nested, substitutions);
    if (!delimiter.quoted && body.parts === undefined && !isPlainQuoted(body.text)) {
      this.refuse(
        'ambiguous',
        'A here-document holds an expansion that is not understood: quote its delimiter.',
        node,
      );
    }
    return {
      value: delimiter.value,
      parts: [{ kind: 'literal', text: delimiter.value }],
      source: delimiter.text,
      span: this.span(delimiter),
    };
  }

  /** The body begins on a line of its own and ends at the first line that is the delimiter. */
  private isBodyAsWritten(node: HereDoc, delimiter: string, closing: number): boolean {
    const { body } = node;
    if (body.pos > 0 && this.source[body.pos - 1] !== '\n') return false;
    const firstLine = this.source.indexOf('\n', node.end) + 1;
    // Behind another here-document that was announced before, on the same line.
    if (body.pos !== firstLine && !this.documentEnds.has(body.pos)) return false;
    for (let start = body.pos; start <= this.source.length; ) {
      const end = this.source.indexOf('\n', start);
      const line = this.source.slice(start, end === -1 ? undefined : end);
      if ((node.operator === '<<-' ? line.replace(/^\t+/, '') : line) === delimiter) {
        this.documentEnds.add(end + 1);
        return start <= closing && closing <= start + line.length && body.end === start;
      }
      if (end === -1) return false;
      start = end + 1;
    }
    return false;
  }

  /** A word; `inAssignment`: it is a value, where bash expands no globs and no braces. */
  private word(node: ParsedWord, nested: boolean, substitutions: SyntaxNode[], inAssignment = false): Word {
    const raw = this.textOf(node);
    const parts: WordPart[] = [];
    const braced = node.parts?.some((part) => part.type === 'BraceExpansion') === true;
    let at = node.pos;
    for (const part of node.parts ?? [
      { type: 'Literal', pos: node.pos, end: node.end, text: raw, value: node.value } as const,
    ]) {
      if (part.pos !== at)
        this.refuse('ambiguous', 'A word is not what it looks like: write it more plainly.', node);
      at = part.end;
      if (part.type === 'Literal' && !inAssignment && part.text.includes('{') && !braced) {
        if (mayExpandBraces(raw.slice(part.pos - node.pos))) {
          this.refuse('ambiguous', 'A brace expansion is not plain: write the words out.', node);
        }
      }
      if (part.type === 'ProcessSubstitution' && (part.pos !== node.pos || part.end !== node.end)) {
        this.refuse('construct', 'A process substitution is understood only as a word of its own.', node);
      }
      parts.push(...this.part(part, 'none', nested, substitutions));
    }
    if (at !== node.end)
      this.refuse('ambiguous', 'A word is not what it looks like: write it more plainly.', node);
    const first = node.parts?.[0];
    const tilded =
      first === undefined || first.type === 'Literal' ? tildeParts(raw, parts, inAssignment) : parts;
    const known = inAssignment ? tilded.map(withoutGlob) : tilded;
    const merged = mergeLiterals(known);
    const value = merged.every((part) => part.kind === 'literal')
      ? merged.map(textOfLiteral).join('')
      : undefined;
    return { value, parts: merged, source: raw, span: this.span(node) };
  }

  private part(
    part: ParsedPart,
    quoting: Quoting,
    nested: boolean,
    substitutions: SyntaxNode[],
  ): readonly WordPart[] {
    const raw = this.textOf(part);
    switch (part.type) {
      case 'Literal': {
        const plain = quoting === 'none' ? isPlainUnquoted(raw) : isPlainQuoted(raw);
        const text = quoting === 'none' ? unescapeUnquoted(raw) : unescapeQuoted(raw);
        if (!plain || (quoting !== 'document' && text !== part.value)) {
          this.refuse(
            'ambiguous',
            'A word holds an operator or expansion where text is expected: quote it.',
            part,
          );
        }
        return [{ kind: 'literal', text }];
      }
      case 'SingleQuoted': {
        const text = raw.slice(1, -1);
        if (raw !== `'${text}'` || text.includes("'") || text !== part.value) {
          this.refuse('ambiguous', 'A quoted text is not what it looks like.', part);
        }
        this.literals.push({ start: part.pos, end: part.end });
        return [{ kind: 'literal', text }];
      }
      case 'AnsiCQuoted': {
        const text = ansiText(raw);
        if (text === undefined || text !== part.value) {
          this.refuse('construct', "In $'…' only \\n, \\t, \\\\, \\' and \\\" are understood.", part);
        }
        return [{ kind: 'literal', text: text ?? part.value }];
      }
      case 'DoubleQuoted':
        return this.doubleQuoted(part, nested, substitutions);
      case 'Glob':
        for (const inner of part.parts ?? []) {
          if (inner.type !== 'Literal' || !isPlainUnquoted(inner.text)) {
            this.refuse('ambiguous', 'A glob in brackets holds more than text.', part);
          }
        }
        if (!/^(?:\*+|\?|\[[^\s`$'"\\();|&<>]*\])$/.test(raw))
          this.refuse('ambiguous', 'A glob is not plain.', part);
        return [{ kind: 'glob', text: raw }];
      case 'SimpleExpansion': {
        const name = raw.slice(1);
        if (!/^\$(?:[A-Za-z_][A-Za-z0-9_]*|[0-9?#@*$!-])$/.test(raw))
          this.refuse('ambiguous', 'An expansion is not plain.', part);
        return [{ kind: 'parameter', name, plain: true, ...quoted(quoting) }];
      }
      case 'ParameterExpansion':
        return [this.parameter(part, quoting, nested, substitutions)];
      case 'CommandExpansion':
        this.substitution(part, quoting, nested, substitutions);
        return [{ kind: 'command-substitution', ...quoted(quoting) }];
      case 'ArithmeticExpansion':
        if (part.expression === undefined || !/^\$\(\(.*\)\)$/s.test(raw)) {
          this.refuse(
            'construct',
            'Arithmetic is understood only as $((…)) with numbers and plain names.',
            part,
          );
        } else this.arithmetic(part.expression);
        return [{ kind: 'arithmetic' }];
      case 'ProcessSubstitution':
        if (part.script !== undefined) substitutions.push(this.script(part.script, true));
        if (!/^[<>]\(.*\)$/s.test(raw))
          this.refuse('ambiguous', 'A process substitution is not plain.', part);
        return [{ kind: 'process-substitution', direction: part.operator === '<' ? 'in' : 'out' }];
      case 'BraceExpansion':
        if (part.parts !== undefined || !/^\{[A-Za-z0-9_.,/+@%=:~{}-]*\}$/.test(raw)) {
          this.refuse(
            'construct',
            'A brace expansion is understood only with plain text in it: write the words out.',
            part,
          );
        }
        return [{ kind: 'brace', text: raw }];
      case 'LocaleString':
      case 'ExtendedGlob':
        return [{ kind: 'glob', text: raw }];
      default:
        return assertNever(part);
    }
  }

  private doubleQuoted(
    part: Extract<ParsedPart, { readonly type: 'DoubleQuoted' }>,
    nested: boolean,
    substitutions: SyntaxNode[],
  ): readonly WordPart[] {
    const raw = this.textOf(part);
    let at = part.pos + 1;
    const parts: WordPart[] = [];
    for (const child of part.parts) {
      if (child.pos !== at) this.refuse('ambiguous', 'A quoted text is not what it looks like.', part);
      at = child.end;
      parts.push(...this.part(child, 'double', nested, substitutions));
    }
    const closed = raw.length >= 2 && raw.startsWith('"') && raw.endsWith('"');
    if (!closed || at !== part.end - 1)
      this.refuse('ambiguous', 'A quoted text is not what it looks like.', part);
    // An empty pair of quotes is a word, and text beside an expansion.
    return parts.length === 0 ? [{ kind: 'literal', text: '' }] : parts;
  }

  private substitution(
    part: Extract<ParsedPart, { readonly type: 'CommandExpansion' }>,
    quoting: Quoting,
    nested: boolean,
    substitutions: SyntaxNode[],
  ): void {
    const raw = this.textOf(part);
    const backticks = raw.startsWith('`');
    if (backticks && (quoting !== 'none' || raw.includes('\\') || raw.slice(1, -1).includes('`'))) {
      this.refuse(
        'construct',
        'Backticks are understood only outside of quotes and without backslashes: use $(…).',
        part,
      );
    }
    if (!backticks && !/^\$\((?!\().*\)$/s.test(raw)) {
      this.refuse(
        'ambiguous',
        'A substitution must begin with $( and no second bracket: put a blank between.',
        part,
      );
    }
    if (part.script === undefined) return;
    const [only, ...others] = part.script.commands;
    const isSimple = only?.command.type === 'Command' && others.length === 0 && only.background !== true;
    // Bash prints and reads again the text of a substitution; with a here-document in anything larger it goes wrong.
    substitutions.push(this.script(part.script, nested || backticks || !isSimple));
  }

  private parameter(
    part: ParameterExpansionPart,
    quoting: Quoting,
    nested: boolean,
    substitutions: SyntaxNode[],
  ): WordPart {
    const { operation, parameter } = part;
    const raw = this.textOf(part);
    const isElement = part.index !== undefined;
    // Any other subscript is evaluated, and runs what it holds.
    const plainIndex = /^(?:[@*]|[0-9]+)$/.test(part.index?.text ?? '') && operation === undefined;
    if (!PARAMETER.test(parameter) || part.prefix === '!' || (isElement && !plainIndex)) {
      this.refuse('construct', `${raw} is not understood: use a plain variable.`, part);
    }
    if (operation?.type === 'Transform' && operation.operand.text !== 'Q') {
      this.refuse('construct', `${raw} may run what the variable holds.`, part);
    }
    if (quoting !== 'none' && /['"\\]/.test(raw)) {
      this.refuse('ambiguous', 'Quotes inside an expansion inside quotes are not understood.', part);
    }
    for (const operand of operandsOf(part)) this.operand(operand, quoting, nested, substitutions);
    if (operation?.type === 'Slice') {
      for (const word of [operation.offset, operation.length]) if (word !== undefined) this.sliceWord(word);
    }
    if (operation?.type === 'Default' && /=/.test(operation.operator))
      noteImplicit(this.reading.numbers, parameter);
    if (operation === undefined && !isElement) {
      const expected = part.prefix === '#' ? `\${#${parameter}}` : `\${${parameter}}`;
      if (raw !== expected) this.refuse('ambiguous', `${raw} is not understood.`, part);
    }
    return {
      kind: 'parameter',
      name: parameter,
      plain: operation === undefined && part.prefix === undefined && !isElement,
      ...quoted(quoting),
    };
  }

  /** The `y` of `${x:-y}`: text and whole expansions. */
  private operand(word: ParsedWord, quoting: Quoting, nested: boolean, substitutions: SyntaxNode[]): void {
    let at = word.pos;
    const literal = {
      type: 'Literal',
      pos: word.pos,
      end: word.end,
      text: this.textOf(word),
      value: word.value,
    } as const;
    for (const part of word.parts ?? [literal]) {
      if (part.pos !== at)
        this.refuse('ambiguous', 'The text in an expansion is not what it looks like.', word);
      at = part.end;
      if (part.type === 'Literal') {
        if (!isPlainOperand(this.textOf(part)))
          this.refuse('ambiguous', 'The text in an expansion is not plain.', word);
      } else this.part(part, quoting, nested, substitutions);
    }
    if (at !== word.end)
      this.refuse('ambiguous', 'The text in an expansion is not what it looks like.', word);
  }

  private sliceWord(word: ParsedWord): void {
    const text = this.textOf(word).trim();
    const name = /^\$?([A-Za-z_][A-Za-z0-9_]*)$/.exec(text)?.[1];
    if (name !== undefined) needNumber(this.reading.numbers, name, this.span(word));
    else if (!/^-?[0-9]+$/.test(text))
      this.refuse('construct', 'A substring is understood only with numbers for offset and length.', word);
  }

  private arithmetic(node: ArithmeticExpression): void {
    switch (node.type) {
      case 'ArithmeticBinary':
        if (ASSIGNING.has(node.operator)) this.arithmeticTarget(node.left);
        if (node.operator !== '=') this.arithmetic(node.left);
        this.arithmetic(node.right);
        return;
      case 'ArithmeticUnary':
        if (node.operator === '++' || node.operator === '--') this.arithmeticTarget(node.operand);
        this.arithmetic(node.operand);
        return;
      case 'ArithmeticTernary':
        for (const part of [node.test, node.consequent, node.alternate]) this.arithmetic(part);
        return;
      case 'ArithmeticGroup':
        this.arithmetic(node.expression);
        return;
      case 'ArithmeticWord': {
        const text = this.textOf(node);
        const name = /^(?:\$\{|\$)?([A-Za-z_][A-Za-z0-9_]*)\}?$/.exec(text)?.[1];
        if (!ARITHMETIC_WORD.test(text))
          this.refuse('construct', 'Arithmetic is understood only with numbers and plain names.', node);
        else if (name !== undefined) needNumber(this.reading.numbers, name, this.span(node));
        return;
      }
      case 'ArithmeticCommandExpansion':
        return;
      default:
        assertNever(node);
    }
  }

  private arithmeticTarget(node: ArithmeticExpression): void {
    if (node.type === 'ArithmeticWord' && isVariableName(this.textOf(node))) {
      noteArithmeticAssignment(this.reading.numbers, this.textOf(node));
    } else this.refuse('construct', 'Arithmetic may assign only to a plain name.', node);
  }

  private test(node: TestExpression, nested: boolean, substitutions: SyntaxNode[]): void {
    switch (node.type) {
      case 'TestUnary':
        if (node.operator === '-v' || node.operator === '-R') {
          this.refuse('construct', `[[ ${node.operator} … ]] may run what its operand holds.`, node);
        }
        this.word(node.operand, nested, substitutions);
        return;
      case 'TestBinary':
        for (const word of [node.left, node.right]) {
          const read = this.word(word, nested, substitutions);
          if (NUMERIC_COMPARISONS.has(node.operator)) this.numericOperand(read, word);
        }
        return;
      case 'TestLogical':
        for (const operand of node.operands) this.test(operand, nested, substitutions);
        return;
      case 'TestNot':
        this.test(node.operand, nested, substitutions);
        return;
      case 'TestGroup':
        this.test(node.expression, nested, substitutions);
        return;
      default:
        assertNever(node);
    }
  }

  /** `[[ a -eq b ]]` evaluates both sides as arithmetic. */
  private numericOperand(word: Word, node: ParsedWord): void {
    if (word.value !== undefined && /^-?[0-9]+$/.test(word.value)) return;
    const [only, ...others] = word.parts;
    if (others.length === 0 && only?.kind === 'arithmetic') return;
    if (
      others.length === 0 &&
      only?.kind === 'parameter' &&
      (only.plain || /^\$\{#\w+\}$/.test(word.source))
    ) {
      if (only.plain) needNumber(this.reading.numbers, only.name, word.span);
      return;
    }
    this.refuse(
      'construct',
      'Numbers are compared in [[ ]] only if they are certain to be numbers: use [ "$x" -eq 1 ].',
      node,
    );
  }
}

function operandsOf(part: ParameterExpansionPart): readonly ParsedWord[] {
  const { operation } = part;
  switch (operation?.type) {
    case 'Default':
    case 'Remove':
      return [operation.operand];
    case 'Replace':
      return [operation.pattern, operation.replacement];
    case 'CaseModification':
      return operation.operand === undefined ? [] : [operation.operand];
    default:
      return [];
  }
}

function quoted(quoting: Quoting): { readonly quoted?: true } {
  return quoting === 'none' ? {} : { quoted: true };
}

function isRedirection(node: ParsedWord | ParsedAssignment | Redirection): boolean {
  return node.type !== 'Word' && node.type !== 'Assignment';
}

/** True if the redirect leaves the standard input alone. */
function leavesInput(node: Redirection): boolean {
  const { descriptor } = node;
  if (descriptor === undefined) return !node.operator.startsWith('<');
  return descriptor.type === 'FileDescriptor' && descriptor.value !== 0;
}

function withoutGlob(part: WordPart): WordPart {
  return part.kind === 'glob' ? { kind: 'literal', text: part.text } : part;
}

function textOfLiteral(part: WordPart): string {
  return part.kind === 'literal' ? part.text : '';
}
