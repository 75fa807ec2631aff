import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { describe, expect, it } from 'vitest';
import { roffMacro, roffNotes, roffText } from '../../src/cli/describe/roff.ts';

const PAGE = fileURLToPath(new URL('../../dist/man/sandbox-run.1', import.meta.url));

/** What groff shows of a source, on one line and without hyphenation. */
async function shown(source: string): Promise<string> {
  const input = `.TH X 1 2025-01-31\n.nh\n.SH S\n${source}\n`;
  const { stdout, stderr } = await execa('groff', ['-man', '-Tutf8', '-ww', '-P-cbou', '-rLL=200n'], {
    input,
  });
  expect(stderr).toBe('');
  return stdout;
}

describe('the man page', () => {
  it('has nothing that mandoc or groff warn about', async () => {
    const lint = await execa('mandoc', ['-T', 'lint', '-W', 'warning', PAGE], { reject: false });
    expect(lint.stdout + lint.stderr).toBe('');
    expect(lint.exitCode).toBe(0);
    const { stderr } = await execa('groff', ['-man', '-Tutf8', '-ww', '-z', PAGE]);
    expect(stderr).toBe('');
  });

  it('shows all of its sections', async () => {
    const { stdout } = await execa('groff', ['-man', '-Tutf8', '-P-cbou', PAGE]);
    const sections = stdout.split('\n').filter((line) => /^[A-Z][A-Z ]+$/.test(line));
    expect(sections).toEqual([
      'NAME',
      'SYNOPSIS',
      'DESCRIPTION',
      'OPTIONS',
      'SUBCOMMANDS',
      'EXAMPLES',
      'EXIT STATUS',
      'ENVIRONMENT',
      'FILES',
      'SEE ALSO',
    ]);
    expect(stdout).toContain('sandbox-run -- git status');
  });
});

describe('text for roff', () => {
  it.each([
    ['a dot that begins a line', '.so /etc/passwd'],
    ['a quote that begins a line', "'so /etc/passwd"],
    ['backslashes', 'a\\nb \\fBx\\fR \\\\ \\*(xx'],
    ['options and what looks like other characters', '--a-b ~/x ^C `id` \'x\' "y"'],
    ['other letters', 'exited, … é 日'],
  ])('stays what it is: %s', async (_, text) => {
    expect(await shown(roffText(text))).toContain(text);
    expect(await shown(roffMacro('SS', text))).toContain(text);
    expect(await shown(roffNotes(`One line:\n  ${text}`).join('\n'))).toContain(text);
  });
});
