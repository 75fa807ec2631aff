import { isSingle, prefixOf, withoutPrefix } from '../../model/word.ts';
import { type Behaviour, type Call, type ProgramRow, programs, type Runs, verbs } from '../behaviour.ts';
import { NOTHING, readOptions, refused, runText, runWords } from '../options.ts';

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

/** `devbox run [options] words`: the words are a text for a shell, unless the first is the name of a script. */
const DEVBOX_RUN: Behaviour = {
  grammar: {
    stopAtOperand: true,
    flags: 'q l h all-projects help list omit-nix-env pure quiet recompute',
    values: 'c e config env env-file environment',
  },
  runs: (call) => {
    const read = readOptions(call.args, call.grammar);
    return read.ok ? runText(read.rest) : refused(`devbox: ${read.message}`, read.word);
  },
};

/** `mise exec TOOL… -- command`. */
function runsOfMise(call: Call): Runs {
  const dashes = call.args.findIndex(({ value }) => value === '--');
  const read = readOptions(dashes === -1 ? call.args : call.args.slice(0, dashes), call.grammar, 'anywhere');
  if (!read.ok) return refused(`mise: ${read.message}`, read.word);
  return runWords(dashes === -1 ? read.rest : call.args.slice(dashes + 1));
}

const INSTALLS: Behaviour = {
  operands: 'none',
  needs: 'system',
  verbs: verbs('list search show info policy', { risk: 'low', reach: 'network', needs: 'nothing' }),
};

/** Package managers of systems. */
export const PACKAGES: readonly ProgramRow[] = [
  ...programs('nix', 'high', 'network', { ...INSTALLS, runs: runsOfNix }),
  ...programs('nix-shell', 'high', 'network', { ...INSTALLS, runs: runsOfNixShell }),
  ...programs('devbox', 'medium', 'unknown', {
    operands: 'none',
    grammar: { flags: 'q h quiet help' },
    verbs: { run: DEVBOX_RUN, global: { verbs: { run: DEVBOX_RUN } } },
  }),
  ...programs('mise', 'medium', 'network', {
    operands: 'none',
    grammar: { flags: 'q v y', values: 'C' },
    verbs: verbs('exec x', { runs: runsOfMise }),
  }),
  ...programs('direnv', 'medium', 'unknown', {
    operands: 'none',
    verbs: { exec: { launches: { operands: 1 } } },
  }),
  ...programs(
    'apt apt-get aptitude dnf yum zypper pacman apk brew snap flatpak nix-env nix-build guix port emerge pkg xbps-install opkg microdnf',
    'high',
    'network',
    INSTALLS,
  ),
  ...programs(
    'dpkg rpm apt-key add-apt-repository update-alternatives debconf-set-selections dpkg-reconfigure',
    'high',
    'unknown',
  ),
  ...programs('dpkg-query apt-cache apt-mark apt-file', 'low', 'unknown', { operands: 'none' }),
  ...programs('gem', 'medium', 'network', {
    operands: 'none',
    verbs: {
      ...verbs('list search info which environment', { risk: 'low' }),
      ...verbs('push yank owner', { outward: 'changes what is published' }),
    },
  }),
  ...programs('cpan cpanm pear pecl tlmgr asdf sdk proto', 'medium', 'network', { operands: 'none' }),
];
