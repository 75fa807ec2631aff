import { describe, expect, it } from 'vitest';
import { judgeText } from '../../../support/policy-world.ts';

describe('values of options that are paths', () => {
  it.each([
    'pip list --log .envrc',
    'pytest --log-file=.envrc',
    'pytest --debug=.envrc',
    'pytest --junitxml=.envrc',
    'pytest --cov-report=html:.git/hooks',
    'mypy --cache-dir=.git/hooks .',
    'eslint --cache --cache-location .git/hooks/x .',
    'eslint -o .envrc .',
    'eslint --output-file=.envrc .',
    'tsc --tsBuildInfoFile .envrc',
    'tsc --generateTrace .git/hooks',
    'tsc --generateCpuProfile .envrc',
    'tsc --outDir .git/hooks',
    'tsc -outDir .git/hooks',
    'tsc --outFile .envrc',
    'ctest -O .envrc',
    'ctest --output-log .envrc',
    'cmake -B .git/hooks',
    'cmake -B.git/hooks .',
    'cmake --graphviz=.envrc .',
    'cmake --trace-redirect=.envrc .',
    'cargo build --lockfile-path .envrc',
    'cargo build --target-dir .git/hooks',
    'cargo build --target-dir=.git/hooks',
    'dotnet build -o .git/hooks',
    'swift build --build-path .git/hooks',
    "jq --rawfile a /etc/shadow '$a' a.txt",
    "jq -n --rawfile a /etc/shadow '$a'",
    'jq --slurpfile a /etc/shadow . a.txt',
    'jq -f /etc/shadow a.txt',
    "jq -n --args '$a' --rawfile a /etc/shadow",
    'jq a.txt -f /etc/shadow',
    'jq -nf /etc/shadow',
    'git ls-files -X /etc/shadow',
    'git ls-files --exclude-from=/etc/shadow',
    'git config -f /etc/shadow --list',
    'git config --file=/etc/shadow --list',
    'md5sum -c /etc/shadow',
    'sha256sum --check /etc/shadow',
    'sha512sum -c /etc/shadow',
    'xargs -a /etc/shadow echo',
    'xargs -0a /etc/shadow echo',
    'xargs --arg-file=/etc/shadow echo',
    'pip freeze -r /etc/shadow',
    'pip list --path /etc',
    "sed 'r /etc/shadow' a.txt",
    "sed -n '1R /etc/shadow' a.txt",
    "sed 'w .envrc' a.txt",
    'awk \'{getline x < "/etc/shadow"; print x}\' a.txt',
    'awk \'BEGIN{while((getline l < "/etc/shadow")>0) print l}\'',
    'awk \'{print > ".envrc"}\' a.txt',
    'unzip a.zip -d .git/hooks',
    'gunzip .git/hooks/x.gz',
  ])('%s is denied: written and protected, or read and outside', (command) => {
    // Where the kernel holds what is read, looking is free, and nothing would be said of the path.
    const { reasons } = judgeText(command, {
      rules: { held: { files: false, network: true, signals: true } },
    });
    expect(reasons.filter(({ check }) => check === 'paths').map(({ verdict }) => verdict)).toContain('deny');
  });

  it.each([
    'cmake -B build',
    'pytest --junitxml=report.xml',
    'pytest --cov-report=html:htmlcov',
    'mypy --cache-dir=.mypy_cache .',
    'eslint --cache --cache-location .cache/eslint .',
    'cargo build --lockfile-path x/Cargo.lock',
    "jq -n --rawfile a a.txt '$a'",
    'xargs -a a.txt echo',
  ])('%s stays as harmless as without', (command) => {
    expect(judgeText(command).verdict).toBe('allow');
  });
});
