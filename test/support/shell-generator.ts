// biome-ignore-all lint/suspicious/noTemplateCurlyInString: it is the shell that expands them
import fc from 'fast-check';

/** A piece of shell text, with the bodies of the here-documents that it announced and that are still to come. */
interface Piece {
  readonly text: string;
  readonly bodies: readonly string[];
}

const piece = (text: string): Piece => ({ text, bodies: [] });
const glue = (separator: string, pieces: readonly Piece[]): Piece => ({
  text: pieces.map((part) => part.text).join(separator),
  bodies: pieces.flatMap((part) => part.bodies),
});
const around = (before: string, inner: Piece, after: string): Piece => ({
  text: `${before}${inner.text}${after}`,
  bodies: inner.bodies,
});
/** Puts the bodies on the lines behind the text. */
const flush = (inner: Piece): string =>
  inner.bodies.length === 0 ? inner.text : `${inner.text}\n${inner.bodies.join('\n')}\n`;

/** Stub programs: the first six succeed, the others fail. */
export const STUBS = ['c0', 'c1', 'c2', 'c3', 'c4', 'c5', 'c6', 'c7', 'c8', 'c9'] as const;
export const SUCCEEDING = 6;

const stub = fc.constantFrom(...STUBS);
const odd = fc.constantFrom(
  ...[
    'a',
    'b c',
    "it's",
    '#x',
    'a#b',
    '$V0',
    '\\',
    '$',
    ';',
    '&',
    '|',
    '>f',
    '`',
    '"',
    "'",
    '{a,b}',
    '*',
    '~',
    '!',
    'é',
    '\t',
    '-x',
    '=',
    'V=1',
  ],
  ...[
    '$(c1)',
    '${V0}',
    '((',
    '))',
    '[[',
    ']',
    '}',
    '{',
    'if',
    'done',
    '<<E',
    '\n',
    '$(',
    '1',
    '2>',
    ',',
    '..',
    '%',
    '\\\n',
    ' ',
  ],
);
const plainWord = fc.constantFrom(
  ...[
    'a',
    '-x',
    '--y=z',
    'a#b',
    '""',
    "''",
    "'x y'",
    '"x y"',
    'a\\ b',
    "'$(c6)'",
    '"\\$(c7)"',
    '"a;c8"',
    "'`c9`'",
    "$'a\\tb'",
    "$'it\\'s'",
  ],
  ...[
    '$V0',
    '"$V0"',
    '${V1}',
    '"${V1:-d}"',
    '${V0%x}',
    '~',
    '*',
    '[ab]',
    '?',
    '{a,b}',
    'x{1..3}y',
    'é',
    '=',
    'V=1',
    '!',
    '}',
    '{',
    '$',
    'a$',
    '"a$"',
  ],
  ...[
    '$((1+2))',
    '"$((3*4))"',
    'a"b"\'c\'',
    '\\#',
    '\\;',
    '\\&',
    "'\n'",
    '"\n"',
    '%',
    '^',
    '@',
    'if',
    'then',
    '1',
    '2',
    '{}',
    '\\{a,b}',
    '"{a,b}"',
  ],
);

/** Scripts that put known constructs around stub programs. */
export const script: fc.Arbitrary<string> = fc
  .letrec<{ word: Piece; command: Piece; node: Piece; list: Piece; redirect: Piece }>((tie) => ({
    word: fc.oneof(
      { depthSize: 'xsmall', withCrossShrink: true },
      { weight: 8, arbitrary: plainWord.map(piece) },
      {
        weight: 1,
        arbitrary: fc
          .array(odd, { maxLength: 3 })
          .map((parts) => piece(`"${parts.join('').replace(/["`\\$]/g, '')}"`)),
      },
      {
        weight: 1,
        arbitrary: fc
          .array(odd, { maxLength: 3 })
          .map((parts) => piece(`'${parts.join('').replace(/'/g, '')}'`)),
      },
      { weight: 2, arbitrary: tie('list').map((inner) => piece(`$(${flush(inner)})`)) },
      { weight: 1, arbitrary: tie('list').map((inner) => piece(`"$(${flush(inner)})"`)) },
      { weight: 1, arbitrary: tie('command').map((inner) => piece(`\`${flush(inner)}\``)) },
      { weight: 1, arbitrary: tie('list').map((inner) => piece(`<(${flush(inner)})`)) },
      { weight: 1, arbitrary: tie('command').map((inner) => piece(`\${V2:-$(${flush(inner)})}`)) },
      { weight: 1, arbitrary: fc.tuple(tie('word'), tie('word')).map((two) => glue('', two)) },
    ),
    redirect: fc.oneof(
      {
        weight: 4,
        arbitrary: fc
          .constantFrom(
            '>f0',
            '2>f1',
            '>>f0',
            '2>&1',
            '</dev/null',
            '&>f2',
            '>|f0',
            '3>&1',
            '2>&-',
            '<<<a',
            '> "f3"',
          )
          .map(piece),
      },
      { weight: 1, arbitrary: tie('word').map((word) => around('<<<', word, '')) },
      {
        weight: 2,
        arbitrary: fc
          .tuple(
            fc.constantFrom('E', "'E'", '\\E', '"E"'),
            fc.array(odd, { maxLength: 4 }),
            tie('command'),
            fc.boolean(),
          )
          .map(([delimiter, noise, inner, tabs]) => ({
            text: `<<${tabs ? '-' : ''}${delimiter}`,
            bodies: [
              `${noise.join(' ').replace(/E/g, '')}\n${tabs ? '\t' : ''}$(${inner.bodies.length === 0 ? inner.text : 'c0'})\nE`,
            ],
          })),
      },
    ),
    command: fc
      .tuple(
        fc.array(fc.constantFrom('V0=1', 'V1="a b"', 'V2=$(c3)'), { maxLength: 1 }),
        stub,
        fc.array(tie('word'), { maxLength: 3 }),
        fc.array(tie('redirect'), { maxLength: 1 }),
        fc.constantFrom(' ', ' ', '  ', '\t', ' \\\n'),
      )
      .map(([assignments, name, words, redirects, blank]) =>
        glue(blank, [...assignments.map(piece), piece(name), ...words, ...redirects]),
      ),
    node: fc.oneof(
      { depthSize: 'xsmall' },
      { weight: 8, arbitrary: tie('command') },
      {
        weight: 2,
        arbitrary: fc
          .constantFrom(
            'cd d0',
            'cd d1',
            'cd ..',
            'cd nowhere',
            ':',
            'true',
            'false',
            'exit',
            'break',
            'V0=2',
          )
          .map(piece),
      },
      { weight: 1, arbitrary: tie('list').map((inner) => piece(`( ${flush(inner)} )`)) },
      { weight: 1, arbitrary: tie('list').map((inner) => piece(`{ ${flush(inner)}\n}`)) },
      {
        weight: 1,
        arbitrary: fc
          .tuple(tie('list'), tie('list'), tie('list'))
          .map(([a, b, c]) => piece(`if ${flush(a)}\nthen ${flush(b)}\nelse ${flush(c)}\nfi`)),
      },
      {
        weight: 1,
        arbitrary: fc
          .tuple(tie('word'), tie('list'))
          .map(([a, b]) => piece(`for V0 in a ${flush(a)}\ndo ${flush(b)}\ndone`)),
      },
      { weight: 1, arbitrary: tie('list').map((inner) => piece(`while c7; do ${flush(inner)}\ndone`)) },
      {
        weight: 1,
        arbitrary: fc
          .tuple(tie('word'), tie('list'), tie('list'))
          .map(([a, b, c]) =>
            a.bodies.length > 0
              ? piece('c0')
              : piece(`case ${a.text} in a) ${flush(b)}\n;; *) ${flush(c)}\n;; esac`),
          ),
      },
      {
        weight: 1,
        arbitrary: fc
          .tuple(tie('list'), tie('redirect'))
          .map(([a, b]) => ({ text: `{ ${flush(a)}\n} ${b.text}`, bodies: b.bodies })),
      },
      { weight: 1, arbitrary: tie('word').map((word) => around('[[ -n ', word, ' ]]')) },
      { weight: 1, arbitrary: tie('node').map((node) => around('! ', node, '')) },
      {
        weight: 2,
        arbitrary: fc
          .constantFrom(
            'n=1; c0 $((n + 1))',
            'a=(x "y z" $V0); c1 "${a[@]}"',
            'command c2 a',
            'exec c3 a',
            "trap 'c4 b' EXIT",
            'export V1=z V2="$V0"',
            'read -r V0 V1 </dev/null',
            '[ "$V0" = a ]',
            '[[ $V0 == x* && -n $V1 ]]',
            'unset V0',
            'set -e',
            'pwd >f4',
            'cd d0 || exit 1',
            'cd d0/d1',
            'cd "$V1"',
            'cd',
            '(( 1 + 1 ))',
            'c5 "${V0//x/y}" ${#V0} "${V0^^}" ${V0:1:2}',
          )
          .map(piece),
      },
      {
        weight: 1,
        arbitrary: tie('list').map((inner) =>
          piece(`for ((i = 0; i < 2; i++)); do ${flush(inner)}\n((i += 9))\ndone`),
        ),
      },
      { weight: 1, arbitrary: tie('list').map((inner) => piece(`until ! c7; do ${flush(inner)}\ndone`)) },
      { weight: 1, arbitrary: tie('list').map((inner) => piece(`eval '${flush(inner).replace(/'/g, '')}'`)) },
    ),
    list: fc
      .tuple(
        tie('node'),
        fc.array(
          fc.tuple(
            fc.constantFrom(' && ', ' || ', '; ', ' | ', '\n', ' & ', ';', '|', '&&', ' |& '),
            tie('node'),
          ),
          { maxLength: 3 },
        ),
      )
      .map(([first, others]) =>
        others.reduce<Piece>(
          (before, [operator, next]) =>
            operator === '\n'
              ? { text: `${flush(before)}\n${next.text}`, bodies: next.bodies }
              : glue(operator, [before, next]),
          first,
        ),
      ),
  }))
  .list.chain((list) =>
    fc.oneof(
      { weight: 4, arbitrary: fc.constant(flush(list)) },
      {
        weight: 1,
        arbitrary: fc
          .constantFrom('g 1', 'g && c2', 'c1 | g')
          .map((end) => `g() { ${flush(list)}\n}\n${end}`),
      },
    ),
  )
  .filter((text) => text.length < 400);

/** The same with a few characters put in, taken away or exchanged. */
export const mutatedScript: fc.Arbitrary<string> = fc
  .tuple(script, fc.array(fc.tuple(fc.nat(), odd, fc.nat(3)), { minLength: 1, maxLength: 3 }))
  .map(([text, changes]) =>
    changes.reduce((now, [at, insert, remove]) => {
      const place = now.length === 0 ? 0 : at % now.length;
      return now.slice(0, place) + insert + now.slice(place + remove);
    }, text),
  );

/** Any characters, those that mean something to a shell more often than others. */
export const noise: fc.Arbitrary<string> = fc.oneof(
  fc.array(odd, { maxLength: 40 }).map((parts) => parts.join('')),
  fc.string({ unit: 'binary', maxLength: 60 }),
  fc.tuple(odd, fc.nat(3000)).map(([text, count]) => text.repeat(count)),
  fc
    .array(fc.constantFrom('$(', '"', '`', '((', '{', 'if ', '<<E\n', '<(', '${x:-', ')', '}', '\n', ' a '), {
      maxLength: 400,
    })
    .map((parts) => parts.join('')),
);
