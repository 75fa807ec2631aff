// What the tests import as 'vitest' in a virtual machine, where vitest itself, with its compiler and its workers, is too
// slow: its own runner and its own assertions.
import {
  ASYMMETRIC_MATCHERS_OBJECT,
  chai,
  customMatchers,
  GLOBAL_EXPECT,
  JestAsymmetricMatchers,
  JestChaiExpect,
  JestExtend,
  setState,
} from '@vitest/expect';
import { getCurrentTest } from '@vitest/runner';

export {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  it,
  onTestFinished,
  test,
} from '@vitest/runner';

chai.use(JestExtend);
chai.use(JestChaiExpect);
chai.use(JestAsymmetricMatchers);

export const expect = (value, message) => {
  const assertion = chai.expect(value, message);
  const test = getCurrentTest();
  return test === undefined ? assertion : assertion.withTest(test);
};
Object.assign(expect, chai.expect, globalThis[ASYMMETRIC_MATCHERS_OBJECT]);
setState({ assertionCalls: 0 }, expect);
Object.defineProperty(globalThis, GLOBAL_EXPECT, { value: expect, writable: true, configurable: true });
expect.extend = (matchers) => chai.expect.extend(expect, matchers);
expect.unreachable = (message) => chai.assert.fail(message ?? 'expected not to be reached');
expect.extend(customMatchers);

/** Asks again until the assertion holds: `await expect.poll(read, { timeout }).toBe(…)`. Milliseconds. */
expect.poll = (read, { interval = 50, timeout = 1000 } = {}) => {
  const asserting = (isNot) =>
    new Proxy(
      {},
      {
        get: (_, name) => {
          if (name === 'not') return asserting(!isNot);
          return async (...args) => {
            for (const end = Date.now() + timeout; ; ) {
              try {
                const assertion = expect(await read());
                return (isNot ? assertion.not : assertion)[name](...args);
              } catch (error) {
                if (Date.now() >= end) throw error;
                await new Promise((done) => setTimeout(done, interval));
              }
            }
          };
        },
      },
    );
  return asserting(false);
};
