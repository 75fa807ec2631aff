import { SandboxError } from '../errors/sandbox-error.ts';
import { createProgram, parseArguments } from './shared/parse.ts';
import { printOut } from './shared/print.ts';

const HELP_AFTER = `
Each is strict where the output is: a key that it does not have is not there. The package has them as
files too: sandbox-run/schemas/NAME.json.

Examples:
  sandbox-run schema
  sandbox-run schema run > run.schema.json
  sandbox-run schema --all | jq '.check.properties.verdict'

Exit status: 0; 125 if there is no schema of that name.`;

/** `sandbox-run schema`: JSON Schemas of what is printed with `--json`. */
export async function schema(args: readonly string[]): Promise<number> {
  const program = createProgram('sandbox-run schema')
    .description(
      'Prints the JSON Schema of the output of a command with --json. Without a name, lists the schemas.',
    )
    .argument('[name]', 'name of a schema')
    .option('--all', 'print all schemas, as one JSON object by name')
    .allowExcessArguments(false)
    .addHelpText('after', HELP_AFTER);
  const parsed = parseArguments(program, args);
  if (parsed === undefined) return 0;
  const [name] = parsed.args;
  const { all } = parsed.opts<{ readonly all?: boolean }>();
  if (all === true && name !== undefined)
    throw new SandboxError('usage.invalid', '--all prints every schema; leave the name out');
  const { jsonSchemaOf, PUBLISHED_SCHEMAS } = await import('./schemas/published-schemas.ts');
  const print = (value: object) => printOut(`${JSON.stringify(value, null, 2)}\n`);
  if (all === true) {
    print(
      Object.fromEntries(PUBLISHED_SCHEMAS.map((published) => [published.name, jsonSchemaOf(published)])),
    );
  } else if (name === undefined) {
    for (const published of PUBLISHED_SCHEMAS) printOut(`${published.name.padEnd(20)} ${published.of}\n`);
  } else {
    const found = PUBLISHED_SCHEMAS.find((published) => published.name === name);
    if (found === undefined)
      throw new SandboxError(
        'usage.invalid',
        `there is no schema ${JSON.stringify(name)}; sandbox-run schema lists them`,
      );
    print(jsonSchemaOf(found));
  }
  return 0;
}
