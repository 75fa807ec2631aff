// A Debian with what the README names and nothing else, and commands in it as on a machine of its own.
import { cpSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { ALONE, addNode, makeDebianRoot, npmSettings, trustAsHost } from '../debian-root.mjs';
import { run, StepError } from '../step.mjs';

const PASSED_ON = ['http_proxy', 'https_proxy', 'no_proxy', 'HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY'];
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
const MINUTES = 60_000;
/** Those who try it: the ordinary one first, so that root has left nothing for him. */
export const USERS = [
  { name: 'tester', uid: 1000, home: '/home/tester' },
  { name: 'root', uid: 0, home: '/root' },
];

/**
 * With pivot_root: in a mere chroot nobody has user namespaces, which is no fresh machine's fault. The shell stays: somebody
 * has to reap what is orphaned.
 */
const ENTER = `
root=$1; uid=$2; shift 2
mount --bind "$root" "$root"
mount --rbind /dev "$root/dev"
mount --rbind /sys "$root/sys"
mount -t proc proc "$root/proc"
cd "$root"
pivot_root . mnt
exec chroot . sh -ec '
  umount -l /mnt
  uid=$1; shift
  setpriv --reuid "$uid" --regid "$uid" --init-groups --inh-caps=-all "$@" || exit $?' sh "$uid" "$@"`;

/** Makes the root. `steps`: what the README says. Answers with `inside`, which runs bash there, and where Node is from. */
export async function makeMachine(root, sources, steps, signal) {
  await makeDebianRoot(root, sources, { signal });
  for (const name of ['etc/resolv.conf', 'etc/hosts'])
    if (existsSync(`/${name}`)) cpSync(`/${name}`, join(root, name), { dereference: true });
  const npm = await npmSettings();
  const inside = (command, { user = USERS.at(-1), directory = '/', ...options } = {}) => {
    const env = {
      ...{ PATH, HOME: user.home, USER: user.name, LOGNAME: user.name, TERM: 'dumb' },
      ...Object.fromEntries(Object.entries(npm).map(([name, value]) => [`npm_config_${name}`, value])),
      NODE_EXTRA_CA_CERTS: npm.cafile,
      ...Object.fromEntries(
        PASSED_ON.filter((name) => process.env[name]).map((name) => [name, process.env[name]]),
      ),
    };
    const words = ['env', '-i', `--chdir=${directory}`, ...Object.entries(env).map((each) => each.join('='))];
    const [program, ...alone] = ALONE;
    const entered = ['sh', '-ec', ENTER, 'sh', root, `${user.uid}`, ...words, 'bash', '-c', command];
    return run(program, [...alone, ...entered], { signal, tree: true, timeoutMs: 20 * MINUTES, ...options });
  };

  await inside('apt-get update -q');
  const version = (await inside('apt-cache show --no-all-versions nodejs')).stdout;
  const isOld = isOlder(/^Version: (\d+)\.(\d+)/m.exec(version)?.slice(1).map(Number) ?? [0, 0], steps.node);
  const packages = steps.packages.filter((name) => !isOld || !steps.fromElsewhere.includes(name));
  const install = 'DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends';
  await inside(`${install} ${packages.join(' ')} && apt-get clean`);
  trustAsHost(root);
  if (isOld) addNode(root);
  await inside('useradd --create-home --shell /bin/bash --uid 1000 tester');
  const versions = (await inside('node --version; npm --version')).stdout.trim().split('\n');
  if (versions.length !== 2) throw new StepError("this host's Node does not run in the new root");
  return { inside, node: `${versions.join(', npm ')} of ${isOld ? 'this host' : 'Debian'}` };
}

export function isOlder([major, minor], [wantedMajor, wantedMinor]) {
  return major < wantedMajor || (major === wantedMajor && minor < wantedMinor);
}
