import { createHash } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { Lab } from './lab.ts';

export interface Registry {
  readonly url: string;
  /** How often the tarball was asked for. */
  readonly downloads: () => number;
  close(): Promise<void>;
}

/** A registry with one package. */
export function startRegistry(tarball: Buffer): Promise<Registry> {
  const integrity = `sha512-${createHash('sha512').update(tarball).digest('base64')}`;
  return new Promise((done) => {
    const server: Server = createServer((request, response) => {
      if (request.url?.endsWith('.tgz') === true) {
        downloads += 1;
        response.end(tarball);
        return;
      }
      const dist = { integrity, tarball: `${url}/leftish/-/leftish-1.0.0.tgz` };
      const version = { name: 'leftish', version: '1.0.0', bin: { leftish: 'cli.js' }, dist };
      response.setHeader('content-type', 'application/json');
      response.end(
        JSON.stringify({ name: 'leftish', 'dist-tags': { latest: '1.0.0' }, versions: { '1.0.0': version } }),
      );
    });
    let url = '';
    let downloads = 0;
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : address}`;
      done({
        url,
        downloads: () => downloads,
        close: () =>
          new Promise((closed) => {
            server.closeAllConnections();
            server.close(() => closed());
          }),
      });
    });
  });
}

/** Of `leftish`, which prints 42. */
export function packageTarball(lab: Lab): Buffer {
  const source = lab.project({
    'package/package.json': '{"name":"leftish","version":"1.0.0","bin":{"leftish":"cli.js"}}',
    'package/cli.js': '#!/usr/bin/env node\nconsole.log("leftish", 42)\n',
  });
  source.outside('tar', ['czf', 'package.tgz', 'package']);
  return source.readBytes('package.tgz');
}
