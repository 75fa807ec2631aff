import { describe, expect, it } from 'vitest';
import { judgeText, type World } from '../../../support/policy-world.ts';

function codeOf(command: string, world: World = { autonomy: 'autonomous' }): string | undefined {
  return judgeText(command, world).reasons.find(({ check }) => check === 'dangerous')?.code;
}

describe('dangerous', () => {
  it.each(['~', '"$HOME"', '~/*'])('names the home that %s stands for as the user does', (home) => {
    const { reasons } = judgeText(`rm -rf ${home}`, { autonomy: 'autonomous' });
    const { message } = reasons.find(({ check }) => check === 'dangerous') ?? {};
    expect(message).toMatch(/^rm would remove all of ~(?:\/\*)?$/);
  });

  it.each([
    ['sudo ls', 'privilege'],
    ['su', 'privilege'],
    ['doas ls', 'privilege'],
    ['pkexec ls', 'privilege'],
    ['/usr/bin/sudo ls', 'privilege'],
    ['echo $(sudo ls)', 'privilege'],
    ['env sudo ls', 'privilege'],
    ['mkfs.ext4 /dev/sda', 'device'],
    ['shred x', 'device'],
    ['fdisk -l', 'device'],
    ['dd if=x of=/dev/sda', 'device'],
    ['systemctl status', 'system'],
    ['mount', 'system'],
    ['iptables -L', 'system'],
    ['useradd x', 'system'],
    ['chown a b', 'system'],
    ['crontab -l', 'system'],
    ['docker ps', 'container'],
    ['podman ps', 'container'],
    ['kubectl get pods', 'container'],
    ['nerdctl ps', 'container'],
    ['reboot', 'power'],
    ['shutdown now', 'power'],
    ['insmod x', 'kernel'],
    ['rm -rf /', 'destroys_tree'],
    ['rm --recursive --force /', 'destroys_tree'],
    ['rm -rf / -n', 'destroys_tree'],
    ['rm -rf /*', 'destroys_tree'],
    ['rm -rf ~', 'destroys_tree'],
    ['rm -rf "$HOME"', 'destroys_tree'],
    ['rm -rf .', 'destroys_tree'],
    ['rm -rf *', 'destroys_tree'],
    ['rm -rf ../project', 'destroys_tree'],
    ['rm -rf .git', 'destroys_tree'],
    ['rm -rf .git/', 'destroys_tree'],
    ['rm -rf src/../.git', 'destroys_tree'],
    ['cd src && rm -rf ..', 'destroys_tree'],
    ['cd / && rm -rf *', 'destroys_tree'],
    ['mv .git x', 'destroys_tree'],
    ['chmod u+s x', 'setuid'],
    ['chmod 4755 x', 'setuid'],
    ['chmod a=rwxs x', 'setuid'],
    ['chmod g+s x', 'setuid'],
    ['chmod -R g+s src', 'setuid'],
    ['install -m 2755 a b', 'setuid'],
    ['install -d -m 4755 x', 'setuid'],
    ['chmod 777 /etc', 'system'],
  ])('%s is refused: %s', (command, code) => {
    expect(codeOf(command)).toBe(code);
    expect(codeOf(command, { autonomy: 'supervised', approved: true })).toBe(code);
  });

  it.each([
    'ls',
    'rm -rf node_modules',
    'rm -rf src/*',
    'rm .git/index.lock',
    'cd src && rm -rf *',
    'rm -rf /tmp/x',
    'dd if=/dev/zero of=x',
    'dd if=x of=/dev/null',
    'chmod +x x',
    'chmod 0755 x',
    'mkdir -m 2775 x',
    'install -d -m 2755 x',
    'chmod -R go-w src',
    'echo sudo',
    'grep -r sudo .',
    './docker ps',
    'cat /bin/mount',
  ])('%s is not', (command) => {
    expect(codeOf(command)).toBeUndefined();
  });

  it('is what the policy permits by name', () => {
    expect(codeOf('docker ps', { rules: { permitDangerous: ['docker'] } })).toBeUndefined();
    expect(codeOf('podman ps', { rules: { permitDangerous: ['docker'] } })).toBe('container');
    expect(codeOf('rm -rf .', { rules: { permitDangerous: ['rm'] } })).toBeUndefined();
  });
});
