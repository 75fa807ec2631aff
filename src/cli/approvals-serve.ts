import { join, resolve } from 'node:path';
import { serveApprovalSocket } from '../gate/approvals/socket-server.ts';
import { serveApprovalPage } from '../gate/approvals/web/web-server.ts';
import type { ApprovalStore } from '../gate/state/state.ts';
import { loadAddon } from '../native/load.ts';
import { stateDirectory } from '../run/state.ts';
import { printOut } from './print.ts';
import { aborted, untilEnded } from './until-ended.ts';

/** `approvals serve`: until a signal comes. */
export async function serveApprovals(
  store: ApprovalStore,
  { port = 0, socket }: { readonly port?: number; readonly socket?: string },
): Promise<string> {
  const { peerCredentials } = loadAddon();
  const path = socket === undefined ? join(stateDirectory(), 'approvals.sock') : resolve(socket);
  await untilEnded(async (over) => {
    const socketServer = await serveApprovalSocket({ store, path, peerCredentials });
    try {
      const pageServer = await serveApprovalPage({ store, port });
      try {
        printOut(`web page  ${pageServer.address}\nsocket    ${socketServer.address}\n`);
        await aborted(over.signal);
      } finally {
        await pageServer.close();
      }
    } finally {
      await socketServer.close();
    }
  });
  return '';
}
