import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { basename } from 'node:path';

/** A published package: its manifest, and its tarball. */
interface Published {
  readonly manifest: Readonly<Record<string, unknown>> & { readonly name: string; readonly version: string };
  readonly tarball: string;
}

/** A registry on the loopback with a few packages in it, as npm asks for them. */
export interface Registry {
  readonly url: string;
  close(): Promise<void>;
}

export async function serveRegistry(packages: readonly Published[]): Promise<Registry> {
  const server = createServer((request, response) => {
    const path = decodeURIComponent(request.url ?? '').slice(1);
    const found = packages.filter(({ manifest }) => manifest.name === path);
    const wanted = packages.find(({ tarball }) => path === `tarballs/${basename(tarball)}`);
    if (wanted !== undefined) {
      response.end(readFileSync(wanted.tarball));
    } else if (found.length > 0) {
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify(packument(found, server)));
    } else {
      response.statusCode = 404;
      response.end('{}');
    }
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', () => listening()));
  return {
    url: urlOf(server),
    close: () => new Promise((closed) => server.close(() => closed())),
  };
}

/** What a registry says of one name: each of its versions. */
function packument(published: readonly Published[], server: Server): unknown {
  const versions = published.map((one) => [one.manifest.version, versionOf(one, server)] as const);
  return {
    name: published[0]?.manifest.name,
    'dist-tags': { latest: published[0]?.manifest.version },
    versions: Object.fromEntries(versions),
  };
}

function versionOf({ manifest, tarball }: Published, server: Server): unknown {
  const integrity = `sha512-${createHash('sha512').update(readFileSync(tarball)).digest('base64')}`;
  return { ...manifest, dist: { tarball: `${urlOf(server)}tarballs/${basename(tarball)}`, integrity } };
}

function urlOf(server: Server): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}
