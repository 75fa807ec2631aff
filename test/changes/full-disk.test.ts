import { readFileSync, rmSync, writeFileSync } from 'node:fs';
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
});
