import {
  leadingText,
  type NotUnderstoodCode,
  type Reason,
  type Redirect,
  type SimpleCommand,
  type Verdict,
} from '../../model/index.ts';
import { writesFile } from '../programs/path-uses.ts';
import { type Check, type CheckContext, commandsOf, holdsUnseenCode, reasonFor } from './check.ts';

const reason = reasonFor('syntax');

/** What is not understood for a reason that may be bash's own. The others are about texts that bash would run. */
const MAY_BE_WRONG: ReadonlySet<NotUnderstoodCode> = new Set([
  'syntax_error',
  'bad_character',
  'construct',
  'ambiguous',
]);

/** What ends the reading, so that what comes behind it, or all of the text, was not looked at for losses, pushes and the like. */
const NOT_READ: ReadonlySet<NotUnderstoodCode> = new Set([
  'bad_character',
  'too_long',
  'too_deep',
  'too_many_commands',
  'internal',
]);

/** What is not understood does not run unasked, and some constructs are never meant well. */
export const syntaxCheck: Check = {
  name: 'syntax',
  summary:
    'refuses what bash would refuse, network devices, fork bombs and kernel files; refuses text that is not understood, or asks about it (contained, autonomous)',
  judge: (context) => {
    const { parsed, text, syntaxError } = context;
    const reasons = judgeText(context);
    if (parsed.understood || !MAY_BE_WRONG.has(parsed.problem.code) || syntaxError === undefined)
      return reasons;
    // bash has the last word on what it would refuse; where it would not, the text is one that is not understood.
    return syntaxError(text).then((said) =>
      said === undefined ? reasons : [reason('deny', 'syntax_error', said)],
    );
  },
};

function judgeText(context: CheckContext): readonly Reason[] {
  const { parsed } = context;
  const reasons: Reason[] = [];
  const commands = commandsOf(parsed);
  if (!parsed.understood) {
    const { code, message } = parsed.problem;
    reasons.push(reason(code === 'fork_bomb' ? 'deny' : verdictOnUnseen(context, code), code, message));
    if (isForkBomb(commands)) {
      reasons.push(reason('deny', 'fork_bomb', 'The command starts itself again and again.'));
    }
  }
  for (const { redirects } of commands) {
    for (const redirect of redirects) reasons.push(...judgeRedirect(redirect, holdsUnseenCode(context)));
  }
  return reasons;
}

/**
 * Text that is not understood is code that cannot be seen beforehand, as a script is. Any rule of the policy could be about it. But
 * a character that ends the reading would be a way past all questions about what stands beside it.
 */
function verdictOnUnseen(context: CheckContext, code: NotUnderstoodCode): Verdict | undefined {
  if (context.rules.own.length === 0 && holdsUnseenCode(context) && !NOT_READ.has(code)) return undefined;
  return context.autonomy === 'autonomous' || context.autonomy === 'contained' ? 'ask' : 'deny';
}

function judgeRedirect(redirect: Redirect, isHeld: boolean): readonly Reason[] {
  const { source } = redirect.target;
  const text = leadingText(redirect.target);
  if (!isHeld && /^\/dev\/(?:tcp|udp)(?:\/|$)/.test(text)) {
    return [reason('deny', 'network_device', `bash would open a network connection: ${source}`, source)];
  }
  if (!isHeld && mayBeNetworkDevice(redirect)) {
    const message = `bash would open a network connection if this is /dev/tcp or /dev/udp: ${source}; write the path out`;
    return [reason('ask', 'network_device_unclear', message, source)];
  }
  if (
    /^\/+(?:proc|sys)(?:\/|$)/.test(text) &&
    !/^\/proc\/self\/fd\/\d+$/.test(text) &&
    writesFile(redirect)
  ) {
    return [
      reason(
        'deny',
        'kernel_interface',
        `the command would change settings of the kernel: ${source}`,
        source,
      ),
    ];
  }
  return [];
}

/** `/dev/$x/host/80`, `$x/tcp/host/80`, `/dev$x`: what is known of the word leaves room for a network device. */
function mayBeNetworkDevice({ target }: Redirect): boolean {
  if (target.value !== undefined) return false;
  // Any text in place of what is not known; the NUL cannot be part of a path.
  const shape = target.parts.map((part) => (part.kind === 'literal' ? part.text : '\0')).join('');
  if (shape.startsWith('\0')) return /(?:^|\0|\/)(?:tcp|udp)(?:\/|\0)/.test(shape);
  return shape.startsWith('/') && /^\/(?:\0|d(?:\0|e(?:\0|v(?:\0|\/(?:\0|[tu]\0|tc\0|ud\0)))))/.test(shape);
}

/** `f(){ f|f& };f`: the same name several times, once of them in the background. */
function isForkBomb(commands: readonly SimpleCommand[]): boolean {
  const names = commands.map(({ words }) => (words.length === 1 ? words[0]?.value : undefined));
  return commands.some(
    ({ background }, index) =>
      background && names[index] !== undefined && names.filter((name) => name === names[index]).length > 1,
  );
}
