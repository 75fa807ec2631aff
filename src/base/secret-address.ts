import { looksSecretParameter } from './secret-name.ts';

/** Says that a part of a text is a secret. */
type Found = (from: number, to: number) => void;

/** Shorter parts of an address are names: tokens of registries have 16 characters and more. */
const SHORTEST = 16;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
/** Beginnings by which services mark their tokens, whatever follows. */
const MARKED =
  /^(?:(?:gl(?:pat|dt|rt|cbt|ptt|soat|ft|imt|agent)-|gh[opusr]_|github_pat_|xox[abeoprs]-|dckr_pat_|shpat_|do[opr]_v1_)[\w.=-]{8,}|(?:npm_|hf_|[sr]k_|pypi-|rubygems_)(?=[a-zA-Z]*\d)[A-Za-z0-9]{8,}|(?:AKC|cmVmdGtu|eyJ)[\w.=-]{16,}|AKIA[A-Z0-9]{16})$/;
/** What hexadecimal digits follow that everybody may know: a commit, or what a file is checked by. */
const PUBLIC_HEX =
  /^(?:commits?|tree|blobs?|raw|archive|tarball|zipball|zip|compare|revisions?|rev|ref|refs|sha|sha1|sha256|sha512|md5|digest|hash|checksum|integrity|objects|tag|branch|v|version|src|edit|blame)$/i;

/**
 * Finds the parts of addresses in a text that look like tokens by themselves: of their paths, queries and fragments, as some
 * registries have them. `isStrict`: for a setting, which leads to the same place each time. Elsewhere commits, digests and
 * identifiers of things stand in addresses, too: hexadecimal digits count there only where a token would stand first.
 */
export function findInAddresses(text: string, found: Found, isStrict = false): void {
  for (const address of text.matchAll(isStrict ? ANY_ADDRESS : ADDRESS)) {
    const [whole, head = ''] = address;
    const start = address.index + head.length;
    const parts = [...whole.slice(head.length).matchAll(/[^/?#&;=@,|\s]+/g)].map(({ 0: part, index }) => ({
      part,
      index: start + index,
      mark: index === 0 ? '' : whole.charAt(head.length + index - 1),
    }));
    for (const [at, { part, index, mark }] of parts.entries()) {
      // First comes the host.
      if (at === 0 && head !== '') continue;
      const before = parts[at - 1]?.part ?? '';
      const isFirst = at === 1 || mark === '=' || mark === '#';
      const around = { before, after: parts[at + 1]?.part ?? '', isFirst, isStrict };
      const isNamed = mark === '=' && looksSecretParameter(before) && part.length > 3;
      if (isNamed || decoded(part).some((one) => isToken(one, around))) found(index, index + part.length);
    }
  }
}

const SEPARATORS = /[/?#&;=@,|\s]+/;
/** With the scheme and the slashes as the first group. */
const ADDRESS = /(?<![a-z0-9+.-])([a-z][a-z0-9+.-]*:\/\/)[^\s"'<>`\\|,]+/gi;
/** Also one without a scheme, as tools take it in settings. */
const ANY_ADDRESS = /(?<![^\s"'<>`\\|,])((?:[a-z][a-z0-9+.-]*:)?\/\/)?[^\s"'<>`\\|,]*[/?=][^\s"'<>`\\|,]*/gi;

/** What a part says once what is written as `%2F` is read, be it written so more than once: it may be several then. */
function decoded(part: string): readonly string[] {
  let text = part;
  for (let times = 0; times < 3 && text.includes('%'); times += 1) {
    try {
      text = decodeURIComponent(text);
    } catch {
      break;
    }
  }
  return text.split(SEPARATORS);
}

interface Around {
  readonly before: string;
  readonly after: string;
  readonly isFirst: boolean;
  readonly isStrict: boolean;
}

function isToken(part: string, { before, after, isFirst, isStrict }: Around): boolean {
  if (MARKED.test(part)) return true;
  if (part.length < SHORTEST) return false;
  const isHex = /^(?:[0-9a-f]{20,}|[0-9A-F]{20,})$/.test(part) && /[a-f]/i.test(part) && /\d/.test(part);
  if (isHex || UUID.test(part))
    // A project of a forge can have such a name, before what is kept in it.
    return !PUBLIC_HEX.test(before) && after !== '_packaging' && (isStrict || isFirst);
  // A name has its words apart. What is checked by the mark before it is no token.
  return !PUBLIC_HEX.test(before) && part.split(/[-_.~+:!$*()%]+/).some(isRandomWord);
}

/** Letters and digits in which nothing is to be read. */
function isRandomWord(word: string): boolean {
  if (word.length < SHORTEST || word.length > 512) return false;
  const letters = word.replace(/[^A-Za-z]/g, '').length;
  if (letters < 4 || word.length - letters < 1) return false;
  const read = [...word.matchAll(/[A-Z]?[a-z]{3,}|[A-Z]{4,}/g)]
    .map(([run]) => run)
    .filter(isReadable)
    .reduce((sum, run) => sum + run.length, 0);
  return read < word.length / 2;
}

/** Can be spoken: a vowel at least in each three or four letters. */
const isReadable = (run: string) =>
  run.length >= 4 &&
  /[aeiouy]/i.test(run) &&
  !/[^aeiouy]{5}|[aeiou]{4}|[qxzj][bcdfghjklmnpqrstvwxz]/i.test(run);

/** Whether a setting has a token in an address. Certificates are none. */
export function holdsAddressToken(setting: string): boolean {
  let isFound = false;
  const text = setting.replace(
    /-----BEGIN ((?:TRUSTED |X509 )?CERTIFICATE)-----[\s\S]*?-----END \1-----/g,
    '',
  );
  findInAddresses(
    text,
    () => {
      isFound = true;
    },
    true,
  );
  return isFound;
}

/** A name of a setting, or a sentence about one, without the tokens of addresses in it. */
export function withoutAddressTokens(text: string): string {
  const parts: (readonly [number, number])[] = [];
  findInAddresses(text, (from, to) => parts.push([from, to]), true);
  return parts.reduceRight((rest, [from, to]) => `${rest.slice(0, from)}[redacted]${rest.slice(to)}`, text);
}
