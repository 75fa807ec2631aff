import type { Argument } from './behaviour.ts';

/** The host that a word names: of a URL, `user@host:path`, `host:port`, or the word itself; `undefined`: it is not known. */
export function hostOf({ text, complete }: Argument): string | undefined {
  const afterScheme = /^[a-z][a-z0-9+.-]*:\/\//i.exec(text)?.[0].length ?? 0;
  const authority = /^[^/?#]*/.exec(text.slice(afterScheme))?.[0] ?? '';
  // What follows an expansion may be the greater part of the name.
  if (!complete && authority.length === text.length - afterScheme) return undefined;
  const name = authority.slice(authority.lastIndexOf('@') + 1);
  const host = name.startsWith('[') ? name.slice(1).replace(/\].*$/, '') : name.replace(/:.*$/, '');
  return host === '' ? undefined : host.toLowerCase().replace(/\.$/, '');
}

/** True for names and addresses of the machine itself, which a sandbox without network has for its own. */
export function isLoopback(host: string): boolean {
  if (host === 'localhost' || host.endsWith('.localhost') || host === 'ip6-localhost') return true;
  if (host === '::1' || host === '::' || host === '0' || host === '0.0.0.0') return true;
  // 127.1 is one, too.
  return /^127(?:\.\d{1,8}){1,3}$/.test(host);
}
