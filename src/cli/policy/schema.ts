import { z } from 'zod';
import { policyFileSchema } from '../../model/policy-file.ts';

/** The JSON Schema of policy files, as text. */
export function policySchema(): string {
  const schema = z.toJSONSchema(policyFileSchema, { io: 'input' });
  return `${JSON.stringify({ title: 'Policy of sandbox-run', ...schema }, null, 2)}\n`;
}
