import { lookup, Resolver } from 'node:dns';
import { readFileSync } from 'node:fs';
import type { NameLookup } from '../../model/gate-ports.ts';
import { normalName } from '../../policy/network/entry.ts';
import { errnoOf } from '../../util/errno-of.ts';
import { orElse } from '../../util/or-else.ts';

/** Of an address of which no name server says how long it is good: from a file, say. */
const USUAL_TTL = 60;
/** How long it is waited for that once the addresses are known. */
const TTL_PATIENCE_MS = 50;
/** There is no such name, or it has no address: what getaddrinfo says for good. */
const NO_SUCH_NAME = ['ENOTFOUND', 'ENODATA', 'EAI_NONAME', 'EAI_NODATA'];

/** Looks a name up as programs of this machine do: files, name servers, and what else the machine is set to ask. */
export const lookupAsMachine: NameLookup = (name) =>
  new Promise((done, failed) => {
    let ttl = USUAL_TTL;
    const known = shortestTtl(name).then((seconds) => {
      ttl = seconds ?? USUAL_TTL;
    });
    lookup(name, { all: true, order: 'verbatim' }, (error, found) => {
      if (error !== null) {
        if (NO_SUCH_NAME.includes(errnoOf(error) ?? '')) done({ addresses: [], ttl: 0 });
        else failed(error);
        return;
      }
      const addresses = found.map(({ address }) => address);
      const late = new Promise((over) => setTimeout(over, TTL_PATIENCE_MS).unref());
      void Promise.race([known, late]).then(() => done({ addresses, ttl }));
    });
  });

/** Domains in which programs of this machine look for names that are not whole (resolv.conf(5)). */
export function searchedDomains(path = '/etc/resolv.conf'): readonly string[] {
  const text = orElse(() => readFileSync(path, 'utf8'), '');
  const lines = text.split('\n').map((line) => line.trim().split(/\s+/));
  // The last one counts.
  const [, ...domains] = lines.findLast(([word]) => word === 'search' || word === 'domain') ?? [];
  return domains.map(normalName).filter((domain) => domain !== undefined);
}

/** `undefined`: no name server says. */
async function shortestTtl(name: string): Promise<number | undefined> {
  const resolver = new Resolver({ timeout: 1000, tries: 1 });
  const ask = (resolve: 'resolve4' | 'resolve6') =>
    new Promise<readonly number[]>((done) => {
      resolver[resolve](name, { ttl: true }, (error, found) =>
        done(error === null ? found.map(({ ttl }) => ttl) : []),
      );
    });
  const all = (await Promise.all([ask('resolve4'), ask('resolve6')])).flat();
  return all.length === 0 ? undefined : Math.min(...all);
}
