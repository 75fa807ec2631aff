import type { Control } from '../control.ts';
import { approved } from './approved.ts';
import { counted } from './counted.ts';
import { exposed } from './exposed.ts';
import { judged } from './judged.ts';
import { recorded } from './recorded.ts';
import { resolved } from './resolved.ts';
import { sessionTaints } from './session-taints.ts';
import { told } from './told.ts';
import { wanted } from './wanted.ts';

/** THE registry of controls: what a request passes on its way to the launch, in this order. */
export const CONTROLS: readonly Control[] = [
  sessionTaints,
  resolved,
  judged,
  approved,
  wanted,
  counted,
  exposed,
  recorded,
  told,
];
