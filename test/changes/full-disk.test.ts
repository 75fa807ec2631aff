import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CLI, makePlace, type Place } from '../cli/support.ts';
import { HOST } from '../support/tiers.ts';

/**
 * In a mount namespace of its own, which goes with the last process: a workspace on a file system that is full when `fill`
 * was called. `whole`: each file holds one of two letters throughout, and nothing else is there.
 */
const SCRIPT = `set -eu
mount -t tmpfs -o size=3m none .; cd "$PWD"
run() { node_run "$@" || echo "status $?"; }
node_run() { "$NODE" "$CLI" "$@" 2>> "$OUT.err"; }
fill() { cat /dev/zero > fill 2>/dev/null || true; }
letter() { tr -d "$1" < "$2" | wc -c; }
whole() {
  for f in a b c d; do [ ! -e $f ] || [ "$(letter o $f)" = 0 ] || [ "$(letter n $f)" = 0 ] || echo "half $f"; done
  find . -name '.sandbox-run*' | sed 's/^/left /'
}
picture() { find . -type f -printf '%P %m %s ' -exec sh -c 'head -c 1 "$1"; tail -c 1 "$1"; echo' sh {} ';' | sort; }
letters() { head -c $2 /dev/zero | tr '\\0' $1; }
letters o 400000 > a; letters o 400000 > b; mkdir t; letters o 100000 > t/x
picture > "$OUT.before"
"$NODE" "$CLI" --preview -c 'letters() { head -c $2 /dev/zero | tr "\\0" $1; }; letters n 700000 > a; letters n 700000 > b; letters n 500000 > c; letters n 300000 > d; rm -r t; chmod 600 b' 2> "$OUT.err"
id=$("$NODE" "$CLI" changes list | cut -d' ' -f1)
fill
run changes apply $id; whole
rm fill; run changes apply $id; whole
picture > "$OUT.after"
fill
run changes undo $id; whole
rm fill; run changes undo $id; whole
picture > "$OUT.back"
`;

/**
 * The same with a state directory that is full, and a workspace beside it that has room. `sh`: what a command of its own does.
 */
const STATE_SCRIPT = `set -eu
mkdir -p "$XDG_STATE_HOME"; mount -t tmpfs -o size=4m none "$XDG_STATE_HOME"; state="$XDG_STATE_HOME"
said() { sed 's/^/  /' "$OUT.last" >> "$OUT.said"; echo "$1 $(wc -l < "$OUT.last")"; }
run() { "$NODE" "$CLI" "$@" 2> "$OUT.last" || echo "status $?"; said "$1"; }
fill() { cat /dev/zero > "$state/fill" 2>/dev/null || true; dd if=/dev/zero of="$state/crumbs" bs=1 2>/dev/null || true; }
room() { rm -f "$state/crumbs"; if [ $1 = all ]; then rm -f "$state/fill"; else truncate -s -$1 "$state/fill"; fi; }
picture() { find . -printf '%P %y %m ' -type f -printf '%s ' -exec sh -c 'head -c 1 "$1"; tail -c 1 "$1"' sh {} ';' -o -printf '\\n' | sort; }
whole() { picture | cmp -s - "$OUT.$1" || { echo "not as $1:"; picture; }; }
letters() { head -c $2 /dev/zero | tr '\\0' $1; }
change='letters() { head -c $2 /dev/zero | tr "\\0" $1; }; letters n 300000 > a; letters n 300000 > b; letters n 200000 > c; mkdir d; echo 1 > d/1; rm -r t; chmod 600 b'
letters o 400000 > a; letters o 400000 > b; mkdir t; letters o 100000 > t/x
picture > "$OUT.before"
echo '# no room: nothing runs'
fill; run --preview -c 'echo ran > ran; echo ran'; whole before
echo '# what the command leaves is enough for the description'
room 300000; run --preview -c 'cat /dev/zero > big 2>/dev/null; echo said'; whole before
"$NODE" "$CLI" changes list | cut -d: -f1 | cut -d' ' -f2-
"$NODE" "$CLI" changes discard $("$NODE" "$CLI" changes list | cut -d' ' -f1) > /dev/null
room all
"$NODE" "$CLI" --preview -c "$change" 2> /dev/null
id=$("$NODE" "$CLI" changes list | cut -d' ' -f1)
echo '# applied where nothing can be noted, then where little can be kept'
fill; run changes apply $id; whole before
room 450000; run changes apply $id
find . -name '.sandbox-run*' | sed 's/^/left /'
echo '# another command runs, and says so'
run -c 'echo ok'
room all; run changes apply $id; picture > "$OUT.after"
echo '# taken back where nothing can be noted'
fill; run changes undo $id; whole after
room 20000; run changes undo $id; whole before
run changes apply $id; whole after
room all; run changes apply $id; whole after
run undo $id; whole before
echo '# what is too old makes room'
run changes apply $id
"$NODE" -e 'const f=process.argv[1]; const s=JSON.parse(fs.readFileSync(f)); s.at-=8*86400e3; fs.writeFileSync(f, JSON.stringify(s))' "$state/sandbox-run/changes/$id/set.json"
fill
"$NODE" "$CLI" --preview -c 'echo new > new' 2> "$OUT.last" || echo "status $?"
whole after
"$NODE" "$CLI" changes list | cut -d: -f1 | cut -d' ' -f2-
ls -A "$state/sandbox-run/changes" | grep -c -- - | sed 's/^/sets /'
`;

describe('a disk that is full in the middle (needs namespaces)', () => {
  let place: Place;
  beforeAll(() => {
    place = makePlace();
  });
  afterAll(() => place.dispose());

  it.skipIf(!HOST.namespaces)(
    'has nothing half, and the journal goes on once there is room',
    async () => {
      const out = join(place.root, 'out');
      writeFileSync(out, '');
      const user = process.getuid?.() === 0 ? [] : ['-r'];
      const { stdout, stderr } = await execa('unshare', ['-m', ...user, 'bash', '-c', SCRIPT], {
        ...{ cwd: place.workspace, extendEnv: false, reject: false },
        env: { ...place.env, NODE: process.execPath, CLI, OUT: out },
      });
      expect([stderr, stdout]).toEqual(['', 'status 125\nstatus 125']);
      const said = readFileSync(`${out}.err`, 'utf8');
      expect(said.match(/in part .*ENOSPC/g)).toHaveLength(2);
      const [before, after, back] = ['before', 'after', 'back'].map((name) =>
        readFileSync(`${out}.${name}`, 'utf8'),
      );
      expect(back).toBe(before);
      expect(after).toBe('a 644 700000 nn\nb 600 700000 nn\nc 644 500000 nn\nd 644 300000 nn\n');
      rmSync(out);
    },
    60_000,
  );

  it.skipIf(!HOST.namespaces)(
    'loses nothing where it is the one of the state directory, and the workspace is as before or as wanted',
    async () => {
      const out = join(place.root, 'out');
      const work = join(place.root, 'other');
      mkdirSync(work);
      const user = process.getuid?.() === 0 ? [] : ['-r'];
      const { stdout, stderr } = await execa('unshare', ['-m', ...user, 'bash', '-c', STATE_SCRIPT], {
        ...{ cwd: work, extendEnv: false, reject: false },
        env: {
          ...place.env,
          XDG_STATE_HOME: join(place.root, 'state'),
          NODE: process.execPath,
          CLI,
          OUT: out,
        },
      });
      expect([stderr, stdout.split('\n')]).toEqual([
        '',
        [
          ...['# no room: nothing runs', 'status 125', '--preview 1'],
          ...['# what the command leaves is enough for the description', 'said', '--preview 3'],
          ' waiting   1 created',
          ...[
            '# applied where nothing can be noted, then where little can be kept',
            'status 125',
            'changes 1',
          ],
          ...['status 125', 'changes 1', '# another command runs, and says so', 'ok', '-c 1', 'changes 1'],
          ...['# taken back where nothing can be noted', 'status 125', 'changes 1'],
          ...['changes 1', 'changes 1', 'changes 1', 'undo 2'],
          ...['# what is too old makes room', 'changes 1', ' waiting   1 created', 'sets 1'],
        ],
      ]);
      const said = readFileSync(`${out}.said`, 'utf8')
        .replaceAll(/\d{8}-\d{6}-[0-9a-f]{6}/g, 'ID')
        .split('\n');
      const noted =
        'what is to be done with the changes ID cannot be noted, so nothing was (ENOSPC: no space left on device, write)';
      const inPart =
        'the changes ID are applied in part (copy failed: ENOSPC); make room or give way, and run sandbox-run changes apply ID again: it goes on where this stopped';
      expect(said.map((line) => line.replace('  sandbox-run: ', ''))).toEqual([
        expect.stringMatching(/^nothing can be written.* \(ENOSPC\); make room/),
        ...['1 created wait; nothing of it is in the workspace yet', expect.stringContaining('look:')],
        ...[expect.stringContaining('then:')],
        ...[noted, inPart, `warning: ${inPart}`, '6 changes are applied'],
        ...[
          expect.stringMatching(/^nothing can be written.* \(ENOSPC\); make room/),
          '6 changes are taken back',
        ],
        ...['6 changes are applied', '0 changes are applied'],
        ...[expect.stringMatching(/^ID: /), '6 changes are taken back', '6 changes are applied', ''],
      ]);
    },
    120_000,
  );
});
