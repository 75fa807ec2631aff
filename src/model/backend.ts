import { z } from 'zod';
import { text, type Value } from './value.ts';
import { BACKEND_IDS } from './words.ts';

/** The stable name of a backend. */
export const BackendId = z.enum(BACKEND_IDS);
export type BackendId = Value<typeof BackendId>;

/** A backend that was not used, although it is stronger than the one that was. */
export const PassedOver = z.strictObject({
  backend: BackendId,
  reason: text.describe('one sentence: what this host or the policy has against it'),
});
export type PassedOver = Value<typeof PassedOver>;
