import { join, resolve } from 'node:path';
import type { ApprovalStore } from '../../model/state.ts';
import { loadAddon } from '../../native/load.ts';
import { stateDirectory } from '../../run/state.ts';
import { serveApprovalPage } from '../../serve/approvals/web/web-server.ts';
import { fitsAddress, LONGEST_PATH } from '../../serve/core/claim-path.ts';
import { type Listener, listenForClients } from '../../serve/core/listener.ts';
import { isOurs } from '../../serve/core/peer.ts';
import { queueOffer } from '../../serve/queue-offer.ts';
import { printError, printOut } from '../shared/print.ts';
import { aborted, untilEnded } from '../shared/signals.ts';

/** `approvals serve`: until a signal comes. */
export async function serveApprovals(
  store: ApprovalStore,
  { port = 0, socket }: { readonly port?: number; readonly socket?: string },
): Promise<string> {
  const path = socket === undefined ? defaultSocket() : resolve(socket);
  await untilEnded(async (over) => {
    const listener = path === undefined ? undefined : await listen(store, path);
    try {
      const pageServer = await serveApprovalPage({ store, port });
      try {
        const place = listener === undefined ? '' : `socket    ${listener.path}\n`;
        printOut(`web page  ${pageServer.address}\n${place}`);
        await aborted(over.signal);
      } finally {
        await pageServer.close();
      }
    } finally {
      await listener?.close('the server is stopping');
    }
  });
  return '';
}

function listen(store: ApprovalStore, path: string): Promise<Listener> {
  return listenForClients(queueOffer(store, printError), {
    ...{ path, name: 'approvals serve', sharedDirectory: true, admits: isOurs, addon: loadAddon() },
  });
}

/** In the state directory; `undefined`, and said, if no socket can be there. Nobody chose that path for it. */
function defaultSocket(): string | undefined {
  const path = join(stateDirectory(), 'approvals.sock');
  if (fitsAddress(path)) return path;
  printError(
    `there is no socket: ${path} is longer than ${LONGEST_PATH} bytes; --socket gives it another path`,
  );
  return undefined;
}
