import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import { SandboxError } from '../../errors/sandbox-error.ts';
import type { ExecutionResult } from '../../model/execution-result.ts';
import { boundariesOf } from '../../run/output/model-message.ts';
import type { OpenSandbox, Sandbox } from '../../run/sandbox.ts';
import { isBeneath } from '../../util/absolute-path.ts';
import { visibleText } from '../../util/visible-text.ts';
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

/** What every profile shows of the system; the tools of this machine may lie elsewhere. */
const SYSTEM = ['/usr', '/bin', '/sbin', '/lib', '/lib64', '/etc'];

/** Within what commands run, in sentences for a model. */
export function describeBoundaries({ workspace, plan, defaults }: Sandbox): string {
  const { writable, readable, network, hosts = [] } = boundariesOf(plan);
  const canWrite = writable.includes(workspace);
  const places = [
    ...(canWrite ? ['the workspace'] : []),
    ...writable.filter((path) => path !== workspace),
    ...(plan.slotDirectories.includes('slot:tmp')
      ? ['a private $TMPDIR that is gone after the command']
      : []),
  ];
  const further = readable.filter(
    (path) => path !== workspace && !SYSTEM.some((root) => isBeneath(path, root)),
  );
  return [
    `Workspace: ${workspace}${canWrite ? '' : ' (read only)'}; commands start there.`,
    `Writable: ${places.join(', ') || 'nothing'}.`,
    `Readable: these, the programs and libraries of the system${further.map((path) => `, ${path}`).join('')}; other files of this machine, such as the home directory and credentials, are out of reach.`,
    network === 'off'
      ? 'There is no network: downloads fail, and to try again does not help.'
      : network === 'listed'
        ? `Of the network only these hosts can be reached: ${hosts.join(', ') || 'none'}; other names do not exist.`
        : 'The network can be used.',
    defaults.timeout === 0
      ? 'There is no time limit.'
      : `A command is ended after ${defaults.timeout / 1000} s, with everything that it started.`,
  ].join(' ');
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
