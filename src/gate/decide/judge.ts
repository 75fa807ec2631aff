import { isAbsolute } from 'node:path';
import { directoriesBetween, isBeneath } from '../../base/absolute-path.ts';
import type { LaunchPlan } from '../../confine/plan/launch-plan.ts';
import type { PathLookup } from '../../confine/plan/path-lookup.ts';
import {
  autonomyInForce,
  type CheckContext,
  type CommandEffects,
  type Lost,
  type RulesOfCommands,
  type Taken,
} from '../../judge/index.ts';
import {
  type Autonomy,
  type Command,
  type Decision,
  type Effect,
  type GatePorts,
  literalWord,
  type MadeFiles,
  type Parsed,
  type PathSearch,
  type Policy,
  type ShellFacts,
  type Steps,
  type StepsOrNot,
  type Taint,
} from '../../model/index.ts';
import {
  createLookAtObeyed,
  createPathLookup,
  createVersions,
  type Environment,
  type FoundProgram,
} from '../../workspace/index.ts';
import { bashSyntaxError } from './bash-syntax.ts';
import { innerTexts } from './inner-texts.ts';
import {
  CHECKS,
  CHECKS_IN_SESSION,
  commandsOf,
  effectsOf,
  evaluate,
  isForeignTo,
  isMissing,
  isPlainLine,
  isSameUnwritable,
  leavesDoubts,
  lostAmong,
  parseArgv,
  parseShell,
  reachOfLine,
  riskOfLine,
  secretAmong,
  stepsOf,
  variableRuleOfList,
} from './judgement.ts';
import { OwnFiles } from './own-files.ts';
import { directoryOfShell, lookupInSandbox } from './private-home.ts';
import type { ProgramFinder } from './program-finder.ts';
import { within } from './time-limit.ts';

export { stepsOf };

/** What is judged. */
export interface JudgeRequest {
  readonly command: Command;
  /** Absolute, or relative to the workspace. */
  readonly cwd?: string | undefined;
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
  readonly approved?: boolean | undefined;
  readonly taints?: readonly Taint[] | undefined;
  /** Instead of the policy's. */
  readonly autonomy?: Autonomy | undefined;
  /** Where its changes of the workspace go. Default: at once into it. */
  readonly effect?: Effect | undefined;
  /** The shell that is to run it, if that has run others before. */
  readonly shell?: ShellFacts | undefined;
  /** The command as it will be started without a shell: patterns are replaced by what they matched. */
  readonly steps?: Steps | undefined;
  /** What reviewer and hooks have said about this very request: they are asked once. */
  readonly said?: Map<string, unknown> | undefined;
}

/** What the checks say about a command, and what that was made from. */
export interface Judgement {
  /** At once, unless a reviewer or a hook has to be waited for. */
  readonly decision: Decision | Promise<Decision>;
  /** Canonical directory in which the command would start. */
  readonly cwd: string;
  /** What the command would touch, as far as its words tell. Not cheap: about as much as the decision. */
  readonly effects: (decision: Decision) => CommandEffects;
  /** What the session that runs it would be exposed to. Without a plan nothing is enforced by us. */
  readonly exposures: (
    decision: Decision,
    effects: CommandEffects,
    plan: LaunchPlan | undefined,
  ) => readonly Exposure[];
  /** Whether the command is harmless even without a sandbox. Costs about as much as the decision. */
  readonly isPlain: () => boolean;
  /** Whether the command, by its words, only reads, and behaves the same where nothing can be written. */
  readonly onlyReads: () => boolean;
  /** What the command removed or changed that version control cannot restore. Call it before the changes are applied. */
  readonly lostAmong: (taken: Taken, decision: Decision) => Lost;
  /** Notes the files that the command makes: call it before the start, and the returned function after the end. */
  readonly begins: (effects: CommandEffects) => () => void;
  /** Whether the text leaves open how the command changes the shell that runs it. */
  readonly leavesDoubts: () => boolean;
  /** Where programs of its words are that this host could execute and the sandbox does not show. */
  readonly hiddenPrograms: (exitCode: number) => readonly string[];
}

/** Has the checks look at a command as it is now. Nothing is run, counted or recorded, and no person is asked. */
export type Judge = (request: JudgeRequest) => Judgement;

/**
 * Where the changes of a command go about which nothing is said. Shells that live on change the workspace at once, and so does
 * what was approved beforehand.
 */
function usualEffect({ workspace }: Policy, { shell, approved }: JudgeRequest): CheckContext['effect'] {
  if (shell !== undefined || workspace.undo === 'never') return 'direct';
  if (workspace.undo === 'always') return 'undoable';
  return approved === true ? 'direct' : 'losses';
}

/** What a judge is made of. */
interface JudgeParts {
  readonly policy: Policy;
  readonly rules: RulesOfCommands;
  /** The caller's variables: they say where git finds the user's settings. */
  readonly env: Environment;
  /** PATH of the command, if the request says nothing else. */
  readonly searchPath: string;
  readonly find: ProgramFinder;
  readonly gate: Partial<Omit<GatePorts, 'within'>>;
  /** What commands made before; default: what those of this judge make. */
  readonly made?: MadeFiles | undefined;
}

/** Agents run the same few commands over and over. */
const MOST_PARSED = 64;
/** Characters; longer texts seldom come again. */
const LONGEST_PARSED = 4_096;

/** Parsing is pure, so what comes again has the same result. Nothing that looks at files is remembered. */
function parserWithMemory(): (command: Command, inSession: boolean) => Parsed {
  const known = new Map<string, Parsed>();
  return (command, inSession) => {
    const isText = typeof command === 'string';
    const key = isText ? `${inSession ? 'session' : 'once'} ${command}` : JSON.stringify(command);
    const before = known.get(key);
    if (before !== undefined) return before;
    const parsed = isText ? parseShell(command, { inSession }) : parseArgv(command);
    if (key.length > LONGEST_PARSED) return parsed;
    const oldest = known.size >= MOST_PARSED ? known.keys().next().value : undefined;
    if (oldest !== undefined) known.delete(oldest);
    known.set(key, parsed);
    return parsed;
  };
}

/** Nothing that a command could change are programs of the system: looked up each time, where they lead is remembered. */
function programsWithMemory({ workspace, writable }: RulesOfCommands) {
  const leadsTo = new Map<string, string>();
  const canBeWritten = (path: string) => [workspace, ...writable].some((root) => isBeneath(path, root));
  return (path: string, paths: PathLookup): string => {
    const known = leadsTo.get(path);
    if (known !== undefined) return known;
    const { canonical, links } = paths.resolve(path);
    if (![path, canonical, ...links.map((link) => link.path)].some(canBeWritten))
      leadsTo.set(path, canonical);
    return canonical;
  };
}

/**
 * The same ports, which give the answers that they have given already to the same question. What has changed since, taints
 * for example, makes it another question.
 */
function askedOnce(ports: GatePorts, said: Map<string, unknown>): GatePorts {
  const { reviewer, hooks } = ports;
  if (reviewer === undefined && hooks.length === 0) return ports;
  const once = <Answer>(question: readonly unknown[], ask: () => Answer): Answer => {
    const key = JSON.stringify(question);
    if (!said.has(key)) said.set(key, ask());
    return said.get(key) as Answer;
  };
  return {
    ...ports,
    reviewer: reviewer && {
      review: (request) => {
        const { text, reach, taints } = request;
        return once(['reviewer', text, reach, [...taints].sort()], () => reviewer.review(request));
      },
    },
    hooks: hooks.map((hook, index) => ({
      name: hook.name,
      beforeToolUse: (...asked) => once(['hook', index, ...asked], () => hook.beforeToolUse(...asked)),
    })),
  };
}

/** Wires parser, checks and ports: the stages do not know each other. */
export function createJudge({ policy, rules, env, searchPath, find, gate, made }: JudgeParts): Judge {
  const ports: GatePorts = {
    budget: gate.budget,
    reviewer: gate.reviewer,
    gitGuard: gate.gitGuard,
    hooks: gate.hooks ?? [],
    within,
  };
  // The way to the workspace is nothing that a command could change.
  const way = ['/', ...directoriesBetween(rules.workspace, '/'), rules.workspace];
  const canonicalProgram = programsWithMemory(rules);
  const parse = parserWithMemory();
  const own = new OwnFiles(made);
  const inner = innerTexts(env);

  return function judge(request) {
    const { command, cwd = '.' } = request;
    const inSession = request.shell !== undefined;
    // The lookup caches what it saw, so it serves one decision only.
    const paths = lookupInSandbox(createPathLookup(way), rules);
    const from = paths.resolve(isAbsolute(cwd) ? cwd : `${rules.workspace}/${cwd}`).canonical;
    const steps = stepsToJudge(request, rules, paths, from);
    const parsed = withMatches(parse(command, inSession), steps);
    const path = request.env !== undefined && 'PATH' in request.env ? request.env.PATH : searchPath;
    const found = new Map<string, string | undefined>();
    const unrated: CheckContext = {
      parsed,
      text: typeof command === 'string' ? command : command.join(' '),
      // Not known yet: the worst.
      risk: 'high',
      reach: 'network',
      autonomy: autonomyInForce(request.autonomy ?? policy.security.autonomy, rules),
      effect: request.effect ?? usualEffect(policy, request),
      approved: request.approved ?? false,
      taints: new Set(request.taints),
      cwd: inSession ? directoryOfShell(from, rules) : from,
      rules,
      paths,
      findExecutable(name, cwd) {
        // Several checks ask about the same program.
        const key = `${name}\0${cwd}`;
        if (!found.has(key)) {
          const program = find(name, path ?? '', cwd);
          found.set(key, program.kind === 'found' ? canonicalProgram(program.path, paths) : undefined);
        }
        return found.get(key);
      },
      gate: request.said === undefined ? ports : askedOnce(ports, request.said),
      shell: request.shell,
      variables: request.env,
      versions: createVersions((path) => own.isOwn(path)),
      inner,
      syntaxError: typeof command === 'string' ? bashSyntaxError : undefined,
      obeyed: createLookAtObeyed(rules.workspace),
      steps,
    };
    const isForeign = isForeignTo(unrated);
    const context = {
      ...unrated,
      risk: isMissing(unrated) ? 'low' : riskOfLine(parsed, isForeign),
      reach: reachOfLine(parsed, isForeign, { wordsDecide: !inSession && isGivenNothing(request.env) }),
    };
    return judgementOf(command, context, {
      ...{ policy, own },
      find: (name) => find(name, path ?? '', context.cwd),
    });
  };
}

/** What can be said of a command that the checks look at. What most commands are not asked is found out when it is asked. */
function judgementOf(
  command: Command,
  context: CheckContext,
  {
    policy,
    own,
    find,
  }: { readonly policy: Policy; readonly own: OwnFiles; readonly find: (name: string) => FoundProgram },
): Judgement {
  const { parsed, cwd } = context;
  const text = typeof command === 'string' ? command : undefined;
  let plain: boolean | undefined;
  return {
    decision: evaluate(context.shell === undefined ? CHECKS : CHECKS_IN_SESSION, context),
    cwd,
    isPlain: () => {
      plain ??= text !== undefined && isPlainLine(context, stepsOf(text));
      return plain;
    },
    onlyReads: () => isSameUnwritable(context),
    lostAmong: (taken, { reasons }) => lostAmong(taken, reasons, context),
    begins: ({ parts }) =>
      own.before(
        [...new Set(parts.flatMap(({ writes }) => writes))],
        parts.flatMap(({ removes }) => removes),
      ),
    leavesDoubts: () => leavesDoubts(parsed),
    // A program that was started without a shell, and ended well, missed none.
    hiddenPrograms: (exitCode) => (text === undefined && exitCode === 0 ? [] : hiddenAmong(parsed, find)),
    exposures: (decision, effects, plan) => exposuresOf(policy, plan, decision, effects),
    effects: ({ reasons }) => effectsOf(context, reasons, text),
  };
}

/** What is started in place of a shell; `undefined` where a shell runs, and for words, which need none. */
function stepsToJudge(
  { command, steps }: JudgeRequest,
  { onlyChecks, workspace: root }: RulesOfCommands,
  paths: PathSearch,
  cwd: string,
): StepsOrNot | undefined {
  if (onlyChecks !== true || typeof command !== 'string') return undefined;
  return steps === undefined ? stepsOf(command, { paths, cwd, root }) : { ok: true, steps };
}

/** A line with the names that its patterns stand for, where nothing else replaces them. */
function withMatches(parsed: Parsed, steps: StepsOrNot | undefined): Parsed {
  const patterns = steps?.ok === true ? steps.steps.patterns : undefined;
  if (!parsed.understood || patterns === undefined || patterns.size === 0) return parsed;
  const commands = parsed.line.commands.map((command) => ({
    ...command,
    words: command.words.flatMap(
      (word) => patterns.get(word.span.start)?.map((text) => literalWord(text, word.span)) ?? word,
    ),
  }));
  return { ...parsed, line: { ...parsed.line, commands } };
}

/** Whether a request brings no variable that may be read as settings. */
function isGivenNothing(env: JudgeRequest['env'] = {}): boolean {
  return Object.entries(env).every(
    ([name, value]) =>
      name === 'PATH' || (value !== undefined && variableRuleOfList(name, value) === undefined),
  );
}

/**
 * Only names that are looked up in PATH: of a path that a model writes it must not learn whether there is such a file.
 */
function hiddenAmong(parsed: Parsed, find: (name: string) => FoundProgram): readonly string[] {
  const names = commandsOf(parsed).flatMap(({ words, callsFunction }) => {
    const name = words[0]?.value;
    return name === undefined || name.includes('/') || callsFunction === true ? [] : [name];
  });
  return [...new Set(names)].flatMap((name) => {
    const found = find(name);
    return found.kind === 'not-executable' && found.isHidden ? [found.path] : [];
  });
}

/** Something that a command shows to the session that runs it. */
interface Exposure {
  readonly taint: Taint;
  readonly reason: string;
}

/**
 * What a session is exposed to by a command: secret files that its words name, and what comes from outside where it can
 * reach there. What a program reads without being told to is not seen. Without a plan nothing is enforced by us.
 */
function exposuresOf(
  policy: Policy,
  plan: LaunchPlan | undefined,
  decision: Decision,
  effects: CommandEffects,
): readonly Exposure[] {
  const exposures: Exposure[] = [];
  const secret = secretAmong(effects, policy.filesystem.secret);
  if (secret !== undefined)
    exposures.push({ taint: 'secret', reason: `a command reads ${secret} (filesystem.secret)` });
  const network = plan?.report.controls.find(({ id }) => id === 'network');
  if (decision.reach === 'network' && (network?.state !== 'enforced' || plan?.network === 'listed'))
    exposures.push({ taint: 'corruption', reason: 'a command fetches from outside' });
  return exposures;
}
