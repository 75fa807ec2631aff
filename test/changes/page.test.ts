import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Locator, Page } from 'playwright-core';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Sandbox } from '../../src/index.ts';
import { type ApprovalServer, serveApprovalPage } from '../../src/serve/index.ts';
import { OF_THIS_PROCESS } from '../../src/workspace/index.ts';
import { makeStatePlace, until } from '../support/approvals.ts';
import { makeArena } from '../support/arena.ts';
import { useChromium } from '../support/chromium.ts';
import { HOST, WITH_VIEW } from '../support/tiers.ts';

const it_ = it.skipIf(!HOST.namespaces);
const arena = makeArena();
const place = makeStatePlace();
// What other tests preview meanwhile is not on this page.
process.env.XDG_STATE_HOME = place.stateHome;
const browser = useChromium();
let server: ApprovalServer;
let page: Page | undefined;
beforeEach(async () => {
  const { approvals: store } = await place.open();
  server = await serveApprovalPage({ store, around: OF_THIS_PROCESS, port: 0 });
});
afterEach(async () => {
  await page?.context().close();
  page = undefined;
  await server.close();
});

async function previewed(command: string, files: Readonly<Record<string, string>> = {}) {
  const root = arena.freshCorner();
  for (const [name, text] of Object.entries(files)) writeFileSync(join(root, name), text);
  const sandbox: Sandbox = await arena.sandbox(WITH_VIEW, { workspace: root });
  const { changes, error } = await sandbox.run(command, { effect: 'preview' });
  if (changes?.id === undefined) throw new Error(error?.message ?? 'nothing was changed');
  return { root, sandbox, id: changes.id, sets: await sandbox.changes() };
}

async function open(): Promise<Page> {
  page = await (await browser().newContext()).newPage();
  page.setDefaultTimeout(8_000);
  await page.goto(server.address);
  await page.getByText('Live').waitFor();
  return page;
}
const card = (on: Page, id: string) => on.locator(`#changes .request[data-id="${id}"]`);
const row = (on: Page, id: string, name: string) =>
  card(on, id).locator('.changes > li', { has: on.locator('.change', { hasText: name }) });
/** Once the button takes it. */
const press = (within: Locator, name: string) =>
  within.locator('button[aria-disabled="false"]', { hasText: name }).first().click();
const gone = (path: string) => until(() => !existsSync(path) || undefined);
const come = (path: string) => until(() => existsSync(path) || undefined);

describe('the page of approvals shows changes that wait (needs namespaces)', () => {
  it_('with their diffs, and applies one of them, then the rest', async () => {
    const { root, id } = await previewed('echo two >> a; echo new > b; rm c', { a: 'one\n', c: 'c\n' });
    const on = await open();
    await card(on, id).waitFor();
    const rows = await card(on, id).locator('.change').allInnerTexts();
    expect(rows.sort()).toEqual(['+ b (4 bytes)', '- c (2 bytes)', '~ a (4 -> 8 bytes)']);
    await press(row(on, id, '~ a'), 'Diff');
    await on.locator('.diff .added', { hasText: '+two' }).waitFor();
    await press(row(on, id, '~ a'), 'Apply');
    await on.locator('.change', { hasText: 'a (4 -> 8 bytes; is in the workspace)' }).waitFor();
    expect([readFileSync(join(root, 'a'), 'utf8'), readdirSync(root).sort()]).toEqual([
      'one\ntwo\n',
      ['a', 'c'],
    ]);
    expect(await row(on, id, '~ a').getByRole('button').allInnerTexts()).toEqual(['Diff']);
    // What was open stays open.
    expect(await on.locator('.diff .added', { hasText: '+two' }).count()).toBe(1);
    await press(card(on, id), 'Apply all 2');
    await card(on, id).waitFor({ state: 'detached' });
    expect(readdirSync(root).sort()).toEqual(['a', 'b']);
    expect(await on.locator('#log').textContent()).toContain('2 changes are applied');
  });

  it_('and discards one of them with a click, all with two', async () => {
    const { root, id, sets } = await previewed('echo 1 > a; echo 2 > b');
    const on = await open();
    await press(row(on, id, '+ a'), 'Discard');
    await row(on, id, '+ a').waitFor({ state: 'detached' });
    expect((await sets.show(id)).changes.map(({ path }) => path)).toEqual(['b']);
    await press(card(on, id), 'Discard it');
    await press(card(on, id).getByRole('group'), 'Back');
    await press(card(on, id), 'Discard it');
    await press(card(on, id).getByRole('group'), 'Discard all of it');
    await card(on, id).waitFor({ state: 'detached' });
    await expect(sets.show(id)).rejects.toMatchObject({ code: 'changes.unknown' });
    expect(readdirSync(root)).toEqual([]);
  });

  it_('says what stays as it is, and can be used afterwards', async () => {
    const { root, id } = await previewed('echo two >> a', { a: 'one\n' });
    const on = await open();
    await card(on, id).waitFor();
    writeFileSync(join(root, 'a'), 'mine\n');
    await press(row(on, id, '~ a'), 'Apply');
    await on.locator('#log', { hasText: 'stays as it is: a: it changed' }).waitFor();
    expect(readFileSync(join(root, 'a'), 'utf8')).toBe('mine\n');
    await press(row(on, id, '~ a'), 'Discard');
    await card(on, id).waitFor({ state: 'detached' });
  });

  it_('and what comes and goes elsewhere', async () => {
    const on = await open();
    await on.getByText('Nothing waits for an answer.').waitFor();
    const { id, sets } = await previewed('echo 1 > a');
    await card(on, id).waitFor();
    expect(await on.title()).toMatch(/^\(1\)/);
    await sets.discard(id);
    await card(on, id).waitFor({ state: 'detached' });
  });

  it_('names and contents are text, however they are written', async () => {
    const evil = '<img src=x onerror=document.title=1>';
    const { root, id } = await previewed(
      `echo '${evil}</div><script>document.title=2</script>' > '${evil}'; echo x > $'\\xe2\\x80\\xaea\\nb'; echo 1 > $'\\\\xff'; echo 2 > $'\\xff'`,
    );
    const on = await open();
    await press(row(on, id, 'img'), 'Diff');
    await on.locator('.diff .added', { hasText: 'script' }).waitFor();
    expect(await on.locator('#changes img, #changes script').count()).toBe(0);
    expect(await on.title()).toBe('(1) Approvals: sandbox-run');
    expect((await card(on, id).locator('.change').allInnerTexts()).join('\n')).toContain('\\u{202e}a\\u{a}b');
    // Two names of which each looks like the other one written out.
    await press(row(on, id, '\\x5cxff'), 'Apply');
    await come(join(root, '\\xff'));
    await on.locator('.change', { hasText: '\\x5cxff (2 bytes; is in the workspace)' }).waitFor();
    expect(readdirSync(root, 'latin1')).toEqual(['\\xff']);
    await press(card(on, id), 'Discard all');
    await press(card(on, id).getByRole('group'), 'Discard all of it');
    await card(on, id).waitFor({ state: 'detached' });
  });

  it_('a click by a script, or before the button can have been seen, does nothing', async () => {
    const { root, id, sets } = await previewed('echo 1 > a');
    const on = await open();
    await on.clock.install();
    await on.clock.pauseAt(Date.now() + 60_000);
    await on.reload();
    await card(on, id).waitFor();
    await card(on, id).locator('button.apply').click({ force: true });
    await on.clock.runFor(600);
    await on.evaluate(`document.querySelector('[data-id="${id}"] button.apply').click()`);
    await on.clock.runFor(600);
    expect([await on.locator('#log li').count(), readdirSync(root)]).toEqual([0, []]);
    await sets.discard(id);
  });
});

describe('requests about changes (needs namespaces)', () => {
  const headers = () => {
    const { origin, hash } = new URL(server.address);
    return {
      origin,
      'content-type': 'application/json',
      'x-sandbox-run-token': hash.slice(1),
    };
  };
  const post = (what: string, body: unknown, changed: Readonly<Record<string, string | undefined>> = {}) => {
    const all = Object.entries({ ...headers(), ...changed });
    const kept = all.filter((pair): pair is [string, string] => pair[1] !== undefined);
    return fetch(`${new URL(server.address).origin}/changes/${what}`, {
      method: 'POST',
      headers: Object.fromEntries(kept),
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
  };

  it_.each([
    ['no token', { 'x-sandbox-run-token': undefined }],
    ['a wrong token', { 'x-sandbox-run-token': 'A'.repeat(43) }],
    ['no Origin', { origin: undefined }],
    ['a foreign Origin', { origin: 'http://attacker.example' }],
    ['a page of another site', { 'sec-fetch-site': 'cross-site' }],
    ['a form', { 'content-type': 'application/x-www-form-urlencoded' }],
  ])('are refused with %s', async (_, changed) => {
    const { root, id, sets } = await previewed('echo secret > b');
    for (const what of ['diff', 'apply', 'discard']) {
      const response = await post(what, { id }, changed);
      expect(response.status).toBe(403);
      expect(await response.text()).not.toContain('secret');
    }
    expect(readdirSync(root)).toEqual([]);
    expect((await sets.show(id)).state).toBe('waiting');
    // Exactly this is taken from the page.
    expect((await post('apply', { id })).status).toBe(200);
    expect(readdirSync(root)).toEqual(['b']);
    expect((await post('discard', { id })).status).toBe(200);
  });

  it_.each([
    ['no JSON', 'x', 400],
    ['no id', {}, 400],
    ['an unknown key', { id: 'x', all: true }, 400],
    ['an empty path', { id: 'x', path: '' }, 400],
    ['a set that there is none of', { id: '20260101-000000-abcdef' }, 409],
    ['a path for an id', { id: '../../etc' }, 409],
  ])('%s changes nothing, and is told', async (_, body, status) => {
    for (const what of ['diff', 'apply', 'discard']) expect((await post(what, body)).status).toBe(status);
  });

  it_('by GET, or for something else, are none', async () => {
    const { origin } = new URL(server.address);
    for (const what of ['diff', 'apply', 'discard'])
      expect((await fetch(`${origin}/changes/${what}`, { headers: headers() })).status).toBe(403);
    expect((await post('undo', { id: 'x' })).status).toBe(404);
  });

  it_('a path that leads nowhere in the set reaches nothing', async () => {
    const { root, id, sets } = await previewed('echo 1 > b');
    for (const path of ['../b', '/etc/passwd', 'c', 'b/../../x'])
      expect((await post('apply', { id, path })).status).toBe(409);
    await gone(join(root, 'b'));
    await sets.discard(id);
  });
});
