import { join } from 'node:path';
import { isBeneath } from '../../base/absolute-path.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { hostAndPort } from '../../base/host-and-port.ts';
import { visibleLine } from '../../base/visible-text.ts';
import type { Confinement } from '../../confine/confine.ts';
import { errnoName } from '../../confine/kernel/errno.ts';
import type { NativeAddon } from '../../confine/native/contract.ts';
import type { LaunchPlan } from '../../confine/plan/launch-plan.ts';
import {
  isLoopback,
  type Publication,
  type PublishedPort,
  publicationText,
  readPublication,
} from '../../model/index.ts';
import { addressBytes, type Entry } from '../../policy/index.ts';
import { atPlaceOf, homeDirectory, listenerAt, listeningSockets } from '../../workspace/index.ts';
import { whyNotPublished } from './published-in-plan.ts';

/** A port to publish. */
interface Wish {
  readonly publication: Publication;
  /** The caller asked for it (`--publish`): commands do not run without it. */
  readonly isAsked: boolean;
}

/** The ports of one command that are held. */
export interface HeldPorts {
  readonly ports: readonly PublishedPort[];
  /** Sentences that were not told yet. */
  readonly warnings: readonly string[];
  /** The command runs. If it serves at a port that could not be had, that is said: of all others it would be noise. */
  watch(members: () => Promise<readonly number[]>): void;
  /** The command has ended. Returns what there is to say about that. */
  release(): readonly string[];
}

/** Holds the ports that the commands of one sandbox publish, each while a command runs. */
export class PublishedPorts {
  readonly #addon: NativeAddon;
  readonly #wishes: readonly Wish[];
  /** Why nothing can be published; `undefined`: it can. */
  readonly #impossible: string | undefined;
  readonly #isOpen: boolean;
  /** Directories that the commands can write. */
  readonly #commandsWrite: readonly string[];
  /**
   * Called before a command runs, with a sentence about its ports: where they are, if that was not said, and what is taken.
   * `undefined`: these are among the warnings of its result.
   */
  tell: ((sentence: string) => void) | undefined;

  /** @throws {SandboxError} `publish.unavailable`: the caller asked for ports, and there is no way to them. */
  constructor(addon: NativeAddon, wishes: readonly Wish[], plan: LaunchPlan) {
    this.#addon = addon;
    this.#wishes = wishes;
    this.#isOpen = plan.network === 'open';
    this.#commandsWrite = plan.paths.flatMap(({ path, access }) => (access === 'write' ? [path] : []));
    this.#impossible = whyNotPublished(plan);
    if (this.#impossible !== undefined && wishes.some(({ isAsked }) => isAsked))
      throw new SandboxError('publish.unavailable', this.#impossible);
  }

  /**
   * Holds them for a command that is about to start.
   * @throws {SandboxError} `publish.taken`, `publish.failed`: a port that the caller asked for cannot be held.
   */
  hold(confinement: Confinement): HeldPorts {
    const ports: PublishedPort[] = [];
    const ids: number[] = [];
    const missed = new Map<number, string>();
    const release = () => ids.map((id) => this.#addon.unpublish(id)).every(Boolean);
    for (const wish of this.#wishes) {
      const { publication } = wish;
      const { port, inner } = publication;
      if (this.#impossible !== undefined) {
        missed.set(inner, `nothing is published: ${this.#impossible}`);
        continue;
      }
      // The server listens at the host's own port.
      if (this.#isOpen && port === inner) {
        ports.push({ addresses: [], port, inner, relayed: false });
        continue;
      }
      try {
        const held = this.#publish(confinement, wish);
        ids.push(held.id);
        const { published } = held;
        ports.push(published);
        // Results have it, too: this is for callers that need it before.
        if (published.port !== port)
          this.tell?.(
            `port ${inner} of the command is published at ${hostAndPort(published.addresses[0] ?? '', published.port)}`,
          );
      } catch (error) {
        if (wish.isAsked || !(error instanceof SandboxError)) {
          release();
          throw error;
        }
        missed.set(inner, `${error.message}; the command runs without it`);
      }
    }
    const warnings: string[] = [];
    const watching = new MissedPorts(missed, this.tell ?? ((sentence) => warnings.push(sentence)));
    return {
      ports,
      warnings,
      watch: (members) => watching.watch(members),
      release: () => {
        watching.end();
        return release() ? [] : [LOST];
      },
    };
  }

  /** @throws {SandboxError} `publish.taken`, `publish.refused`, `publish.failed`, `file.unusable`. */
  #publish({ native }: Confinement, wish: Wish): { readonly id: number; readonly published: PublishedPort } {
    const { port, orFree, inner, address, socket } = wish.publication;
    const bytes = addressBytes(address ?? '');
    const where =
      socket === undefined ? bytes && Uint8Array.from(bytes) : placeOfSocket(socket, this.#commandsWrite);
    const held = this.#addon.publish(native, where, port, orFree, inner);
    if (held.failure !== undefined) throw notHeld(wish, held, this.#wishes);
    const at = typeof where === 'string' ? { addresses: [], socket: where } : { addresses: held.addresses };
    return { id: held.id, published: { ...at, port: held.port, inner, relayed: true } };
  }
}

/** Ports that one command could not have, with what is to be said once it serves there. */
class MissedPorts {
  readonly #missed: Map<number, string>;
  readonly #tell: (sentence: string) => void;
  #timer: NodeJS.Timeout | undefined;

  constructor(missed: Map<number, string>, tell: (sentence: string) => void) {
    this.#missed = missed;
    this.#tell = tell;
  }

  watch(members: () => Promise<readonly number[]>): void {
    if (this.#missed.size > 0) this.#timer = setInterval(() => void this.#look(members), LOOK_MS).unref();
  }

  end(): void {
    clearInterval(this.#timer);
    this.#missed.clear();
  }

  async #look(members: () => Promise<readonly number[]>): Promise<void> {
    for (const { port = 0 } of listeningSockets(await members())) {
      const sentence = this.#missed.get(port);
      this.#missed.delete(port);
      if (sentence !== undefined) this.#tell(sentence);
    }
    if (this.#missed.size === 0) this.end();
  }
}

/** How often a command is looked at that could not have all of its ports, in milliseconds. */
const LOOK_MS = 500;

/** What carries connections, as the kernel shows its name. */
const RELAY = 'sandbox-run-rel';

/**
 * The canonical path of a socket that is to be made. Whoever connects there trusts that it leads to the command.
 * @throws {SandboxError} `publish.refused`: commands can write its directory; `file.unusable`: a link on the way that a command could have made.
 */
function placeOfSocket(named: string, commandsWrite: readonly string[]): string {
  const path = named.startsWith('~/') ? join(homeDirectory(), named.slice(2)) : named;
  const place = atPlaceOf(path, { commandsWrite }, (found) => found.path);
  if (place === undefined)
    throw new SandboxError(
      'publish.failed',
      `no socket can be made at ${quoted(path)}: its directory is missing`,
    );
  if (commandsWrite.some((root) => isBeneath(place, root)))
    throw new SandboxError(
      'publish.refused',
      `no socket is made at ${quoted(place)}: commands can write there, and put another one in its place; name a directory that only you can write, such as $XDG_RUNTIME_DIR`,
    );
  return place;
}

const quoted = (path: string) => visibleLine(path, LONGEST_SAID);

/** Characters of a path in a message. */
const LONGEST_SAID = 300;

const LOST =
  'what carries connections to a published port was ended from outside while the command ran, which could not be reached from then on';

/** Which ports are to be published: what the caller asks for goes before what a policy says. */
export function wishedPorts(
  publications: readonly Publication[],
  entries: readonly Entry[],
): readonly Wish[] {
  const asked = new Set(
    entries.flatMap(({ key, value, layer }) => {
      const read =
        key === 'network.publish' && layer.name === 'caller' ? readPublication(String(value)) : undefined;
      return read === undefined ? [] : [publicationText(read)];
    }),
  );
  return publications
    .map((publication) => ({ publication, isAsked: asked.has(publicationText(publication)) }))
    .map((wish) => {
      if (wish.isAsked && !isLoopback(wish.publication.address)) throw onlyByPolicy(wish.publication);
      return wish;
    });
}

function onlyByPolicy(publication: Publication): SandboxError {
  const entry = publicationText(publication);
  return new SandboxError(
    'publish.refused',
    `other machines may reach ${publication.address}: only the policy of the user or the machine can publish a port there, with publish = ["${entry}"] in [network]; without an address it is published at 127.0.0.1 and ::1`,
  );
}

function notHeld(
  { publication, isAsked }: Wish,
  {
    failure,
    free = 0,
  }: {
    readonly failure: { readonly errno: number; readonly path: string; readonly stage: string };
    readonly free?: number;
  },
  wishes: readonly Wish[],
): SandboxError {
  const { port, inner, address, socket } = publication;
  const why = errnoName(failure.errno);
  if (socket !== undefined)
    return why === 'EADDRINUSE'
      ? new SandboxError('publish.taken', `no socket is made at ${quoted(socket)}: something else is there`)
      : new SandboxError('publish.failed', `no socket can be made at ${quoted(socket)}: ${why}`);
  if (why !== 'EADDRINUSE')
    return new SandboxError(
      'publish.failed',
      failure.stage === 'publish.bind'
        ? `port ${port} cannot be published${address === undefined ? '' : ` at ${address}`}: ${why === 'EADDRNOTAVAIL' ? 'this machine has no such address' : why}`
        : `port ${port} cannot be published: what carries connections does not start (${failure.path === '' ? why : failure.path})`,
    );
  const holder = listenerAt(port);
  const name = holder?.name === RELAY ? 'another command of sandbox-run' : holder?.name;
  const by = holder === undefined ? '' : ` by ${name} (process ${holder.pid})`;
  const others = new Set(wishes.map((wish) => wish.publication.port));
  // A command of a policy runs on without it.
  const isOffered = isAsked && free !== 0 && !others.has(free);
  const next = isOffered ? publicationText({ port: free, inner, address }) : undefined;
  return new SandboxError(
    'publish.taken',
    `port ${port} is taken${by}${next === undefined ? '' : `; ${free} is free: --publish ${next}`}`,
  );
}
