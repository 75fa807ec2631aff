import type {
  CommandNode,
  CompoundList,
  PipelineNode as ParsedPipeline,
  ParsedScript,
  Statement,
} from 'unbash';
import { assertNever } from '../../util/assert-never.ts';
import { noteAssignment } from '../numbers.ts';
import type { SyntaxNode } from '../syntax.ts';
import { isVariableName } from '../text-checks.ts';
import { readArithmetic } from './arithmetic.ts';
import { readCondition } from './conditions.ts';
import type { Context } from './context.ts';
import { checkNeighbours } from './neighbours.ts';
import { readRedirect } from './redirects.ts';
import type { ShellText } from './shell-text.ts';
import { readSimple } from './simple-commands.ts';
import { readWord } from './word.ts';

export function readScript(
  script: ParsedScript | CompoundList,
  text: ShellText,
  nested: boolean,
): SyntaxNode {
  const items = script.commands.map((statement) => ({
    node: readStatement(statement, text, nested),
    background: statement.background === true,
  }));
  return { kind: 'list', items };
}

function readStatement(statement: Statement, text: ShellText, nested: boolean): SyntaxNode {
  const { command } = statement;
  if (command.type !== 'AndOr') return readPipeline(command, text, nested);
  const nodes = command.commands.map((child) => readPipeline(child, text, nested));
  return { kind: 'and-or', nodes, operators: command.operators };
}

function readPipeline(node: ParsedPipeline, text: ShellText, nested: boolean): SyntaxNode {
  if (node.type !== 'Pipeline') return readCommand(node, text, nested);
  const negations = node.prefixes.filter((prefix) => prefix.type === 'Negation').length;
  const nodes = node.commands.map((child) => readCommand(child, text, nested));
  return { kind: 'pipeline', nodes, negated: negations % 2 === 1 };
}

function readCommand(node: CommandNode, text: ShellText, nested: boolean): SyntaxNode {
  switch (node.type) {
    case 'Command': {
      const { context, substitutions } = listing(text, nested);
      return readSimple(node, context, substitutions);
    }
    case 'Redirected': {
      const { context, substitutions } = listing(text, nested);
      const body = readCommand(node.command, text, nested);
      checkNeighbours(node.redirects, text);
      const redirects = node.redirects.map((redirect) => readRedirect(redirect, context));
      return { kind: 'redirected', body, redirects, substitutions, span: text.span(node) };
    }
    case 'Subshell':
      if (text.source.startsWith('((', node.pos)) {
        text.refuse(
          'ambiguous',
          '(( that does not begin arithmetic is ambiguous: put a blank between.',
          node,
        );
      }
      return { kind: 'group', subshell: true, body: readScript(node.body, text, nested) };
    case 'BraceGroup':
      return { kind: 'group', subshell: false, body: readScript(node.body, text, nested) };
    case 'If':
      return {
        kind: 'if',
        branches: [node, ...node.elif].map((branch) => ({
          condition: readScript(branch.clause, text, nested),
          body: readScript(branch.then, text, nested),
        })),
        otherwise: node.else && readScript(node.else, text, nested),
      };
    case 'While':
      return {
        kind: 'loop',
        condition: readScript(node.clause, text, nested),
        until: node.kind === 'until',
        body: readScript(node.body, text, nested),
        substitutions: [],
      };
    case 'For': {
      const { context, substitutions } = listing(text, nested);
      const words = (node.wordlist ?? []).map((word) => readWord(word, context));
      checkNeighbours(node.wordlist ?? [], text);
      const name = readWord(node.name, context).value;
      if (name === undefined || !isVariableName(name)) {
        text.refuse('construct', 'The variable of a for loop must be a plain name.', node.name);
      } else {
        text.reading.numbers.implicit.add(name);
        if (words.length === 0) noteAssignment(text.reading.numbers, name, undefined);
        for (const word of words) noteAssignment(text.reading.numbers, name, word);
      }
      return {
        kind: 'loop',
        condition: undefined,
        until: false,
        body: readScript(node.body, text, nested),
        substitutions,
      };
    }
    case 'ArithmeticFor':
      for (const part of [node.initialize, node.test, node.update]) if (part) readArithmetic(part, text);
      return {
        kind: 'loop',
        condition: undefined,
        until: false,
        body: readScript(node.body, text, nested),
        substitutions: [],
      };
    case 'Case': {
      const { context, substitutions } = listing(text, nested);
      readWord(node.word, context);
      for (const item of node.items) for (const word of item.pattern) readWord(word, context);
      return {
        kind: 'case',
        bodies: node.items.map((item) => readScript(item.body, text, nested)),
        substitutions,
      };
    }
    case 'Function':
      return readFunction(node, text);
    case 'TestCommand': {
      const { context, substitutions } = listing(text, nested);
      readCondition(node.expression, context);
      return { kind: 'expression', substitutions };
    }
    case 'ArithmeticCommand':
      if (node.expression === undefined) text.refuse('construct', '(( )) without an expression.', node);
      else readArithmetic(node.expression, text);
      return { kind: 'expression', substitutions: [] };
    case 'Select':
    case 'Coproc':
      // The sweep has refused it; what it runs is read for the message.
      return node.body.type === 'CompoundList'
        ? readScript(node.body, text, nested)
        : readCommand(node.body, text, nested);
    default:
      return assertNever(node);
  }
}

function readFunction(
  node: Extract<CommandNode, { readonly type: 'Function' }>,
  text: ShellText,
): SyntaxNode {
  const { body } = node;
  if (body.type !== 'BraceGroup' && body.type !== 'Subshell') {
    text.refuse('construct', 'A function is understood only with a body in { … } or ( … ).', node);
  }
  const read = body.type === 'CompoundList' ? readScript(body, text, false) : readCommand(body, text, false);
  return { kind: 'function', name: node.name.text, body: read, span: text.span(node) };
}

/** A context for the words of a command, and the list that their substitutions go to. */
function listing(text: ShellText, nested: boolean) {
  const substitutions: SyntaxNode[] = [];
  const context: Context = {
    text,
    nested,
    substitute: (script, within) => substitutions.push(readScript(script, text, within)),
  };
  return { context, substitutions };
}
