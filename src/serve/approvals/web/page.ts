import { createHash } from 'node:crypto';
import { text as STYLE } from './browser/page.css?text';
import { text as FRAME } from './browser/page.html?text';
import { text as SCRIPT } from './browser/page.ts?text';

const hash = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

/** Nothing runs and nothing is loaded but what the page brings; it cannot be framed; text cannot become markup. */
export const PAGE_POLICY = [
  "default-src 'none'",
  `script-src ${hash(SCRIPT)}`,
  `style-src ${hash(STYLE)}`,
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

/** The page, in one piece: its policy lets it load nothing. It is the same for everybody: there is no secret in it. */
export const PAGE = FRAME.replace(
  '<link rel="stylesheet" href="page.css">',
  () => `<style>${STYLE}</style>`,
).replace('<script src="page.js"></script>', () => `<script>${SCRIPT}</script>`);
