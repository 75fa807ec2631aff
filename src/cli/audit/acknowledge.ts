import { openAudit } from '../../audit/open-audit.ts';
import { ensureStateDirectory } from '../../host/state-directory.ts';
import { loadAddon } from '../../native/load.ts';
import { defaultPrincipal } from '../../run/state.ts';
import { visibleText } from '../../util/visible-text.ts';
import { printOut } from '../shared/print.ts';
import { trailDirectory } from './read.ts';
import { signingKey } from './verify.ts';

/** Goes on after a break at the end of the trail; 1 if there is none. */
export async function acknowledge({ key }: { readonly key?: string }): Promise<number> {
  const directory = ensureStateDirectory(trailDirectory());
  const trail = openAudit(directory, { lock: loadAddon(), hmacKey: await signingKey(key) });
  try {
    const record = await trail.acknowledge(defaultPrincipal());
    if (record === undefined) {
      printOut('nothing to acknowledge: the end of the trail is whole\n');
      return 1;
    }
    const { kept } = record.details;
    const torn = kept === '' ? '' : `; what was torn is in ${directory}/${kept}`;
    printOut(`${visibleText(`${record.message}${torn}`)}\n`);
    return 0;
  } finally {
    await trail.close();
  }
}
