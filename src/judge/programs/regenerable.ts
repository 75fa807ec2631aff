import type { Argument } from './behaviour.ts';

/**
 * Names of what tools make again, with the tool: losing it costs nothing. What holds state (databases, `terraform.tfstate`), or
 * may have been written by hand (`bin`, `*.bak`), is not among them. `*` stands for anything.
 */
const REGENERABLE: readonly { readonly names: string; readonly of: string }[] = [
  { names: 'build dist out target _build cmake-build-* bazel-*', of: 'compilers and bundlers' },
  { names: '*.o *.obj *.a *.lo *.la *.d *.gcda *.gcno *.gch a.out', of: 'C and C++' },
  { names: 'CMakeFiles CMakeCache.txt cmake_install.cmake CTestTestfile.cmake', of: 'cmake' },
  {
    names: 'node_modules .next .nuxt .svelte-kit .output .turbo .parcel-cache .vite .angular',
    of: 'JavaScript',
  },
  {
    names: '*.tsbuildinfo .eslintcache .stylelintcache .nyc_output storybook-static',
    of: 'JavaScript tools',
  },
  { names: '__pycache__ *.pyc *.pyo *.egg-info .eggs .venv venv .tox .nox', of: 'Python' },
  { names: '.pytest_cache .mypy_cache .ruff_cache .hypothesis .ipynb_checkpoints', of: 'Python tools' },
  { names: 'coverage htmlcov .coverage .coverage.* coverage.xml lcov.info test-results', of: 'test runners' },
  { names: '.gradle *.class', of: 'Java' },
  { names: '.cache .sass-cache .jekyll-cache .terraform.lock.info', of: 'caches' },
  {
    names: 'tmp temp *.tmp *.temp *.log *.orig *.rej *.swp *~ core core.[0-9]* .DS_Store Thumbs.db',
    of: 'what is left lying about',
  },
];

const PATTERN = new RegExp(
  `^(?:${REGENERABLE.map(({ names }) => names)
    .join(' ')
    .replace(/[.+~]/g, '\\$&')
    .replaceAll('*', '.*')
    .replaceAll(' ', '|')})$`,
);

/** True for the name of something that tools make again, or a pattern for such names. */
export function isRegenerableName(name: string): boolean {
  return PATTERN.test(name);
}

/** True for a path of which any part beneath a directory is a regenerable name. */
export function isRegenerable(path: string, beneath: string): boolean {
  return path
    .slice(beneath.length)
    .split('/')
    .some((name) => name !== '' && isRegenerableName(name));
}

/** `build`, `./dist/assets`: beneath it is only what tools make. */
export function isMadeAnew({ text, complete }: Argument): boolean {
  const parts = text.split('/');
  return complete && !text.startsWith('/') && !parts.includes('..') && parts.some(isRegenerableName);
}
