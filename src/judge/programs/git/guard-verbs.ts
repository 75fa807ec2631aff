import type { Word } from '../../../model/index.ts';

/** A word with its value, where that is known, and as it was written. */
type Argument = Pick<Word, 'value' | 'source'>;

/** What something means for the guard: one command of git, or a whole line. */
export interface GuardFinding {
  /** Why it is refused. */
  readonly refusal?: string;
  /** It brings commits from elsewhere. */
  readonly fetches?: boolean;
  /** Why it is refused if something in the same line fetches: it moves a branch to what may have been fetched. */
  readonly integrates?: string;
  /** Whether it prints commits, among them fetched ones. */
  readonly prints?: boolean;
  /** Why it is refused if something in the same line fetches and something prints: it applies patches. */
  readonly applies?: string;
}

export const NOTHING: GuardFinding = {};

/** The first reason of each kind counts. */
export function merged(findings: readonly GuardFinding[]): GuardFinding {
  const refusal = findings.find((finding) => finding.refusal !== undefined)?.refusal;
  const integrates = findings.find((finding) => finding.integrates !== undefined)?.integrates;
  const applies = findings.find((finding) => finding.applies !== undefined)?.applies;
  return {
    fetches: findings.some((finding) => finding.fetches === true),
    prints: findings.some((finding) => finding.prints === true),
    ...(refusal === undefined ? {} : { refusal }),
    ...(integrates === undefined ? {} : { integrates }),
    ...(applies === undefined ? {} : { applies }),
  };
}

/** What git has been shipping in every installation for many years: no alias can take the place of one. */
const ALWAYS =
  'add am annotate apply archive bisect blame branch bundle cat-file check-attr check-ignore check-mailmap check-ref-format checkout checkout-index cherry cherry-pick clean clone column commit commit-graph commit-tree config count-objects credential describe diff diff-files diff-index diff-tree difftool fast-export fast-import fetch fetch-pack fmt-merge-msg for-each-ref format-patch fsck fsck-objects gc get-tar-commit-id grep hash-object help index-pack init init-db interpret-trailers log ls-files ls-remote ls-tree mailinfo mailsplit merge merge-base merge-file merge-index merge-ours merge-recursive merge-subtree merge-tree mktag mktree mv name-rev notes pack-objects pack-refs patch-id prune prune-packed pull push range-diff read-tree rebase receive-pack reflog remote repack replace rerere reset rev-list rev-parse revert rm send-pack shortlog show show-branch show-index show-ref stage stash status stripspace submodule symbolic-ref tag unpack-file unpack-objects update-index update-ref update-server-info upload-archive upload-pack var verify-commit verify-pack verify-tag version worktree write-tree';

/**
 * Newer, deprecated or packaged apart: where git does not have one, or lets an alias go first, an alias of this name is
 * what runs.
 */
const SOMEWHERE =
  'archimport backfill bugreport checkout--worker citool cvsimport cvsserver credential-cache credential-cache--daemon credential-store daemon diagnose diff-pairs difftool--helper env--helper filter-branch for-each-repo fsmonitor--daemon gui hook http-backend http-fetch imap-send instaweb last-modified lfs maintenance merge-octopus merge-one-file merge-recursive-ours merge-recursive-theirs merge-resolve mergetool multi-pack-index p4 pack-redundant pickaxe quiltimport refs repo request-pull restore send-email sh-i18n--envsubst sparse-checkout subtree svn switch upload-archive--writer web--browse whatchanged add--interactive bisect--helper';

const set = (names: string): ReadonlySet<string> => new Set(names.split(' '));

/** Commands of git that no alias can hide. */
export const BUILT_IN = set(ALWAYS);
/** Commands of git that an alias of the same name may hide. */
export const SHIPPED = set(SOMEWHERE);

export const TO_A_PERSON = 'the policy (hooks.git_guard) leaves pushing, pulling and rebasing to a person';

/** Commands that are refused whatever their words. `remote-…` and `rebase-…` are refused besides. */
export const REFUSED: Readonly<Record<string, string>> = {
  push: `git push sends commits away: ${TO_A_PERSON}`,
  pull: `git pull merges or rebases what it fetches: ${TO_A_PERSON}; git fetch alone is allowed`,
  'send-pack': `git send-pack is what git push runs: ${TO_A_PERSON}`,
  'http-push': `git http-push pushes: ${TO_A_PERSON}`,
  'receive-pack': `git receive-pack takes what is pushed: ${TO_A_PERSON}`,
  shell: `git shell starts what receives a push: ${TO_A_PERSON}`,
  cvsexportcommit: `git cvsexportcommit sends commits away: ${TO_A_PERSON}`,
  replay: `git replay rebases: ${TO_A_PERSON}`,
  history: `git history rebases what follows a commit: ${TO_A_PERSON}`,
  'submodule--helper': `git submodule--helper is internal and can rebase: call git submodule`,
};

/** `git rebase` with this word alone ends a rebase and changes no commit. */
const ENDS_REBASE = set('--abort --quit --show-current-patch');
const REBASE = `git rebase rewrites commits, also when it continues or skips: ${TO_A_PERSON}; git rebase --abort is allowed`;

/** Programs around git: all that they may be told to do, as the first word that is no option. */
const ALLOWED_SUBCOMMANDS: Readonly<Record<string, ReadonlySet<string>>> = {
  lfs: set(
    'checkout clean completion env ext fetch filter-process fsck install lock locks logs ls-files merge-driver migrate pointer post-checkout post-commit post-merge prune pull smudge status track uninstall unlock untrack update version help',
  ),
  svn: set(
    'blame clone create-ignore fetch find-rev gc help info init log migrate propget proplist show-externals show-ignore',
  ),
  p4: set('branches clone sync'),
  subtree: set('add merge split'),
};

const PULLS =
  'with git fetch in the same line that is git pull, which is left to a person: do it in a call of its own';
const HELP = /^(?:-h|--help)$/;
/** What a fetch left behind, or what follows a remote. */
const FETCHED = /FETCH_HEAD|@\{(?:u|upstream|push)\}/i;

/** Judges a command of git by its words, aliases being resolved. */
export function findingOf(verb: string, args: readonly Argument[]): GuardFinding {
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

function ofProgramAround(
  verb: string,
  args: readonly Argument[],
  allowed: ReadonlySet<string>,
): GuardFinding {
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

function ofBranches(verb: string, args: readonly Argument[]): GuardFinding {
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

function forced(args: readonly Argument[], force: RegExp): GuardFinding {
  const moves = args.some(matches(force)) && (args.some(isFetched) || args.some(isRemoteBranch));
  return moves ? { integrates: PULLS } : NOTHING;
}

function ofMerge(args: readonly Argument[]): GuardFinding {
  const ends =
    args.length === 1 && matches(/^--(?:abort|quit|continue)$/)(args[0] ?? { value: '', source: '' });
  if (ends) return NOTHING;
  if (args.some(({ value, source }) => /FETCH_HEAD/i.test(value ?? source)))
    return { refusal: 'git merge FETCH_HEAD is the second half of git pull, which is left to a person' };
  return { integrates: PULLS };
}

const FETCH_VALUES =
  /^(?:-j|-o|--(?:jobs|server-option|depth|deepen|shallow-since|shallow-exclude|refmap|upload-pack|filter|negotiation-tip|recurse-submodules-default|submodule-prefix))$/;

function ofFetch(args: readonly Argument[]): GuardFinding {
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

function ofSubmodule(args: readonly Argument[]): GuardFinding {
  if (!args.some(({ value }) => value === undefined || value === 'update')) return NOTHING;
  if (args.some(matches(/^-[a-z]*[mr]$|^--(?:rebase|merge|rebas|reba|merg)$/)))
    return {
      refusal:
        'git submodule update --rebase or --merge is a pull in the submodule: that is left to a person',
    };
  return NOTHING;
}
