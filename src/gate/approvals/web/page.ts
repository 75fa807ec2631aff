import { createHash } from 'node:crypto';
import { SCRIPT } from './page-script.ts';
import { STYLE } from './page-style.ts';

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

/** The page. It is the same for everybody: there is no secret in it. */
export const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Approvals: sandbox-run</title>
<style>${STYLE}</style>
</head>
<body>
<header>
<h1>Approvals</h1>
<p id="connection" role="status">Connecting…</p>
</header>
<main>
<p id="empty" hidden>Nothing waits for an answer.</p>
<ol id="requests" aria-label="Requests that wait for an answer"></ol>
</main>
<footer>
<h2>Answered here</h2>
<ul id="log" role="log"></ul>
<p>A denied or unanswered command does not run. What is remembered: <code>sandbox-run approvals grants</code>.</p>
</footer>
<script>${SCRIPT}</script>
</body>
</html>
`;
