import { type Browser, chromium } from 'playwright-core';
import { afterAll, beforeAll } from 'vitest';

/** A headless Chromium for one test file. It reaches nothing but this machine: every other name is unknown to it. */
export function useChromium(): () => Browser {
  let browser: Browser | undefined;
  beforeAll(async () => {
    browser = await chromium.launch({
      executablePath: '/usr/bin/chromium',
      args: [
        '--host-resolver-rules=MAP rebound.example 127.0.0.1, MAP attacker.example 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost',
        '--disable-background-networking',
        '--disable-component-update',
        // Chromium cannot sandbox itself as root, nor in containers without user namespaces; the pages are ours.
        '--no-sandbox',
      ],
    });
  });
  afterAll(async () => {
    await browser?.close();
  });
  return () => {
    if (browser === undefined) throw new Error('Chromium does not run');
    return browser;
  };
}
