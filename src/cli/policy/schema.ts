import { z } from 'zod';
import { policyFileSchema } from '../../model/policy-file.ts';
import { jsonText } from '../shared/print.ts';

/** The JSON Schema of policy files, as text. */
export function policySchema(): string {
  const schema = z.toJSONSchema(policyFileSchema, { io: 'input' });
  return jsonText({ title: 'Policy of sandbox-run', ...schema });
}
