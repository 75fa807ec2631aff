// Virtual machines that leave nothing behind, however the program that boots them ends.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
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
 * Boots a kernel and waits until the machine is off or its time is over. Returns {lines, ended, ill}: everything on its
 * console, whether it ended on its own, and what the kernel said about itself.
 */
export function boot({ kernel, initrd, megabytes, seconds, append = '', onLine = () => {} }) {
  const qemu = spawn(
    'qemu-system-x86_64',
    [
      // More than one thread double-faults at random on some kernels, and needs more than one processor. A processor with
      // fewer features is a tenth faster than `max`: the newer instructions, which programs then choose, are slow here.
      ...['-accel', 'tcg,thread=single', '-cpu', 'Nehalem', '-m', `${megabytes}`, '-nographic', '-no-reboot'],
      ...['-nodefaults', '-serial', 'stdio', '-kernel', kernel, '-initrd', initrd],
      ...['-append', `console=ttyS0 quiet panic=-1 oops=panic ${append}`],
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
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    qemu.kill('SIGKILL');
  }, seconds * 1000);
  for (const stream of [qemu.stdout, qemu.stderr]) createInterface({ input: stream }).on('line', hear);
  return new Promise((done, fail) => {
    const end = () => {
      clearTimeout(timer);
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
