import { readFile } from 'node:fs/promises';
import { SandboxError } from '../errors/sandbox-error.ts';
import type { PolicyFile } from './schema.ts';

/**
 * Reads and validates a policy file.
 * @throws {SandboxError} `policy.unreadable`, `policy.invalid` with file, line or key.
 */
export async function loadPolicyFile(path: string): Promise<PolicyFile> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    throw new SandboxError('policy.unreadable', `cannot read the policy ${path} (${code})`);
  }
  return parsePolicy(text, path);
}

/** Parses policy text; `name` is what messages call it. Loads the TOML and schema libraries on first use. */
export async function parsePolicy(text: string, name: string): Promise<PolicyFile> {
  const [{ parse, TomlError }, { policyFileSchema }] = await Promise.all([
    import('smol-toml'),
    import('./schema.ts'),
  ]);
  let data: unknown;
  try {
    data = parse(text);
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    const reason = error.message.split('\n')[0]?.replace(/^Invalid TOML document: /, '');
    throw new SandboxError('policy.invalid', `${name}:${error.line}:${error.column}: ${reason}`);
  }
  const result = policyFileSchema.safeParse(data);
  if (result.success) return result.data;
  const problems = result.error.issues.map((issue) => {
    const key = issue.path.map(String).join('.');
    return key === '' ? issue.message : `${key}: ${issue.message}`;
  });
  throw new SandboxError('policy.invalid', `${name}: ${problems.join('; ')}`);
}
