import { isUtf8 } from 'node:buffer';
import { readdirSync, realpathSync, statSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { isBeneath } from '../../../base/absolute-path.ts';
import { errnoOf } from '../../../base/errno-of.ts';
import { refuseShortage } from '../../../base/errors/shortage.ts';
import { orElse } from '../../../base/or-else.ts';
import { redact } from '../../../base/redact.ts';
import { holdsAddressToken, withoutAddressTokens } from '../../../base/secret-address.ts';
import { visibleLine } from '../../../base/visible-text.ts';
import { readRegular } from '../held-directory.ts';
import type { Handling } from './table.ts';

/** What commands get of the user's settings, and what a person should know of what they do not get. */
export interface CarriedSettings {
  /** Beneath the private home. */
  readonly files: readonly { readonly path: string; readonly content: string }[];
  readonly variables: Readonly<Record<string, string>>;
  /** Canonical: certificates, which commands may read. */
  readonly readable: readonly string[];
  /** Sentences. */
  readonly remarks: readonly string[];
  /** The one of them that says which credentials stay outside: of interest to a command that a server may have refused. */
  readonly credentials?: string | undefined;
}

/** Whose settings, and what commands could do to them. */
export interface SettingsOwner {
  readonly home: string;
  /** Where the files of the machine are: `/`. */
  readonly machine: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Variables of `environment` that the policy withholds from commands or gives another value. */
  readonly variables: readonly string[];
  /** Whether a command can reach a server outside. */
  readonly hasNetwork: boolean;
  /** Whether it can reach this host and port. */
  readonly reaches: (host: string, port: number) => boolean;
  /** Canonical roots that commands can write: what lies there is not the user's setting. */
  readonly writable: readonly string[];
  /** Whether they can read a canonical path anyway. */
  readonly isGranted: (path: string) => boolean;
}

/** Larger ones are no settings, and no bundle of certificates. */
const MOST_BYTES = 2 * 1024 ** 2;
const MOST_CERTIFICATES = 512;
/** So many of a kind are named. */
const NAMED = 5;
const QUOTED_CHARACTERS = 200;

/** Gathers what is carried, and what there is to say. */
export class SettingsCollector {
  readonly files: { path: string; content: string }[] = [];
  readonly variables: Record<string, string> = {};
  private readonly readable = new Set<string>();
  private readonly credentials = new Set<string>();
  private readonly said = new Set<string>();

  readonly owner: SettingsOwner;

  constructor(owner: SettingsOwner) {
    this.owner = owner;
  }

  carried(): CarriedSettings {
    const { files, variables } = this;
    const credentials =
      this.credentials.size === 0
        ? undefined
        : `credentials stay outside of the sandbox: ${listed([...this.credentials])}; a server that asks for them refuses commands (401, 403 or 404): run those outside`;
    return {
      files,
      variables,
      readable: [...this.readable],
      remarks: [...this.said, ...(credentials === undefined ? [] : [credentials])],
      credentials,
    };
  }

  /** A path as people write it. */
  nameOf(path: string): string {
    const { home } = this.owner;
    return path.startsWith(`${home}/`) ? `~${path.slice(home.length)}` : path;
  }

  /** A sentence, once. */
  say(sentence: string): void {
    this.said.add(visibleLine(shownAddresses(sentence), 4 * QUOTED_CHARACTERS));
  }

  /** Needed only where there is a network: elsewhere no command misses it. */
  leaveOutCredential(where: string): void {
    if (this.owner.hasNetwork) this.credentials.add(visibleLine(shownAddresses(where), QUOTED_CHARACTERS));
  }

  /**
   * The content of a file of the user's; `undefined`: there is none, or none that can be used, which is said.
   * @throws {SandboxError} `launch.failed` for a shortage.
   */
  read(path: string): Buffer | undefined {
    const unused = (why: string) => {
      this.say(`${this.nameOf(path)} ${why}: commands run without what it says`);
      return undefined;
    };
    try {
      // Most of these files do not exist, and an exception costs more than a stat.
      if (statSync(path, { throwIfNoEntry: false }) === undefined) return undefined;
      const real = realpathSync.native(path);
      if (this.owner.writable.some((root) => isBeneath(real, root)))
        return unused(`leads to ${real}, which commands can write, and was not read`);
      const content = readRegular(real, MOST_BYTES);
      // /dev/null is how one says that there is nothing.
      if (content === undefined && !statSync(real).isCharacterDevice())
        return unused('is no regular file of at most 2 MiB');
      return content;
    } catch (error) {
      refuseShortage(error);
      const errno = errnoOf(error);
      return errno === 'ENOENT' || errno === 'ENOTDIR' ? undefined : unused(`cannot be read (${errno})`);
    }
  }

  /** Like `read`, as text. */
  readText(path: string): string | undefined {
    const content = this.read(path);
    if (content === undefined) return undefined;
    // A NUL, or what is not UTF-8, would become something else.
    if (!content.includes(0) && isUtf8(content)) return content.toString();
    this.say(`${this.nameOf(path)} is not UTF-8: commands run without what it says`);
    return undefined;
  }

  /** A value as commands get it; `undefined`: they do not. `where` is what a person is told. */
  value(as: Handling, value: string, where: string): string | undefined {
    switch (as) {
      case 'proxy':
        return this.owner.hasNetwork ? this.withoutCredentials(value, where) : undefined;
      case 'value':
        return this.withoutCredentials(value, where);
      case 'certificate':
        return this.certificate(value, where);
      case 'choice':
        return this.choice(value, where);
      case 'libraries':
        return this.libraries(value, where);
      case 'credential':
        if (value !== '') this.leaveOutCredential(where);
        return undefined;
      default:
        return undefined;
    }
  }

  /**
   * An address keeps its server and loses who asks; what else looks like a secret stays outside as a whole, be it a part of its
   * path, query or fragment.
   */
  private withoutCredentials(value: string, where: string): string | undefined {
    const plain = withoutUserInfo(value);
    const isSecret = isSecretSetting(plain);
    if (isSecret || plain !== value) this.leaveOutCredential(where);
    return isSecret ? undefined : plain;
  }

  /** A value, if commands can read every absolute path in it; with another one, tools would fail with "no such file". */
  private choice(value: string, where: string): string | undefined {
    if (isSecretSetting(value) || withoutUserInfo(value) !== value) {
      this.say(`${where} stays outside, as it may hold a secret: commands run without it`);
      return undefined;
    }
    for (const [, path = ''] of value.matchAll(/(?:^|[\s:=,;"']|-[A-Za-z]+)(\/[^\s:,;"']*)/g)) {
      if (this.isReadable(path)) continue;
      this.say(
        `${where} stays outside, as commands cannot read ${path}: they run without it; add that with the option readable`,
      );
      return undefined;
    }
    return value;
  }

  private libraries(value: string, where: string): string | undefined {
    const { writable } = this.owner;
    for (const path of value.split(':')) {
      const real = orElse(() => realpathSync.native(path), path);
      if (isAbsolute(path) && ![path, real].some((one) => writable.some((root) => isBeneath(one, root))))
        continue;
      this.say(
        `${where} stays outside, as commands can write ${path || 'their directory'}, from which interpreters would load code: commands run without it`,
      );
      return undefined;
    }
    return this.choice(value, where);
  }

  private isReadable(path: string): boolean {
    try {
      return this.owner.isGranted(realpathSync.native(path));
    } catch (error) {
      refuseShortage(error);
      // What is not there is not there for commands either.
      const errno = errnoOf(error);
      return errno === 'ENOENT' || errno === 'ENOTDIR';
    }
  }

  /** The path of certificates that commands may read: of several with `:` between them, those of which that holds. */
  private certificate(value: string, where: string): string | undefined {
    // In the directory of the command, for it as outside.
    if (!/^[/~]/.test(value)) return this.withoutCredentials(value, where);
    const usable = value.split(':').flatMap((named) => {
      const path = named.startsWith('~/') ? join(this.owner.home, named.slice(2)) : named;
      if (path === '' || !isAbsolute(path)) return [];
      try {
        const real = realpathSync.native(path);
        const isOpen = this.owner.isGranted(real);
        const isMovable = this.owner.writable.some((root) => isBeneath(path, root));
        const why = isOpen
          ? undefined
          : isMovable
            ? 'which commands can lead elsewhere'
            : whyNotCertificates(real);
        if (why === undefined && !isOpen) this.readable.add(path);
        if (why !== undefined) this.say(`${where} names ${path}, ${why}: commands do not get it`);
        return why === undefined ? [path] : [];
      } catch (error) {
        refuseShortage(error);
        this.say(`${where} names ${path}, which cannot be read (${errnoOf(error)}): commands do not get it`);
        return [];
      }
    });
    return usable.length === 0 ? undefined : usable.join(':');
  }
}

/** Whether a setting, or the name of one, has a secret in it, in whatever part of an address. */
export const isSecretSetting = (text: string): boolean => redact(text) !== text || holdsAddressToken(text);

/** A sentence in which no address keeps what may be a secret: who asks, or a token. */
const shownAddresses = (sentence: string): string => withoutAddressTokens(withoutUserInfo(sentence));

/** Removes what stands before the last `@` of an address, except the user of a login by key (ssh), which is part of it. */
export function withoutUserInfo(value: string): string {
  return (
    value
      // A password with characters that end an address, which some tools take all the same; not `host:8080/@scope`.
      .replace(
        /((?:https?|ftps?|socks\w*):[/\\]*[^\s/@:"'<>]+):(?!\d+(?:[/?#]|$))[^\s"'<>]*@/gi,
        (_, start: string) => start.replace(/[^:/\\]*$/, ''),
      )
      .replace(/((?:[a-z0-9.-]+\+)?(?:https?|ftps?|socks\w*):[/\\]*)[^\s/?#"'<>\\]*@/gi, '$1')
      // Without a scheme: `user:password@host`.
      .replace(/(^|[\s=,"'])[^\s/@:="',]+:(?![/\\])[^\s@"']*@(?=[\w.[-])/g, '$1')
      .replace(/(ssh:\/\/[^\s/?#:@"'<>]*):[^\s/?#"'<>]*@/gi, '$1@')
  );
}

/** Every command can read a file that a setting names as certificates: so it must hold nothing else. */
function whyNotCertificates(real: string): string | undefined {
  const info = statSync(real);
  if (!info.isDirectory())
    return isOfCertificates(real) ? undefined : 'which is not a file of certificates only';
  const names = readdirSync(real);
  const areAll =
    names.length <= MOST_CERTIFICATES &&
    names.every((name) => {
      const path = join(real, name);
      return statSync(path, { throwIfNoEntry: false }) === undefined || isOfCertificates(realpathSync(path));
    });
  return areAll ? undefined : 'in which there is something else than certificates';
}

function isOfCertificates(path: string): boolean {
  const content = readRegular(path, MOST_BYTES)?.toString('latin1');
  if (content === undefined || content.includes('PRIVATE KEY')) return false;
  // In DER a sequence whose first part is one, both with lengths of two bytes: keys begin with a number, or a short part.
  return (
    /-----BEGIN (?:TRUSTED |X509 )?(?:CERTIFICATE|CRL)-----/.test(content) ||
    /^\x30\x82[\s\S]{2}\x30\x82/.test(content)
  );
}

/** Some names in a sentence. */
function listed(names: readonly string[]): string {
  const named = names.slice(0, NAMED).join(', ');
  return names.length > NAMED ? `${named} and ${names.length - NAMED} more` : named;
}
