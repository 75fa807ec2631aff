import { leadingText, literalWord, type Word } from '../../model/index.ts';
import type { Argument, Grammar, Use } from './behaviour.ts';
import { parseOptions } from './options.ts';

/*
 * Calls of programs that can use the network, whose words say that they do not. Only options that are listed here are read:
 * any other, an abbreviation, and a word that is known only when it runs may lead elsewhere.
 */

/** This machine in a URL; `localhost` is not looked up in the DNS (RFC 6761). */
const LOOPBACK = String.raw`(?:localhost|127(?:\.(?:25[0-5]|2[0-4]\d|1?\d?\d)){3}|\[::1\])`;
const LOCAL_URL = new RegExp(String.raw`^(?:https?://)?${LOOPBACK}(?::\d{1,5})?(?:[/?#][^\s@\\]*)?$`, 'i');
const LOCAL_PATH = new RegExp(String.raw`^(?:https?://)?${LOOPBACK}(?::\d{1,5})?/`, 'i');
const LOCAL_HOST = new RegExp(`^(?:${LOOPBACK}|::1)$`, 'i');

/** The text of a word that contains no expansion except shell patterns. */
function textOf({ value, parts }: Word): string | undefined {
  if (value !== undefined) return value;
  const isKnown =
    parts[0]?.kind === 'literal' && parts.every(({ kind }) => kind === 'literal' || kind === 'glob');
  return isKnown ? parts.map((part) => ('text' in part ? part.text : '')).join('') : undefined;
}

/** The words behind the program; `undefined`: something stands there that is not in the grammar. */
function readExactly({ command }: Use, grammar: Grammar) {
  const read = parseOptions(command.words.map(written), 1, { ...grammar, exact: true });
  return read.doubt === undefined && read.openEnded.length === 0 ? read : undefined;
}

/** `localhost/x?y=1`: whatever files this matches as a pattern of the shell, their names begin in the same way. */
function written(word: Word): Word {
  if (word.value !== undefined) return word;
  const text = textOf(word);
  return text !== undefined && LOCAL_PATH.test(leadingText(word)) ? literalWord(text, word.span) : word;
}

const areLocal = (urls: readonly Argument[], form = LOCAL_URL): boolean =>
  urls.length > 0 && urls.every(({ word }) => form.test(word.value ?? ''));

/** Without proxies, files of options, other names for a host (`--connect-to`, `--resolve`), sockets, and `-L`. */
const CURL: Grammar = {
  flags:
    '0 4 6 f g G i I k N O R s S v # compressed create-dirs fail fail-with-body get globoff head http1.0 http1.1 http2 include insecure ipv4 ipv6 no-buffer no-progress-meter progress-bar remote-name remote-time retry-all-errors retry-connrefused show-error silent verbose',
  values:
    'A b c d D e F H m o r u w X connect-timeout cookie cookie-jar data data-ascii data-binary data-raw data-urlencode dump-header form form-string header json max-filesize max-time output output-dir range referer request retry retry-delay retry-max-time url-query user user-agent write-out',
};

/** `curl http://localhost:3000/`: what it sends stays here, and nobody says where to go next. */
export function curlStays(use: Use): boolean {
  const read = readExactly(use, CURL);
  return read !== undefined && areLocal(read.operands);
}

const WGET: Grammar = {
  flags: '4 6 c n N q S v continue no-clobber no-verbose quiet server-response spider timestamping verbose',
  values:
    'O P t T U body-data directory-prefix header max-redirect method output-document post-data timeout tries user-agent',
};
/** Nothing in it that a server could take for the address to redirect to. */
const PLAIN_URL = new RegExp(String.raw`^(?:http://)?${LOOPBACK}(?::\d{1,5})?(?:/[\w.~-]+)*/?$`, 'i');

/** wget goes where it is redirected: what it asks for must not say where to, unless that is turned off. */
export function wgetStays(use: Use): boolean {
  const read = readExactly(use, WGET);
  if (read === undefined) return false;
  const stops = read.options.some(({ name, value }) => name === 'max-redirect' && value?.text === '0');
  return areLocal(read.operands, stops ? LOCAL_URL : PLAIN_URL);
}

const NETCAT: Grammar = { flags: '4 6 n N u v z', values: 'q w' };

/** `nc -z localhost 8080`. */
export function netcatStays(use: Use): boolean {
  const [host, ports, ...more] = readExactly(use, NETCAT)?.operands ?? [];
  if (host === undefined || ports === undefined || more.length > 0) return false;
  return areLocal([host], LOCAL_HOST) && /^\d+(?:-\d+)?$/.test(ports.word.value ?? '');
}

/** Options of pip that only read installed packages. `--outdated`, which asks the index, and options that name one are left out. */
const PIP: Grammar = {
  flags:
    'e editable f files l local q quiet user v verbose all exclude-editable include-editable not-required',
  values: 'exclude format path',
};

/** `pip list`. */
export function pipStays(use: Use): boolean {
  return readExactly(use, PIP) !== undefined;
}

const NPM: Grammar = {
  flags:
    'a all D dev g global json l link long p package-lock-only parseable prod production q quiet s silent ws workspaces include-workspace-root unicode',
  values: 'depth include omit w workspace',
};

/** `npm ls`. Its kin may fetch another version of themselves first, which the project names. */
export function npmStays(use: Use): boolean {
  return use.program.name === 'npm' && readExactly(use, NPM) !== undefined;
}

const CARGO: Grammar = {
  flags:
    'offline frozen locked v verbose q quiet r release all workspace all-targets lib bins tests examples benches doc all-features no-default-features no-run no-fail-fast keep-going no-deps ignore-rust-version document-private-items',
  values:
    'p package exclude bin test example bench F features j jobs profile target message-format manifest-path target-dir color e edges i invert prune depth prefix charset f format filter-platform format-version',
};

/** `cargo test --offline`: cargo is taken at its word. `+NAME` may fetch a tool chain. */
export function cargoStays(use: Use): boolean {
  const read = readExactly(use, CARGO);
  if (read === undefined || read.operands[0]?.text.startsWith('+') === true) return false;
  return read.options.some(({ name }) => name === 'offline' || name === 'frozen');
}
