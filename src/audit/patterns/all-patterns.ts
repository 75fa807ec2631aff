import { createThenExecute } from './create-then-execute.ts';
import { manyRefusals } from './many-refusals.ts';
import { pathTraversal } from './path-traversal.ts';
import type { Pattern } from './pattern.ts';
import { repeatedApprovals } from './repeated-approvals.ts';

/** THE registry of patterns over several commands. */
export const PATTERNS: readonly Pattern[] = [
  createThenExecute,
  repeatedApprovals,
  pathTraversal,
  manyRefusals,
];
