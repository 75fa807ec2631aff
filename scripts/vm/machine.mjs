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

/**
 * Boots a kernel and waits until the machine is off or its time is over. `onLine` gets what its programs write to ttyS1,
 * where the kernel says nothing in the middle of a line. `seconds` is time of the processor, for a host that has much else
 * to do takes longer over the same; by the clock it is four times as much. Returns {lines, ended, ill}: everything there and on the console,
 * whether it ended on its own, and what the kernel said about itself.
 */
export function boot({ kernel, initrd, megabytes, seconds, append = '', onLine = () => {} }) {
  const qemu = spawn(
    'qemu-system-x86_64',
    [
      // More than one thread double-faults at random on some kernels, and needs more than one processor. A processor with
      // fewer features is a tenth faster than `max`: the newer instructions, which programs then choose, are slow here.
      ...['-accel', 'tcg,thread=single', '-cpu', 'Nehalem', '-m', `${megabytes}`, '-nographic', '-no-reboot'],
      // The machine's clock counts its instructions, 8 ns each, and jumps where it would wait: no time limit in it depends on
      // what else the host has to do. It costs a quarter more.
      ...['-icount', 'shift=3,sleep=off', '-rtc', 'clock=vm'],
      ...['-nodefaults', '-serial', 'stdio', '-chardev', 'socket,id=reports,fd=3'],
      ...['-serial', 'chardev:reports', '-kernel', kernel, '-initrd', initrd],
      // A timer of QEMU's ticks too late for the check where the host is busy.
      ...['-append', `console=ttyS0 quiet panic=-1 oops=panic no_timer_check ${append}`],
    ],
    // Node's pipes are sockets, as the port of reports wants it.
    { stdio: ['ignore', 'pipe', 'pipe', 'pipe'] },
  );
  running.add(qemu);
  const lines = [];
  const ill = [];
  const hear = (line) => {
    lines.push(line);
    if (ILLNESS.test(line)) ill.push(line);
  };
  const started = Date.now();
  let late = false;
  const timer = setInterval(() => {
    late ||= processorSeconds(qemu.pid) > seconds || Date.now() - started > 4 * seconds * 1000;
    if (late) qemu.kill('SIGKILL');
  }, 1000);
  for (const stream of [qemu.stdout, qemu.stderr]) createInterface({ input: stream }).on('line', hear);
  createInterface({ input: qemu.stdio[3] }).on('line', (line) => {
    lines.push(line);
    onLine(line);
  });
  return new Promise((done, fail) => {
    const end = () => {
      clearInterval(timer);
      running.delete(qemu);
    };
    qemu.on('error', (error) => {
      end();
      fail(new Error(`qemu-system-x86_64: ${error.message}`));
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
