import { isBeneath } from '../../base/absolute-path.ts';
import { networkEntry } from '../../base/host-and-port.ts';
import type { Reason, SimpleCommand } from '../../model/index.ts';
import { type Argument, inherited, type Need, type Use } from '../programs/behaviour.ts';
import { changesGitSettings } from '../programs/git/settings.ts';
import { pathUses } from '../programs/path-uses.ts';
import { describeCommand, programName } from '../programs/program-table.ts';
import { asksForHelp, findingsOf, reachOf, reachOfRedirect } from '../programs/risk.ts';
import { type Check, type CheckContext, commandsOf, reasonFor } from './check.ts';
import { directoriesOf, isForeignTo, pathsOf, useOf } from './locations.ts';

const reason = reasonFor('leaves');

const CANNOT: Readonly<Record<Exclude<Need, 'nothing'>, string>> = {
  network: 'needs the network, which is off',
  system: 'changes what is installed on the machine, which is impossible in the sandbox',
};

/** What the sandbox does not hold is asked about, by what a command is known to do; what it cannot let happen is refused. */
export const leavesCheck: Check = {
  name: 'leaves',
  summary:
    'asks about what uses a way out that the policy opened (network, sockets, the home); refuses what cannot work inside',
  judge: (context) => {
    if (isMissing(context)) return [];
    const commands = commandsOf(context.parsed);
    const reasons = commands.flatMap((command) => [
      ...judgeWayOut(command, context),
      ...judgeNeeds(command, context),
      ...(context.autonomy === 'contained' ? judgeContained(command, context) : []),
    ]);
    return [...reasons, ...judgeSecrets(commands, context)];
  },
};

/** The policy opened a way out, so code that cannot be seen beforehand is not held any more. */
function judgeWayOut(command: SimpleCommand, context: CheckContext): readonly Reason[] {
  const {
    rules: { opened, held },
    autonomy,
    parsed,
  } = context;
  if (autonomy === 'autonomous' || autonomy === 'readonly') return [];
  if (opened === undefined) return held.listedNetwork === true ? judgeOutward(command, context) : [];
  const commands = commandsOf(parsed);
  const settingsHeld = !changesGitSettings(commands, programName);
  const setsHome = commands.some(({ assignments, words }) =>
    [...assignments.map(({ name }) => name), ...words.map(({ source }) => source)].some((name) =>
      /^HOME(?:=|$)/.test(name),
    ),
  );
  const unknown = command.redirects.find(
    (redirect) =>
      reachOfRedirect(redirect) === 'unknown' || (setsHome && redirect.target.parts[0]?.kind === 'tilde'),
  );
  if (unknown !== undefined) {
    const { source } = unknown.target;
    const message = `${source} gets its value only when the line runs, and may be a connection (/dev/tcp): ${opened}`;
    return [reason('ask', 'unknown_target', message, source)];
  }
  const use = useOf(command, context);
  const [program] = command.words;
  if (use === undefined || program === undefined || command.callsFunction === true) return [];
  const reach = reachOf(command, isForeignTo(context), { settingsHeld });
  if (reach === 'local') return [];
  if (asksItsOwnServer(use, parsed)) return [];
  const ask = (code: string, does: string) => [
    reason('ask', code, `${program.source} ${does}, and ${opened}`, program.source),
  ];
  if (reach === 'unknown') return ask('unseen_code', 'may run code that cannot be seen beforehand');
  const outward = outwardOf(use);
  if (outward !== undefined) return ask('outward', outward);
  return ask('network', 'uses the network, or runs a program that does');
}

/**
 * Who lists a host grants talking to it: fetching, and sending what takes nothing away there (`git push`). Asked about is what
 * acts in the name of the user beyond that: it publishes, merges, or overwrites and deletes what a server has.
 */
function judgeOutward(command: SimpleCommand, context: CheckContext): readonly Reason[] {
  const use = useOf(command, context);
  const [program] = command.words;
  if (use === undefined || program === undefined || command.callsFunction === true) return [];
  const outward = outwardOf(use);
  if (outward === undefined || inherited(use, 'onlySends')?.(use) === true) return [];
  if (reachOf(command, isForeignTo(context), { settingsHeld: true }) === 'local') return [];
  const hosts = inherited(use, 'hosts')?.(use) ?? [];
  if (hosts.length > 0 && hosts.every(isOfThisMachine)) return [];
  const message = `${program.source} ${outward}, and hosts that the policy lists can be reached`;
  return [reason('ask', 'outward', message, program.source)];
}

function outwardOf(use: Use): string | undefined {
  const outward = inherited(use, 'outward');
  return typeof outward === 'function' ? outward(use) : outward;
}

/** What names another server than the user's settings do, or other settings. */
const ELSEWHERE_OPTION = /^--?(?:i$|f$|.*(?:registry|index|proxy|config|find-links))/;
const ELSEWHERE_VARIABLE = /^(?:npm_config_|yarn_|pnpm_|pip_|uv_)|_proxy$/i;

/** `npm view x`: it fetches from where the user's settings say, and what it is asked for is all that it sends. */
function asksItsOwnServer(use: Use, parsed: CheckContext['parsed']): boolean {
  if (inherited(use, 'onlyFetches') !== true || !parsed.understood) return false;
  const { words } = use.command;
  const isPlain = words.every(({ value }) => value !== undefined && !ELSEWHERE_OPTION.test(value));
  const set = [
    ...parsed.line.variables,
    ...parsed.line.commands.flatMap(({ assignments, words: [, ...rest] }) => [
      ...assignments.map(({ name }) => name),
      // `export NAME=value`, `env NAME=value`.
      ...rest.map(({ source }) => source.replace(/=.*/s, '')),
    ]),
  ];
  const changes = findingsOf(use).some(({ effect }) => effect !== 'reads');
  return isPlain && !changes && !set.some((name) => ELSEWHERE_VARIABLE.test(name));
}

function judgeContained(command: SimpleCommand, context: CheckContext): readonly Reason[] {
  const use = command.callsFunction === true ? undefined : useOf(command, context);
  const always = judgeHome(command, use, context);
  return use === undefined || asksForHelp(use) ? always : [...judgeSignals(use, context), ...always];
}

/** What cannot work inside is refused at once, at every level: nobody has to be asked about it, and nothing comes of trying. */
function judgeNeeds(command: SimpleCommand, context: CheckContext): readonly Reason[] {
  const use = command.callsFunction === true ? undefined : useOf(command, context);
  return [
    ...judgeConnections(command, context),
    ...(use === undefined || asksForHelp(use) ? [] : judgeNeedsOf(use, context)),
  ];
}

/** `cat < /dev/tcp/HOST/PORT`: bash connects, which cannot work any more than with a program of the network. */
function judgeConnections({ redirects }: SimpleCommand, { rules }: CheckContext): readonly Reason[] {
  if (!rules.held.network) return [];
  return redirects.flatMap((redirect) => {
    const { source, value } = redirect.target;
    const host = /^\/dev\/(?:tcp|udp)\/([^/]+)\//.exec(value ?? '')?.[1];
    if (reachOfRedirect(redirect) !== 'network' || host === undefined || isLoopback(host)) return [];
    return [unreachable('bash', source, needsEntry(networkEntry(value ?? '')))];
  });
}

/** What cannot be reached while the network is off. `needs`: what a policy would list, if it is known. */
function unreachable(name: string, whom: string, needs: NonNullable<Reason['needs']>): Reason {
  const said = reason('deny', 'unreachable', `${name} cannot reach ${whom}: the network is off`, whom);
  return needs.length === 0 ? said : { ...said, needs };
}

const needsEntry = (value: string | undefined): NonNullable<Reason['needs']> =>
  value === undefined ? [] : [{ key: 'network.allow', value }];

function judgeSignals({ program, command }: Use, { rules }: CheckContext): readonly Reason[] {
  if (program.signals !== true || rules.held.signals) return [];
  const { name } = program;
  const message = `${name} may end processes outside the sandbox, which this host cannot prevent`;
  return [reason('ask', 'signals', message, command.words[0]?.source ?? name)];
}

function judgeNeedsOf(use: Use, { rules, findExecutable, cwd }: CheckContext): readonly Reason[] {
  const { name } = use.program;
  const source = use.command.words[0]?.source ?? name;
  const need = inherited(use, 'needs');
  const isElsewhere = need === 'network' && rules.held.network && !use.operands.some(isOfThisMachine);
  if (need === 'system' || isElsewhere) {
    // The shell says best that a program is not there.
    const isThere = findExecutable(use.command.words[0]?.value ?? name, cwd) !== undefined;
    if (!isThere) return [];
    const said = reason('deny', `needs_${need}`, `${name} ${CANNOT[need]}`, source);
    const needs = isElsewhere ? neededElsewhere(use, rules.userHome) : [];
    return [needs.length === 0 ? said : { ...said, needs }];
  }
  if (!rules.held.network) return [];
  const away = (inherited(use, 'hosts')?.(use) ?? []).find((argument) => {
    const host = hostOf(argument);
    return host !== undefined && !isLoopback(host);
  });
  if (away === undefined) return [];
  const needs = needsEntry(entryOf(away.text, use));
  const isSsh = inherited(use, 'connects')?.ssh === true && !/^(?:https?|git):/i.test(away.text);
  const all = isSsh && needs.length > 0 ? [...needs, ...neededBySsh(rules.userHome)] : needs;
  return [unreachable(name, away.word.source, all)];
}

function isOfThisMachine(argument: Argument): boolean {
  const host = hostOf(argument);
  return host !== undefined && isLoopback(host);
}

/**
 * A granted path is the answer to who wants to write there. Only the home is more than a path: programs of the user obey what
 * lies in it, so that it is asked about as code is that may write there.
 */
function judgeHome(command: SimpleCommand, use: Use | undefined, context: CheckContext): readonly Reason[] {
  const { userHome, workspace } = context.rules;
  const granted = context.rules.granted.filter((root) => isBeneath(userHome, root));
  if (granted.length === 0) return [];
  const cwds = directoriesOf(command, context);
  return pathUses(command, use)
    .filter(({ effect }) => effect !== 'reads')
    .flatMap(({ argument }) => {
      const outside = pathsOf(argument, cwds, context).some(
        ({ canonical }) =>
          !isBeneath(canonical, workspace) && granted.some((root) => isBeneath(canonical, root)),
      );
      const { source } = argument.word;
      return outside
        ? [
            reason(
              'ask',
              'writes_home',
              `${source} lies in the home directory, which the policy made writable as a whole`,
              source,
            ),
          ]
        : [];
    });
}

/** Whatever the level: a file of secrets and the network in one line is seldom meant, and cannot be taken back. */
function judgeSecrets(commands: readonly SimpleCommand[], context: CheckContext): readonly Reason[] {
  if (context.rules.held.network || context.reach !== 'network') return [];
  const words = commands.flatMap(({ words, assignments, redirects }) => [
    ...words,
    ...assignments.map(({ value }) => value),
    ...redirects.map(({ target }) => target),
  ]);
  if (context.parsed.understood) words.push(...context.parsed.line.loops.flatMap(({ words }) => words));
  // Each word as written, and without quotes.
  const secret = words.find(({ source, parts }) =>
    [source, parts.map((part) => ('text' in part ? part.text : ' ')).join('')].some(namesSecretFile),
  );
  return secret === undefined
    ? []
    : [
        reason(
          'ask',
          'secret_leaves',
          `${secret.source} looks like a secret, and the line uses the network`,
          secret.source,
        ),
      ];
}

/** Names that files of secrets have; those that come as an example hold none. */
const SECRET_FILES =
  /(?:^|[^\w.-])(?:\.env(?:\.[\w-]+)*|\.?netrc|\.npmrc|\.pypirc|\.pgpass|\.git-credentials|id_(?:rsa|dsa|ecdsa|ed25519)|[\w.-]+\.(?:pem|p12|pfx|jks|keystore|kdbx|key)|credentials(?:\.\w+)?|secrets?\.\w+)(?![\w-]|\.\w)/i;
const EXAMPLES = /\.(?:example|sample|template|dist|defaults?)$/i;

/** True if a word names a file of secrets, be it in the middle: `-d@.env`, `file=@id_rsa`. */
function namesSecretFile(word: string): boolean {
  const found = SECRET_FILES.exec(word)?.[0];
  return found !== undefined && !EXAMPLES.test(found);
}

/** The host that a word names: of a URL, `user@host:path`, `host:port`, or the word itself; `undefined`: it is not known. */
function hostOf({ text, complete }: Argument): string | undefined {
  const afterScheme = /^[a-z][a-z0-9+.-]*:\/\//i.exec(text)?.[0].length ?? 0;
  const authority = /^[^/?#]*/.exec(text.slice(afterScheme))?.[0] ?? '';
  // What follows an expansion may be the greater part of the name.
  if (!complete && authority.length === text.length - afterScheme) return undefined;
  const name = authority.slice(authority.lastIndexOf('@') + 1);
  const host = name.startsWith('[') ? name.slice(1).replace(/\].*$/, '') : name.replace(/:.*$/, '');
  return host === '' ? undefined : host.toLowerCase().replace(/\.$/, '');
}

/** The policy entry for the host that a word names; `undefined`: the port is not known. */
function entryOf(text: string, use: Use): string | undefined {
  // `nc host 80`.
  const [, further] = use.operands.map((one) => one.text);
  const isPort = further !== undefined && /^\d+$/.test(further);
  return networkEntry(text, isPort ? Number(further) : inherited(use, 'connects')?.port);
}

/** What ssh needs: the known hosts, and the agent, which signs in while the keys stay outside. */
const neededBySsh = (home: string): NonNullable<Reason['needs']> => [
  { key: 'filesystem.read', value: `${home}/.ssh/known_hosts` },
  { key: 'network.unix', value: '@ssh-agent' },
];

/** What a program needs that works on another machine: its host, and for ssh what says that it is that one, and signs in. */
function neededElsewhere(use: Use, home: string): NonNullable<Reason['needs']> {
  const { entry, ssh, port: usual } = inherited(use, 'connects') ?? {};
  if (entry !== undefined) return [{ key: 'network.allow', value: entry }];
  if (ssh === true) {
    const named = use.operands.find(({ text }) => text.includes(':')) ?? use.operands[0];
    const port = use.options.find((one) => one.name === 'p')?.value?.text ?? usual;
    const host = named === undefined ? undefined : hostOf(named);
    return [
      { key: 'network.allow', ...(host === undefined ? {} : { value: `${host}:${port}` }) },
      ...neededBySsh(home),
    ];
  }
  // `ping` and `dig` want more than a connection.
  return inherited(use, 'outward') === undefined ? [] : [{ key: 'network.allow' }];
}

/** True for names and addresses of the machine itself, which a sandbox without network has for its own. */
function isLoopback(host: string): boolean {
  if (host === 'localhost' || host.endsWith('.localhost') || host === 'ip6-localhost') return true;
  if (host === '::1' || host === '::' || host === '0' || host === '0.0.0.0') return true;
  // 127.1 is one, too.
  return /^127(?:\.\d{1,8}){1,3}$/.test(host);
}

/**
 * The line is one command whose program is not there, and nothing in it could put it there: the shell says "not found",
 * so nothing is asked. `false` also where this is not known.
 */
export function isMissing({ parsed, shell, findExecutable, cwd }: CheckContext): boolean {
  if (!parsed.understood || shell !== undefined) return false;
  const [command, ...others] = parsed.line.commands;
  if (command === undefined || others.length > 0) return false;
  const name = command.words[0]?.value;
  if (name === undefined || name === '' || name.includes('/') || command.callsFunction === true) return false;
  if (command.assignments.length > 0 || command.redirects.length > 0) return false;
  // All builtins are listed, except those that only print.
  return describeCommand(command)?.program.unlisted === true && findExecutable(name, cwd) === undefined;
}
