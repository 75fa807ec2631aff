/** How the page looks. */
export const STYLE = `
:root {
  color-scheme: light dark;
  --ground: light-dark(#f4f5f7, #14161a);
  --card: light-dark(#ffffff, #1d2026);
  --sunken: light-dark(#f0f1f4, #121419);
  --line: light-dark(#d5d9e0, #353a44);
  --text: light-dark(#1b1f27, #e7e9ee);
  --soft: light-dark(#555e6d, #a3abb9);
  --accent: light-dark(#0b57b0, #7db4ff);
  --no: light-dark(#a81e1e, #ff9a94);
  --warn: light-dark(#8a4b00, #ffc06b);
  --warn-ground: light-dark(#fff3df, #3a2a10);
  --mono: ui-monospace, "SF Mono", "Cascadia Mono", "DejaVu Sans Mono", Menlo, monospace;
}
* { box-sizing: border-box; }
[hidden] { display: none !important; }
body {
  margin: 0 auto; padding: 1rem; max-width: 60rem;
  background: var(--ground); color: var(--text);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif;
}
header { display: flex; flex-wrap: wrap; align-items: baseline; justify-content: space-between; gap: 0 1rem; }
h1 { font-size: 1.4rem; margin: 0; }
h2 { font-size: 1rem; margin: 0; }
h3 { font-size: .8rem; margin: 1rem 0 .3rem; color: var(--soft); font-weight: 600; }
#connection { margin: 0; color: var(--soft); font-size: .9rem; }
#connection.lost { color: var(--no); font-weight: 600; }
#empty { padding: 3rem 1rem; text-align: center; color: var(--soft); border: 1px dashed var(--line); border-radius: .6rem; }
ol, ul { list-style: none; margin: 0; padding: 0; }
.request {
  background: var(--card); border: 1px solid var(--line); border-radius: .6rem;
  padding: 1rem; margin: 1rem 0; overflow-wrap: anywhere;
}
.head { display: flex; flex-wrap: wrap; justify-content: space-between; gap: .25rem 1rem; margin-bottom: .6rem; }
.facts { color: var(--soft); font-size: .9rem; }
.high, .medium { color: var(--warn); font-weight: 600; }
.countdown { font-variant-numeric: tabular-nums; color: var(--soft); font-size: .9rem; }
.countdown.soon { color: var(--no); font-weight: 600; }
.command {
  background: var(--sunken); border: 1px solid var(--line); border-radius: .4rem;
  padding: .5rem 0; margin: 0; font: .95rem/1.5 var(--mono); counter-reset: line;
}
.command li {
  counter-increment: line; display: grid; grid-template-columns: 3.2em minmax(0, 1fr); gap: .8em;
  padding: 0 .8em 0 0; white-space: pre-wrap; overflow-wrap: anywhere;
}
.command li::before { content: counter(line); text-align: right; color: var(--soft); user-select: none; }
.command.argv { counter-reset: line -1; }
mark { background: var(--warn-ground); color: var(--warn); border-radius: .2em; outline: 1px solid currentColor; }
code, .mono { font-family: var(--mono); font-size: .9em; white-space: pre-wrap; }
dl { display: grid; grid-template-columns: minmax(6rem, auto) minmax(0, 1fr); gap: .25rem 1rem; margin: .8rem 0 0; }
dt { color: var(--soft); } dd { margin: 0; }
.parts > li { border-left: 3px solid var(--line); padding: .1rem 0 .1rem .7rem; margin: .4rem 0; }
.parts .runs { color: var(--soft); font-size: .9rem; }
.remarks li { color: var(--warn); }
.remarks li::before { content: "! "; font-weight: 700; }
.actions { display: flex; flex-wrap: wrap; gap: .5rem; margin-top: 1rem; }
button {
  font: inherit; font-weight: 600; padding: .45rem 1rem; min-height: 2.6rem; border-radius: .4rem; cursor: pointer;
  background: var(--card); color: var(--accent); border: 1.5px solid currentColor;
}
button.deny { color: var(--no); margin-left: auto; }
button[aria-disabled="true"] { opacity: .45; cursor: default; }
button:focus-visible, .request:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
.confirm { border: 2px solid var(--warn); background: var(--warn-ground); border-radius: .4rem; padding: .8rem; margin-top: 1rem; }
.confirm p { margin: 0 0 .5rem; }
.problem { color: var(--no); font-weight: 600; margin: .6rem 0 0; }
footer { margin-top: 2rem; color: var(--soft); font-size: .9rem; overflow-wrap: anywhere; }
#log:empty::before { content: "nothing yet"; }
@media (max-width: 30rem) {
  body { padding: .6rem; }
  .request { padding: .7rem; }
  dl { grid-template-columns: minmax(0, 1fr); gap: 0; }
  dd { margin-bottom: .4rem; }
  .command li { grid-template-columns: 2em minmax(0, 1fr); gap: .6em; }
  .actions button { flex: 1 1 40%; margin-left: 0; }
}
@media (prefers-reduced-motion: no-preference) { button { transition: opacity .15s; } }
`;
