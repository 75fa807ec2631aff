import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { afterAll, describe, expect, it } from 'vitest';
import {
  type CommandDescription,
  collectPrograms,
  describeAll,
  everyCommand,
  exitStatuses,
  FILES,
} from '../../src/cli/index.ts';
import { cli, makePlace } from './support.ts';

const PAGE = fileURLToPath(new URL('../../man/sandbox-run.1', import.meta.url));

const place = makePlace();
afterAll(() => place.dispose());

/** What groff shows, without hyphenation, as sections by their headings. */
async function shownSections(): Promise<ReadonlyMap<string, string>> {
  const { stdout } = await execa('groff', ['-man', '-Tutf8', '-P-cbou', '-rHY=0', PAGE]);
  const [, ...parts] = stdout.split(/^([A-Z][A-Z ]+)$/m);
  return new Map(parts.flatMap((part, index) => (index % 2 === 0 ? [[part, parts[index + 1] ?? '']] : [])));
}

const namesOf = (commands: readonly CommandDescription[]) =>
  new Set(commands.flatMap(({ options }) => options.flatMap(({ names }) => names)));

/** What stands before the explanations of a list. */
const tagsOf = (section = '') => [...section.matchAll(/^ {7}(\S+)/gm)].map(([, tag = '']) => tag);

describe('the man page', () => {
  it('has nothing that mandoc or groff warn about', async () => {
    const lint = await execa('mandoc', ['-T', 'lint', '-W', 'warning', PAGE], { reject: false });
    expect(lint.stdout + lint.stderr).toBe('');
    expect(lint.exitCode).toBe(0);
    const { stderr } = await execa('groff', ['-man', '-Tutf8', '-ww', '-z', PAGE]);
    expect(stderr).toBe('');
  });

  it('shows all of its sections', async () => {
    expect([...(await shownSections()).keys()]).toEqual([
      'NAME',
      'SYNOPSIS',
      'DESCRIPTION',
      'OPTIONS',
      'EXIT STATUS',
      'FILES',
      'SEE ALSO',
    ]);
  });

  it('names only options that there are', async () => {
    const root = describeAll(await collectPrograms());
    const sections = await shownSections();
    const optionsIn = (text = '') => [...text.matchAll(/(?<![\w-])--?[a-z][a-z-]*/g)].map(([name]) => name);
    const named = optionsIn(sections.get('OPTIONS'));
    expect(named.length).toBeGreaterThan(10);
    const own = namesOf([root]);
    expect(named.filter((name) => !own.has(name))).toEqual([]);
    const all = namesOf(everyCommand(root));
    expect(optionsIn([...sections.values()].join('\n')).filter((name) => !all.has(name))).toEqual([]);
  });

  it('names only subcommands, exit statuses and files that there are', async () => {
    const sections = await shownSections();
    const { subcommands } = describeAll(await collectPrograms());
    const known = subcommands.map(({ path }) => path.join(' '));
    const [, list = ''] = (sections.get('DESCRIPTION') ?? '').split('subcommands:');
    expect(tagsOf(list)).toContain('doctor');
    expect(tagsOf(list).filter((name) => !known.includes(name))).toEqual([]);
    const statuses = exitStatuses().map(({ status }) => status);
    const shown = tagsOf(sections.get('EXIT STATUS')).filter((tag) => /^\d/.test(tag));
    expect(shown).toContain('126');
    expect(shown.filter((status) => !statuses.includes(status))).toEqual([]);
    expect(tagsOf(sections.get('FILES'))).toEqual(FILES.map(([name]) => name));
  });
});

describe('sandbox-run help all', () => {
  it('has every option and every subcommand', async () => {
    const { options, subcommands } = describeAll(await collectPrograms());
    const { stdout } = await cli(place, ['help', 'all']);
    expect(options.length).toBeGreaterThan(20);
    for (const { names } of options) expect(stdout).toContain(`\n  ${names.join(', ')} `);
    for (const { path } of subcommands)
      expect(stdout).toMatch(new RegExp(`^ {2}${path.join(' ')} +\\S`, 'm'));
  });
});
