// The exports of this room for code outside of src: tests and scripts import nothing below it.
export { openAudit } from './open-audit.ts';
export { PATTERNS } from './patterns.ts';
