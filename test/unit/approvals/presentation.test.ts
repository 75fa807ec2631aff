import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { presentQuestion, presentRequest, sizeOfCommand } from '../../../src/approvals/presentation.ts';
import { sampleRequest } from '../../support/approvals.ts';

/** What stands behind the gutters of the rows with these labels. */
function textBehind(shown: string, label: RegExp): string {
  let own = false;
  return shown
    .split('\n')
    .flatMap((row) => {
      const [, name = '', mark, text = ''] = /^(.{12})([|:]) (.*)$/.exec(row) ?? [];
      if (mark === '|') own = label.test(name.trim());
      return own ? [mark === '|' ? `\n${text}` : text] : [];
    })
    .join('')
    .slice(1);
}

const HEREDOC = ['cat > x.sh <<EOF', ...Array.from({ length: 30 }, (_, i) => `line ${i}`), 'EOF'].join('\n');

describe('a question', () => {
  it('begins with why it is asked, then what it would touch, and leaves out what is usual', () => {
    const touches = ['x.sh', 'the network'];
    expect(presentQuestion(sampleRequest({ touches, environment: [] }))).toBe(
      [
        'Run it?     | git push sends data.',
        'command     | git push origin main',
        'directory   | /work/project',
        'touches     | x.sh, the network; No network.; Writes nothing outside the workspace.',
        '',
      ].join('\n'),
    );
  });

  it('says what is not usual: variables, and programs that are none of the system', () => {
    const part = { source: 'git push', executable: '/work/project/bin/git', remarks: [] };
    expect(presentQuestion(sampleRequest({ parts: [part, part] }))).toContain(
      'with        | GIT_TRACE=1; -LANG; runs /work/project/bin/git\n',
    );
  });

  it('has all lines of a command, or some and how many there are', () => {
    const request = sampleRequest({ command: HEREDOC });
    expect(textBehind(presentQuestion(request), /^line \d+$/)).toBe(HEREDOC);
    const brief = presentQuestion(request, { commandRows: 3 });
    expect(brief.split('\n').slice(0, 4)).toEqual([
      'Run it?     | git push sends data.',
      'line 1      | cat > x.sh <<EOF',
      'line 2      | line 0',
      '            | … 32 lines, 250 characters in all',
    ]);
    expect(brief.trimEnd().split('\n')).toHaveLength(5);
  });

  it('any text of any request stays visible, behind the gutter, on lines that fit', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary', maxLength: 300 }),
        fc.integer({ min: 40, max: 120 }),
        (text, columns) => {
          const evil = sampleRequest({ command: text, cwd: text, touches: [text], environment: [text] });
          const shown = presentQuestion(evil, { columns });
          expect(shown.replaceAll('\n', '')).not.toMatch(/[\p{C}\p{Zl}\p{Zp}]/u);
          for (const row of shown.slice(0, -1).split('\n')) {
            expect(row).toMatch(/^.{12}[|:] /u);
            expect([...row].length).toBeLessThanOrEqual(columns);
          }
        },
      ),
    );
  });
});

describe('the presentation of a request', () => {
  it('says everything that a person needs', () => {
    expect(presentRequest(sampleRequest({ session: 's1' }))).toBe(
      [
        'command     | git push origin main',
        'directory   | /work/project',
        'policy      | ask, risk medium, reach network',
        'rules       | ask: git push sends data.',
        'part        | git push origin main',
        '  runs      | /usr/bin/git',
        '  remark    | It changes another repository.',
        'environment | GIT_TRACE=1',
        '            | -LANG',
        'profile     | workspace-write',
        'confinement | Writes nothing outside the workspace.',
        '            | No network.',
        'asked by    | uid:1000, session s1',
        '',
      ].join('\n'),
    );
  });

  it('shows lines as lines, and cuts nothing', () => {
    const command = `cat <<EOF\n${'x'.repeat(5_000)}\nEOF\nrm -r build`;
    const shown = presentRequest(sampleRequest({ command }));
    expect(textBehind(shown, /^line \d+$/)).toBe(command);
    expect(shown).toContain('line 4      | rm -r build');
    expect(sizeOfCommand(sampleRequest({ command }))).toBe('4 lines, 5026 characters');
  });

  it('tells words of an argument vector apart', () => {
    const shown = presentRequest(sampleRequest({ command: ['git', 'commit', '-m', 'a b ', '', "it's\n"] }));
    expect(textBehind(shown, /^(program|word \d+)$/).split('\n')).toEqual([
      'git',
      'commit',
      '-m',
      "'a b '",
      "''",
      "'it'\\''s\\u{a}'",
    ]);
  });

  it('tells them apart in the part, too', () => {
    const command = ['rm', '-r', 'a b', ''] as const;
    const parts = [
      { source: command.join(' '), executable: '/bin/rm', remarks: [] },
      { source: 'rm x', executable: '/bin/rm', remarks: [] },
    ];
    const shown = presentRequest(sampleRequest({ command, parts }));
    expect(shown).toContain("part        | rm -r 'a b' ''\n");
    expect(shown).toContain('part        | rm x\n');
  });

  it('says a remark once', () => {
    const remarks = ['It changes another repository.', 'git push sends data.'];
    const part = { source: 'git push', executable: '/usr/bin/git', remarks };
    const shown = presentRequest(sampleRequest({ parts: [part, part, { ...part, remarks: [] }] }));
    expect(textBehind(shown, /^remark$/).split('\n')).toEqual([
      'It changes another repository.',
      'as above: rules',
      'as above',
      'as above: rules',
    ]);
    expect(shown.match(/git push sends data/g)).toHaveLength(1);
  });

  it('lets no text pass for a row of its own', () => {
    const fake = `ok${' '.repeat(200)}directory   | /elsewhere`;
    const shown = presentRequest(sampleRequest({ command: fake, cwd: `/w\n${fake}`, environment: [fake] }));
    for (const row of shown.trimEnd().split('\n')) expect(row).toMatch(/^.{12}[|:] /);
    expect(shown.split('\n').filter((row) => row.startsWith('directory'))).toHaveLength(1);
  });

  it('any text of any request stays whole and visible, on lines that fit', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary', maxLength: 300 }),
        fc.integer({ min: 40, max: 120 }),
        (text, columns) => {
          const shown = presentRequest(
            sampleRequest({
              command: text,
              cwd: text,
              parts: [{ source: text, executable: text, remarks: [text] }],
            }),
            { columns },
          );
          expect(shown.replaceAll('\n', '')).not.toMatch(/[\p{C}\p{Zl}\p{Zp}]/u);
          for (const row of shown.split('\n')) expect([...row].length).toBeLessThanOrEqual(columns);
          const command = textBehind(shown, /^(command|line \d+)$/);
          expect(
            command.replace(/\\u\{([0-9a-f]+)\}/g, (_, hex) =>
              String.fromCodePoint(Number.parseInt(hex, 16)),
            ),
          ).toBe(text);
        },
      ),
    );
  });
});
