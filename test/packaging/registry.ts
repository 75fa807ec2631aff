import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { basename, join } from 'node:path';

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
    const found = packages.find(({ manifest }) => manifest.name === path);
    const wanted = packages.find(({ tarball }) => path === `tarballs/${basename(tarball)}`);
    if (wanted !== undefined) {
      response.end(readFileSync(wanted.tarball));
    } else if (found !== undefined) {
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

function packument({ manifest, tarball }: Published, server: Server): unknown {
  const integrity = `sha512-${createHash('sha512').update(readFileSync(tarball)).digest('base64')}`;
  return {
    name: manifest.name,
    'dist-tags': { latest: manifest.version },
    versions: {
      [manifest.version]: {
        ...manifest,
        dist: { tarball: join(urlOf(server), 'tarballs', basename(tarball)).replace(':/', '://'), integrity },
      },
    },
  };
}

function urlOf(server: Server): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}
