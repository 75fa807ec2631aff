import type { Behaviour, Grammar } from '../behaviour.ts';

/** A closed grammar and what the operands are, for a program whose row elsewhere leaves something open. */
interface Closed extends Behaviour {
  readonly grammar: Grammar;
}

/** Programs that open no file, whatever their words say. */
export const WITHOUT_FILES: readonly string[] =
  'true false echo printf yes seq sleep expr tr basename dirname uname arch nproc whoami id which printenv'.split(
    ' ',
  );

/** Programs whose rows in the tables are complete: every option, and which words are paths. */
export const AS_IN_THE_TABLES: readonly string[] =
  'ls cat tac head tail rg grep egrep fgrep sort uniq shuf sed cp mv mkdir touch tee rm rmdir date realpath readlink find base64 base32'.split(
    ' ',
  );

/** The rest, complete here. Options that name lists of files, follow links or run programs are left out. */
export const CLOSED: Readonly<Record<string, Closed>> = {
  wc: {
    grammar: { flags: 'c bytes m chars l lines L max-line-length w words', values: 'total' },
    operands: 'reads',
  },
  stat: {
    grammar: { flags: 'L dereference f file-system t terse', values: 'c format printf cached' },
    operands: 'reads',
  },
  du: {
    grammar: {
      flags:
        'a all b bytes c total h human-readable s summarize k m x one-file-system S separate-dirs 0 null apparent-size inodes si P no-dereference',
      values: 'd max-depth B block-size t threshold exclude',
    },
    operands: 'reads',
  },
  cut: {
    grammar: {
      flags: 's n z complement only-delimited zero-terminated',
      values: 'd f c b delimiter fields characters bytes output-delimiter',
    },
    operands: 'reads',
  },
  paste: { grammar: { flags: 's z serial zero-terminated', values: 'd delimiters' }, operands: 'reads' },
  nl: {
    grammar: {
      flags: 'p no-renumber',
      values:
        'b body-numbering d section-delimiter f footer-numbering h header-numbering i line-increment l join-blank-lines n number-format s number-separator v starting-line-number w number-width',
    },
    operands: 'reads',
  },
  fold: { grammar: { flags: 'b bytes s spaces', values: 'w width' }, operands: 'reads' },
  rev: { grammar: {}, operands: 'reads' },
  comm: {
    grammar: {
      flags: '1 2 3 z zero-terminated total check-order nocheck-order',
      values: 'output-delimiter',
    },
    operands: 'reads',
  },
  join: {
    grammar: {
      flags: 'i ignore-case z zero-terminated header check-order nocheck-order',
      values: 't j 1 2 v a e o',
    },
    operands: 'reads',
  },
  cmp: {
    grammar: {
      flags: 'b print-bytes l verbose s quiet silent',
      values: 'i ignore-initial n bytes',
    },
    operands: 'reads',
  },
  diff: {
    grammar: {
      flags:
        'q brief s report-identical-files c u y side-by-side n rcs e ed p show-c-function t expand-tabs T initial-tab N new-file r recursive i ignore-case E ignore-tab-expansion Z ignore-trailing-space b ignore-space-change w ignore-all-space B ignore-blank-lines a text d minimal no-dereference left-column suppress-common-lines strip-trailing-cr normal',
      values: 'U C W width L label I ignore-matching-lines x exclude F show-function-line tabsize',
      optionals: 'color unified context',
    },
    operands: 'reads',
  },
  file: {
    grammar: {
      flags: 'b brief i mime mime-type mime-encoding 0 print0 N no-pad k keep-going r raw h no-dereference',
      values: 'F separator',
    },
    operands: 'reads',
  },
  ...Object.fromEntries(
    'md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum'.split(' ').map((name) => [
      name,
      // Not -c: the list of sums names files of its own.
      { grammar: { flags: 'b binary t text z zero tag' }, operands: 'reads' as const },
    ]),
  ),
  pwd: { grammar: { flags: 'L P logical physical' }, operands: 'none' },
  awk: {
    // Options end at the program, and not every awk has long ones.
    grammar: { values: 'F v', stopAtOperand: true },
    operands: 'script-then-reads',
  },
  jq: {
    grammar: {
      flags:
        'r raw-output R raw-input s slurp n null-input c compact-output C color-output M monochrome-output a ascii-output S sort-keys j join-output e exit-status tab args',
      values: 'indent arg argjson slurpfile rawfile',
    },
  },
};
