import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { visibleText } from '../../base/visible-text.ts';
import type { ExecutionResult } from '../../model/index.ts';
import type { OpenSandbox } from '../../run/index.ts';
import type { JobTable } from './job-table.ts';
import { refusal } from './results.ts';

/** What the tools of one server work with. */
export interface ToolContext {
  readonly sandbox: OpenSandbox;
  readonly jobs: JobTable;
  /** Tells the operator what a command did to protected paths, and other warnings. */
  readonly tell: (result: ExecutionResult) => void;
  /** Milliseconds after which a job is ended; 0: with the server. */
  readonly longestJob: number;
}

/** A call whose failure is an answer: what is expected to go wrong is a sentence for the model. */
export async function answered(call: () => Promise<CallToolResult>): Promise<CallToolResult> {
  try {
    return await call();
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error;
    return refusal(`${error.code}: ${visibleText(error.message)}`);
  }
}
