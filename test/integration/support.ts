import { join } from 'node:path';
import { afterAll } from 'vitest';
import { createSandbox, type Sandbox, type SandboxOptions } from '../../src/index.ts';
import { makePlace, type Place } from '../library/support.ts';
import { expectNothingLeft } from '../support/leftovers.ts';

/** A place for one test file, in which the built-in policy judges, and what it needs to make sandboxes there. */
export interface Integration {
  readonly place: Place;
  /** A sandbox that is closed at the end of the file. */
  sandbox(options?: SandboxOptions): Promise<Sandbox>;
  /** The same without a judge: what is tried there is the kernel's to refuse. */
  unjudged(options?: SandboxOptions): Promise<Sandbox>;
}

export function makeIntegration(): Integration {
  const place = makePlace();
  process.env.XDG_CONFIG_HOME = join(place.root, 'no-config');
  const open: Sandbox[] = [];
  afterAll(async () => {
    await Promise.all(open.map((sandbox) => sandbox.close()));
    await expectNothingLeft(place);
    place.dispose();
  });
  const sandbox = async (options: SandboxOptions = {}) => {
    const made = await createSandbox({ workspace: place.workspace, ...options });
    open.push(made);
    return made;
  };
  return {
    place,
    sandbox,
    unjudged: (options) => sandbox({ ...options, policy: { unsafe: { unjudged_commands: true } } }),
  };
}
