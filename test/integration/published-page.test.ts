import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stripVTControlCharacters } from 'node:util';
import { expect, it } from 'vitest';
import { createSandbox } from '../../src/index.ts';
import { makeArena } from '../support/arena.ts';
import { useChromium } from '../support/chromium.ts';
import { patience } from '../support/slow-host.ts';

const MODULES = join(dirname(fileURLToPath(import.meta.url)), '../../node_modules');
const VITE = join(MODULES, 'vite/bin/vite.js');
const arena = makeArena();
const browser = useChromium();

const FILES = {
  'package.json': '{"name":"page","private":true,"type":"module"}',
  'index.html': '<!doctype html><title>page</title><h1></h1><script type="module" src="/main.js"></script>',
  // A page that is loaded anew has no such mark any more.
  'main.js': `import { text } from './text.js';
const show = (words) => { document.querySelector('h1').textContent = words; };
show(text);
import.meta.hot.accept('./text.js', (next) => show(next.text + (window.marked ? ', hot' : ', loaded anew')));
`,
  'text.js': "export const text = 'first';\n",
};

it.each(['off', 'listed'] as const)(
  'a browser outside opens the page of a vite dev server in the sandbox, and sees a change of a file without loading it anew; network %s',
  async (mode) => {
    const workspace = arena.freshCorner();
    for (const [name, text] of Object.entries(FILES)) writeFileSync(join(workspace, name), text);
    mkdirSync(join(workspace, 'node_modules'));
    await using sandbox = await createSandbox({
      workspace,
      policy: { filesystem: { read: [MODULES] }, network: { mode } },
      publish: [{ port: 0, inner: 5173 }],
    });
    const background = true;
    const job = await sandbox.run([process.execPath, VITE, '--port', '5173', '--strictPort'], { background });
    for await (const line of job) if (stripVTControlCharacters(line).includes('Local:')) break;
    expect(job.result).toBeUndefined();
    const page = await browser().newPage();
    page.setDefaultTimeout(patience(30_000));
    await page.goto(`http://localhost:${job.published[0]?.port}/`);
    await page.getByRole('heading', { name: 'first' }).waitFor();
    await page.evaluate('window.marked = true');
    writeFileSync(join(workspace, 'text.js'), "export const text = 'second';\n");
    await page.getByRole('heading', { name: 'second, hot' }).waitFor();
    await page.close();
    await job.end();
  },
);
