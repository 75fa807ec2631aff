import { readOr } from '../../base/errors/shortage.ts';
import type { InnerTexts } from '../../judge/index.ts';
import { type Environment, readAliases, readRegular } from '../../workspace/index.ts';
import { parseShell } from './judgement.ts';

/** Longer scripts are not read: they are code that is not seen. */
const MOST_BYTES = 64 * 1024;

/** Texts that a command runs and that do not stand in its words. `env`: of the caller. */
export const innerTexts = (env: Environment): InnerTexts => ({
  parse: (text) => parseShell(text),
  read(path) {
    const content = readOr(() => readRegular(path, MOST_BYTES), undefined);
    return content === undefined || content.includes(0) ? undefined : content.toString();
  },
  // A repository that git does not read has no aliases that it would obey.
  aliasesIn: (directory) => readAliases(directory, env).catch(() => []),
});
