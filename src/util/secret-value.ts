/** `$TOKEN`, `${TOKEN}`, `$(pass show x)`: where the secret comes from, not the secret. */
export function isReference(value: string): boolean {
  return /^"?\$(?:[A-Z_][A-Z0-9_]*"?$|\{[A-Z_][A-Z0-9_]*\}"?$|\()/.test(value);
}

/** Too short to be secret, or a switch: `KEY=1`, `AUTH=false`. */
export function isTrivial(value: string): boolean {
  return value.length < 4 || /^(?:true|false)$/i.test(value);
}

/** More than a word of a language: `password: string` has no secret in it. */
export function isRandom(value: string): boolean {
  return value.length >= 6 && /\d/.test(value) && !/[()]/.test(value);
}
