import { basename, dirname } from 'node:path';
import { namePath, translateAccess } from './access.ts';
import { type ClaudeBases, claudeRule } from './claude-rules.ts';
import { as, Draft, MAY_FORBID, narrower, unrelated } from './draft.ts';
import { type Imported, type ImportPlace, type Table, tableOf } from './importer.ts';
import { autonomy, choice, isAlways, items, keys, type Rows, variables } from './readers.ts';
import { protectBuiltIn, sandboxRows } from './srt.ts';

/** Permission rules and sandbox settings of Claude Code: `settings.json`. */
export function claudeCode(settings: Table, where: ImportPlace): Imported {
  const draft = new Draft(where, ([first]) =>
    first === 'permissions' || first === 'sandbox' || first === undefined ? MAY_FORBID : NOT_OF_COMMANDS,
  );
  draft.remarks.push(
    'There, rules say what is asked; here, the risk of a command does (security.autonomy), and rules besides.',
    'Rules about other tools than Bash, hooks and managed settings stay in force in Claude Code.',
  );
  const bases = basesOf(where);
  const rows = {
    permissions: keys(permissionRows(bases)),
    sandbox: keys({ ...SWITCHES, ...sandboxRows(bases.settings) }),
    env: variables,
  };
  draft.read({ place: [], value: settings }, keys(rows));
  translateAccess(draft);
  const sandbox = tableOf(settings.sandbox);
  protectBuiltIn(draft, sandbox, ['sandbox'], sandbox.enabled === true);
  return draft.imported();
}

const LEAVE_IT = 'leave it in Claude Code';
const NOT_OF_COMMANDS = unrelated('it is not about what commands may do', LEAVE_IT);

/** What to do where less is to be asked. */
const AUTONOMOUS = 'set security.autonomy = "autonomous" if nothing is to be asked';

const ASKED_OUTSIDE = narrower('what leaves the sandbox is asked about', AUTONOMOUS);

function permissionRows(bases: ClaudeBases): Rows {
  const rules = (list: 'allow' | 'ask' | 'deny') => items(claudeRule(list, bases), as('there are no rules'));
  return {
    deny: rules('deny'),
    ask: rules('ask'),
    allow: rules('allow'),
    additionalDirectories: items((part, draft) => {
      if (typeof part.value !== 'string') return undefined;
      const meaning = { text: part.value, base: bases.cwd, firm: true, literal: true };
      return namePath(draft, 'allowWrite', part, meaning);
    }),
    defaultMode: choice({
      default: autonomy('supervised'),
      manual: autonomy('supervised'),
      acceptEdits: autonomy('contained', ASKED_OUTSIDE),
      auto: autonomy('contained', ASKED_OUTSIDE),
      plan: autonomy('readonly'),
      dontAsk: [
        { security: { autonomy: 'supervised' }, approval: { ask: 'nobody' } },
        as('approval.ask = "nobody"'),
      ],
      bypassPermissions: autonomy(
        'supervised',
        narrower('it is not taken over that nothing is asked', AUTONOMOUS),
      ),
    }),
    disableBypassPermissionsMode: unrelated('it is about a mode of Claude Code', LEAVE_IT),
  };
}

const ALWAYS = 'every command runs in the sandbox';
const OUTSIDE = 'run by hand what has to run outside of it';

/** How the sandbox is used there. */
const SWITCHES: Rows = {
  enabled: isAlways(true, ALWAYS, OUTSIDE),
  failIfUnavailable: isAlways(
    true,
    'what cannot be enforced is not run',
    'set sandbox.minimum if a weaker sandbox is accepted',
  ),
  allowUnsandboxedCommands: isAlways(false, ALWAYS, OUTSIDE),
  autoAllowBashIfSandboxed: isAlways(
    false,
    'what is of medium or high risk is asked about inside the sandbox too',
    AUTONOMOUS,
  ),
  excludedCommands: items(narrower(ALWAYS, OUTSIDE)),
};

/**
 * Settings of a project lie in its `.claude`; those of the user in that of the home. The product goes by the name under
 * which it finds them, so that goes first; where the name says nothing, what it leads to.
 */
function basesOf({ file, home, workspace, lookup }: ImportPlace): ClaudeBases {
  const canonical = (path: string) => lookup.resolve(path).canonical;
  const cwd = canonical(workspace);
  const byName = dirname(file);
  const ofUser = canonical(`${home}/.claude`);
  for (const directory of [byName, canonical(byName), dirname(canonical(file))]) {
    if (canonical(directory) === ofUser) return { settings: ofUser, cwd };
    if (basename(directory) === '.claude') return { settings: canonical(dirname(directory)), cwd };
  }
  return { settings: cwd, cwd };
}
