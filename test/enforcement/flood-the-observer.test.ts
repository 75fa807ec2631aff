import { mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeArena } from '../support/arena.ts';
import { LOOKED_AT_TIERS, rowsFor, STRONGEST } from '../support/tiers.ts';

/** Makes system calls as they are: `call(number, ...)`. */
const CALLS = `
import ctypes, os, platform, signal, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
X86 = platform.machine() == "x86_64"
OPENAT, MKDIRAT, EXECVE, RENAMEAT2 = (257, 258, 59, 316) if X86 else (56, 34, 221, 276)
def call(number, *arguments):
    given = [a if isinstance(a, bytes) else ctypes.c_void_p(a & (2**64 - 1)) for a in arguments]
    result = libc.syscall(ctypes.c_long(number), *given)
    return -ctypes.get_errno() if result == -1 else result
CWD = -100
WRITE = os.O_WRONLY | os.O_CREAT
`;

/** Each ends by itself with 3, as it would if nobody looked. `/usr` stands for a directory outside that the user may write. */
const ATTACKS: Readonly<Record<string, string>> = {
  'pointers that lead nowhere': `
for pointer in (0, 1, 0xdeadbeef, 2**47 - 1, 2**63, 2**64 - 1):
    assert call(OPENAT, CWD, pointer, WRITE, 0o600) == -14, call(OPENAT, CWD, pointer, WRITE, 0o600)
    assert call(MKDIRAT, CWD, pointer, 0o700) == -14
    assert call(EXECVE, pointer, 0, 0) == -14
    assert call(RENAMEAT2, CWD, b"a", CWD, pointer, 0) in (-14, -2)
`,
  'a path at the end of its page': `
import mmap
page = mmap.mmap(-1, 2 * 4096)
address = ctypes.addressof(ctypes.c_char.from_buffer(page))
page[4093:4096] = b"/us"
page[4096:4097] = b"r"
libc.mprotect(ctypes.c_void_p(address + 4096), ctypes.c_size_t(4096), 0)
assert call(OPENAT, CWD, address + 4093, WRITE, 0o600) == -14
libc.mprotect(ctypes.c_void_p(address + 4096), ctypes.c_size_t(4096), 3)
page[4091:4096] = b"/etc\\0"
libc.mprotect(ctypes.c_void_p(address + 4096), ctypes.c_size_t(4096), 0)
assert call(OPENAT, CWD, address + 4091, WRITE, 0o600) < 0
libc.mprotect(ctypes.c_void_p(address + 4096), ctypes.c_size_t(4096), 3)
`,
  'paths without an end': `
for size in (4095, 4096, 5000, 1 << 20, 16 << 20):
    assert call(OPENAT, CWD, b"/" + b"x" * size, WRITE, 0o600) == -36
assert call(OPENAT, CWD, b"/" * 4000 + b"usr/x", WRITE, 0o600) < 0
assert call(OPENAT, CWD, b"/usr" + b"/../usr" * 500 + b"/x", WRITE, 0o600) < 0
`,
  'names that are no text': `
for name in (b"\\n", b"\\x1b[31m", b"\\xff\\xfe", b"\\xe2\\x80\\xae"):
    assert call(OPENAT, CWD, b"/usr/" + name, WRITE, 0o600) < 0
`,
  'links that lead to each other': `
os.symlink("b", "a"); os.symlink("a", "b"); os.symlink("/proc/self/root/usr/x", "c")
for name in (b"a", b"a/x", b"c"):
    assert call(OPENAT, CWD, name, WRITE, 0o600) < 0
`,
  'ten thousand denials of one thing': `
for i in range(10000):
    assert call(OPENAT, CWD, b"/usr/x", WRITE, 0o600) < 0
`,
  'ten thousand denials of as many things': `
for i in range(10000):
    assert call(OPENAT, CWD, b"/usr/x%d" % i, WRITE, 0o600) < 0
`,
  'a path that changes while it is looked at': `
buffer = ctypes.create_string_buffer(64)
buffer.value = b"/usr/x"
stop = False
def flip():
    while not stop:
        buffer.value = b"own"
        buffer.value = b"/usr/x"
thread = threading.Thread(target=flip); thread.start()
for i in range(300):
    result = call(OPENAT, CWD, ctypes.addressof(buffer), WRITE, 0o600)
    if result >= 0: os.close(result)
stop = True; thread.join()
assert not os.path.exists("/usr/x")
`,
  'threads that end in the middle': `
for i in range(40):
    child = os.fork()
    if child == 0:
        def flood():
            for _ in range(1000): call(OPENAT, CWD, b"/usr/x", WRITE, 0o600)
        for _ in range(8): threading.Thread(target=flood, daemon=True).start()
        time.sleep(0.005)
        os._exit(0)
    os.waitpid(child, 0)
`,
  'processes that are killed in the middle': `
for i in range(40):
    child = os.fork()
    if child == 0:
        while True: call(MKDIRAT, CWD, b"/usr/x", 0o700)
    time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
`,
  'signals without end': `
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
for i in range(2000):
    assert call(OPENAT, CWD, b"/usr/x", WRITE, 0o600) < 0
signal.setitimer(signal.ITIMER_REAL, 0)
`,
};

const PATIENCE = 60_000;

describe.each(LOOKED_AT_TIERS)('what looks at calls, $name', (tier) => {
  const arena = makeArena();
  let outside: string;
  beforeAll(() => {
    outside = realpathSync(mkdtempSync('/var/tmp/flood-'));
  });
  afterAll(() => rmSync(outside, { recursive: true, force: true }));
  const there = (script: string) => script.replaceAll('/usr', outside);

  // What ends a tree in the middle of a look depends on the tier.
  it.each(rowsFor(tier, Object.entries(ATTACKS), ([name]) => name.includes('in the middle')))(
    'is not brought down by %s',
    async (_, attack) => {
      const workspace = arena.freshCorner();
      const sandbox = await arena.sandbox(tier, { workspace, explain: 'always', timeout: PATIENCE / 2 });
      const script = `${CALLS}${attack}\nos.mkdir("reached")\nsys.exit(3)\n`;
      const result = await sandbox.run(['python3', '-c', there(script)]);
      expect([result.status, result.exitCode, result.stderr]).toEqual(['exited', 3, '']);
      // It is bounded, and what was made in the workspace was not taken for denied.
      const denials = result.denials ?? [];
      expect(denials.length).toBeLessThanOrEqual(64);
      expect(denials.filter(({ object }) => object.startsWith(workspace))).toEqual([]);
      for (const { object, asked = '' } of denials)
        expect(object.length + asked.length).toBeLessThan(2 * 4096);
    },
    PATIENCE,
  );

  it('tells of so many denials that there were more', { timeout: PATIENCE }, async () => {
    const sandbox = await arena.sandbox(tier, { workspace: arena.freshCorner() });
    const script = 'for i in $(seq 100); do (: > /usr/x$i) 2> /dev/null; done; exit 3';
    const { denials = [], warnings } = await sandbox.run(['bash', '-c', there(script)]);
    expect(denials.length).toBe(64);
    expect(warnings.join()).toMatch(/36 further things were denied/);
  });

  it('tells what was denied after thousands of things were not found', { timeout: PATIENCE }, async () => {
    const sandbox = await arena.sandbox(tier, { workspace: arena.freshCorner(), explain: 'always' });
    const script = `${CALLS}
for i in range(3000): os.path.exists("/usr/missing%d" % i)
sys.exit(3 if call(MKDIRAT, CWD, b"/usr/x", 0o700) < 0 else 0)
`;
    const { exitCode, denials } = await sandbox.run(['python3', '-c', there(script)]);
    expect([exitCode, denials?.map(({ object }) => object)]).toEqual([
      3,
      expect.arrayContaining([`${outside}/x`]),
    ]);
  });

  it('does not outlast a tree that is stopped while it is looked at', { timeout: PATIENCE }, async () => {
    const sandbox = await arena.sandbox(tier, { workspace: arena.freshCorner(), timeout: 1_000 });
    const script = `${CALLS}
for i in range(4):
    if os.fork() == 0:
        while True: call(MKDIRAT, CWD, b"/usr/x", 0o700)
time.sleep(0.1)
os.kill(0, signal.SIGSTOP)
`;
    const result = await sandbox.run(['python3', '-c', there(script)]);
    expect([result.status, result.treeEnded]).toEqual(['timed-out', true]);
    expect(result.durationMs).toBeLessThan(PATIENCE / 2);
  });

  // Whose memory it is does not depend on the tier.
  it.each([tier].filter((one) => one === STRONGEST))(
    'does not grow from command to command',
    { timeout: PATIENCE },
    async () => {
      const sandbox = await arena.sandbox(tier, { workspace: arena.freshCorner() });
      const flood = `${CALLS}
for i in range(2000): call(OPENAT, CWD, b"/usr/x%d" % i + b"y" * 200, WRITE, 0o600)
`;
      const resident = () => Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]);
      const fiveTimes = async () => {
        for (let i = 0; i < 5; i++) await sandbox.run(['python3', '-c', there(flood)]);
        return resident();
      };
      const before = await fiveTimes();
      expect((await fiveTimes()) - before).toBeLessThan(32 * 1024);
    },
  );
});
