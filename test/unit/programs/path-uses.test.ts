import { describe, expect, it } from 'vitest';
import { pathUses } from '../../../src/programs/path-uses.ts';
import { describeCommand } from '../../../src/programs/program-table.ts';
import { commandIn } from '../../support/simple-command.ts';

const MARKS = { reads: '<', writes: '>', removes: '-' } as const;

function usesOf(source: string): string {
  const command = commandIn(source);
  return pathUses(command, describeCommand(command))
    .map(({ argument, effect }) => `${MARKS[effect]}${argument.text}`)
    .join(' ');
}

describe('pathUses', () => {
  it.each([
    ['cat a b', '<a <b'],
    ['cat -n -- -a', '<-a'],
    ['cp a b c', '<a <b >c'],
    ['cp -t d a b', '>d <a <b'],
    ['mv a b', '-a >b'],
    ['rm -rf a', '-a'],
    ['touch -r a b', '<a >b'],
    ['ln -s ../a b', '>b'],
    ['ln -s /etc/a b', '</etc/a >b'],
    ['ln a b', '<a >b'],
    ['tee a b', '>a >b'],
    ['echo /etc/passwd', ''],
    ['echo a > b 2>> c < d', '>b >c <d'],
    ['ls 2>&1', ''],
    ['ls > /dev/null', ''],
    ['grep /a/b c', '<c'],
    ['grep -e x a b', '<a <b'],
    ['grep -rf/etc/x .', '</etc/x <.'],
    ['grep --file=p a', '<p <a'],
    ['rg x src', '<src'],
    ['rg --files src', '<src'],
    ['sed s/a/b/ c', '<c'],
    ['sed -i s/a/b/ c', '>c'],
    ['sed -e s/a/b/ c d', '<c <d'],
    ['awk "{print}" a', '<a'],
    ['awk -F/ "{print}" a', '<a'],
    ['jq .a/b c', '<c'],
    ['sort -o a b', '>a <b'],
    ['sort -oa b', '>a <b'],
    ['uniq a b', '<a >b'],
    ['xxd -r a b', '<a >b'],
    ['dd if=a of=b bs=1', '<a >b'],
    ['column -t -d a', '<a'],
    ['column -J -n t -W 1 -r 2 a', '<a'],
    ['fmt -g 60 --prefix "# " a', '<a'],
    ['expand -i a', '<a'],
    ['pr -e a', '<a'],
    ['pr -N 3 -o 4 --width 80 a', '<a'],
    ['look -t x y', '<y'],
    ['truncate --no-create -s 0 a', '>a'],
    ['patch --strip 1 -D X -B ../x/ -i b a', '>../x/ <b >a'],
    ['logger -t x -f a -u /run/log y', '<a >/run/log'],
    ['find a b -name c -newer d', '<a <b <d'],
    ['find a -fprint b', '<a >b'],
    ['tar cf a b', '>a <b'],
    ['tar xf a b -C c', '>c <a'],
    ['tar xzf a', '<a'],
    ['tar czf a b', '>a <b'],
    ['tar -cf - a', '<a'],
    ['rsync -a a/ b', '<a/ >b'],
    ['rsync -a a h:b', '<a'],
    ['git show HEAD:../x', ''],
    ['git log -- ../x', '<../x'],
    ['git diff --no-index a b', '<a <b'],
    ['git diff --output=a', '>a'],
    ['git add a', '<a'],
    ['git -C d status', '<d'],
    ['git commit -m ../x', ''],
    ['git commit -F ../x', '<../x'],
    ['git grep ../x', ''],
    ['make -C d -f m', '<d <m'],
    ['curl http://x/../y -o z', '>z'],
    ['some-tool /etc/x --file=/etc/y -I../z a', '</etc/x </etc/y <../z'],
    ['some-tool http://a/../b', ''],
    ['./tool', '<./tool'],
    ['python3 ../x.py', '<../x.py'],
    ['python3 -c /etc', ''],
    ['[ -f /etc/x ]', '</etc/x'],
    ['cd ../x', '<../x'],
    ['printf %s /etc/x', ''],
    ['node --require ./x y.js', '<./x'],
    ['vim a', '>a'],
    ['gzip a', '>a'],
    ['cargo build --manifest-path ../x', '<../x'],
    ['go build ./...', '<./...'],
  ])('of %s are %s', (source, expected) => {
    expect(usesOf(source)).toBe(expected);
  });
});
