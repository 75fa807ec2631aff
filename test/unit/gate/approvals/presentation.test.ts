import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  presentQuestion,
  presentRequest,
  sizeOfCommand,
} from '../../../../src/gate/approvals/presentation.ts';
import type { ApprovalRequest, Decision } from '../../../../src/model/index.ts';
import { sampleRequest } from '../../../support/approvals.ts';

/** The command as its rows show it. */
function commandIn(shown: string): string {
  return shown
    .split('\n')
    .flatMap((row) =>
      row.startsWith('| ') ? [`\n${row.slice(2)}`] : row.startsWith(': ') ? [row.slice(2)] : [],
    )
    .join('')
    .slice(1);
}

const unescaped = (text: string) =>
  text.replace(/\\u\{([0-9a-f]+)\}/g, (_, hex) => String.fromCodePoint(Number.parseInt(hex, 16)));

/** A row of a question: of the command, or a sentence. Nothing else stands at the left edge. */
const ROW = /^(?:[|:] | {2}\S| {4})/u;

const HEREDOC = ['cat > x.sh <<EOF', ...Array.from({ length: 30 }, (_, i) => `line ${i}`), 'EOF'].join('\n');

/** A request all of whose texts are others', as far as that can be. */
function evilRequest(text: string): ApprovalRequest {
  const reason = { check: 'rules', verdict: 'ask' as const, code: 'x', message: text, words: [text] };
  const decision: Decision = { verdict: 'ask', risk: 'high', reach: 'network', reasons: [reason] };
  return sampleRequest({
    ...{ command: text, cwd: text, decision, principal: text, session: text, profile: text, host: text },
    ...{ touches: [text], lost: [text], reached: [text], environment: [text], unseen: [text] },
    ...{ confinement: [text], parts: [{ source: text, executable: text, remarks: [text] }] },
  });
}

describe('a question', () => {
  it('begins with the command, then why it is asked, then what it reaches and writes; what is usual is left out', () => {
    const touches = ['x.sh', 'the network'];
    expect(presentQuestion(sampleRequest({ touches, environment: [] }))).toBe(
      [
        '| git push origin main',
        '  git push sends data',
        '  Reached: the network',
        '  Written: x.sh',
        '  In: /work/project',
        '',
      ].join('\n'),
    );
  });

  it('says what is not usual: variables, and programs that are none of the system', () => {
    const part = { source: 'git push', executable: '/work/project/bin/git', remarks: [] };
    expect(presentQuestion(sampleRequest({ parts: [part, part] }))).toContain(
      '\n  With: GIT_TRACE=1, -LANG, the program /work/project/bin/git\n',
    );
  });

  it('has all lines of a command, or some and how many there are', () => {
    const request = sampleRequest({ command: HEREDOC });
    expect(commandIn(presentQuestion(request))).toBe(HEREDOC);
    expect(presentQuestion(request, { commandRows: 3 }).split('\n').slice(0, 4)).toEqual([
      '| cat > x.sh <<EOF',
      '| line 0',
      '  … 32 lines, 250 characters in all',
      '  git push sends data',
    ]);
  });

  it('names six of many, and says how many more there are', () => {
    const lost = Array.from({ length: 18 }, (_, n) => `notes/${n}`);
    expect(presentQuestion(sampleRequest({ lost }))).toContain(
      '\n  Lost: notes/0, notes/1, notes/2, notes/3, notes/4, notes/5, and 12 more\n',
    );
  });

  it('gives each reason once, and those about risk only where there is no other', () => {
    const of = (check: string, message: string) => ({
      ...{ check, verdict: 'ask' as const, code: 'x', message, words: ['w'] },
    });
    const asked = (...reasons: readonly ReturnType<typeof of>[]) =>
      presentQuestion(
        sampleRequest({ decision: { verdict: 'ask', risk: 'high', reach: 'local', reasons: [...reasons] } }),
      ).split('\n')[1];
    const risk = of('risk', 'It is risky.');
    expect(asked(risk)).toBe('  It is risky.');
    expect(asked(risk, of('rules', 'One.'), of('rules', 'One again.'))).toBe('  One');
    expect(asked(of('rules', 'One.'), of('leaves', 'Two.'), risk)).toBe('  One; Two');
  });
});

describe('what others wrote cannot change what a question seems to say', () => {
  it.each([
    ['an escape sequence', 'ls \x1b[2J\x1b[1;1H[y]es once', '\\u{1b}[2J\\u{1b}[1;1H'],
    ['a carriage return', 'rm -r x\rls -l', 'rm -r x\\u{d}ls -l'],
    ['backspaces', 'rm -r x\b\b\b\b\b\b\bls', 'x\\u{8}\\u{8}'],
    ['a right-to-left mark', 'cat \u202egpj.exe', 'cat \\u{202e}gpj.exe'],
    ['isolates', 'echo \u2066rm\u2069', '\\u{2066}rm\\u{2069}'],
    ['what has no width', 'git\u200b push\u2060', 'git\\u{200b} push\\u{2060}'],
    ['other blanks', 'ls\u00a0\u3000-l', 'ls\\u{a0}\\u{3000}-l'],
    ['a C1 control', 'ls \x9b2J', 'ls \\u{9b}2J'],
    ['what looks like our escape', 'echo \\u{1b}', 'echo \\u{5c}u{1b}'],
  ])('%s', (_, text, visible) => {
    const shown = presentQuestion(evilRequest(text), { columns: 100 });
    expect(shown).toContain(visible);
    expect(unescaped(commandIn(shown))).toBe(text);
    expect(shown.replaceAll('\n', '')).not.toMatch(/[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/u);
  });

  it.each([
    'ls\n[y]es once  [n]o: y',
    `ls${' '.repeat(200)}[y]es once  [n]o: y`,
    'ls\n  Lost: nothing\n  In: /work/project',
    `${'x'.repeat(97)}[y]es once`,
    `${'x'.repeat(95)}  In: /elsewhere`,
    '',
    '\n\n\n',
  ])('a row of its own: %j', (text) => {
    for (const columns of [40, 80, 100]) {
      const shown = presentQuestion(evilRequest(text), { columns }).slice(0, -1);
      for (const row of shown.split('\n')) expect(row).toMatch(/^(?:[|:] | {2})/);
      expect(shown.split('\n').filter((row) => /^ {2}In: /.test(row))).toHaveLength(1);
    }
  });

  it('a name that looks like several, or like our count of them', () => {
    const names = ['a, b', 'and 12 more', "it's, and 3 more", 'In: /elsewhere'];
    expect(presentQuestion(sampleRequest({ lost: names }))).toContain(
      "\n  Lost: 'a, b', 'and 12 more', 'it'\\''s, and 3 more', 'In: /elsewhere'\n",
    );
  });

  it('a text so long that it would push the command out of sight', () => {
    const long = 'x'.repeat(100_000);
    const { command, ...evil } = evilRequest(long);
    const shown = presentQuestion({ ...evil, command: 'rm -r notes' }, { columns: 80 });
    expect(shown.split('\n').length).toBeLessThan(50);
    // A long command is shown whole, before everything else.
    expect(commandIn(presentQuestion({ ...evil, command: long }, { columns: 80 }))).toBe(long);
    expect(command).toBe(long);
  });

  it('any text of any request stays visible, in rows that are ours and that fit', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary', maxLength: 300 }),
        fc.integer({ min: 40, max: 120 }),
        (text, columns) => {
          for (const present of [presentQuestion, presentRequest]) {
            const shown = present(evilRequest(text), { columns });
            expect(shown.replaceAll('\n', '')).not.toMatch(/[\p{C}\p{Zl}\p{Zp}]/u);
            for (const row of shown.slice(0, -1).split('\n')) {
              expect(row).toMatch(/^(?:[|:] | {2})/u);
              expect([...row].length).toBeLessThanOrEqual(columns);
            }
            expect(unescaped(commandIn(shown))).toBe(text);
          }
        },
      ),
    );
  });
});

describe('the presentation of a request', () => {
  it('is the question, and then all else that is known', () => {
    const request = sampleRequest({ session: 's1', touches: ['x.sh'] });
    const shown = presentRequest(request);
    expect(shown).toBe(
      [
        presentQuestion(request).trimEnd(),
        '  Risk medium, reach network',
        '  git push origin main runs /usr/bin/git',
        '  It changes another repository.',
        '  Variable: GIT_TRACE=1',
        '  Variable: -LANG',
        '  Profile: workspace-write',
        '  Held: Writes nothing outside the workspace.',
        '  Held: No network.',
        '  Asked by: uid:1000, session s1',
        '',
      ].join('\n'),
    );
    for (const row of shown.trimEnd().split('\n')) expect(row).toMatch(ROW);
  });

  it('names all of what a question cuts short', () => {
    const lost = Array.from({ length: 18 }, (_, n) => `notes/${n}`);
    const shown = presentRequest(sampleRequest({ lost }), { columns: 1_000 });
    expect(shown).toContain(`\n  All that would be lost: ${lost.join(', ')}\n`);
  });

  it('cuts no command', () => {
    const command = `cat <<EOF\n${'x'.repeat(5_000)}\nEOF\nrm -r build`;
    expect(commandIn(presentRequest(sampleRequest({ command })))).toBe(command);
    expect(sizeOfCommand(sampleRequest({ command }))).toBe('4 lines, 5026 characters');
  });

  it('tells words of an argument vector apart, in its parts, too', () => {
    const command = ['git', 'commit', '-m', 'a b ', '', "it's\n"] as const;
    const parts = [{ source: command.join(' '), executable: '/bin/git', remarks: [] }];
    const shown = presentRequest(sampleRequest({ command, parts }));
    const written = "git commit -m 'a b ' '' 'it'\\''s\\u{a}'";
    expect(commandIn(shown)).toBe(written);
    expect(shown).toContain(`\n  ${written} runs /bin/git\n`);
  });

  it('says a remark once', () => {
    const remarks = ['It changes another repository.', 'git push sends data.'];
    const part = { source: 'git push', executable: '/usr/bin/git', remarks };
    const shown = presentRequest(sampleRequest({ parts: [part, part, { ...part, remarks: [] }] }));
    for (const text of ['It changes another repository', 'git push sends data', 'git push runs /usr/bin/git'])
      expect(shown.split(text)).toHaveLength(2);
  });
});
