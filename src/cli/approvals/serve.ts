import { join, resolve } from 'node:path';
import { fitsAddress, LONGEST_PATH } from '../../gate/approvals/socket-path.ts';
import { serveApprovalSocket } from '../../gate/approvals/socket-server.ts';
import { serveApprovalPage } from '../../gate/approvals/web/web-server.ts';
import type { ApprovalStore } from '../../gate/state/state.ts';
import { loadAddon } from '../../native/load.ts';
import { stateDirectory } from '../../run/state.ts';
import { printError, printOut } from '../shared/print.ts';
import { aborted, untilEnded } from '../shared/until-ended.ts';

/** `approvals serve`: until a signal comes. */
export async function serveApprovals(
  store: ApprovalStore,
  { port = 0, socket }: { readonly port?: number; readonly socket?: string },
): Promise<string> {
  const { peerCredentials } = loadAddon();
  const path = socket === undefined ? defaultSocket() : resolve(socket);
  await untilEnded(async (over) => {
    const socketServer =
      path === undefined ? undefined : await serveApprovalSocket({ store, path, peerCredentials });
    try {
      const pageServer = await serveApprovalPage({ store, port });
      try {
        const place = socketServer === undefined ? '' : `socket    ${socketServer.address}\n`;
        printOut(`web page  ${pageServer.address}\n${place}`);
        await aborted(over.signal);
      } finally {
        await pageServer.close();
      }
    } finally {
      await socketServer?.close();
    }
  });
  return '';
}

/** In the state directory; `undefined`, and said, if no socket can be there. The user did not choose that path. */
function defaultSocket(): string | undefined {
  const path = join(stateDirectory(), 'approvals.sock');
  if (fitsAddress(path)) return path;
  printError(
    `there is no socket: ${path} is longer than ${LONGEST_PATH} bytes; --socket gives it another path`,
  );
  return undefined;
}
