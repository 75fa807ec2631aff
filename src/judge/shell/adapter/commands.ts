import type {
  ArithmeticExpression,
  CommandNode,
  CompoundList,
  PipelineNode as ParsedPipeline,
  ParsedScript,
  Word as ParsedWord,
  Statement,
  TestExpression,
} from 'unbash';
import { assertNever } from '../../../base/assert-never.ts';
import type { Word } from '../../../model/index.ts';
import { apart, inEach, needNumber, noteAssignment, noteDone } from '../numbers.ts';
import type { SyntaxNode } from '../syntax.ts';
import { isVariableName } from '../text-checks.ts';
import { readRedirect, readSimple } from './simple-commands.ts';
import { type Context, checkNeighbours, readArithmetic, readWord, type ShellText } from './words.ts';

/** A whole text. An error in an expansion ends the line in which it happens, and bash goes on with the next one. */
export function readLines(script: ParsedScript, text: ShellText): SyntaxNode {
  const { numbers } = text.reading;
  let { sure } = numbers;
  let previous = 0;
  const items = script.commands.map((statement) => {
    if (text.source.slice(previous, statement.pos).includes('\n')) {
      if (numbers.fallible || numbers.alwaysFallible) numbers.sure = sure;
      sure = numbers.sure;
      numbers.fallible = false;
    }
    previous = statement.pos;
    return readItem(statement, text, false);
  });
  return { kind: 'list', items };
}

function readScript(script: ParsedScript | CompoundList, text: ShellText, nested: boolean): SyntaxNode {
  return { kind: 'list', items: script.commands.map((statement) => readItem(statement, text, nested)) };
}

function readItem(statement: Statement, text: ShellText, nested: boolean) {
  const background = statement.background === true;
  const read = () => readStatement(statement, text, nested);
  return { node: background ? apart(text.reading.numbers, read) : read(), background };
}

function readStatement(statement: Statement, text: ShellText, nested: boolean): SyntaxNode {
  const { command } = statement;
  if (command.type !== 'AndOr') return readPipeline(command, text, nested);
  const { numbers } = text.reading;
  let ok = numbers.sure;
  let fail = numbers.sure;
  const nodes = command.commands.map((child, index) => {
    const operator = command.operators[index - 1];
    numbers.sure = operator === '||' ? fail : ok;
    const node = readPipeline(child, text, nested);
    const after = numbers.sure;
    ok = operator === '||' ? inEach([ok, after]) : after;
    fail = operator === '&&' ? inEach([fail, after]) : after;
    return node;
  });
  numbers.sure = inEach([ok, fail]);
  return { kind: 'and-or', nodes, operators: command.operators };
}

function readPipeline(node: ParsedPipeline, text: ShellText, nested: boolean): SyntaxNode {
  if (node.type !== 'Pipeline') return readCommand(node, text, nested);
  const negations = node.prefixes.filter((prefix) => prefix.type === 'Negation').length;
  const read = (child: CommandNode) => readCommand(child, text, nested);
  // More than one: each in a shell of its own.
  const nodes =
    node.commands.length === 1
      ? node.commands.map(read)
      : node.commands.map((child) => apart(text.reading.numbers, () => read(child)));
  const prefixes = node.prefixes.map((prefix) => (prefix.type === 'Negation' ? '!' : 'time'));
  return { kind: 'pipeline', nodes, negated: negations % 2 === 1, prefixes, operators: node.operators };
}

function readCommand(node: CommandNode, text: ShellText, nested: boolean): SyntaxNode {
  const { numbers } = text.reading;
  switch (node.type) {
    case 'Command': {
      const { context, substitutions } = listing(text, nested);
      return readSimple(node, context, substitutions);
    }
    case 'Redirected': {
      const { context, substitutions } = listing(text, nested);
      // If a redirect fails, the body does not run.
      const body = apart(numbers, () => readCommand(node.command, text, nested));
      checkNeighbours(node.redirects, text);
      const redirects = node.redirects.map((redirect) =>
        apart(numbers, () => readRedirect(redirect, context)),
      );
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
      return {
        kind: 'group',
        subshell: true,
        body: apart(numbers, () => readScript(node.body, text, nested)),
      };
    case 'BraceGroup':
      return { kind: 'group', subshell: false, body: readScript(node.body, text, nested) };
    case 'If':
      return readIf(node, text, nested);
    case 'While':
      // `break` may end it in the middle of the condition.
      return apart(numbers, () => ({
        kind: 'loop',
        condition: readScript(node.clause, text, nested),
        until: node.kind === 'until',
        body: readScript(node.body, text, nested),
        substitutions: [],
      }));
    case 'For':
      return readFor(node, text, nested);
    case 'ArithmeticFor': {
      if (node.initialize) readEvaluation(node.initialize, text);
      return apart(numbers, () => {
        if (node.test) readArithmetic(node.test, text);
        const body = apart(numbers, () => readScript(node.body, text, nested));
        if (node.update) readArithmetic(node.update, text);
        return { kind: 'loop', condition: undefined, until: false, body, substitutions: [] };
      });
    }
    case 'Case':
      return readCase(node, text, nested);
    case 'Function':
      return readFunction(node, text);
    case 'TestCommand': {
      const { context, substitutions } = listing(text, nested);
      apart(numbers, () => readCondition(node.expression, context));
      return { kind: 'expression', substitutions };
    }
    case 'ArithmeticCommand':
      if (node.expression === undefined) text.refuse('construct', '(( )) without an expression.', node);
      else readEvaluation(node.expression, text);
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

function readFor(
  node: Extract<CommandNode, { readonly type: 'For' }>,
  text: ShellText,
  nested: boolean,
): SyntaxNode {
  const { numbers } = text.reading;
  const { context, substitutions } = listing(text, nested);
  const words = (node.wordlist ?? []).map((word) => readWord(word, context));
  checkNeighbours(node.wordlist ?? [], text);
  const name = readWord(node.name, context).value;
  const before = numbers.sure;
  if (name === undefined || !isVariableName(name)) {
    text.refuse('construct', 'The variable of a for loop must be a plain name.', node.name);
  } else {
    numbers.implicit.add(name);
    text.reading.report.loops.push({ name, words });
    if (words.length === 0) noteAssignment(numbers, name, undefined, text.span(node.name));
    for (const word of words) noteAssignment(numbers, name, word);
    noteDone(numbers, name);
  }
  const inside = numbers.sure;
  const body = readScript(node.body, text, nested);
  // With no words at all it assigns nothing.
  const surely = words.some(({ value, parts }) => value !== undefined || parts[0]?.kind === 'brace');
  numbers.sure = surely ? inside : before;
  return { kind: 'loop', condition: undefined, until: false, body, substitutions };
}

function readCase(
  node: Extract<CommandNode, { readonly type: 'Case' }>,
  text: ShellText,
  nested: boolean,
): SyntaxNode {
  const { numbers } = text.reading;
  const { context, substitutions } = listing(text, nested);
  readWord(node.word, context);
  apart(numbers, () => {
    for (const item of node.items) for (const word of item.pattern) readWord(word, context);
  });
  return {
    kind: 'case',
    bodies: node.items.map((item) => apart(numbers, () => readScript(item.body, text, nested))),
    substitutions,
  };
}

function readIf(
  node: Extract<CommandNode, { readonly type: 'If' }>,
  text: ShellText,
  nested: boolean,
): SyntaxNode {
  const { numbers } = text.reading;
  const outcomes: ReadonlySet<string>[] = [];
  const branches = [node, ...node.elif].map((branch) => {
    const condition = readScript(branch.clause, text, nested);
    const open = numbers.sure;
    const body = readScript(branch.then, text, nested);
    outcomes.push(numbers.sure);
    numbers.sure = open;
    return { condition, body };
  });
  const otherwise = node.else && readScript(node.else, text, nested);
  numbers.sure = inEach([...outcomes, numbers.sure]);
  return { kind: 'if', branches, otherwise };
}

/** `((…))`: an error in it ends nothing but itself, so what it assigns is sure only if there cannot be one. */
function readEvaluation(expression: ArithmeticExpression, text: ShellText): void {
  const { numbers } = text.reading;
  const { fallible, sure } = numbers;
  numbers.fallible = false;
  readArithmetic(expression, text);
  if (numbers.fallible) numbers.sure = sure;
  numbers.fallible = fallible;
}

function readFunction(
  node: Extract<CommandNode, { readonly type: 'Function' }>,
  text: ShellText,
): SyntaxNode {
  const { body } = node;
  if (body.type !== 'BraceGroup' && body.type !== 'Subshell') {
    text.refuse('construct', 'A function is understood only with a body in { … } or ( … ).', node);
  }
  const { numbers } = text.reading;
  const around = numbers.inFunction;
  numbers.inFunction = true;
  // The body runs when the function is called: what is sure here is sure then, and what it assigns is not sure afterwards.
  const read = apart(numbers, () =>
    body.type === 'CompoundList' ? readScript(body, text, false) : readCommand(body, text, false),
  );
  numbers.inFunction = around;
  return { kind: 'function', name: node.name.text, body: read, span: text.span(node) };
}

/** A context for the words of a command, and the list that their substitutions go to. */
function listing(text: ShellText, nested: boolean) {
  const substitutions: SyntaxNode[] = [];
  const context: Context = {
    text,
    nested,
    substitute: (script, within) =>
      substitutions.push(apart(text.reading.numbers, () => readScript(script, text, within))),
  };
  return { context, substitutions };
}

const NUMERIC_COMPARISONS = new Set(['-eq', '-ne', '-lt', '-le', '-gt', '-ge']);

/** What stands in `[[ … ]]`. */
function readCondition(node: TestExpression, context: Context): void {
  const { text } = context;
  if (node.type === 'TestUnary' || node.type === 'TestBinary') checkLine(node, text);
  switch (node.type) {
    case 'TestUnary':
      if (node.operator === '-v' || node.operator === '-R') {
        text.refuse('construct', `[[ ${node.operator} … ]] may run what its operand holds.`, node);
      }
      readWord(node.operand, context);
      return;
    case 'TestBinary':
      for (const word of [node.left, node.right]) {
        const read = readWord(word, context);
        if (NUMERIC_COMPARISONS.has(node.operator)) checkNumber(read, word, text);
      }
      return;
    case 'TestLogical':
      for (const operand of node.operands) readCondition(operand, context);
      return;
    case 'TestNot':
      readCondition(node.operand, context);
      return;
    case 'TestGroup':
      readCondition(node.expression, context);
      return;
    default:
      assertNever(node);
  }
}

/** bash wants all of a condition on one line; a bare word could still be the beginning of one where its line ends. */
function checkLine(
  node: Extract<TestExpression, { readonly type: 'TestUnary' | 'TestBinary' }>,
  text: ShellText,
): void {
  const [from, to] =
    node.type === 'TestBinary' ? [node.left.end, node.right.pos] : [node.pos, node.operand.pos];
  const between = text.of({ pos: from, end: to }).replaceAll('\\\n', '');
  const isBare = node.type === 'TestUnary' && from === to;
  if (between.includes('\n') || (isBare && /^(?:[ \t]|\\\n)*(?:#.*)?\n/.test(text.source.slice(node.end))))
    text.refuse('construct', 'A condition in [[ ]] is understood only on one line.', node);
}

/** `[[ a -eq b ]]` evaluates both sides as arithmetic. */
function checkNumber(word: Word, node: ParsedWord, text: ShellText): void {
  if (word.value !== undefined && /^-?[0-9]+$/.test(word.value)) return;
  const [only, ...others] = word.parts;
  if (others.length === 0 && only?.kind === 'arithmetic') return;
  if (others.length === 0 && only?.kind === 'parameter' && (only.plain || /^\$\{#\w+\}$/.test(word.source))) {
    if (only.plain) needNumber(text.reading.numbers, only.name, word.span);
    return;
  }
  text.refuse(
    'construct',
    'Numbers are compared in [[ ]] only if they are certain to be numbers: use [ "$x" -eq 1 ].',
    node,
  );
}
