import { isUtf8 } from 'node:buffer';
import { dirname, isAbsolute, join } from 'node:path';
import { absoluteOr } from '../../../base/absolute-path.ts';
import { isSecretSetting, type SettingsCollector, withoutUserInfo } from '../settings/carried.ts';
import { type GitSetting, parseGitConfig, writeGitConfig } from './config-file.ts';
import { effectOfKey } from './config-keys.ts';
import { SYSTEM_CONFIG, userConfigFiles } from './repositories.ts';

/** As deep as git includes (`MAX_INCLUDE_DEPTH` in its config.c). */
const DEEPEST = 10;
const MOST_FILES = 64;
/** What git reads of the user's where no setting names another. */
const DEFAULT_FILES = { ignore: 'core.excludesfile', attributes: 'core.attributesfile' } as const;

const SIGNS = /^(?:commit\.gpgsign|tag\.gpgsign|tag\.forcesignannotated|push\.gpgsign)$/;
/** Git says "cannot run" and this: so the user learns why nothing was signed. */
const NO_KEY =
  'gpg (the signing key stays outside of the sandbox: commit outside, or with --no-gpg-sign; tags: --no-sign)';

/**
 * A `.gitconfig` for the private home with what the user's own says: values, not programs and credentials; with it the
 * files that it includes, and those of what git ignores. Conditions of includes stay: git itself looks at them.
 */
export function gitSettings(into: SettingsCollector): void {
  new UserSettings(into).carry();
}

/** git-lfs takes a network that is not there for a moment's trouble, and tries eight times more, which takes 36 seconds. */
const WITHOUT_NETWORK: readonly GitSetting[] = [{ key: 'lfs.transfer.maxretries', value: '1' }];

class UserSettings {
  private readonly into: SettingsCollector;
  /** By path outside: where it is in the private home; `undefined`: it is not carried. */
  private readonly carried = new Map<string, string | undefined>();

  private placed = 0;

  constructor(into: SettingsCollector) {
    this.into = into;
  }

  carry(): void {
    const { home, environment, hasNetwork } = this.into.owner;
    const all = userConfigFiles(home, environment);
    const files = all.filter((path) => path !== SYSTEM_CONFIG);
    const config = absoluteOr(environment.XDG_CONFIG_HOME, join(home, '.config'));
    const settings = [
      ...Object.entries(DEFAULT_FILES).flatMap(([name, key]) => {
        const value = this.fileFor(join(config, 'git', name), key);
        return value === undefined ? [] : [{ key, value }];
      }),
      ...files.flatMap((path) => this.settingsOf(path, 0)),
      ...(!hasNetwork && all.some((path) => this.usesLfs(path)) ? WITHOUT_NETWORK : []),
    ];
    if (settings.length > 0)
      this.into.files.push({ path: '.gitconfig', content: writeGitConfig(withRefusalToSign(settings)) });
  }

  /** Whether `git lfs install` wrote its filter there, as the packages of distributions have it do for all users. */
  private usesLfs(path: string): boolean {
    const content = this.into.read(path);
    const parsed = content && parseGitConfig(content);
    return parsed?.settings.some(({ key }) => key.startsWith('filter.lfs.')) === true;
  }

  private settingsOf(path: string, depth: number): readonly GitSetting[] {
    const content = this.into.read(path);
    if (content === undefined) return [];
    const parsed = parseGitConfig(content);
    if (parsed === undefined) {
      this.into.say(`${this.into.nameOf(path)} is no configuration that git reads: commands run without it`);
      return [];
    }
    return parsed.settings.flatMap((setting) => this.settingFor(setting, path, depth) ?? []);
  }

  /** A setting as commands get it. */
  private settingFor({ key, value }: GitSetting, file: string, depth: number): GitSetting | undefined {
    const { effect, as, missed } = effectOfKey({ key, value });
    if (effect === 'includes') return this.include(key, value, file, depth);
    if (missed !== undefined && value !== '')
      this.into.say(`${key} in ${this.into.nameOf(file)} stays outside: ${missed}`);
    const handling = as ?? (effect === 'names' ? 'value' : 'nothing');
    // A key alone means true, which is not a name.
    if (value === undefined) return handling === 'value' && !/^user\./.test(key) ? { key, value } : undefined;
    // Bytes are characters in a configuration of git.
    const text = fromBytes(value);
    if (text === undefined) {
      if (handling !== 'nothing')
        this.into.say(`${key} in ${this.into.nameOf(file)} is not UTF-8: commands run without it`);
      return undefined;
    }
    const where = `${withoutUserInfo(key)} in ${this.into.nameOf(file)}`;
    const plainKey = withoutUserInfo(key);
    // The address that is put in place of another (`url.*.insteadOf`) is part of the key.
    if (handling !== 'nothing' && isSecretSetting(plainKey)) {
      this.into.leaveOutCredential(where);
      return undefined;
    }
    const carried = handling === 'file' ? this.fileFor(text, key) : this.into.value(handling, text, where);
    if (carried === undefined) return undefined;
    if (plainKey !== key) this.into.leaveOutCredential(where);
    return { key: plainKey, value: toBytes(carried) };
  }

  /** Where commands find a file that the user's configuration names. Relative: in the repository, as outside. */
  private fileFor(named: string, key: string): string | undefined {
    const path = this.expanded(named);
    if (path === undefined) return undefined;
    if (!isAbsolute(path)) return named;
    return this.once(path, key.replaceAll('.', '-'), () => this.into.readText(path));
  }

  private include(
    key: string,
    value: string | undefined,
    file: string,
    depth: number,
  ): GitSetting | undefined {
    const named = value === undefined ? undefined : fromBytes(value);
    const path = named === undefined || named === '' ? undefined : this.expanded(named);
    const condition = this.conditionFor(key, file);
    if (path === undefined || condition === undefined || depth >= DEEPEST) {
      this.into.say(
        `${key} in ${this.into.nameOf(file)} was not followed: commands run without what it includes`,
      );
      return undefined;
    }
    const from = isAbsolute(path) ? path : join(dirname(file), path);
    const at = this.once(from, 'included', () => {
      const settings = this.settingsOf(from, depth + 1);
      return settings.length === 0 ? undefined : writeGitConfig(withRefusalToSign(settings));
    });
    return at === undefined ? undefined : { key: condition, value: at };
  }

  /** A condition means the user's home and the directory of the user's file. */
  private conditionFor(key: string, file: string): string | undefined {
    const [, kind, pattern = ''] = /^includeif\.(gitdir(?:\/i)?):(.*)\.path$/s.exec(key) ?? [];
    if (kind === undefined) return key;
    const { home } = this.into.owner;
    const absolute = pattern.startsWith('~/')
      ? toBytes(home) + pattern.slice(1)
      : pattern.startsWith('./')
        ? toBytes(dirname(file)) + pattern.slice(1)
        : pattern;
    return absolute.startsWith('~') ? undefined : `includeif.${kind}:${absolute}.path`;
  }

  private expanded(path: string): string | undefined {
    if (path.startsWith('~/')) return join(this.into.owner.home, path.slice(2));
    return /^(?:~|%\(prefix\))/.test(path) ? undefined : path;
  }

  /** Puts a file of the user's into the private home, once; git expands the `~`. */
  private once(path: string, name: string, read: () => string | undefined): string | undefined {
    if (this.carried.has(path)) return this.carried.get(path);
    if (this.carried.size >= MOST_FILES) return undefined;
    // One that includes itself finds nothing, where git gives up.
    this.carried.set(path, undefined);
    const content = read();
    if (content === undefined) return undefined;
    this.placed += 1;
    // Beside the `.gitconfig`: a directory takes longer than a file.
    const at = `.gitconfig-${this.placed}-${name}`;
    this.into.files.push({ path: at, content });
    this.carried.set(path, `~/${at}`);
    return `~/${at}`;
  }
}

/** Where something is to be signed. No key is there, and nothing shall be left unsigned without a word. */
function withRefusalToSign(settings: readonly GitSetting[]): readonly GitSetting[] {
  const isToSign = ({ key, value }: GitSetting) =>
    SIGNS.test(key) && !/^(?:false|no|off|0|)$/i.test(value ?? 'true');
  if (!settings.some(isToSign)) return settings;
  return [
    ...settings,
    ...['gpg.program', 'gpg.ssh.program', 'gpg.x509.program'].map((key) => ({ key, value: NO_KEY })),
  ];
}

function fromBytes(value: string): string | undefined {
  const bytes = Buffer.from(value, 'latin1');
  return isUtf8(bytes) ? bytes.toString() : undefined;
}

const toBytes = (text: string) => Buffer.from(text, 'utf8').toString('latin1');
