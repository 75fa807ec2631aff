import { createDraft } from './draft.ts';
import type { PolicyImporter } from './importer.ts';
import { parseJsonObject } from './parse-json.ts';
import { translateSandbox } from './sandbox-settings.ts';

const NONE = { allowRead: [], allowWrite: [], denyRead: [], denyWrite: [] };

/** Settings of the Anthropic sandbox runtime: `~/.srt-settings.json`. */
export const srt: PolicyImporter = {
  id: 'srt',
  summary: 'the Anthropic sandbox runtime: ~/.srt-settings.json',
  translate(text, where) {
    const settings = parseJsonObject(text, where.file);
    const draft = createDraft();
    draft.remarks.push(
      'There, commands can read everything that is not denied; here, only the workspace, the system and what is listed.',
      'There, nothing is asked; here, what is of medium or high risk is (security.autonomy).',
    );
    translateSandbox(draft, settings, {
      where,
      at: [],
      base: where.workspace,
      more: NONE,
      workspaceIsWritable: false,
      innerAllowWins: true,
      isInUse: true,
    });
    return draft.finish(settings, () => ({
      effect: 'wider',
      why: 'it is not known here, or not of the form that it has to have, and may forbid something',
      what: 'look it up, and say it in the policy if it forbids something',
    }));
  },
};
