import { isSingle, prefixOf, withoutPrefix } from '../../../model/index.ts';
import { type Behaviour, type Call, type ProgramRow, programs, type Runs, verbs } from '../behaviour.ts';
import { hasOption, NOTHING, optionValue, readOptions, refused, runText, runWords } from '../options.ts';

/** `nix develop … -c command`, `nix shell … -c command`, `nix run … -- words`. The command goes to the end of the line. */
function runsOfNix(call: Call): Runs {
  const { args } = call;
  const verb = args.findIndex(({ value }) => /^(?:develop|shell|run)$/.test(value ?? ''));
  if (verb === -1) return NOTHING;
  const ends = args[verb]?.value === 'run' ? /^--$/ : /^(?:-c|--command)$/;
  const end = args.findIndex(({ value }, at) => at > verb && value !== undefined && ends.test(value));
  const before = args.slice(verb + 1, end === -1 ? undefined : end);
  const dynamic = before.find(
    (word) => word.value === undefined && (prefixOf(word) === '' || !isSingle(word)),
  );
  if (dynamic !== undefined)
    return refused(`nix: ${dynamic.source} must be written out, or it is not clear what runs.`, dynamic);
  const rest = end === -1 ? [] : args.slice(end + 1);
  if (args[verb]?.value !== 'run') return runWords(rest);
  // What a package runs has its name, as far as is known.
  const program = before.find(({ value }) => value?.includes('#'));
  return program?.value === undefined
    ? NOTHING
    : runWords([withoutPrefix(program, program.value.indexOf('#') + 1), ...rest]);
}

/** `nix-shell … --run text` and `--command text`. */
function runsOfNixShell(call: Call): Runs {
  const { args } = call;
  const dynamic = args.find((word, at) => {
    const before = args[at - 1]?.value ?? '';
    return word.value === undefined && !/^--(?:run|command)$/.test(before) && !isSingle(word);
  });
  if (dynamic !== undefined)
    return refused(
      `nix-shell: ${dynamic.source} must be written out, or it is not clear what runs.`,
      dynamic,
    );
  const texts = args.filter((_, at) => /^--(?:run|command)$/.test(args[at - 1]?.value ?? ''));
  return { runs: texts.map((text) => ({ kind: 'text', text: [text], dialect: 'bash' })) };
}

const DEVBOX_RUN: Behaviour = {
  grammar: 'devbox run',
  runs: (call) => {
    const read = readOptions(call.args, call.grammar);
    if (!read.ok) return refused(`devbox: ${read.message}`, read.word);
    // In the folder of another project.
    const isElsewhere = hasOption(read, 'c config all-projects');
    return runText(read.rest, 'posix', isElsewhere ? 'unknown' : undefined);
  },
};

/** `mise exec TOOL… -- command`, `mise exec -c text`. */
function runsOfMise(call: Call): Runs {
  const dashes = call.args.findIndex(({ value }) => value === '--');
  const read = readOptions(dashes === -1 ? call.args : call.args.slice(0, dashes), call.grammar, 'anywhere');
  if (!read.ok) return refused(`mise: ${read.message}`, read.word);
  const directory = optionValue([...call.outer, ...read.options], 'C cd');
  const text = optionValue(read.options, 'c command');
  if (text !== undefined) return runText([text], 'posix', directory === undefined ? undefined : 'unknown');
  return runWords(dashes === -1 ? read.rest : call.args.slice(dashes + 1), directory);
}

const INSTALLS: Behaviour = {
  operands: 'none',
  needs: 'system',
  verbs: verbs('list search show info policy', { risk: 'low', reach: 'network', needs: 'nothing' }),
};

/** Package managers of systems. */
export const PACKAGES: readonly ProgramRow[] = [
  ...programs('nix', 'high', 'network', () => ({ ...INSTALLS, runs: runsOfNix })),
  ...programs('nix-shell', 'high', 'network', () => ({ ...INSTALLS, runs: runsOfNixShell })),
  ...programs('devbox', 'medium', 'unknown', () => ({
    operands: 'none',
    grammar: 'devbox',
    verbs: { run: DEVBOX_RUN, global: { verbs: { run: DEVBOX_RUN } } },
  })),
  ...programs('mise', 'medium', 'network', () => ({
    operands: 'none',
    grammar: 'mise',
    verbs: verbs('exec x', { grammar: 'mise exec', runs: runsOfMise }),
  })),
  ...programs('direnv', 'medium', 'unknown', () => ({
    operands: 'none',
    verbs: { exec: { launches: { operands: 1 } } },
  })),
  ...programs(
    'apt apt-get aptitude dnf yum zypper pacman apk brew snap flatpak nix-env nix-build guix port emerge pkg xbps-install opkg microdnf',
    'high',
    'network',
    () => INSTALLS,
  ),
  ...programs(
    'dpkg rpm apt-key add-apt-repository update-alternatives debconf-set-selections dpkg-reconfigure',
    'high',
    'unknown',
  ),
  ...programs('dpkg-query apt-cache apt-mark apt-file', 'low', 'unknown', () => ({ operands: 'none' })),
  ...programs('gem', 'medium', 'network', () => ({
    operands: 'none',
    verbs: {
      ...verbs('list search info which environment', { risk: 'low' }),
      ...verbs('push yank owner', { outward: 'changes what is published' }),
    },
  })),
  ...programs('cpan cpanm pear pecl tlmgr asdf sdk proto', 'medium', 'network', () => ({ operands: 'none' })),
];
