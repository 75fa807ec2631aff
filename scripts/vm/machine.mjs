// Virtual machines that leave nothing behind, however the program that boots them ends.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const running = new Set();

/** A directory that is removed when this program ends, be it by Ctrl-C, and with it the machines end. */
export function newPlace({ keep = false } = {}) {
  const place = mkdtempSync(join(tmpdir(), 'sandbox-run-vm-'));
  process.on('exit', () => {
    for (const machine of running) machine.kill('SIGKILL');
    if (!keep) rmSync(place, { recursive: true, force: true });
  });
  for (const [name, status] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ])
    process.on(name, () => process.exit(status));
  return place;
}

/**
 * What a kernel says when something in it went wrong. Stalls are no such thing: a busy host keeps a machine waiting; nor is
 * the "MP-BIOS bug" of a timer of QEMU's.
 */
const ILLNESS =
  /Kernel panic|\bBUG: |Oops: |general protection fault|double fault|unable to handle|WARNING: CPU/;

/** QEMU's machines by architecture, as Node calls it. */
const MACHINES = {
  // A processor with fewer features is a tenth faster than `max`: the newer instructions, which programs then choose, are slow.
  x64: { program: 'qemu-system-x86_64', hardware: ['-cpu', 'Nehalem'], console: 'ttyS0' },
  arm64: {
    program: 'qemu-system-aarch64',
    hardware: ['-machine', 'virt', '-cpu', 'cortex-a72'],
    console: 'ttyAMA0',
  },
};

/** The kernel says what is an alert, and no more: what it says is in the middle of a line of somebody else's. */
const QUIET = 'loglevel=2';

/**
 * Boots a kernel and waits until the machine is off or its time is over. `seconds` is time of the processor, for a host that
 * has much else to do takes longer over the same; by the clock it is four times as much. Returns {lines, ended, ill}:
 * everything on its console, whether it ended on its own, and what the kernel said about itself.
 */
export function boot({
  architecture = 'x64',
  kernel,
  initrd,
  megabytes,
  seconds,
  append = '',
  onLine = () => {},
}) {
  const { program, hardware, console } = MACHINES[architecture];
  const qemu = spawn(
    program,
    [
      // More than one thread double-faults at random on some kernels, and needs more than one processor.
      ...[...hardware, '-accel', 'tcg,thread=single', '-m', `${megabytes}`, '-nographic', '-no-reboot'],
      // The machine's clock counts its instructions, 8 ns each, and jumps where it would wait: no time limit in it depends on
      // what else the host has to do. It costs a quarter more.
      ...['-icount', 'shift=3,sleep=off', '-rtc', 'clock=vm'],
      ...['-nodefaults', '-serial', 'stdio', '-kernel', kernel, '-initrd', initrd],
      // A timer of QEMU's ticks too late for the check where the host is busy.
      ...['-append', `console=${console} ${QUIET} panic=-1 oops=panic no_timer_check ${append}`],
    ],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  );
  running.add(qemu);
  const lines = [];
  const ill = [];
  const hear = (line) => {
    lines.push(line);
    if (ILLNESS.test(line)) ill.push(line);
    onLine(line);
  };
  const started = Date.now();
  let late = false;
  const timer = setInterval(() => {
    late ||= processorSeconds(qemu.pid) > seconds || Date.now() - started > 4 * seconds * 1000;
    if (late) qemu.kill('SIGKILL');
  }, 1000);
  for (const stream of [qemu.stdout, qemu.stderr]) createInterface({ input: stream }).on('line', hear);
  return new Promise((done, fail) => {
    const end = () => {
      clearInterval(timer);
      running.delete(qemu);
    };
    qemu.on('error', (error) => {
      end();
      fail(new Error(`${program}: ${error.message}`));
    });
    qemu.on('close', (code) => {
      end();
      done({ lines, ill, ended: code === 0 && !late });
    });
  });
}

/** What a process has used so far; 0 if it is gone. */
function processorSeconds(pid) {
  try {
    // utime and stime; the name before them may have spaces in it. A tick is a hundredth of a second on every Linux.
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /, '')
      .split(' ');
    return (Number(fields[11]) + Number(fields[12])) / 100;
  } catch {
    return 0;
  }
}
