// A reporter of vitest for scripts/test.mjs: what became of each file, as JSON in the file that SANDBOX_RUN_TEST_SUMMARY names.
import { writeFileSync } from 'node:fs';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

/** The closing lines are what is left of a long log. */
const why = ([error] = []) => (error === undefined ? '' : `: ${String(error.message).split('\n', 1)[0]}`);

export default class SummaryReporter {
  onTestRunEnd(modules, unhandledErrors) {
    const files = modules.map((module) => {
      const tests = [...module.children.allTests()];
      const inState = (state) => tests.filter((test) => test.result().state === state);
      const failures = inState('failed').map((test) => `${test.fullName}${why(test.result().errors)}`);
      // A hook or an import that failed leaves the file failed without one of its tests being it.
      if (failures.length === 0 && module.state() === 'failed') {
        failures.push(`(the file itself)${why(module.errors())}`);
      }
      const { duration, collectDuration, setupDuration, prepareDuration } = module.diagnostic();
      return {
        project: module.project.name,
        file: relative(root, module.moduleId),
        seconds: (duration + collectDuration + setupDuration + prepareDuration) / 1000,
        passed: inState('passed').length,
        skipped: inState('skipped').length,
        failures,
      };
    });
    const summary = { files, unhandled: unhandledErrors.map((error) => String(error.message ?? error)) };
    writeFileSync(process.env.SANDBOX_RUN_TEST_SUMMARY, JSON.stringify(summary));
  }
}
