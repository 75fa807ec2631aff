import { type Finding, finding, type Use } from './behaviour.ts';
import { inherited } from './describe.ts';
import { isSink } from './plain-paths.ts';

/** What the options and scripts of a command make its program do besides what its name says. */
export function findingsOf(use: Use): readonly Finding[] {
  const findings: Finding[] = [];
  for (const option of use.options) {
    const dashed = option.name.length === 1 ? `-${option.name}` : `--${option.name}`;
    switch (option.effect) {
      case 'harmless':
      case 'produces':
      case 'reads':
        break;
      case 'writes':
        // /dev/stdout and its like are where output goes anyway.
        if (option.value !== undefined && isSink(option.value.text)) break;
        findings.push(
          finding(option.effect, 'writes_by_option', `writes through ${dashed}`, option.word.source),
        );
        break;
      case 'removes':
        findings.push(
          finding(option.effect, 'removes_by_option', `deletes through ${dashed}`, option.word.source),
        );
        break;
      case 'loads':
        findings.push(
          finding(
            option.effect,
            'loads_by_option',
            `runs code from a file through ${dashed}`,
            option.word.source,
          ),
        );
        break;
      case 'executes':
        findings.push(
          finding(
            option.effect,
            'executes_by_option',
            `can run a program through ${dashed}`,
            option.word.source,
          ),
        );
        break;
      case 'network':
        findings.push(
          finding(
            option.effect,
            'network_by_option',
            `uses the network through ${dashed}`,
            option.word.source,
          ),
        );
        break;
    }
  }
  if (use.program.inspect !== undefined) findings.push(...use.program.inspect(use));
  const inspect = inherited(use, 'inspect');
  if (inspect !== undefined && inspect !== use.program.inspect) findings.push(...inspect(use));
  return findings;
}
