import { basename, dirname } from 'node:path';
import { looksSecretVariable } from '../../util/secret-name.ts';
import type { ClaudeBases } from './claude-rule.ts';
import { translateRule, type Words } from './claude-rules.ts';
import { as, createDraft, type Draft, loss } from './draft.ts';
import type { ImportPlace, PolicyImporter } from './importer.ts';
import { parseJsonObject } from './parse-json.ts';
import { isTable, type Leaf, type Table } from './place.ts';
import { translateSandbox } from './sandbox-settings.ts';

/** Permission rules and sandbox settings of Claude Code: `settings.json`. */
export const claudeCode: PolicyImporter = {
  id: 'claude-code',
  summary: 'Claude Code: permissions and sandbox of settings.json',
  translate(text, where) {
    const settings = parseJsonObject(text, where.file);
    const draft = createDraft();
    const bases = basesOf(where);
    const permissions = isTable(settings.permissions) ? settings.permissions : {};
    const sandbox = isTable(settings.sandbox) ? settings.sandbox : {};
    const words: Words = { allowRead: [], allowWrite: [], denyRead: [], denyWrite: [] };
    for (const list of ['deny', 'ask', 'allow'] as const) {
      const rules = permissions[list];
      if (!Array.isArray(rules)) continue;
      rules.forEach((rule: unknown, index) => {
        const leaf: Leaf = { place: ['permissions', list, index], value: rule };
        const outcome =
          typeof rule === 'string' ? translateRule(draft, words, list, leaf, rule, bases) : undefined;
        if (outcome !== undefined) draft.note(leaf, outcome);
      });
      if (rules.length === 0)
        draft.note({ place: ['permissions', list], value: rules }, as('there are no rules'));
    }
    translateDirectories(words, permissions.additionalDirectories, bases);
    translateMode(draft, permissions);
    translateSwitches(draft, sandbox);
    translateSandbox(draft, sandbox, {
      where,
      at: ['sandbox'],
      base: bases.settings,
      more: words,
      workspaceIsWritable: true,
      innerAllowWins: true,
      isInUse: sandbox.enabled === true,
    });
    translateEnvironment(draft, settings.env);
    draft.remarks.push(
      'There, rules say what is asked; here, the risk of a command does (security.autonomy), and rules besides.',
      'Rules about other tools than Bash, hooks and managed settings stay in force in Claude Code.',
    );
    return draft.finish(settings, (place) =>
      place[0] === 'permissions' || place[0] === 'sandbox' || place.length === 0
        ? UNKNOWN
        : { effect: 'none', why: 'it is not about what commands may do', what: 'leave it in Claude Code' },
    );
  },
};

const UNKNOWN = {
  effect: 'wider',
  why: 'it is not known here, or not of the form that it has to have, and may forbid something',
  what: 'look it up, and say it in the policy if it forbids something',
} as const;

function translateDirectories(words: Words, directories: unknown, { cwd }: ClaudeBases): void {
  if (!Array.isArray(directories)) return;
  directories.forEach((text: unknown, index) => {
    if (typeof text !== 'string') return;
    const place = ['permissions', 'additionalDirectories', index];
    words.allowWrite.push({ place, value: text, text, base: cwd, firm: true, literal: true });
  });
}

/** How the sandbox is used there. */
function translateSwitches(draft: Draft, sandbox: Table): void {
  const at = (key: string): Leaf => ({ place: ['sandbox', key], value: sandbox[key] });
  const note = (key: string, good: boolean, to: string, why: string, what: string) => {
    if (sandbox[key] === good) draft.note(at(key), as(to));
    else if (sandbox[key] === !good) draft.note(at(key), loss('narrower', why, what));
  };
  const ALWAYS = 'every command runs in the sandbox';
  const OUTSIDE = 'run by hand what has to run outside of it';
  note('enabled', true, ALWAYS, ALWAYS, OUTSIDE);
  note('failIfUnavailable', true, FAILS, FAILS, 'set sandbox.minimum if a weaker sandbox is accepted');
  note('allowUnsandboxedCommands', false, ALWAYS, ALWAYS, OUTSIDE);
  note('autoAllowBashIfSandboxed', false, ASKED, ASKED, AUTONOMOUS);
  const { excludedCommands } = sandbox;
  if (!Array.isArray(excludedCommands)) return;
  excludedCommands.forEach((command: unknown, index) => {
    const leaf: Leaf = { place: ['sandbox', 'excludedCommands', index], value: command };
    draft.note(leaf, loss('narrower', ALWAYS, OUTSIDE));
  });
}

const FAILS = 'what cannot be enforced is not run';
const ASKED = 'what is of medium or high risk is asked about inside the sandbox too';

function translateEnvironment(draft: Draft, env: unknown): void {
  if (!isTable(env)) return;
  for (const [name, value] of Object.entries(env)) {
    if (typeof value !== 'string') continue;
    const leaf: Leaf = { place: ['env', name], value };
    if (looksSecretVariable(name))
      draft.note(
        { ...leaf, value: '(not shown)' },
        loss(
          'narrower',
          'it looks like a secret, which no policy should have',
          'pass it by name: --pass-env',
        ),
      );
    else if (!/^[A-Za-z_]\w*$/.test(name))
      draft.note(leaf, loss('narrower', 'it is no name of a variable', 'correct it'));
    else {
      draft.set[name] = value;
      draft.note(leaf, as('environment.set'));
    }
  }
}

/**
 * Settings of a project lie in its `.claude`; those of the user in that of the home. The product goes by the name under
 * which it finds them, so that goes first; where the name says nothing, what it leads to.
 */
function basesOf({ file, home, workspace, lookup }: ImportPlace): ClaudeBases {
  const canonical = (path: string) => lookup.resolve(path).canonical;
  const cwd = canonical(workspace);
  const byName = dirname(file);
  const directories = [byName, canonical(byName), dirname(canonical(file))];
  const ofUser = canonical(`${home}/.claude`);
  for (const directory of directories) {
    if (canonical(directory) === ofUser) return { settings: ofUser, cwd };
    if (basename(directory) === '.claude') return { settings: canonical(dirname(directory)), cwd };
  }
  return { settings: cwd, cwd };
}

/** What is asked about there. */
function translateMode(draft: Draft, { defaultMode, disableBypassPermissionsMode }: Table): void {
  const leaf: Leaf = { place: ['permissions', 'defaultMode'], value: defaultMode };
  switch (defaultMode) {
    case 'default':
    case 'manual':
      draft.autonomy = 'supervised';
      draft.note(leaf, as('security.autonomy = "supervised"'));
      break;
    case 'acceptEdits':
    case 'auto':
      draft.autonomy = 'contained';
      draft.note(leaf, loss('narrower', 'what leaves the sandbox is asked about', AUTONOMOUS));
      break;
    case 'plan':
      draft.autonomy = 'readonly';
      draft.note(leaf, as('security.autonomy = "readonly"'));
      break;
    case 'dontAsk':
      draft.autonomy = 'supervised';
      draft.ask = 'nobody';
      draft.note(leaf, as('approval.ask = "nobody"'));
      break;
    case 'bypassPermissions':
      draft.autonomy = 'supervised';
      draft.note(leaf, loss('narrower', 'it is not taken over that nothing is asked', AUTONOMOUS));
      break;
    default:
  }
  if (disableBypassPermissionsMode !== undefined)
    draft.note(
      { place: ['permissions', 'disableBypassPermissionsMode'], value: disableBypassPermissionsMode },
      loss('none', 'it is about a mode of Claude Code', 'leave it in Claude Code'),
    );
}

/** What to do where less is to be asked. */
const AUTONOMOUS = 'set security.autonomy = "autonomous" if nothing is to be asked';
