import { isDeepStrictEqual } from 'node:util';
import { parse, stringify } from 'smol-toml';
import { changeSettingsFile } from '../../agents/index.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { isObject } from '../../base/is-object.ts';
import { orElse } from '../../base/or-else.ts';
import { visibleLine } from '../../base/visible-text.ts';
import type { ProposedRule, RuleWriter } from '../../model/index.ts';
import { userPolicyPath } from '../../run/index.ts';
import { homeDirectory } from '../../workspace/index.ts';

/** Writes rules that allow to the end of the policy of the user: what stands there stays as it is, byte by byte. */
export function ruleWriter(): RuleWriter {
  const path = userPolicyPath(homeDirectory(), process.env.XDG_CONFIG_HOME);
  const change = (rule: ProposedRule, dryRun: boolean) => {
    // Commands can make links in the workspace, and may not choose the file by one.
    const added = (before = '') => withRule(before, rule, path);
    return changeSettingsFile(path, added, { within: rule.directory, dryRun });
  };
  return {
    preview: (rule) => {
      const { path: place } = change(rule, true);
      return { path: place, text: textOf(rule) };
    },
    write: (rule) => void change(rule, false),
  };
}

const allowing = (rule: ProposedRule) => ({ ...rule, verdict: 'allow' });

const textOf = (rule: ProposedRule): string => `[[commands.rules]]\n${stringify(allowing(rule))}`;

/** @throws {SandboxError} `usage.invalid` where the text after that would not say this one rule more. */
function withRule(before: string, rule: ProposedRule, path: string): string {
  const text = textOf(rule);
  const whole = before === '' || before.endsWith('\n') ? before : `${before}\n`;
  const after = `${whole}${whole === '' ? '' : '\n'}${text}`;
  const [was, is] = [before, after].map((one) => orElse(() => plain(parse(one)), undefined));
  if (was === undefined || is === undefined || !isDeepStrictEqual(is, extended(was, rule)))
    throw new SandboxError(
      'usage.invalid',
      `${visibleLine(path, 300)} is left as it is: a rule cannot stand at its end; add it there by hand: ${visibleLine(text, 500)}`,
    );
  return after;
}

function extended(policy: Table, rule: ProposedRule): Table {
  const commands = isObject(policy.commands) ? policy.commands : {};
  const rules = Array.isArray(commands.rules) ? commands.rules : [];
  return { ...policy, commands: { ...commands, rules: [...rules, plain(allowing(rule))] } };
}

type Table = Readonly<Record<string, unknown>>;

/** Without what the reader of TOML puts on its objects. */
const plain = (value: object): Table => JSON.parse(JSON.stringify(value));
