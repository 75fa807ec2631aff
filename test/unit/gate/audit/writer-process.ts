/**
 * A process that appends to a trail, for tests with several of them and with their ends. Takes one JSON object; bundled
 * by `writers.ts`. What was acknowledged is written to standard output before the next record is appended.
 */

import { writeSync } from 'node:fs';
import { createRequire } from 'node:module';
import { openAudit } from '../../../../src/gate/audit/open-audit.ts';
import { decision, result } from './records.ts';

const { directory, addon, name, count, together } = JSON.parse(process.argv[2] ?? '');
const trail = openAudit(directory, { lock: createRequire(import.meta.url)(addon) });
for (let done = 0; done < count; done += together) {
  await Promise.all(
    Array.from({ length: together }, async (_, index) => {
      const request = `${name}-${done + index}`;
      await trail.append(decision(request));
      writeSync(1, `${request}\n`);
      await trail.append(result(request));
    }),
  );
}
await trail.close();
