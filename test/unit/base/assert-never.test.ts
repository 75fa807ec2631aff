import { expect, it } from 'vitest';
import { assertNever } from '../../../src/base/assert-never.ts';

it('assertNever names the value that no branch took', () => {
  expect(() => assertNever({ kind: 'new' } as never)).toThrow('unexpected value: {"kind":"new"}');
});
