import { keepFromReading, keepFromWriting, readableAnyway } from './access-denials.ts';
import { grantRead, grantWrite } from './access-grants.ts';
import type { AccessRules, AccessWords, Denial, Word } from './access-words.ts';
import { type Draft, loss, type Outcome } from './draft.ts';
import type { ImportPlace } from './importer.ts';
import { sourcePath } from './paths.ts';

/** Puts what the source says of paths into the policy: never more than it allows. */
export function translateAccess(
  draft: Draft,
  words: AccessWords,
  where: ImportPlace,
  rules: AccessRules,
): void {
  const read = (word: Word): Denial => ({
    ...word,
    ...sourcePath(word.text, word.base, where, word.literal ?? false),
  });
  const denyRead = words.denyRead.map(read);
  const denyWrite = words.denyWrite.map(read);
  const allowRead = words.allowRead.map(read);
  const open = readableAnyway(where);
  for (const word of allowRead) draft.note(word, grantRead(draft, word, where, denyRead, rules));
  for (const word of words.allowWrite.map(read))
    draft.note(word, grantWrite(draft, word, where, { denyRead, denyWrite }));
  for (const word of denyWrite) draft.note(word, refused(word, keepFromWriting(draft, word, where)));
  for (const word of denyRead)
    draft.note(word, keepFromReading(draft, word, where, { ...rules, open, allowed: allowRead }));
}

/** What would be asked about is refused. */
function refused({ asked }: Word, outcome: Outcome): Outcome {
  if (asked !== true || !('to' in outcome)) return outcome;
  return loss('narrower', 'files cannot be asked about here, so it is refused', 'allow it if it may be used');
}
