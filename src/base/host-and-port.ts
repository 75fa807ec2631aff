/** Host and port as in policy entries and messages: an IPv6 address in brackets. */
export function hostAndPort(host: string, port: number): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** Ports of protocols that an entry of a policy has to name. */
const USUAL_PORTS: Readonly<Record<string, number>> = {
  ...{ ssh: 22, sftp: 22, scp: 22, git: 9418, ftp: 21, rsync: 873, telnet: 23 },
};

/**
 * The entry of a policy that lists whom a text names: a URL, `host:port`, git's `user@host:path`, bash's `/dev/tcp/host/port`.
 * `usual`: the port of a host alone; `web`: that of a browser, which an entry need not name. `undefined`: it names nobody, or
 * the port is not known.
 */
export function networkEntry(text: string, usual?: number | 'web'): string | undefined {
  const [, host, port] = /^\/dev\/(?:tcp|udp)\/([^/]+)\/(\d+)/.exec(text) ?? [];
  if (host !== undefined) return `${host}:${port}`;
  const [before = '', scheme] = /^([a-z][a-z0-9+.-]*):\/\//i.exec(text) ?? [];
  const [authority = ''] = /^[^/?#]*/.exec(text.slice(before.length)) ?? [];
  const [, name = '', rest] = /^(?:.*@)?(\[[^\]]*\]|[^:]*)(?::(.*))?$/.exec(authority) ?? [];
  // What a policy does not take, such as a pattern, is no entry.
  if (!/^(?:\w[\w-]*(?:\.[\w-]+)*\.?|\[[\da-f:.]+\])$/i.test(name)) return undefined;
  if (rest !== undefined && /^\d+$/.test(rest)) return `${name}:${rest}`;
  if (scheme === undefined && rest !== undefined) return `${name}:${USUAL_PORTS.ssh}`;
  const protocol = scheme?.toLowerCase().replace(/^(?:git|svn)\+/, '');
  if (protocol === undefined ? usual === 'web' : /^(?:https?|wss?)$/.test(protocol)) return name;
  const known = protocol === undefined ? usual : USUAL_PORTS[protocol];
  return known === undefined ? undefined : `${name}:${known}`;
}
