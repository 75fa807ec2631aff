import { describe, expect, it } from 'vitest';
import { isHarmlessSetting } from '../../../../src/judge/programs/git/settings.ts';

describe('isHarmlessSetting', () => {
  it.each([
    'color.ui=never',
    'Color.UI=always',
    'user.name=x',
    'core.quotepath=off',
    'core.autocrlf=input',
    'core.pager=cat',
    'core.pager=',
    'core.editor=true',
    'core.fsmonitor=false',
    'core.hooksPath=/dev/null',
    'advice.detachedHead=false',
    'commit.gpgsign=false',
    'init.defaultBranch=main',
    'protocol.version=2',
  ])('%s is', (setting) => {
    expect(isHarmlessSetting(setting)).toBe(true);
  });

  it.each([
    'core.pager=./evil',
    'CORE.PAGER=./evil',
    'core.editor=vim',
    'core.sshCommand=x',
    'core.fsmonitor=./evil',
    'core.hooksPath=.',
    'core.attributesFile=x',
    'core.worktree=/',
    'alias.x=!sh',
    'pager.log=x',
    'diff.external=x',
    'diff.x.textconv=y',
    'diff.x.command=y',
    'merge.x.driver=y',
    'filter.x.clean=y',
    'credential.helper=!x',
    'include.path=x',
    'includeIf.x.path=y',
    'url.x.insteadOf=y',
    'remote.x.url=y',
    'branch.x.pushurl=y',
    'gpg.program=x',
    'sequence.editor=x',
    'init.templateDir=x',
    'protocol.ext.allow=always',
    'uploadpack.packObjectsHook=x',
    'submodule.x.update=!y',
    'unknown.key=x',
    'http.proxy=x',
  ])('%s is not', (setting) => {
    expect(isHarmlessSetting(setting)).toBe(false);
  });
});
