import { ALLOWED_SUBCOMMANDS, ENDS_REBASE, REBASE, REFUSED } from './commands.ts';
import { type Finding, NOTHING } from './finding.ts';
import type { Argument } from './invocation.ts';

const PULLS =
  'with git fetch in the same line that is git pull, which is left to a person: do it in a call of its own';
const HELP = /^(?:-h|--help)$/;
/** What a fetch left behind, or what follows a remote. */
const FETCHED = /FETCH_HEAD|@\{(?:u|upstream|push)\}/i;

/** Judges a command of git by its words, aliases being resolved. */
export function findingOf(verb: string, args: readonly Argument[]): Finding {
  const values = args.map(({ value }) => value);
  const [first] = values;
  if (args.length === 1 && first !== undefined && HELP.test(first)) return NOTHING;
  const refusal = Object.hasOwn(REFUSED, verb) ? REFUSED[verb] : undefined;
  if (refusal !== undefined) return { refusal };
  if (/^remote-/.test(verb)) return { refusal: `git ${verb} can push: use git fetch or git ls-remote` };
  if (/^(?:legacy-)?rebase(?:-|$)/.test(verb)) {
    const ends = args.length === 1 && first !== undefined && ENDS_REBASE.has(first);
    return verb === 'rebase' && ends ? NOTHING : { refusal: REBASE };
  }
  const allowed = Object.hasOwn(ALLOWED_SUBCOMMANDS, verb) ? ALLOWED_SUBCOMMANDS[verb] : undefined;
  if (allowed !== undefined) return ofProgramAround(verb, args, allowed);
  return ofBranches(verb, args);
}

function ofProgramAround(verb: string, args: readonly Argument[], allowed: ReadonlySet<string>): Finding {
  const words = args.filter(({ value }) => value === undefined || !value.startsWith('-'));
  const [first] = words;
  if (first === undefined) return NOTHING;
  const isAllowed = ({ value }: Argument) => value !== undefined && allowed.has(value);
  // Only here do options with values stand before the subcommand: any word could be it.
  const isFine =
    verb === 'subtree' ? words.some(isAllowed) && !words.some(matches(/^(?:push|pull)$/)) : isAllowed(first);
  if (isFine) return NOTHING;
  const source = words.map((word) => word.source).join(' ');
  return { refusal: `git ${verb} ${source}: this may push, pull or rebase, which is left to a person` };
}

function ofBranches(verb: string, args: readonly Argument[]): Finding {
  switch (verb) {
    case 'fetch':
      return ofFetch(args);
    case 'fetch-pack':
      return { fetches: true };
    case 'remote':
      return args.some(({ value }) => value === undefined || value === 'update')
        ? { fetches: true }
        : NOTHING;
    case 'submodule':
      return ofSubmodule(args);
    case 'merge':
      return ofMerge(args);
    case 'reset':
      return movesBranch(args) ? { integrates: PULLS } : NOTHING;
    case 'checkout':
      return takesFiles(args) ? { integrates: PULLS } : forced(args, /^-[a-zA-Z]*B/);
    case 'restore':
      return args.some(isSourceOfRestore) ? { integrates: PULLS } : NOTHING;
    case 'symbolic-ref':
      return leadsToRemote(args) ? { integrates: PULLS } : NOTHING;
    case 'apply':
    case 'am':
      return { applies: PULLS };
    case 'diff':
    case 'diff-tree':
    case 'format-patch':
    case 'log':
    case 'show':
      return args.some(isFetched) || args.some(isSurelyRemote) ? { prints: true } : NOTHING;
    case 'switch':
      return forced(args, /^-[a-zA-Z]*C|^--force-c/);
    case 'branch':
      return forced(args, /^-[a-zA-Z]*[fCM]|^--forc?e?/);
    case 'cherry-pick':
    case 'read-tree':
    case 'update-ref':
      return args.some(isFetched) || args.some(isRemoteBranch) ? { integrates: PULLS } : NOTHING;
    default:
      return NOTHING;
  }
}

const matches =
  (pattern: RegExp) =>
  ({ value }: Argument) =>
    value !== undefined && pattern.test(value);
const isFetched = ({ value, source }: Argument) => FETCHED.test(value ?? source);
/** `origin/main`, refs of remotes, and what is not known. */
const isRemoteBranch = ({ value }: Argument) =>
  value === undefined ||
  (!value.startsWith('-') && (/^[^/]+\/./.test(value) || /^refs\/remotes\//.test(value)));

/** Remotes as people call them, also behind `HEAD..`: names that are no paths. */
const isSurelyRemote = matches(/(?:^|\.\.|=)(?:origin|upstream|(?:refs\/)?remotes)\//);
const operandsOf = (args: readonly Argument[]) =>
  args.filter(({ value }) => value === undefined || !value.startsWith('-'));

/** `checkout origin/main -- path`: what stands before the dashes is no path. */
function takesFiles(args: readonly Argument[]): boolean {
  const dashes = args.findIndex(({ value }) => value === '--');
  const [from, path] = operandsOf(args);
  if (args.some(matches(/^-[a-zA-Z]*[bB]|^--(?:orphan|track)|^-t/)) || from === undefined) return false;
  if (dashes === -1) return path !== undefined && (isFetched(from) || isSurelyRemote(from));
  const before = operandsOf(args.slice(0, dashes));
  return before.some((word) => isFetched(word) || isRemoteBranch(word));
}

/** `-s origin/main`, `--source=origin/main`. Without a source the files come from the index. */
const isSourceOfRestore = (word: Argument, at: number, args: readonly Argument[]): boolean => {
  const isRemote = isFetched(word) || isSurelyRemote(word) || matches(/^-s(?:origin|upstream)\//)(word);
  const before = args[at - 1]?.value ?? '';
  return isRemote && (/^(?:-s|--so)/.test(word.value ?? word.source) || /^(?:-s|--so\w*)$/.test(before));
};

/** `symbolic-ref HEAD refs/remotes/origin/main`; the HEAD of a remote may lead there. */
function leadsToRemote(args: readonly Argument[]): boolean {
  const [name, to] = operandsOf(args);
  if (to === undefined || /^refs\/remotes\//.test(name?.value ?? '')) return false;
  return isFetched(to) || isSurelyRemote(to);
}

/** Without an option a name with a slash may as well be a path, which is only taken out of the index. */
function movesBranch(args: readonly Argument[]): boolean {
  if (args.some(isFetched) || args.some(matches(/^(?:origin|upstream|refs\/remotes)\//))) return true;
  return args.some(matches(/^--[hkms]/)) && args.some(isRemoteBranch);
}

function forced(args: readonly Argument[], force: RegExp): Finding {
  const moves = args.some(matches(force)) && (args.some(isFetched) || args.some(isRemoteBranch));
  return moves ? { integrates: PULLS } : NOTHING;
}

function ofMerge(args: readonly Argument[]): Finding {
  const ends =
    args.length === 1 && matches(/^--(?:abort|quit|continue)$/)(args[0] ?? { value: '', source: '' });
  if (ends) return NOTHING;
  if (args.some(({ value, source }) => /FETCH_HEAD/i.test(value ?? source)))
    return { refusal: 'git merge FETCH_HEAD is the second half of git pull, which is left to a person' };
  return { integrates: PULLS };
}

const FETCH_VALUES =
  /^(?:-j|-o|--(?:jobs|server-option|depth|deepen|shallow-since|shallow-exclude|refmap|upload-pack|filter|negotiation-tip|recurse-submodules-default|submodule-prefix))$/;

function ofFetch(args: readonly Argument[]): Finding {
  if (args.some(matches(/^-[a-zA-Z]*u|^--update-h|^--std/)))
    return {
      refusal: 'git fetch with --update-head-ok or --stdin can move local branches, as git pull does',
    };
  const operands = args.filter((argument, at) => {
    const before = args[at - 1]?.value;
    if (before !== undefined && FETCH_VALUES.test(before)) return false;
    return argument.value === undefined || !argument.value.startsWith('-');
  });
  // The first names a repository, which may hold a colon.
  const moving = operands.slice(1).find(({ value, source }) => {
    const to = /:(.*)$/s.exec(value ?? source)?.[1];
    return to !== undefined && to !== '' && !/^refs\/(?!heads\/)/.test(to);
  });
  if (moving !== undefined)
    return {
      refusal: `git fetch ${moving.source} moves a local branch, as git pull does: fetch without a target`,
    };
  return { fetches: true };
}

function ofSubmodule(args: readonly Argument[]): Finding {
  if (!args.some(({ value }) => value === undefined || value === 'update')) return NOTHING;
  if (args.some(matches(/^-[a-z]*[mr]$|^--(?:rebase|merge|rebas|reba|merg)$/)))
    return {
      refusal:
        'git submodule update --rebase or --merge is a pull in the submodule: that is left to a person',
    };
  return NOTHING;
}
