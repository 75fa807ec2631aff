import { statSync } from 'node:fs';
import { join } from 'node:path';
import { isBeneath } from '../../base/absolute-path.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { readOr } from '../../base/errors/shortage.ts';
import { visibleLine } from '../../base/visible-text.ts';
import type { UnixRow } from '../../confine/plan/network-rules.ts';
import { type SocketGrant, UNIX_ENTRY } from '../../model/index.ts';
import { actsForUser } from './identity.ts';
import { createPathLookup } from './resolve-path.ts';

/** What the entries of `network.unix` stand for on this host. */
interface ListedSockets {
  readonly rows: readonly UnixRow[];
  /** By which commands find them. */
  readonly variables: Readonly<Record<string, string>>;
  /** Sentences. */
  readonly remarks: readonly string[];
}

/** The user whose sockets are listed, and the directories in which commands could replace them. */
interface SocketsOwner {
  readonly home: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Canonical roots that commands can write. */
  readonly writable: readonly string[];
}

/** A socket that an entry stands for; a preset has a name of its own for it. */
interface Meant {
  readonly entry: string;
  readonly path: string;
  /** Where it is named, for messages. */
  readonly named: string;
  readonly variables: Readonly<Record<string, string>>;
}

const DOCKER = '/var/run/docker.sock';
/** Who reaches one of these starts containers with any file of the machine in them. */
const RUNS_CONTAINERS = /(?:^|\/)(?:docker|podman|containerd)\.sock$/;
const SHOWN_CHARACTERS = 200;

/**
 * Looks for the sockets that are listed. A preset without a socket is told: its tool does not run. A path without one is a
 * mistake.
 * @throws {SandboxError} `policy.invalid`, with the entry and what to do.
 */
export function listedSockets(grants: readonly SocketGrant[], owner: SocketsOwner): ListedSockets {
  const rows: UnixRow[] = [];
  const variables: Record<string, string> = {};
  const remarks: string[] = [];
  for (const { entry, ask } of grants) {
    const meant = meantBy(entry, owner);
    const found = 'absent' in meant ? meant.absent : socketAt(meant, owner);
    if (typeof found !== 'string') {
      rows.push({ ...found, asks: ask ?? actsForUser(found.path) });
      if (!('absent' in meant)) Object.assign(variables, meant.variables);
      if (entry === '@docker' || RUNS_CONTAINERS.test(found.path))
        remarks.push(
          `${shown(entry)} is the socket of a container engine: who reaches it can read and change every file of this machine, and so leave the sandbox`,
        );
    } else if (entry.startsWith('@')) {
      remarks.push(`${entry} is not there for commands: ${found}`);
    } else {
      throw new SandboxError(
        'policy.invalid',
        `network.unix: ${found}; start its server first, or take the entry away`,
      );
    }
  }
  return { rows, variables, remarks };
}

function meantBy(entry: string, { home, environment }: SocketsOwner): Meant | { readonly absent: string } {
  if (!UNIX_ENTRY.pattern.test(entry))
    throw new SandboxError(
      'policy.invalid',
      `network.unix: ${JSON.stringify(shown(entry))} ${UNIX_ENTRY.forms}`,
    );
  if (entry === '@ssh-agent') {
    const path = environment.SSH_AUTH_SOCK;
    if (path === undefined || path === '') return { absent: 'SSH_AUTH_SOCK is not set' };
    if (!path.startsWith('/')) return { absent: `SSH_AUTH_SOCK is no absolute path` };
    return {
      entry,
      path,
      named: `SSH_AUTH_SOCK is ${shown(path)}, which`,
      variables: { SSH_AUTH_SOCK: path },
    };
  }
  if (entry === '@docker') {
    const host = environment.DOCKER_HOST;
    if (host === undefined || host === '') return { entry, path: DOCKER, named: DOCKER, variables: {} };
    if (!host.startsWith('unix:///'))
      return { absent: 'DOCKER_HOST names no socket of this machine; list its host in network.allow' };
    const path = host.slice('unix://'.length);
    return { entry, path, named: `DOCKER_HOST is ${shown(host)}, which`, variables: { DOCKER_HOST: host } };
  }
  const path = entry.startsWith('~/') ? join(home, entry.slice(2)) : entry;
  return { entry, path, named: shown(path), variables: {} };
}

/** Or why there is none. */
function socketAt({ entry, path, named }: Meant, { writable }: SocketsOwner): UnixRow | string {
  const { canonical, links, kind, unknown } = createPathLookup().resolve(path);
  if (unknown !== undefined) return `${named} cannot be looked at (${unknown.errno})`;
  if (kind === 'missing') return `${named} does not exist`;
  // Commands can move a link, and so make another socket the one that is listed.
  const link = links.find((one) => writable.some((root) => isBeneath(one.path, root)));
  if (link !== undefined)
    return `${named} leads through the symbolic link ${shown(link.path)}, which commands can change; name what it leads to`;
  const info = infoOf(canonical);
  if (info === undefined) return `${named} cannot be looked at`;
  if (!info.isSocket()) return `${named} is no socket`;
  return { path: canonical, named: path, object: `${info.dev}:${info.ino}`, rule: entry };
}

function infoOf(path: string) {
  return readOr(() => statSync(path, { bigint: true, throwIfNoEntry: false }), undefined);
}

const shown = (text: string): string => visibleLine(text, SHOWN_CHARACTERS);
