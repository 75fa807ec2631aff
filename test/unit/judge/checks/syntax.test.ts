import { describe, expect, it } from 'vitest';
import { judgeText } from '../../../support/policy-world.ts';

const shown = (command: string, autonomy: 'supervised' | 'autonomous' | 'readonly') =>
  judgeText(command, { autonomy })
    .reasons.filter(({ check }) => check === 'syntax')
    .map(({ verdict, code }) => `${verdict}:${code}`)
    .join(' ');

describe('syntax', () => {
  it.each(['echo "', '$x', 'ls )', 'eval "$x"', 'for'])('%s is not understood', (command) => {
    expect(shown(command, 'supervised')).toMatch(/^deny:/);
    expect(shown(command, 'readonly')).toMatch(/^deny:/);
    expect(shown(command, 'autonomous')).toMatch(/^ask:/);
  });

  it.each([
    ['cat < /dev/tcp/h/1', 'network_device'],
    ['exec 3<>/dev/tcp/h/1', 'network_device'],
    ['echo x > /dev/udp/h/53', 'network_device'],
    ['echo x > "/dev/tcp/$h/1"', 'network_device'],
    ['echo 1 > /proc/sys/kernel/x', 'kernel_interface'],
    ['echo c >> /proc/sysrq-trigger', 'kernel_interface'],
    ['echo x > /sys/x', 'kernel_interface'],
    [':(){ :|:& };:', 'fork_bomb'],
    ['bomb() { bomb | bomb & }; bomb', 'fork_bomb'],
  ])('%s is refused in every mode: %s', (command, code) => {
    expect(shown(command, 'autonomous')).toContain(`deny:${code}`);
    expect(shown(command, 'supervised')).toContain(`deny:${code}`);
  });

  it.each(['ls', 'cat /proc/cpuinfo', 'cat < /proc/self/status', 'echo /dev/tcp/x/1', 'ls > x'])(
    '%s is fine',
    (command) => {
      expect(shown(command, 'supervised')).toBe('');
    },
  );
});
