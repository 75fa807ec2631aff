import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { BrowserContextOptions, Locator, Page } from 'playwright-core';
import { afterEach, describe, expect, it } from 'vitest';
import type { Clock } from '../../src/gate/index.ts';
import type { ApprovalRequest } from '../../src/model/index.ts';
import { type ApprovalServer, serveApprovalPage } from '../../src/serve/index.ts';
import { OF_THIS_PROCESS } from '../../src/workspace/index.ts';
import { handClock, makeStatePlace, sampleRequest, until } from '../support/approvals.ts';
import { useChromium } from '../support/chromium.ts';

const place = makeStatePlace();
// What other tests preview meanwhile is not on this page.
process.env.XDG_STATE_HOME = place.stateHome;
const browser = useChromium();
const servers: ApprovalServer[] = [];
const others: Server[] = [];
const pages: Page[] = [];
afterEach(async () => {
  for (const page of pages.splice(0)) await page.context().close();
  for (const server of servers.splice(0)) await server.close();
  for (const other of others.splice(0)) {
    other.closeAllConnections();
    await new Promise((resolve) => other.close(resolve));
  }
});

async function serve(clock?: Clock) {
  const { approvals: store } = await place.open(clock);
  for (const { id } of await store.list('pending')) await store.withdraw(id);
  const server = await serveApprovalPage({ store, around: OF_THIS_PROCESS, port: 0 });
  servers.push(server);
  return {
    store,
    server,
    base: server.address.replace(/#.*/, ''),
    post: (changes: Partial<ApprovalRequest> = {}, ms = 60_000) =>
      store.post(sampleRequest(changes), (clock?.now() ?? Date.now()) + ms),
  };
}

async function newPage(options: BrowserContextOptions = {}) {
  const page = await (await browser().newContext(options)).newPage();
  pages.push(page);
  page.setDefaultTimeout(8_000);
  const problems: string[] = [];
  page.on('pageerror', (error) => problems.push(String(error)));
  page.on('dialog', (dialog) => {
    problems.push(`dialog ${dialog.message()}`);
    void dialog.dismiss();
  });
  return { page, problems };
}

async function open(options: BrowserContextOptions = {}, clock?: Clock) {
  const served = await serve(clock);
  const opened = await newPage(options);
  await opened.page.goto(served.server.address);
  await opened.page.getByText('Live').waitFor();
  return { ...served, ...opened };
}

const card = (page: Page, id: string) => page.locator(`.request[data-id="${id}"]`);
/** As it is rendered. */
const textOf = async (locator: Locator) => (await locator.allInnerTexts()).join('');
/** Clicks once the button takes it: not within half a second of its coming. */
async function press(page: Page, id: string, name: string) {
  await card(page, id).locator(`button[aria-disabled="false"]`, { hasText: name }).click();
}

/** A server of somebody else's, on another port and so of another origin. */
async function otherServer(html: string): Promise<string> {
  const server = createServer((_, response) => {
    response.setHeader('content-type', 'text/html');
    response.end(html);
  });
  others.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

/** How wide the page is, and the lowest contrast between a text and what is behind it (WCAG 2.2). */
const MEASURE = `(() => {
  const channel = (value) => (value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  const luminance = (color) => {
    const [red, green, blue] = color.match(/[0-9.]+/g).map((part) => channel(Number(part) / 255));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const ground = (element) => {
    if (element === null) return 'rgb(255, 255, 255)';
    const color = getComputedStyle(element).backgroundColor;
    return color === 'rgba(0, 0, 0, 0)' ? ground(element.parentElement) : color;
  };
  const contrasts = [...document.querySelectorAll('p, span, dt, dd, li, code, mark, button, h1, h2, h3')]
    .filter((element) => element.checkVisibility() && element.textContent !== '')
    .map((element) => {
      const [high, low] = [getComputedStyle(element).color, ground(element)].map(luminance).sort((a, b) => b - a);
      return (high + 0.05) / (low + 0.05);
    });
  return { wide: document.documentElement.scrollWidth, lowest: Math.min(...contrasts) };
})()`;

describe('the page of approvals', () => {
  it('shows all that a person needs', async () => {
    const { page, post, problems } = await open();
    await page.getByText('Nothing waits for an answer.').waitFor();
    const id = await post({ session: 's-1', command: 'cd sub\ngit push origin main' });
    const request = card(page, id);
    await request.waitFor();
    const text = await textOf(request);
    for (const part of [
      'git push origin main',
      'cd sub',
      '/work/project',
      'git push sends data',
      'GIT_TRACE=1',
      '-LANG',
    ])
      expect(text.split(part), part).toHaveLength(2);
    // What most decisions do not need is there for those who ask.
    const rest = [
      '/usr/bin/git',
      'workspace-write',
      'Writes nothing outside the workspace.',
      'uid:1000, session s-1',
    ];
    for (const part of rest) expect(text).not.toContain(part);
    await request.locator('summary').click();
    const more = await textOf(request.locator('details'));
    for (const part of rest) expect(more).toContain(part);
    expect(text).toMatch(/expires in \d+ s/);
    expect(await request.locator('.command > li').allInnerTexts()).toEqual([
      'cd sub',
      'git push origin main',
    ]);
    expect(await page.title()).toMatch(/^\(1\)/);
    expect(problems).toEqual([]);
  });

  it.each([1_100, 375])('names what is at stake, each reason once, %i pixels wide', async (width) => {
    const { page, post } = await open({ viewport: { width, height: 800 } });
    const lost = Array.from({ length: 18 }, (_, n) => `notes/n${n}.md`);
    const reached = ['origin (https://git.example.org/x.git)', "1234567 'Fix the parser'"];
    const id = await post({ command: ['rm', '-r', 'my notes'], lost, reached });
    await card(page, id).waitFor();
    const text = await textOf(card(page, id));
    for (const part of [
      ...lost.slice(0, 6),
      ...reached,
      'and 12 more',
      "rm -r 'my notes'",
      'git push sends data',
    ])
      expect(text.split(`${part}\n`), part).toHaveLength(2);
    expect(text).not.toContain('notes/n6.md');
    expect(text.indexOf('rm -r')).toBeLessThan(text.indexOf('git push sends data'));
    // Without scrolling sideways, and with the answers behind what they are about.
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width);
    expect(await card(page, id).getByRole('button').allInnerTexts()).toEqual(['Yes, once', 'Always', 'No']);
    expect(text.lastIndexOf('Yes, once')).toBeGreaterThan(text.indexOf('and 12 more'));
  });

  it('the token is not left in the address, and survives a reload', async () => {
    const { page, post, base } = await open();
    expect(page.url()).toBe(base);
    expect(await page.evaluate('document.cookie')).toBe('');
    await page.reload();
    const id = await post();
    await card(page, id).waitFor();
  });

  it.each([
    ['Yes, once', { approved: true, scope: 'once', by: 'web page' }],
    ['No', { approved: false, reason: 'denied', by: 'web page' }],
  ])('%s is one click', async (name, answer) => {
    const { page, post, store } = await open();
    const id = await post();
    await press(page, id, name);
    expect(await until(() => store.take(id))).toEqual(answer);
    await card(page, id).waitFor({ state: 'detached' });
    expect(await textOf(page.locator('#log'))).toContain('git push origin main');
  });

  it.each([
    ['Always', 'always', 'in every session of uid:1000, until it is revoked. It writes no rule'],
    ['Session', 'session', 'in the session s-1 of uid:1000'],
  ])('%s takes a second click, below what will be remembered', async (name, scope, whom) => {
    const { page, post, store } = await open();
    const id = await post({ session: 's-1' });
    await press(page, id, name);
    const panel = card(page, id).getByRole('group', { name: 'What is going to be remembered' });
    const text = await textOf(panel);
    for (const part of ['exactly this command', whom]) expect(text).toContain(part);
    expect(await store.take(id)).toBeUndefined();
    expect(await card(page, id).getByRole('button').allInnerTexts()).toEqual([`Remember: ${name}`, 'Back']);
    await press(page, id, 'Back');
    await panel.waitFor({ state: 'detached' });
    await press(page, id, name);
    await press(page, id, 'Remember');
    expect(await until(() => store.take(id))).toEqual({ approved: true, scope, by: 'web page' });
  });

  it('offers the session only where there is one', async () => {
    const { page, post } = await open();
    const id = await post();
    await card(page, id).waitFor();
    expect(await card(page, id).getByRole('button').allInnerTexts()).toEqual(['Yes, once', 'Always', 'No']);
  });

  it('can be used by keyboard', async () => {
    const { page, post, store } = await open();
    const id = await post();
    await card(page, id).locator('button[aria-disabled="false"]', { hasText: 'No' }).waitFor();
    for (const name of ['More', 'Yes, once', 'Always', 'No']) {
      await page.keyboard.press('Tab');
      expect(await page.evaluate('document.activeElement.textContent')).toBe(name);
    }
    await page.keyboard.press('Enter');
    expect(await until(() => store.take(id))).toMatchObject({ approved: false, reason: 'denied' });
  });

  it('what is answered elsewhere, expires or is withdrawn goes away', async () => {
    const hand = handClock(Date.now());
    const { page, post, store } = await open({}, hand.clock);
    const answered = await post();
    const withdrawn = await post();
    const expired = await post({}, 1_000);
    for (const id of [answered, withdrawn, expired]) await card(page, id).waitFor();
    await store.answer(answered, { approved: true, scope: 'once', by: 'test' });
    await store.withdraw(withdrawn);
    hand.advance(1_000);
    for (const id of [answered, withdrawn, expired]) await card(page, id).waitFor({ state: 'detached' });
    await page.getByText('Nothing waits for an answer.').waitFor();
  });

  it('a click that comes right after the button is not heard', async () => {
    const { page, post, store } = await open();
    // The time of the page stands still from now on.
    await page.clock.install();
    await page.clock.pauseAt(Date.now() + 60_000);
    const id = await post();
    const once = card(page, id).locator('button.once');
    await once.waitFor();
    expect(await once.getAttribute('aria-disabled')).toBe('true');
    await once.click({ force: true });
    await page.clock.runFor(450);
    await once.click({ force: true });
    await page.clock.runFor(100);
    expect(await once.getAttribute('aria-disabled')).toBe('false');
    // Nothing was sent: that would have been noted.
    expect(await page.locator('#log li').count()).toBe(0);
    expect(await store.take(id)).toBeUndefined();
    await once.click();
    expect(await until(() => store.take(id))).toMatchObject({ approved: true });
  });

  it('a button that moved is deaf again', async () => {
    const { page, post, store } = await open();
    for (const command of ['one', 'other']) await post({ command });
    await page.locator('.request').nth(1).waitFor();
    const ids = await page
      .locator('.request')
      .evaluateAll((cards) => cards.map((each) => ('dataset' in each ? JSON.stringify(each.dataset) : '')));
    const [first = '', second = ''] = ids.map((text): string => JSON.parse(text).id);
    const button = card(page, second).locator('button.once');
    await card(page, second).locator('button.once[aria-disabled="false"]').waitFor();
    await page.evaluate(`(() => {
      const watched = document.querySelector('[data-id="${second}"] button.once');
      new MutationObserver(() => {
        document.body.dataset.turned ??= watched.getAttribute('aria-disabled');
      }).observe(watched, { attributes: true, attributeFilter: ['aria-disabled'] });
    })()`);
    await store.withdraw(first);
    await card(page, first).waitFor({ state: 'detached' });
    const turned = async () => (await page.evaluate('document.body.dataset.turned')) ?? undefined;
    expect(await until(turned)).toBe('true');
    await button.and(page.locator('[aria-disabled="false"]')).click();
    expect(await until(() => store.take(second))).toMatchObject({ approved: true });
  });

  it('a click by a script is none', async () => {
    const { page, post, store } = await open();
    const id = await post();
    const deny = card(page, id).locator('button.deny[aria-disabled="false"]');
    await deny.waitFor();
    await page.evaluate(`document.querySelector('[data-id="${id}"] button.once').click()`);
    await deny.click();
    expect(await until(() => store.take(id))).toMatchObject({ approved: false });
  });

  it('offers nothing when the server is gone', async () => {
    const { page, post, server } = await open();
    await card(page, await post()).waitFor();
    await server.close();
    await page.getByText('The server is gone').waitFor();
    expect(await page.getByRole('button').count()).toBe(0);
  });

  it.each([
    ['dark', 'dark', 1_000],
    ['light, 400 pixels wide', 'light', 400],
    ['dark, 320 pixels wide', 'dark', 320],
  ] as const)('is readable: %s', async (_, colorScheme, width) => {
    const { page, post } = await open({ colorScheme, viewport: { width, height: 800 } });
    const id = await post({
      command: `echo ${'x'.repeat(500)}`,
      cwd: `/w/${'y'.repeat(300)}`,
      session: 's'.repeat(90),
    });
    await card(page, id).waitFor();
    await press(page, id, 'Always');
    await card(page, id).locator('.confirm').waitFor();
    const measured = (await page.evaluate(MEASURE)) as { readonly wide: number; readonly lowest: number };
    expect(measured.wide).toBeLessThanOrEqual(width);
    // WCAG AA for text.
    expect(measured.lowest).toBeGreaterThanOrEqual(4.5);
  });
});

describe('attacks on the page of approvals', () => {
  it('text of a command is text', async () => {
    const evil = [
      '<img src=x onerror="document.title=1">',
      '<script>document.title=1</script>',
      '</script><script>document.title=1</script>',
      '<button class="once">Once</button>',
      'javascript:alert(1)//\'"`',
    ].join('\n');
    const { page, post, problems } = await open();
    const id = await post({
      command: evil,
      cwd: evil,
      session: evil,
      profile: evil,
      environment: [evil],
      confinement: [evil],
      parts: [{ source: evil, executable: evil, remarks: [evil] }],
    });
    await card(page, id).waitFor();
    expect(await page.evaluate(`document.querySelectorAll('#requests img, #requests script').length`)).toBe(
      0,
    );
    expect(await card(page, id).locator('.command > li').allInnerTexts()).toEqual(evil.split('\n'));
    expect(await card(page, id).getByRole('button').count()).toBe(4);
    expect(await page.title()).toMatch(/^\(1\) Approvals/);
    expect(problems).toEqual([]);
  });

  it('what would not be seen is seen, whole', async () => {
    const { page, post } = await open();
    const id = await post({ command: `rm \u202e cod.exe\u200b ${'x'.repeat(20_000)} end` });
    await card(page, id).waitFor();
    const shown = await textOf(card(page, id).locator('.command').first());
    expect(shown).toContain('rm \\u{202e} cod.exe\\u{200b} xxx');
    expect(shown).toMatch(/x{20000} end$/);
    expect(await card(page, id).locator('.command mark').allInnerTexts()).toEqual(['\\u{202e}', '\\u{200b}']);
  });

  it('a page of another origin cannot post, read or list', async () => {
    const { base, post, store, server } = await serve();
    const id = await post();
    const token = server.address.split('#')[1];
    const body = JSON.stringify({ id, approved: true, scope: 'always' });
    const { page } = await newPage();
    // Even one that knows the id and, by some miracle, the token.
    await page.goto(
      await otherServer(`<form id=f method=post action="${base}answer" enctype="text/plain" target=frame>
      <input name='{"id":"${id}","approved":true,"scope":"once","x":"' value='"}'></form><iframe name=frame></iframe>`),
    );
    const outcomes = await page.evaluate(`(async () => {
      const attempt = (path, options) =>
        fetch('${base}' + path, options).then((response) => response.text(), () => 'failed');
      const header = { 'x-sandbox-run-token': '${token}' };
      const body = JSON.stringify(${body});
      document.querySelector('form').submit();
      navigator.sendBeacon('${base}answer', new Blob([body], { type: 'text/plain' }));
      return Promise.all([
        attempt('answer', { method: 'POST', mode: 'no-cors', body }),
        attempt('answer', { method: 'POST', body, headers: { ...header, 'content-type': 'application/json' } }),
        attempt('events', { headers: header }),
        attempt('', {}),
      ]);
    })()`);
    expect(outcomes).toEqual(['failed', 'failed', 'failed', 'failed']);
    await until(() => page.frames().find((frame) => frame.url().startsWith('chrome-error:')));
    expect(await store.take(id)).toBeUndefined();
    expect(await store.find(id)).toMatchObject({ state: 'pending' });
  });

  it('a link or an image cannot answer', async () => {
    const { base, post, store } = await serve();
    const id = await post();
    const { page } = await newPage();
    const response = await page.goto(`${base}answer?id=${id}&approved=true&scope=once`);
    expect(response?.status()).toBe(403);
    expect((await page.goto(`${base}answer`))?.status()).toBe(403);
    expect(await store.take(id)).toBeUndefined();
  });

  it('another name that points here is refused (DNS rebinding)', async () => {
    const { server, post, store } = await serve();
    const id = await post();
    // What a page of that name sends that was loaded before it was pointed here.
    const { page } = await newPage({ bypassCSP: true });
    const response = await page.goto(server.address.replace('127.0.0.1', 'rebound.example'));
    expect(response?.status()).toBe(403);
    const status = await page.evaluate(`fetch('/answer', {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-sandbox-run-token': '${server.address.split('#')[1]}' },
      body: JSON.stringify({ id: '${id}', approved: true, scope: 'once' }),
    }).then((response) => response.status)`);
    expect(status).toBe(403);
    expect(await store.take(id)).toBeUndefined();
  });

  it('it cannot be put into a frame', async () => {
    const { server } = await serve();
    const { page } = await newPage();
    await page.goto(await otherServer(`<iframe src="${server.address}"></iframe>`));
    const frame = await until(() => page.frames().find((each) => each.url().startsWith('chrome-error:')));
    expect(await frame.locator('#requests').count()).toBe(0);
  });

  it.each([
    ['no token', ''],
    ['a wrong token', `#${'A'.repeat(43)}`],
  ])('%s shows nothing', async (_, hash) => {
    const { base, post } = await serve();
    await post();
    const { page } = await newPage();
    await page.goto(base + hash);
    await page.getByText('Not admitted').waitFor();
    expect(await page.getByRole('button').count()).toBe(0);
  });

  it('another server on this machine gets no cookie and no referrer', async () => {
    const { page, base } = await open();
    const seen: string[] = [];
    const spy = createServer((request, response) => {
      seen.push(JSON.stringify(request.headers));
      response.end();
    });
    others.push(spy);
    await new Promise<void>((resolve) => spy.listen(0, '127.0.0.1', resolve));
    await page.goto(`http://127.0.0.1:${(spy.address() as AddressInfo).port}/`);
    expect(seen.length).toBeGreaterThan(0);
    for (const headers of seen) {
      expect(headers).not.toMatch(/cookie|token/);
      expect(headers).not.toContain(new URL(base).host);
    }
  });

  it('markup and scripts that get in are not run', async () => {
    const { page } = await open();
    const outcome = await page.evaluate(`(() => {
      const attempt = (work) => {
        try {
          work();
          return 'done';
        } catch {
          return 'refused';
        }
      };
      const script = document.createElement('script');
      return [
        attempt(() => { document.body.innerHTML = '<b>x</b>'; }),
        attempt(() => { script.text = 'document.title = "run"'; document.body.append(script); }),
        document.title,
      ];
    })()`);
    expect(outcome).toEqual(['refused', 'refused', 'Approvals: sandbox-run']);
  });
});
