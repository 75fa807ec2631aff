import { describe, expect, it } from 'vitest';
import { VARIABLES, variableRule } from '../../../../src/judge/programs/variables.ts';

describe('variableRule', () => {
  it.each([
    ['FOO', 'bar'],
    ['LC_ALL', 'C'],
    ['CI', '1'],
    ['NO_COLOR', '1'],
    ['NODE_ENV', 'test'],
    ['RUST_BACKTRACE', '1'],
    ['CARGO_TERM_COLOR', 'always'],
    ['PYTHONUNBUFFERED', '1'],
    ['PAGER', 'cat'],
    ['GIT_PAGER', ''],
    ['GIT_EDITOR', 'true'],
    ['GIT_TERMINAL_PROMPT', '0'],
    ['GIT_AUTHOR_NAME', 'x'],
    ['CC', 'clang'],
    ['CXX', 'g++-13'],
    ['CFLAGS', '-O2 -g -Wall'],
    ['NODE_OPTIONS', '--max-old-space-size=4096'],
    ['MAKEFLAGS', '-j8'],
  ])('%s=%s is harmless', (name, value) => {
    expect(variableRule(name, value)).toBeUndefined();
  });

  it.each([
    ['PATH', '/usr/bin'],
    ['LD_PRELOAD', 'x'],
    ['LD_ANYTHING', ''],
    ['DYLD_INSERT_LIBRARIES', 'x'],
    ['IFS', 'x'],
    ['BASH_ENV', 'x'],
    ['ENV', 'x'],
    ['PS4', 'x'],
    ['PROMPT_COMMAND', 'x'],
    ['SHELLOPTS', 'x'],
    ['BASHOPTS', 'x'],
    ['POSIXLY_CORRECT', '1'],
    ['GIT_SSH_COMMAND', 'x'],
    ['GIT_EDITOR', './x'],
    ['GIT_CONFIG_COUNT', '1'],
    ['GIT_TRACE', '/tmp/x'],
    ['PAGER', './x'],
    ['PAGER', undefined],
    ['EDITOR', 'vim'],
    ['BROWSER', 'x'],
    ['LESSOPEN', '|x'],
    ['ACK_PAGER', './x'],
    ['ACK_PAGER_COLOR', './x'],
    ['BAT_CONFIG_PATH', 'x'],
    ['BAT_OPTS', '--pager=./x'],
    ['SYSTEMD_EDITOR', './x'],
    ['DOTNET_STARTUP_HOOKS', './x.dll'],
    ['CORECLR_PROFILER_PATH', './x.so'],
    ['GOROOT', 'x'],
    ['GOCACHEPROG', './x'],
    ['GOENV', 'x'],
    ['COMPOSER_HOME', 'x'],
    ['CGO_CFLAGS', '-fplugin=./x.so'],
    ['RIPGREP_CONFIG_PATH', 'x'],
    ['JAVA_TOOL_OPTIONS', '-javaagent:x'],
    ['PYTHONPATH', 'x'],
    ['PYTHONWARNINGS', 'x'],
    ['NODE_OPTIONS', '--require x'],
    ['NODE_PATH', 'x'],
    ['NPM_CONFIG_SCRIPT_SHELL', 'x'],
    ['npm_config_script_shell', 'x'],
    ['PERL5OPT', 'x'],
    ['RUBYOPT', 'x'],
    ['MAKEFLAGS', '--eval=x'],
    ['CARGO_HOME', 'x'],
    ['RUSTC_WRAPPER', 'x'],
    ['CC', './x'],
    ['CFLAGS', '-fplugin=./x.so'],
    ['HOME', 'x'],
  ])('%s=%s changes what runs', (name, value) => {
    expect(variableRule(name, value)).toBeDefined();
  });

  it('has a reason in every row', () => {
    expect(VARIABLES.filter(({ reason }) => reason === '')).toEqual([]);
  });
});
