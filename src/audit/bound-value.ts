import { createHash } from 'node:crypto';
import { visibleJson } from '../util/visible-text.ts';

/** A line of the trail has at most about this many bytes. */
const LONGEST = 256 * 1024;
/** Tried in this order until it fits: characters of a text, items of a list or members of an object. */
const LIMITS = [
  [32_768, 1_000],
  [4_096, 200],
  [512, 60],
  [80, 20],
  [80, 4],
] as const;

const encode = (value: unknown) => visibleJson(JSON.stringify(value));

/**
 * A value as JSON of a bounded size, safe to be shown by `cat`. What is too long is cut, and says so: its size and the SHA-256 of the whole tell it
 * from others that begin alike.
 */
export function boundedJson(value: unknown): string {
  const whole = encode(value);
  if (whole.length <= LONGEST / 6 || Buffer.byteLength(whole) <= LONGEST) return whole;
  for (const [characters, items] of LIMITS) {
    const json = encode(cut(value, characters, items));
    if (Buffer.byteLength(json) <= LONGEST) return json;
  }
  return JSON.stringify({ cut: mark('everything', whole) });
}

function cut(value: unknown, characters: number, items: number): unknown {
  if (typeof value === 'string') return cutText(value, characters);
  if (Array.isArray(value)) {
    const kept = value.slice(0, items).map((item) => cut(item, characters, items));
    return kept.length === value.length
      ? kept
      : [...kept, mark(`${value.length} items`, JSON.stringify(value))];
  }
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value);
  const kept = members.slice(0, Math.max(items, 20)).map(([name, member]) => {
    return [cutText(name, characters), cut(member, characters, items)] as const;
  });
  return Object.fromEntries(kept);
}

function cutText(text: string, characters: number): string {
  if (text.length <= characters) return text;
  // Not between the halves of a surrogate pair.
  return `${text.slice(0, characters).replace(/[\ud800-\udbff]$/, '')}${mark(`${Buffer.byteLength(text)} bytes`, text)}`;
}

function mark(what: string, whole: string): string {
  return `… [cut: ${what}, SHA-256 ${createHash('sha256').update(whole).digest('hex')}]`;
}
