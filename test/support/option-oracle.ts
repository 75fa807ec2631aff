import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** An option as a program declares it to getopt_long. */
export interface DeclaredOption {
  readonly name: string;
  /** Options with the same one are the same option by other names. */
  readonly meaning: string;
  readonly value: 'none' | 'required' | 'optional';
}

/** What a program declares to getopt_long. */
export interface Declaration {
  readonly options: readonly DeclaredOption[];
  /** Options end at the first operand. */
  readonly stopAtOperand: boolean;
}

/** How a program reads one argument list; `undefined`: it refuses the list. */
export type Reading =
  | {
      readonly options: readonly { readonly name: string; readonly value: string | undefined }[];
      readonly operands: readonly string[];
    }
  | undefined;

/** What a program is asked to read, and in which environment besides. */
interface Question {
  readonly program: string;
  readonly lists: readonly (readonly string[])[];
  readonly environment?: Readonly<Record<string, string>>;
}

/** Asks programs how they read arguments. They do nothing else: the first call of getopt answers and ends them. */
export interface OptionOracle extends Disposable {
  /** The options that each program declares; `undefined`: it is not here, or does not call getopt of the C library. */
  declared(programs: readonly string[]): readonly (Declaration | undefined)[];
  /** How each program reads its lists. */
  read(questions: readonly Question[]): readonly (readonly Reading[])[];
}

/**
 * Stands in for getopt of the C library. It takes the declaration of the program, reads with the real function every list of the
 * file ORACLE_LISTS (without one it prints the declaration), writes the readings to descriptor 3, and ends the process.
 * Fields end with NUL, records with an empty record type `E`.
 */
const STAND_IN = `
#define _GNU_SOURCE
#include <dlfcn.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int (*Real)(int, char *const *, const char *, const struct option *, int *);

static FILE *out;
static void put(const char *text) { fwrite(text, 1, strlen(text) + 1, out); }

static void put_option(const char *name, int has_arg, const void *flag, int value) {
  char meaning[64];
  snprintf(meaning, sizeof meaning, "%p:%d", flag, value);
  put("D");
  put(name);
  put(meaning);
  put(has_arg == 0 ? "none" : has_arg == 1 ? "required" : "optional");
}

static void declare(const char *shorts, const struct option *longs) {
  put(*shorts == '+' ? "S" : "-");
  if (*shorts == '+' || *shorts == '-') shorts++;
  if (*shorts == ':') shorts++;
  const char *first = shorts;
  for (; *shorts; shorts++) {
    char name[2] = {*shorts, 0};
    int colons = shorts[1] != ':' ? 0 : shorts[2] != ':' ? 1 : 2;
    /* Of two declarations of a letter the first counts. */
    if (strchr(first, *shorts) == shorts) put_option(name, colons, NULL, *shorts);
    shorts += colons;
  }
  for (; longs && longs->name; longs++) put_option(longs->name, longs->has_arg, longs->flag, longs->val);
}

static void read_list(int argc, char **argv, const char *shorts, const struct option *longs, Real real) {
  optind = 0;
  opterr = 0;
  for (;;) {
    int index = -1;
    int found = real(argc, argv, shorts, longs, &index);
    if (found == -1) break;
    if (found == '?' || found == ':') {
      put("R");
      put("E");
      return;
    }
    if (found == 1 && *shorts == '-') {
      put("A");
      put(optarg);
      continue;
    }
    char name[2] = {(char)found, 0};
    put(optarg ? "V" : "F");
    put(index >= 0 ? longs[index].name : name);
    if (optarg) put(optarg);
  }
  for (; optind < argc; optind++) {
    put("A");
    put(argv[optind]);
  }
  put("E");
}

static void answer(char *const *own, const char *shorts, const struct option *longs, const char *name) {
  Real real = (Real)dlsym(RTLD_NEXT, name);
  out = fdopen(3, "w");
  const char *path = getenv("ORACLE_LISTS");
  if (!path) {
    declare(shorts, longs);
    put("E");
  } else {
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t room = 0;
    while (getdelim(&line, &room, 0, file) > 0) {
      int count = atoi(line);
      char **argv = calloc(count + 2, sizeof *argv);
      argv[0] = own[0];
      for (int i = 0; i < count; i++) {
        char *word = NULL;
        size_t size = 0;
        getdelim(&word, &size, 0, file);
        argv[i + 1] = word;
      }
      read_list(count + 1, argv, shorts, longs, real);
    }
  }
  fflush(out);
  _exit(0);
}

/* Not a script's own programs: the one that was asked. */
static int is_asked(void) {
  char own[4096];
  ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
  if (length < 0) return 0;
  own[length] = 0;
  const char *asked = getenv("ORACLE_PROGRAM");
  return asked && strcmp(asked, own) == 0;
}

static int pass(const char *name, int argc, char *const *argv, const char *shorts, const struct option *longs, int *index) {
  return ((Real)dlsym(RTLD_NEXT, name))(argc, argv, shorts, longs, index);
}

int getopt_long(int argc, char *const *argv, const char *shorts, const struct option *longs, int *index) {
  if (is_asked()) answer(argv, shorts, longs, "getopt_long");
  return pass("getopt_long", argc, argv, shorts, longs, index);
}
int getopt_long_only(int argc, char *const *argv, const char *shorts, const struct option *longs, int *index) {
  if (is_asked()) answer(argv, shorts, longs, "getopt_long_only");
  return pass("getopt_long_only", argc, argv, shorts, longs, index);
}
int getopt(int argc, char *const *argv, const char *shorts) {
  if (is_asked()) answer(argv, shorts, NULL, "getopt_long");
  return pass("getopt_long", argc, argv, shorts, NULL, NULL);
}
`;

export function createOptionOracle(): OptionOracle {
  const root = mkdtempSync(join(tmpdir(), 'option-oracle-'));
  const library = join(root, 'stand-in.so');
  execFileSync('gcc', ['-w', '-O1', '-shared', '-fPIC', '-x', 'c', '-', '-o', library, '-ldl'], {
    input: STAND_IN,
  });

  /** Starts the programs, one after another, from one shell. */
  function ask(
    questions: readonly Omit<Question, 'lists'>[],
    lists: readonly string[] = [],
  ): readonly (readonly string[])[] {
    const lines = questions.map(({ program, environment = {} }, at) => {
      const path = pathOf(program);
      if (path === undefined) return '';
      const all = {
        ...environment,
        LD_PRELOAD: library,
        ORACLE_PROGRAM: realpathSync(path),
        PATH: '/usr/bin:/bin',
      };
      const variables = Object.entries({
        ...all,
        ...(lists[at] === undefined ? {} : { ORACLE_LISTS: lists[at] }),
      });
      const words = [...variables.map(([name, value]) => `${name}='${value}'`), `'${path}'`].join(' ');
      return `timeout -s KILL 60 env -i ${words} --help 3>answer-${at} </dev/null >/dev/null 2>&1`;
    });
    execFileSync('sh', ['-c', `${lines.filter((line) => line !== '').join('\n')}\n:`], { cwd: root });
    return questions.map((_, at) => {
      const answer = join(root, `answer-${at}`);
      if (!existsSync(answer)) return [];
      const fields = readFileSync(answer, 'utf8').split('\0').slice(0, -1);
      rmSync(answer);
      return fields;
    });
  }

  return {
    declared: (programs) =>
      ask(programs.map((program) => ({ program }))).map((fields) => {
        if (fields.at(-1) !== 'E') return undefined;
        const options: DeclaredOption[] = [];
        for (let at = 1; fields[at] === 'D'; at += 4)
          options.push({
            name: fields[at + 1] ?? '',
            meaning: fields[at + 2] ?? '',
            value: fields[at + 3] as DeclaredOption['value'],
          });
        return { options, stopAtOperand: fields[0] === 'S' };
      }),
    read(questions) {
      const files = questions.map(({ lists }, at) => {
        const file = join(root, `lists-${at}`);
        writeFileSync(file, lists.map((list) => [list.length, ...list, ''].join('\0')).join(''));
        return file;
      });
      return ask(questions, files).map(readingsIn);
    },
    [Symbol.dispose]: () => rmSync(root, { recursive: true, force: true }),
  };
}

function pathOf(program: string): string | undefined {
  return (process.env.PATH ?? '')
    .split(':')
    .map((directory) => join(directory, program))
    .find((path) => existsSync(path));
}

function readingsIn(fields: readonly string[]): readonly Reading[] {
  const found: Reading[] = [];
  let options: { name: string; value: string | undefined }[] = [];
  let operands: string[] = [];
  let refused = false;
  for (let at = 0; at < fields.length; ) {
    const kind = fields[at++];
    if (kind === 'F') options.push({ name: fields[at++] ?? '', value: undefined });
    else if (kind === 'V') options.push({ name: fields[at++] ?? '', value: fields[at++] ?? '' });
    else if (kind === 'A') operands.push(fields[at++] ?? '');
    else if (kind === 'R') refused = true;
    else {
      found.push(refused ? undefined : { options, operands });
      options = [];
      operands = [];
      refused = false;
    }
  }
  return found;
}
