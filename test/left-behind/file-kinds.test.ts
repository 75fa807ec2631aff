// biome-ignore-all lint/suspicious/noTemplateCurlyInString: it is the shell that expands them
import { HOST } from '../support/tiers.ts';
import { type Case, describeCases, hangsAt } from './support/cases.ts';

const kind = (one: Omit<Case, 'tool'>): Case => ({ ...one, tool: 'the kernel' });

const KINDS: readonly Case[] = [
  kind({
    name: 'a set-user-ID program',
    attack: 'cp /bin/true tool; chmod 4755 tool',
    later: 'test -u tool && touch "$MARK"',
    expected: 'shut',
  }),
  kind({
    name: 'a set-group-ID program, by another call',
    attack: `cp /bin/true tool; /usr/bin/perl -e 'open my $tool, "<", "tool"; chmod 02755, $tool or die $!'`,
    later: 'test -g tool && touch "$MARK"',
    expected: 'shut',
  }),
  kind({
    name: 'a set-user-ID program from its first moment',
    attack: `/usr/bin/perl -MFcntl -e 'umask 0; sysopen my $tool, "tool", O_CREAT | O_WRONLY, 04777 or die $!'`,
    later: 'test -u tool && touch "$MARK"',
    expected: 'shut',
  }),
  // Only root can try.
  ...(HOST.root
    ? [
        kind({
          name: 'a device',
          attack: 'mknod null c 1 3',
          later: 'test -c null && touch "$MARK"',
          expected: 'shut',
        }),
      ]
    : []),
  kind({
    name: 'a FIFO in place of a file that tools read',
    make: 'echo notes > notes.txt',
    attack: 'rm notes.txt; mkfifo notes.txt',
    later: hangsAt('notes.txt', 'cat notes.txt'),
    expected: 'not covered',
    why: 'FIFO in place of a file that is read',
  }),
  kind({
    name: 'a FIFO in place of a file that is told of',
    make: 'echo "{}" > package.json',
    attack: 'rm package.json; mkfifo package.json',
    later: hangsAt('package.json', 'cat package.json'),
    expected: 'told',
    path: 'package.json',
  }),
  kind({
    name: 'a link in place of a file that the user will write',
    make: 'echo notes > notes.txt',
    attack: 'rm notes.txt; ln -s "$MARK" notes.txt',
    later: 'echo mine > notes.txt',
    expected: 'told',
    path: 'notes.txt',
  }),
  kind({
    name: 'a link in place of a directory that the user will write in',
    make: 'mkdir logs; echo > logs/a',
    attack: 'rm -r logs; ln -s "$(dirname "$MARK")" logs',
    later: 'echo mine > logs/mark',
    expected: 'told',
    path: 'logs',
  }),
  kind({
    name: 'a link in place of settings that are told of',
    make: 'echo "{}" > package.json',
    attack: 'rm package.json; ln -s "$MARK" package.json',
    later: 'echo "{}" > package.json',
    expected: 'told',
    path: 'package.json',
  }),
  kind({
    name: 'a hard link to a file outside',
    make: 'echo mine > ../outside.txt',
    attack: 'ln ../outside.txt inside.txt; echo evil >> inside.txt',
    later: 'grep -qs evil ../outside.txt && touch "$MARK"',
    expected: 'shut',
  }),
  kind({
    name: 'another name of git’s settings',
    attack: 'plant evil; ln .git/config other; echo "[core] fsmonitor = $PWD/evil" >> other',
    later: 'git status',
    expected: 'shut',
    path: '.git/config',
    still: 'git status',
  }),
  kind({
    name: 'a link to git’s settings, which they are written through',
    attack: 'plant evil; ln -s .git/config other; echo "[core] fsmonitor = $PWD/evil" >> other',
    later: 'git status',
    expected: 'shut',
    path: '.git/config',
    still: 'git status',
  }),
];

describeCases('kinds of files', KINDS);
