import { z } from 'zod';
import { count, maybe, text, time, type Value } from '../base/value.ts';
import { CHANGE_SET_STATES, EFFECTS } from '../base/words.ts';
import { LeftBehind } from './left-behind.ts';

export const Effect = z.enum(EFFECTS);
export type Effect = Value<typeof Effect>;

/** What something in a workspace can be. */
const OBJECT_KINDS = ['file', 'directory', 'link', 'fifo', 'socket', 'device'] as const;

/** What a command did to it. */
const CHANGE_KINDS = ['created', 'changed', 'deleted', 'renamed', 'mode', 'times'] as const;

/** What a file can hold: text is UTF-8 without NUL. */
const CONTENTS = ['text', 'binary'] as const;

/** What something in a workspace is. */
export const ObjectKind = z.enum(OBJECT_KINDS);
export type ObjectKind = Value<typeof ObjectKind>;

/** One thing that a command changed in the workspace, as a person sees it. */
export const Change = z.strictObject({
  path: text.describe('relative to the workspace; bytes that are no UTF-8 as \\xNN'),
  change: z
    .enum(CHANGE_KINDS)
    .describe(
      'mode: only its permissions; times: only the time of its last change, or it has another name (sameFileAs); renamed: see from',
    ),
  kind: ObjectKind.describe('what it is now, or was before it was deleted'),
  kindBefore: ObjectKind.optional().describe('what it was, where that was something else'),
  from: text.optional().describe('of what was renamed: the path before'),
  bytes: count.optional().describe('of a file: its size now'),
  bytesBefore: count.optional(),
  content: z
    .enum(CONTENTS)
    .optional()
    .describe(
      'of a file: what it holds now, or did before it was deleted, by its beginning; missing: not known',
    ),
  mode: text.optional().describe('permissions now, where they are others than before or it is new: octal'),
  modeBefore: text.optional(),
  sameFileAs: text.optional().describe('of a file with several names (hard links): another one of them'),
  target: text.optional().describe('of a link: where it leads'),
  targetBefore: text
    .optional()
    .describe('of what was a link and leads elsewhere now, or is none any more: where it led'),
  objects: count
    .optional()
    .describe('of a directory that was deleted or renamed: what is in it, at any depth'),
  refused: text.optional().describe('why it is not applied with the others: half a sentence'),
  conflict: text.optional().describe('what changed in the workspace meanwhile, so that it is not applied'),
  note: text.optional().describe('what of it is not taken over'),
  applied: z.literal(true).optional().describe('it is in the workspace; missing: it is not'),
});
export type Change = Value<typeof Change>;

export const ChangeSetState = z.enum(CHANGE_SET_STATES);
export type ChangeSetState = Value<typeof ChangeSetState>;

/** How many things were changed in which way. */
export const ChangeCounts = z.strictObject({
  created: count,
  changed: count.describe('content, permissions or times'),
  deleted: count,
  renamed: count,
});
export type ChangeCounts = Value<typeof ChangeCounts>;

/** What a command did to the workspace. */
export const ChangeSet = z.strictObject({
  id: text,
  at: time,
  workspace: text,
  command: text.describe('in one line'),
  state: ChangeSetState.describe(
    'waiting: nothing of it is in the workspace; applied: all that can be, or what was chosen, is; undone: it was, and was taken back',
  ),
  appliedAt: time.optional().describe('of what was applied: when something of it was the last time'),
  undoneAt: time.optional().describe('of what was taken back: when'),
  on: maybe(text).describe('the change set that the command ran on; missing: the workspace'),
  counts: ChangeCounts,
  notApplied: count.describe('changes that are refused or in conflict, and not in the workspace'),
  left: count.describe('changes that can be applied and are not in the workspace'),
});
export type ChangeSet = Value<typeof ChangeSet>;

/** Content that a command removed, which version control cannot restore and undo can. */
export const Gone = z
  .strictObject({
    files: count.describe('files that were deleted'),
    changes: count.describe('files that were changed, and have an older version in their place'),
    history: z.boolean().describe('commits or stashes of git are gone'),
  })
  .describe('what version control does not bring back, and taking it back does; missing: nothing');
export type Gone = Value<typeof Gone>;

/** A change set with its changes. */
export const ChangeSetDetail = ChangeSet.extend({
  changes: z.array(Change),
  more: count.describe('further changes that are not listed'),
});
export type ChangeSetDetail = Value<typeof ChangeSetDetail>;

/** What came of applying a change set, or of taking it back. */
export const AppliedChanges = z.strictObject({
  id: text,
  state: ChangeSetState,
  done: count.describe('changes that were carried out'),
  notDone: z
    .array(z.strictObject({ path: text, why: text }))
    .describe('what stays as it is, and why: half a sentence'),
  leftBehind: z
    .array(LeftBehind)
    .describe('what programs outside would obey of what came, and what was done about it'),
});
export type AppliedChanges = Value<typeof AppliedChanges>;
