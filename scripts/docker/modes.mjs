// The three ways in which the suite runs, and what is to be there in each.
import { run, StepError } from '../step.mjs';

const ORDINARY = ['--user', 'tester'];
/** `namespaces`: whether a command can have some of its own, as far as Docker is concerned. */
export const MODES = [
  {
    name: 'default',
    what: 'Docker as it comes, an ordinary user',
    namespaces: false,
    flags: async () => ORDINARY,
  },
  {
    name: 'no-capabilities',
    what: '--cap-drop ALL --security-opt no-new-privileges, an ordinary user',
    namespaces: false,
    flags: async () => [...ORDINARY, '--cap-drop', 'ALL', '--security-opt', 'no-new-privileges'],
  },
  {
    name: 'privileged',
    what: 'everything allowed, root, and the same tests as nobody',
    namespaces: true,
    // No layer of a preview lies on the overlay that is the root of a container: the tests' state is in /tmp.
    flags: async (docker, image) => [
      ...['--user', 'root', '--volume', '/tmp'],
      ...(await privilegedFlags(docker, image)),
    ],
  },
];

/**
 * `--privileged`, or where the daemon itself has less (virtual machines and nested containers often lack a capability)
 * everything else that it stands for. Found out by doing.
 */
export async function privilegedFlags(docker, image) {
  const confined = (await docker(['info', '--format', '{{json .SecurityOptions}}'])).stdout;
  const without = (capabilities) => [
    ...['--cap-add', 'ALL', ...capabilities.flatMap((name) => ['--cap-drop', name])],
    ...['--security-opt', 'seccomp=unconfined'],
    // Without this nobody but root can mount a /proc of its own.
    ...['--security-opt', 'systempaths=unconfined'],
    ...(confined.includes('apparmor') ? ['--security-opt', 'apparmor=unconfined'] : []),
  ];
  const attempts = [['--privileged'], without(await missingCapabilities()), without(['SYS_MODULE'])];
  let why = '';
  for (const flags of attempts) {
    // As root: nobody else gets the capabilities.
    const options = ['--rm', '--network', 'none', '--user', 'root', ...flags];
    const { status, stderr } = await docker(['run', ...options, image, 'true'], { fails: true });
    if (status === 0) return flags;
    why ||= stderr.trim();
  }
  throw new StepError(`neither --privileged nor its equivalent works: ${why}`);
}

/** What this process, and so most likely a daemon beside it, cannot have. */
async function missingCapabilities() {
  const known = (await run('setpriv', ['--list-caps'])).stdout.trim().split('\n');
  const has = /^Capability bounding set: (.*)$/m.exec((await run('setpriv', ['--dump'])).stdout)?.[1] ?? '';
  const present = new Set(has.split(','));
  return known.filter((name) => !present.has(name)).map((name) => name.toUpperCase());
}

/** The modes with these names, in the order of the table; all of them if none is named. */
export function modesNamed(names) {
  const wanted = names ?? MODES.map(({ name }) => name);
  const unknown = wanted.filter((name) => !MODES.some((mode) => mode.name === name));
  if (unknown.length > 0)
    throw new StepError(
      `no mode ${unknown.join(', ')}; there are ${MODES.map(({ name }) => name).join(', ')} and matrix`,
    );
  return MODES.filter(({ name }) => wanted.includes(name));
}
