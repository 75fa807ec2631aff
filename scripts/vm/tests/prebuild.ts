// Makes what the tests make only while they run, so that a virtual machine has it; what they make when they are loaded is
// found by loading them.
import { bundleLauncher, DOOMED, PUBLISHER } from '../../../test/support/launcher.ts';
import { compileRunaway } from '../../../test/support/runaway.ts';

await bundleLauncher();
await bundleLauncher(DOOMED, 'doomed');
await bundleLauncher(PUBLISHER, 'publisher');
compileRunaway();
