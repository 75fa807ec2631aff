// test/support/policy-corpus.ts
import { readFileSync } from 'node:fs';

// src/model/decision.ts
var VERDICTS = ['allow', 'ask', 'deny'];
var RISKS = ['low', 'medium', 'high'];
var REACHES = ['local', 'unknown', 'network'];

// src/policy/checks/locations.ts
// src/util/absolute-path.ts
import { resolve, sep } from 'node:path';

function isBeneath(path, root) {
  if (path === root) return true;
  return path.startsWith(root.endsWith(sep) ? root : root + sep);
}
function directoriesBetween(path, root) {
  if (!isBeneath(path, root) || path === root) return [];
  const parts = path
    .slice(root.length)
    .split(sep)
    .filter((part) => part !== '');
  return parts.slice(0, -1).map((_, index) => [root, ...parts.slice(0, index + 1)].join(sep));
}

// src/policy/commands/word-texts.ts
var MOST_TEXTS = 64;
function wordTexts(word, known) {
  if (word.value !== void 0) return [{ text: word.value, complete: true }];
  let texts2 = [{ text: '', complete: true }];
  const append = (...suffixes) => {
    texts2 = texts2
      .flatMap((old) =>
        old.complete ? suffixes.map((suffix) => ({ ...old, text: old.text + suffix })) : [old],
      )
      .slice(0, MOST_TEXTS);
  };
  for (const part of word.parts) {
    switch (part.kind) {
      case 'literal':
      case 'glob':
        append(part.text);
        break;
      case 'tilde':
        if (part.user === '+' && known.cwd !== void 0) append(known.cwd);
        else if (part.user === '') append(known.home);
        else return void 0;
        break;
      case 'brace':
        append(...alternatives(part.text));
        break;
      case 'parameter': {
        const value = !part.plain
          ? void 0
          : part.name === 'HOME'
            ? known.home
            : part.name === 'PWD'
              ? known.cwd
              : void 0;
        if (value !== void 0) append(value);
        else texts2 = texts2.map((old) => ({ ...old, complete: false }));
        break;
      }
      case 'arithmetic':
      case 'command-substitution':
      case 'process-substitution':
      case 'input':
        texts2 = texts2.map((old) => ({ ...old, complete: false }));
        break;
    }
  }
  return texts2;
}
function alternatives(brace) {
  if (!brace.startsWith('{') || !brace.endsWith('}')) return [brace];
  const inner = brace.slice(1, -1);
  return /[{}"'\\]/.test(inner) || !inner.includes(',') ? [brace] : inner.split(',');
}

// src/policy/checks/locations.ts
function directoriesOf(command, context) {
  if (command.directories === void 0) return [void 0];
  return command.directories.map((targets) => {
    let cwd = context.cwd;
    for (const target of targets) {
      if (cwd === void 0 && !(target.value ?? '').startsWith('/')) return void 0;
      const texts2 = wordTexts(target, { home: context.rules.home, cwd });
      const [only2] = texts2 ?? [];
      if (only2 === void 0 || texts2?.length !== 1 || !only2.complete || only2.text === '-') return void 0;
      cwd = only2.text === '' ? context.rules.home : resolve(cwd ?? '/', only2.text);
    }
    return cwd;
  });
}
function locationsOf(argument, cwds, context) {
  const locations = [];
  for (const cwd of cwds) {
    const texts2 = wordTexts(argument.word, { home: context.rules.home, cwd });
    if (texts2 === void 0) return 'foreign-home';
    for (const { text: whole, complete } of texts2) {
      const text = whole.slice(argument.start);
      const known = complete ? text : text.slice(0, text.lastIndexOf('/') + 1);
      if (known === '') continue;
      const absolute = known.startsWith('/') ? known : cwd === void 0 ? void 0 : `${cwd}/${known}`;
      if (absolute === void 0) continue;
      locations.push({
        text: complete ? text : argument.word.source,
        resolved: lookUp(absolute, context),
        partial: !complete,
      });
    }
  }
  return locations;
}
function lookUp(path, context) {
  try {
    return context.paths.resolve(path);
  } catch {
    return void 0;
  }
}
var DEVICES = new Set(
  'null zero full random urandom tty stdin stdout stderr'.split(' ').map((name) => `/dev/${name}`),
);
function isHarmlessDevice(path) {
  return DEVICES.has(path) || /^\/(?:dev\/fd|proc\/self\/fd)\/\d+$/.test(path);
}
function mayWrite(path, { rules }) {
  return isBeneath(path, rules.workspace) || rules.writable.some((root) => isBeneath(path, root));
}
function mayRead(path, context) {
  return mayWrite(path, context) || context.rules.readable.some((root) => isBeneath(path, root));
}
function isForeignTo(context) {
  return (name) => {
    const path = context.findExecutable(name, context.cwd);
    return path !== void 0 && mayWrite(path, context);
  };
}

// src/util/assert-never.ts
function assertNever(value) {
  throw new TypeError(`unexpected value: ${JSON.stringify(value)}`);
}

// src/policy/commands/option-table.ts
var COLUMNS = [
  { key: 'flags', effect: 'harmless', value: 'none' },
  { key: 'values', effect: 'harmless', value: 'required' },
  { key: 'optionals', effect: 'harmless', value: 'optional' },
  { key: 'reads', effect: 'reads', value: 'required' },
  { key: 'writes', effect: 'writes', value: 'required' },
  { key: 'writing', effect: 'writes', value: 'optional' },
  { key: 'removing', effect: 'removes', value: 'optional' },
  { key: 'loads', effect: 'loads', value: 'required' },
  { key: 'executes', effect: 'executes', value: 'required' },
  { key: 'executing', effect: 'executes', value: 'optional' },
  { key: 'network', effect: 'network', value: 'required' },
  { key: 'networking', effect: 'network', value: 'optional' },
];
var POWERFUL = /* @__PURE__ */ new Set(['writes', 'removes', 'loads', 'executes', 'network']);
var built = /* @__PURE__ */ new WeakMap();
function optionTable(grammar) {
  const known = built.get(grammar);
  if (known !== void 0) return known;
  const rules = /* @__PURE__ */ new Map();
  let powerful = false;
  for (const { key, effect, value } of COLUMNS) {
    const names2 = grammar[key];
    if (names2 === void 0) continue;
    powerful ||= POWERFUL.has(effect);
    for (const name of names2.split(' ')) rules.set(name, { name, effect, value });
  }
  const table = { rules, longNames: [...rules.keys()].filter((name) => name.length > 1), powerful };
  built.set(grammar, table);
  return table;
}
function findLong(table, name) {
  const exact = name.length > 1 ? table.rules.get(name) : void 0;
  if (exact !== void 0) return exact;
  if (name === '') return void 0;
  let found;
  for (const candidate of table.longNames) {
    if (!candidate.startsWith(name)) continue;
    if (found !== void 0) return void 0;
    found = table.rules.get(candidate);
  }
  return found;
}

// src/policy/commands/use.ts
function hasOption(use, names2) {
  const wanted = names2.split(' ');
  return use.options.some((option) => wanted.includes(option.name));
}
function leadingText(word) {
  if (word.value !== void 0) return word.value;
  let text = '';
  for (const part of word.parts) {
    if (part.kind !== 'literal') {
      return part.kind === 'tilde' ? `${text}~${part.user}` : text;
    }
    text += part.text;
  }
  return text;
}
function argumentOf(word, start = 0) {
  const text = leadingText(word);
  return { word, start, text: start === 0 ? text : text.slice(start), complete: word.value !== void 0 };
}

// src/policy/commands/parse-options.ts
var NO_GRAMMAR = { open: true };
function parseOptions(words2, from, grammar = NO_GRAMMAR, stopAtOperand = grammar.stopAtOperand === true) {
  const table = optionTable(grammar);
  const options = [];
  const operands = [];
  const unknown = [];
  const openEnded = [];
  let afterDashes;
  let index = from;
  const take = (rule, word, attached) => {
    let value = rule.value === 'none' ? void 0 : attached;
    if (rule.value === 'required' && value === void 0) {
      const next = words2[index + 1];
      if (next !== void 0) {
        value = argumentOf(next);
        index++;
      }
    }
    options.push({
      name: rule.name,
      effect: rule.effect,
      value,
      inPlace: rule.effect === 'writes' && rule.value === 'optional',
      word,
    });
  };
  for (; index < words2.length; index++) {
    const word = words2[index];
    if (word === void 0) break;
    const text = leadingText(word);
    const complete = word.value !== void 0;
    if (afterDashes !== void 0 || text[0] !== '-' || (text === '-' && complete)) {
      if (afterDashes === void 0 && text === '' && !complete) openEnded.push(word);
      if (stopAtOperand) break;
      operands.push(argumentOf(word));
    } else if (text === '--' && complete) {
      if (stopAtOperand) {
        index++;
        afterDashes = 0;
        break;
      }
      afterDashes = operands.length;
    } else if (grammar.style === 'single-dash') {
      readSingleDash(table, word, text, take, unknown);
    } else if (text.startsWith('--')) {
      readLong(table, word, text, complete, take, unknown);
    } else if (!(grammar.numeric === true && /^-\d+$/.test(text))) {
      readShort(table, word, text, complete, take, unknown);
    }
  }
  return {
    options,
    operands,
    unknown,
    openEnded,
    afterDashes: afterDashes ?? operands.length,
    next: index,
  };
}
function readLong(table, word, text, complete, take, unknown) {
  const equals = text.indexOf('=');
  if (equals < 0 && !complete) {
    unknown.push(word);
    return;
  }
  const rule = findLong(table, equals < 0 ? text.slice(2) : text.slice(2, equals));
  if (rule === void 0) unknown.push(word);
  else take(rule, word, equals < 0 ? void 0 : argumentOf(word, equals + 1));
}
function readShort(table, word, text, complete, take, unknown) {
  for (let at = 1; at < text.length; at++) {
    const rule = table.rules.get(text[at] ?? '');
    if (rule === void 0) {
      unknown.push(word);
      return;
    }
    if (rule.value === 'none') {
      take(rule, word, void 0);
      continue;
    }
    const attached = at + 1 < text.length || !complete ? argumentOf(word, at + 1) : void 0;
    take(rule, word, attached);
    return;
  }
  if (!complete) unknown.push(word);
}
function readSingleDash(table, word, text, take, unknown) {
  const dashes = text.startsWith('--') ? 2 : 1;
  const equals = text.indexOf('=');
  const rule = table.rules.get(equals < 0 ? text.slice(dashes) : text.slice(dashes, equals));
  if (rule === void 0 || (equals < 0 && word.value === void 0)) unknown.push(word);
  else take(rule, word, equals < 0 ? void 0 : argumentOf(word, equals + 1));
}

// src/policy/commands/behaviour.ts
function programs(names2, risk, reach, behaviour = {}) {
  return names2.split(' ').map((name) => ({ ...behaviour, name, risk, reach }));
}
function verbs(names2, behaviour) {
  return Object.fromEntries(names2.split(' ').map((name) => [name, behaviour]));
}
function finding(effect, code, message, ...words2) {
  return { effect, code, message, words: words2 };
}

// src/policy/commands/plain-paths.ts
function plainPaths(operands, effect) {
  return operands.flatMap((argument) => (argument === void 0 ? [] : [{ argument, effect }]));
}
function writtenAt(operands, index) {
  return operands.map((argument, at) => ({ argument, effect: at === index ? 'writes' : 'reads' }));
}

// src/policy/commands/programs/archives.ts
function inspectTar(use) {
  const first = use.command.words[1]?.value ?? '';
  const old = /^[A-Za-z]+$/.test(first) ? first : '';
  const findings = [];
  if (old.includes('I') || old.includes('F')) {
    findings.push(finding('executes', 'executes_by_option', 'can run a program through I or F', first));
  }
  const creates =
    /[crux]/.test(old) ||
    use.options.some(({ name }) => /^(?:[crux]|create|extract|get|append|update|delete)$/.test(name));
  if (creates) findings.push(finding('writes', 'writes_archive', 'writes an archive or unpacks one', first));
  for (const { name, value, word } of use.options) {
    if (name === 'checkpoint-action' && !/^(?:echo|dot|ttyout|sleep|bell|totals)\b/.test(value?.text ?? '')) {
      findings.push(
        finding('executes', 'executes_by_option', 'can run a program at a checkpoint', word.source),
      );
    }
    if ((name === 'f' || name === 'file') && /^[\w.@-]+:/.test(value?.text ?? '') && !hasForceLocal(use)) {
      findings.push(finding('network', 'remote_archive', 'opens an archive on another host', word.source));
    }
  }
  const archive = /^[A-Za-z]*f[A-Za-z]*$/.test(old) ? use.operands[1] : void 0;
  if (archive !== void 0 && /^[\w.@-]+:/.test(archive.text) && !hasForceLocal(use)) {
    findings.push(
      finding('network', 'remote_archive', 'opens an archive on another host', archive.word.source),
    );
  }
  return findings;
}
function pathsOfTar(use) {
  const first = use.command.words[1]?.value ?? '';
  const old = /^[A-Za-z]+$/.test(first) ? first : '';
  const makes =
    /[cru]/.test(old) || use.options.some(({ name }) => /^(?:[cru]|create|append|update|delete)$/.test(name));
  const reads =
    /[xt]/.test(old) ||
    use.options.some(({ name }) => /^(?:[xtd]|extract|get|list|diff|compare)$/.test(name));
  const archives = use.options.flatMap(({ name, value }) => (name === 'f' || name === 'file' ? [value] : []));
  const operands = old === '' ? [...use.operands] : use.operands.slice(1);
  if (old.includes('f')) archives.push(operands.shift());
  return [
    ...plainPaths(
      archives.filter((argument) => argument?.text !== '-'),
      makes ? 'writes' : 'reads',
    ),
    // Members of an archive that is read are names in it.
    ...(reads ? [] : plainPaths(operands, 'reads')),
  ];
}
function hasForceLocal(use) {
  return use.options.some(({ name }) => name === 'force-local');
}
function inspectZip({ command }) {
  return command.words
    .filter(({ value }) => value !== void 0 && /^(?:-\w*TT|--unzip-command)/.test(value))
    .map(({ source: source2 }) =>
      finding('executes', 'executes_by_option', 'can run a program through -TT', source2),
    );
}
var ARCHIVES = [
  ...programs('tar bsdtar gtar', 'low', 'local', {
    grammar: {
      flags:
        't list v verbose z gzip gunzip ungzip j bzip2 J xz a auto-compress no-auto-compress zstd lzma lzip lzop Z compress p preserve-permissions same-permissions same-owner no-same-owner no-same-permissions k keep-old-files O to-stdout h dereference S sparse w interactive P absolute-names W verify m touch wildcards no-wildcards anchored no-anchored ignore-case null numeric-owner totals overwrite no-overwrite-dir force-local strip l check-links one-file-system exclude-vcs exclude-vcs-ignores exclude-caches exclude-backups no-recursion recursion skip-old-files keep-newer-files keep-directory-symlink unlink-first U o i ignore-zeros B R G N seek n A catenate concatenate d diff compare version help show-transformed-names no-xattrs xattrs acls selinux c create x extract get r append u update',
      values:
        'f file exclude strip-components transform xform owner group mode mtime format H b blocking-factor record-size level newer after-date newer-mtime label V hole-detection sort occurrence warning quoting-style suffix pax-option checkpoint-action',
      optionals: 'checkpoint backup',
      reads: 'T files-from X exclude-from g listed-incremental K starting-file',
      writes: 'C directory index-file one-top-level',
      removing: 'delete remove-files recursive-unlink',
      executes:
        'I use-compress-program F info-script new-volume-script to-command rsh-command rmt-command volno-file',
    },
    operands: 'guess',
    paths: pathsOfTar,
    inspect: inspectTar,
  }),
  ...programs('zip', 'medium', 'local', {
    grammar: { open: true, flags: 'r q v u j m T', values: 'x i b n P', executes: 'unzip-command' },
    operands: 'guess',
    inspect: inspectZip,
  }),
  ...programs('unzip 7z 7za 7zr unrar rar cpio pax ar', 'medium', 'local', {
    grammar: { open: true, flags: 'q l t o n v p j', writes: 'd', executes: 'rsh-command to-command' },
    operands: 'guess',
  }),
  ...programs(
    'gzip gunzip bzip2 bunzip2 xz unxz zstd unzstd lz4 compress uncompress pigz brotli lzma',
    'medium',
    'local',
    {
      grammar: {
        open: true,
        numeric: true,
        flags: 'd k c f v t l q r',
        values: 'S suffix',
        writes: 'o output',
      },
      operands: 'writes',
    },
  ),
  ...programs('zcat bzcat xzcat zstdcat lzcat zless zmore zipinfo', 'low', 'local', { operands: 'reads' }),
];

// src/policy/commands/variables.ts
var VARIABLES = [
  { names: 'PATH', reason: 'changes which programs run' },
  { names: 'LD_*', reason: 'loads libraries into every program' },
  { names: 'DYLD_*', reason: 'loads libraries into every program' },
  { names: 'GLIBC_TUNABLES GCONV_PATH LOCPATH NLSPATH', reason: 'changes what the C library loads' },
  { names: 'IFS', reason: 'changes how the shell splits words' },
  { names: 'BASH_ENV ENV ZDOTDIR', reason: 'names a script that a shell runs at its start' },
  { names: 'BASH_FUNC_*', reason: 'defines a function of the shell' },
  { names: 'PROMPT_COMMAND PS0 PS1 PS2 PS4', reason: 'is run by the shell as code' },
  {
    names: 'SHELLOPTS BASHOPTS BASH_XTRACEFD BASH_LOADABLES_PATH POSIXLY_CORRECT',
    reason: 'changes how the shell reads commands',
  },
  { names: 'CDPATH GLOBIGNORE GLOBSORT FIGNORE HISTFILE', reason: 'changes what words of a command mean' },
  {
    names: 'HOME XDG_CONFIG_HOME XDG_CONFIG_DIRS XDG_DATA_HOME',
    reason: 'changes which settings programs obey',
  },
  { names: 'SHELL', reason: 'names a program that others run' },
  { names: 'GIT_*', reason: 'may make git run a program or use another repository' },
  {
    names: 'SSH_ASKPASS SSH_AUTH_SOCK SUDO_ASKPASS RSYNC_RSH CVS_RSH SVN_SSH HGRCPATH HGEDITOR',
    reason: 'names a program that another one runs',
  },
  {
    names: 'LESSOPEN LESSCLOSE LESSKEY LESSKEYIN LESSEDIT LESS MORE',
    reason: 'may make a pager run a program',
  },
  {
    names:
      'PAGER MANPAGER GH_PAGER BAT_PAGER DELTA_PAGER AWS_PAGER SYSTEMD_PAGER PSQL_PAGER MANOPT MANROFFOPT',
    reason: 'names the pager that programs run',
  },
  { names: 'EDITOR VISUAL FCEDIT SUDO_EDITOR KUBE_EDITOR', reason: 'names the editor that programs run' },
  { names: 'BROWSER', reason: 'names the browser that programs run' },
  {
    names: 'RIPGREP_CONFIG_PATH ACKRC FZF_DEFAULT_COMMAND FZF_DEFAULT_OPTS',
    reason: 'adds options to a search',
  },
  {
    names:
      'TAR_OPTIONS GREP_OPTIONS ZIPOPT UNZIP RSYNC_* WGETRC CURL_HOME INPUTRC TERMINFO TERMCAP VIMINIT EXINIT GVIMINIT MYVIMRC',
    reason: 'adds options or settings that can run programs',
  },
  {
    names: 'http_proxy https_proxy all_proxy ftp_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY FTP_PROXY',
    reason: 'sends traffic elsewhere',
  },
  {
    names:
      'SSL_CERT_FILE SSL_CERT_DIR CURL_CA_BUNDLE REQUESTS_CA_BUNDLE NODE_EXTRA_CA_CERTS NODE_TLS_REJECT_UNAUTHORIZED OPENSSL_CONF OPENSSL_ENGINES OPENSSL_MODULES',
    reason: 'changes whom connections trust',
  },
  {
    names: 'DOCKER_HOST DOCKER_CONFIG KUBECONFIG AWS_CONFIG_FILE AWS_SHARED_CREDENTIALS_FILE',
    reason: 'changes which service is used',
  },
  { names: 'PYTHON*', reason: 'may make Python load other code', contained: true },
  {
    names: 'NODE_* NPM_CONFIG_* npm_config_* YARN_* PNPM_* DENO_* BUN_*',
    reason: 'may make Node load other code or programs',
    contained: true,
  },
  { names: 'PERL5* PERL_* PERLLIB PERLDB_OPTS', reason: 'may make Perl load other code', contained: true },
  { names: 'RUBY* BUNDLE_* GEM_*', reason: 'may make Ruby load other code', contained: true },
  {
    names:
      'LUA_* PHP_INI_SCAN_DIR PHPRC GOFLAGS GOTOOLCHAIN GOPROXY GONOSUMDB GONOSUMCHECK R_PROFILE* R_ENVIRON*',
    reason: 'may make a language load other code',
    contained: true,
  },
  {
    names: 'CLASSPATH JAVA_HOME JAVA_OPTS JDK_* MAVEN_OPTS MAVEN_ARGS GRADLE_OPTS SBT_OPTS ANT_OPTS ANT_ARGS',
    reason: 'may make Java load other code',
    contained: true,
  },
  { names: '*_OPTIONS', reason: 'adds options that may load code', contained: true },
  {
    names: 'MAKEFLAGS MFLAGS GNUMAKEFLAGS MAKE MAKEFILES MAKEOVERRIDES',
    reason: 'adds options or makefiles to make',
    contained: true,
  },
  {
    names: 'CARGO_* CARGO RUSTC RUSTC_* RUSTFLAGS RUSTDOC RUSTDOCFLAGS RUSTUP_*',
    reason: 'names programs and options of the Rust tools',
    contained: true,
  },
  {
    names:
      'CC CXX CPP LD AR AS NM FC STRIP CFLAGS CXXFLAGS CPPFLAGS LDFLAGS COMPILER_PATH GCC_EXEC_PREFIX CMAKE_* NINJA CCACHE_* PKG_CONFIG PKG_CONFIG_* LIBRARY_PATH CPATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH',
    reason: 'names programs and options of the compiler',
    contained: true,
  },
  {
    names: 'PIP_* UV_* POETRY_* PIPENV_* VIRTUAL_ENV CONDA_*',
    reason: 'changes where packages come from',
    contained: true,
  },
  {
    names: 'PYTEST_* TOX_* COVERAGE_* JEST_* MOCHA_* ESLINT_* TS_NODE_*',
    reason: 'adds options or plug-ins to tests',
    contained: true,
  },
];
var HARMLESS =
  /^(?:NODE_ENV|NODE_NO_WARNINGS|NODE_DEBUG|NODE_DISABLE_COLORS|NODE_V8_COVERAGE|PYTHON(?:DONTWRITEBYTECODE|UNBUFFERED|IOENCODING|UTF8|HASHSEED|NOUSERSITE|FAULTHANDLER|TRACEMALLOC|DEVMODE|OPTIMIZE|VERBOSE|DEBUG|ASYNCIODEBUG|SAFEPATH|STRICT)|CARGO_(?:TERM_\w+|INCREMENTAL|PROFILE_\w+|NET_OFFLINE|NET_RETRY)|GIT_(?:TERMINAL_PROMPT|OPTIONAL_LOCKS|AUTHOR_\w+|COMMITTER_\w+|MERGE_AUTOEDIT|DISCOVERY_ACROSS_FILESYSTEM|PAGER_IN_USE|FLUSH|LITERAL_PATHSPECS)|RUST_\w+|(?:npm_config|NPM_CONFIG)_(?:loglevel|yes|fund|audit|progress|color|update_notifier|offline|prefer_offline)|YARN_ENABLE_(?:IMMUTABLE_INSTALLS|TELEMETRY|COLORS)|PIP_(?:NO_INPUT|QUIET|DISABLE_PIP_VERSION_CHECK|NO_COLOR|NO_CACHE_DIR|PROGRESS_BAR)|UV_(?:OFFLINE|NO_PROGRESS|LINK_MODE)|PYTEST_(?:DISABLE_PLUGIN_AUTOLOAD|DEBUG)|CMAKE_(?:BUILD_TYPE|BUILD_PARALLEL_LEVEL|EXPORT_COMPILE_COMMANDS|COLOR_DIAGNOSTICS)|JEST_WORKER_ID)$/;
var HARMLESS_VALUES = [
  {
    names: /^(?:GIT_|GH_|BAT_|DELTA_|AWS_|SYSTEMD_|MAN|PSQL_)?PAGER$/,
    values: /^(?:cat|less|less -[A-Z]+|more|)$/,
  },
  { names: /^(?:(?:GIT_|GIT_SEQUENCE_|SUDO_|KUBE_|HG)?EDITOR|VISUAL|FCEDIT)$/, values: /^(?:true|:|cat|)$/ },
  { names: /^(?:GIT_|SSH_)ASKPASS$/, values: /^(?:true|\/bin\/true|)$/ },
  { names: /^GIT_(?:TRACE|TRACE_\w+|CURL_VERBOSE)$/, values: /^(?:0|1|2|true|false|)$/ },
  { names: /^GIT_CONFIG_(?:NOSYSTEM|GLOBAL|SYSTEM)$/, values: /^(?:0|1|true|\/dev\/null)$/ },
  { names: /^LESS$/, values: /^-?[A-Za-z]*$/ },
  { names: /^BROWSER$/, values: /^(?:none|true|)$/ },
  { names: /^(?:CC|CXX|CPP|LD)$/, values: /^(?:gcc|g\+\+|cc|c\+\+|clang|clang\+\+|ld|lld|mold)(?:-\d+)?$/ },
  {
    names: /^NODE_OPTIONS$/,
    values:
      /^(?:\s*--(?:max-old-space-size=\d+|no-warnings|enable-source-maps|trace-warnings|unhandled-rejections=\w+|experimental-vm-modules|stack-trace-limit=\d+))*\s*$/,
  },
  { names: /^(?:MAKEFLAGS|MFLAGS)$/, values: /^\s*(?:-j ?\d*)?\s*$/ },
  {
    names: /^C(?:XX|PP)?FLAGS$/,
    values:
      /^(?:\s*-(?:[gO][\w]*|W[\w=-]+|D[\w=]+|std=[\w+]+|f(?:sanitize=[\w,]+|no-[\w-]+|PIC)|I[\w./-]+))*\s*$/,
  },
  { names: /^SHELL$/, values: /^\/bin\/(?:ba)?sh$/ },
  { names: /^POSIXLY_CORRECT$/, values: /^(?!)/ },
];
var EXACT = new Map(
  VARIABLES.flatMap((rule) =>
    rule.names
      .split(' ')
      .filter((name) => !name.includes('*'))
      .map((name) => [name, rule]),
  ),
);
var PREFIXES = VARIABLES.flatMap((rule) =>
  rule.names
    .split(' ')
    .filter((name) => name.endsWith('*'))
    .map((name) => [name.slice(0, -1), rule]),
);
var SUFFIXES = VARIABLES.flatMap((rule) =>
  rule.names
    .split(' ')
    .filter((name) => name.startsWith('*'))
    .map((name) => [name.slice(1), rule]),
);
function variableRule(name, value) {
  if (HARMLESS.test(name)) return void 0;
  const rule =
    EXACT.get(name) ??
    PREFIXES.find(([prefix]) => name.startsWith(prefix))?.[1] ??
    SUFFIXES.find(([suffix]) => name.endsWith(suffix))?.[1];
  if (rule === void 0) return void 0;
  const usual =
    value !== void 0 &&
    HARMLESS_VALUES.some(({ names: names2, values }) => names2.test(name) && values.test(value));
  return usual ? void 0 : rule;
}

// src/policy/commands/programs/build.ts
function inspectMake({ operands }) {
  return operands.flatMap(({ text, complete, word }) => {
    if (/^(?:SHELL|\.SHELLFLAGS)\s*[:+?!]*=/.test(text) || /\$[({]shell\b/.test(text)) {
      return [finding('executes', 'make_variable', 'gets a variable that names a program', word.source)];
    }
    const match = /^(\w+)[:+?!]*=/.exec(text);
    const rule =
      match === null ? void 0 : variableRule(match[1] ?? '', complete ? text.slice(match[0].length) : void 0);
    return rule === void 0
      ? []
      : [finding('loads', 'make_variable', `gets a variable that ${rule.reason}`, word.source)];
  });
}
function inspectCmake({ options }) {
  return options
    .filter(
      ({ name, value }) =>
        name === 'D' &&
        /^CMAKE_(?:\w*(?:COMPILER|LAUNCHER|INCLUDE|PROGRAM|TOOLCHAIN_FILE|LINKER))(?::\w+)?=.*\//.test(
          value?.text ?? '',
        ),
    )
    .map(({ word }) =>
      finding('loads', 'cmake_variable', 'gets a variable that names a program or code', word.source),
    );
}
var BUILD = [
  ...programs('make gmake', 'low', 'unknown', {
    grammar: {
      flags:
        'B always-make b m d e environment-overrides i ignore-errors k keep-going L check-symlink-times n just-print dry-run recon p print-data-base q question r no-builtin-rules R no-builtin-variables s silent quiet no-silent S no-keep-going t touch trace v version w print-directory no-print-directory warn-undefined-variables h help',
      values: 'o old-file assume-old W what-if new-file assume-new',
      optionals: 'j jobs l load-average max-load debug O output-sync shuffle jobserver-auth',
      reads: 'C directory',
      loads: 'f file makefile I include-dir',
      executes: 'E eval',
    },
    operands: 'none',
    inspect: inspectMake,
  }),
  ...programs('cmake', 'low', 'unknown', {
    grammar: {
      open: true,
      flags: 'L A',
      values: 'G D j parallel target config preset t',
      reads: 'S B build C',
      // -E is a tool box of file commands.
      loads: 'P E toolchain',
    },
    operands: 'guess',
    inspect: inspectCmake,
  }),
  ...programs('ninja samu ctest', 'low', 'unknown', {
    grammar: {
      open: true,
      flags: 'v n V Q N output-on-failure progress rerun-failed k',
      values: 'j R E L t d l w',
      reads: 'C test-dir',
      loads: 'f S script SP',
      executes: 'test-command build-and-test overwrite',
    },
    operands: 'none',
  }),
  ...programs(
    'meson bear autoconf automake autoreconf libtool scons waf xmake conan vcpkg ccache sccache distcc icecc',
    'medium',
    'unknown',
    {
      operands: 'guess',
    },
  ),
  ...programs('gcc g++ cc c++ clang clang++ tcc nvcc', 'medium', 'unknown', {
    // Compilers write what -o names, and run what -wrapper, -B and specs say.
    grammar: {
      open: true,
      style: 'single-dash',
      values: 'x std MF MT MQ Xlinker Xassembler Xpreprocessor isystem include target arch L I',
      writes: 'o',
      executes: 'wrapper specs fplugin B fuse-ld',
    },
    operands: 'guess',
  }),
  ...programs('nm objdump readelf size addr2line c++filt', 'low', 'local', {
    grammar: {
      open: true,
      style: 'single-dash',
      values: 'j M section',
      writes: 'o',
      executes: 'plugin load',
    },
    operands: 'guess',
  }),
  ...programs('ld lld gold mold as ldd objcopy strip ranlib patchelf install_name_tool', 'medium', 'local', {
    operands: 'guess',
  }),
  ...programs('clang-tidy cppcheck iwyu', 'low', 'unknown', {
    grammar: {
      open: true,
      style: 'single-dash',
      writing: 'fix fix-errors',
      loads: 'load addon',
      writes: 'export-fixes',
    },
    operands: 'guess',
  }),
  ...programs('clang-format shfmt', 'low', 'local', {
    grammar: { open: true, writing: 'i w', values: 'style', flags: 'd l' },
    operands: 'reads',
  }),
  ...programs('shellcheck hadolint yamllint markdownlint markdownlint-cli2 codespell typos', 'low', 'local', {
    grammar: {
      open: true,
      writing: 'w fix write-changes',
      loads: 'r rules',
      values: 's S e f format severity',
    },
    operands: 'guess',
  }),
  ...programs(
    'actionlint vale taplo checkov tflint buf protolint sqlfluff protoc flatc thrift bison flex yacc lex m4 gperf swig doxygen pdflatex xelatex lualatex latexmk bibtex tex latex dot plantuml convert magick identify ffmpeg ffprobe sox gs inkscape',
    'medium',
    'unknown',
    {
      operands: 'guess',
    },
  ),
  ...programs('patch', 'medium', 'local', {
    grammar: {
      open: true,
      flags: 'R N E s f u t b',
      values: 'p F V z',
      reads: 'i input d directory',
      writes: 'o output r reject-file',
    },
    operands: 'writes',
  }),
];

// src/policy/commands/programs/builtins.ts
var BUILTINS = [
  ...programs('echo printf', 'low', 'local', { operands: 'none' }),
  ...programs(
    'true false : exit return break continue shift wait jobs umask getopts local times',
    'low',
    'local',
    {
      operands: 'none',
    },
  ),
  ...programs(
    'export declare typeset readonly unset set shopt type let read mapfile readarray',
    'low',
    'local',
    {
      operands: 'none',
    },
  ),
  ...programs('test [ [[', 'low', 'local', { operands: 'guess' }),
  ...programs('cd pushd popd dirs', 'low', 'local', { grammar: { flags: 'L P e' }, operands: 'reads' }),
  ...programs('pwd', 'low', 'local', {
    grammar: { flags: 'L P logical physical' },
    operands: 'none',
    strict: ({ command }) =>
      command.words.length === 1
        ? []
        : [
            {
              effect: 'invalid',
              code: 'arguments',
              message: 'takes no arguments here',
              words: sources(command.words),
            },
          ],
  }),
  // Code that is not seen, history, and what outlives the command.
  ...programs(
    'source . eval trap enable bind complete compgen history fc hash alias unalias',
    'medium',
    'unknown',
    {
      operands: 'guess',
    },
  ),
  ...programs('disown suspend fg bg', 'medium', 'local', { operands: 'none' }),
  ...programs('ulimit', 'low', 'local', { operands: 'none' }),
  ...programs('kill killall pkill', 'high', 'local', { operands: 'none' }),
];
function sources(words2) {
  return words2.slice(1).map((word) => word.source);
}

// src/policy/commands/programs/cloud.ts
var CLOUD = [
  ...programs(
    'aws gcloud gsutil bq az doctl heroku fly flyctl railway oci ibmcloud linode-cli hcloud s3cmd rclone restic borg eksctl kops argocd flux istioctl supabase stripe',
    'high',
    'network',
    {
      operands: 'none',
    },
  ),
  ...programs(
    'terraform tofu terragrunt pulumi cdk cdktf sam serverless packer vagrant ansible-galaxy helmfile',
    'high',
    'network',
    {
      operands: 'guess',
      verbs: {
        fmt: { risk: 'medium' },
        validate: { risk: 'medium' },
        version: { risk: 'low' },
      },
    },
  ),
  ...programs('helm kustomize skaffold tilt kind minikube k3d k3s k9s', 'high', 'network', {
    operands: 'guess',
  }),
];

// src/policy/commands/programs/dangerous.ts
var DANGEROUS = [
  ...programs('sudo su doas pkexec sudoedit gosu su-exec run0 dzdo calife super', 'high', 'unknown', {
    danger: 'privilege',
    operands: 'none',
  }),
  ...programs(
    'mkfs mke2fs mkswap mkdosfs shred wipefs fdisk sfdisk cfdisk gdisk sgdisk parted partprobe badblocks hdparm blkdiscard nvme losetup cryptsetup dmsetup lvcreate lvremove vgcreate vgremove pvcreate pvremove mdadm zpool zfs debugfs tune2fs resize2fs e2fsck fsck swapon swapoff',
    'high',
    'local',
    {
      danger: 'device',
      operands: 'guess',
    },
  ),
  ...programs('dd', 'high', 'local', {
    operands: 'none',
    paths: ({ operands }) =>
      operands.flatMap(({ word, text }) =>
        /^[io]f=/.test(text)
          ? [
              {
                argument: argumentOf(word, 3),
                effect: text[0] === 'o' ? 'writes' : 'reads',
              },
            ]
          : [],
      ),
  }),
  ...programs(
    'systemctl service mount umount iptables ip6tables iptables-restore nft ufw firewall-cmd useradd userdel usermod groupadd groupdel groupmod adduser deluser addgroup delgroup passwd chpasswd gpasswd chsh chfn vipw visudo chown crontab at batch setcap sysctl systemd-run systemd-nspawn initctl rc-service rc-update update-rc.d chkconfig telinit init pivot_root switch_root fusermount fusermount3 setenforce semanage restorecon auditctl aa-teardown apparmor_parser launchctl defaults hwclock grub-install update-grub update-initramfs efibootmgr',
    'high',
    'unknown',
    { danger: 'system', operands: 'none' },
  ),
  ...programs(
    'docker podman kubectl nerdctl docker-compose podman-compose oc ctr crictl buildah skopeo runc crun lxc lxc-start lxc-attach machinectl apptainer singularity dockerd containerd',
    'high',
    'unknown',
    { danger: 'container', operands: 'none' },
  ),
  ...programs('shutdown reboot halt poweroff kexec pm-suspend rtcwake', 'high', 'local', {
    danger: 'power',
    operands: 'none',
  }),
  ...programs('insmod rmmod modprobe depmod dkms kmod', 'high', 'local', {
    danger: 'kernel',
    operands: 'none',
  }),
];

// src/policy/commands/programs/data.ts
function inspectClient({ command }) {
  return command.words
    .slice(1)
    .flatMap(({ value, source: source2 }) =>
      value !== void 0 &&
      /(?:^|[\s;])(?:\.(?:sh|shell|sys|system|load|once|output|import|excel|cd)\b|\\[!ogw|]|\\copy\b)|\bCOPY\b[^;]*\bPROGRAM\b|\b(?:load_extension|edit|readfile|writefile)\s*\(/i.test(
        value,
      )
        ? [
            finding(
              'executes',
              'client_command',
              'can run a program or write files through a command of the client',
              source2,
            ),
          ]
        : [],
    );
}
var DATA = [
  ...programs('sqlite3 sqlite duckdb', 'medium', 'local', {
    grammar: {
      open: true,
      style: 'single-dash',
      flags: 'header csv json line column readonly batch bail box table markdown',
      values: 'cmd separator nullvalue',
      loads: 'init',
      executes: 'A',
    },
    operands: 'guess',
    inspect: inspectClient,
  }),
  ...programs(
    'psql mysql mariadb mongosh mongo redis-cli clickhouse-client cqlsh sqlcmd sqlplus influx etcdctl kcat kafkacat mc',
    'medium',
    'network',
    {
      operands: 'none',
      inspect: inspectClient,
    },
  ),
  ...programs(
    'pg_dump pg_dumpall pg_restore pg_isready createdb dropdb createuser initdb pg_ctl mysqldump mysqladmin mongodump mongorestore redis-server mongod mysqld postgres nginx apache2 httpd caddy minio rabbitmqctl kafka-topics',
    'medium',
    'network',
    {
      operands: 'guess',
    },
  ),
];

// src/policy/commands/programs/debugging.ts
var DEBUGGING = [
  ...programs('gdb lldb cgdb rr pdb bpftrace bpftool gcore jdb', 'medium', 'unknown', {
    grammar: {
      open: true,
      style: 'single-dash',
      stopAtOperand: true,
      flags: 'batch q quiet nx args',
      values: 'p pid',
      executes: 'ex eval-command iex o k',
      loads: 'x command ix init-command s S',
    },
    operands: 'guess',
  }),
  ...programs(
    'strace ltrace perf valgrind heaptrack ltrace hyperfine uftrace systemtap stap sysdig ftrace flamegraph py-spy samply',
    'medium',
    'unknown',
    {
      operands: 'guess',
    },
  ),
  ...programs('tmux screen byobu zellij dtach abduco reptyr', 'medium', 'unknown', { operands: 'none' }),
  ...programs('dmesg journalctl last lastlog', 'medium', 'local', { operands: 'none' }),
  ...programs(
    'xdg-open open start xclip xsel pbcopy pbpaste wl-copy wl-paste notify-send zenity dialog whiptail say code cursor',
    'medium',
    'unknown',
    {
      operands: 'guess',
    },
  ),
  // Agents that would start agents.
  ...programs('claude codex gemini aider opencode goose cline ollama llm', 'high', 'network', {
    operands: 'none',
  }),
];

// src/policy/commands/programs/editors.ts
function inspectEditor({ command }) {
  return command.words
    .slice(1)
    .flatMap(({ value, source: source2 }) =>
      value !== void 0 && /^\+(?!\d*$)/.test(value)
        ? [finding('executes', 'editor_command', 'runs a command of the editor', source2)]
        : [],
    );
}
var EDITORS = [
  ...programs('vi vim nvim view ex vimdiff gvim rvim rview', 'medium', 'unknown', {
    grammar: {
      open: true,
      flags: 'R n e E s b d m M N C Z es',
      values: 'T w W',
      executes: 'c cmd',
      loads: 'S u U i',
    },
    operands: 'writes',
    inspect: inspectEditor,
  }),
  ...programs('ed red emacs emacsclient nano pico micro joe jed mcedit kak hx helix', 'medium', 'unknown', {
    grammar: {
      open: true,
      flags: 'Q nw batch q s',
      executes: 'eval execute e s speller',
      loads: 'l load script rcfile f funcall',
    },
    operands: 'writes',
  }),
];

// src/policy/commands/programs/files.ts
function atLeast(count, message) {
  return ({ operands }) =>
    operands.length >= count ? [] : [{ effect: 'invalid', code: 'arguments', message, words: [] }];
}
var COPY_FLAGS =
  'i interactive n no-clobber u update v verbose T no-target-directory Z debug strip-trailing-slashes';
var FILES = [
  ...programs('ls dir vdir', 'low', 'local', {
    grammar: {
      flags:
        '1 a all A almost-all b escape B ignore-backups c C d directory D dired f F g G no-group group-directories-first h human-readable si H dereference-command-line dereference-command-line-symlink-to-dir i inode k kibibytes l L dereference m n numeric-uid-gid N literal o p q hide-control-chars show-control-chars Q quote-name r reverse R recursive s size S t u U v x X Z context zero author file-type full-time help version',
      values:
        'I ignore hide w width T tabsize block-size format indicator-style quoting-style sort time time-style',
      optionals: 'color hyperlink classify',
    },
    operands: 'reads',
  }),
  ...programs('tree eza exa lsd', 'low', 'local', {
    grammar: {
      flags:
        'a d l f x i q N Q p u g s h D F v t c U r J X C n A S T R long all tree git icons header recurse dirsfirst noreport',
      values: 'L P I H charset level ignore-glob sort filelimit timefmt filesfirst gitfile color',
      writes: 'o',
    },
    operands: 'reads',
  }),
  ...programs('cp', 'medium', 'local', {
    grammar: {
      flags: `a archive b d f force H l link L dereference P no-dereference p r R recursive s symbolic-link x one-file-system attributes-only parents remove-destination copy-contents help version ${COPY_FLAGS}`,
      values: 'S suffix no-preserve',
      optionals: 'backup preserve reflink sparse context',
      writes: 't target-directory',
    },
    operands: 'reads-then-writes',
    targetOptions: 't target-directory',
    strict: (use) => {
      const forced = use.options.filter(
        ({ name }) => name === 'f' || name === 'force' || name === 'remove-destination',
      );
      return forced.length > 0
        ? forced.map(({ word }) => ({
            effect: 'invalid',
            code: 'unknown_option',
            message: 'may not overwrite by force here',
            words: [word.source],
          }))
        : atLeast(2, 'needs a source and a target')(use);
    },
  }),
  ...programs('mv', 'medium', 'local', {
    grammar: {
      flags: `b f force ${COPY_FLAGS}`,
      values: 'S suffix',
      optionals: 'backup',
      writes: 't target-directory',
    },
    operands: 'moves-then-writes',
    targetOptions: 't target-directory',
  }),
  ...programs('ln', 'medium', 'local', {
    grammar: {
      flags: `b d F f force L logical P physical r relative s symbolic ${COPY_FLAGS}`,
      values: 'S suffix',
      optionals: 'backup',
      writes: 't target-directory',
    },
    paths: (use) => {
      const toTarget = use.operands.length === 1 || hasOption(use, 't target-directory');
      const targets = toTarget ? [] : use.operands.slice(-1);
      const sources2 = toTarget ? use.operands : use.operands.slice(0, -1);
      const opened = hasOption(use, 's symbolic')
        ? sources2.filter(({ text }) => text.startsWith('/'))
        : sources2;
      return [...plainPaths(opened, 'reads'), ...plainPaths(targets, 'writes')];
    },
    operands: 'reads-then-writes',
    targetOptions: 't target-directory',
  }),
  ...programs('install', 'medium', 'local', {
    grammar: {
      flags: `b c C compare d directory D p preserve-timestamps s strip ${COPY_FLAGS}`,
      values: 'g group m mode o owner S suffix',
      optionals: 'backup',
      writes: 't target-directory',
      executes: 'strip-program',
    },
    operands: 'reads-then-writes',
    targetOptions: 't target-directory d directory',
  }),
  ...programs('mkdir', 'medium', 'local', {
    grammar: { flags: 'p parents v verbose Z', values: 'm mode', optionals: 'context' },
    operands: 'writes',
  }),
  ...programs('touch', 'medium', 'local', {
    grammar: { flags: 'a c no-create f h no-dereference m', values: 'd date t time', reads: 'r reference' },
    operands: 'writes',
  }),
  ...programs('mktemp', 'low', 'local', {
    grammar: { flags: 'd directory u dry-run q quiet t', values: 'suffix', optionals: 'tmpdir', writes: 'p' },
    operands: 'writes',
  }),
  ...programs('mkfifo mknod', 'medium', 'local', {
    grammar: { flags: 'Z', values: 'm mode' },
    operands: 'writes',
  }),
  ...programs('truncate fallocate', 'medium', 'local', {
    grammar: { open: true, values: 's size l length o offset', reads: 'r reference' },
    operands: 'writes',
  }),
  ...programs('rm', 'high', 'local', {
    grammar: {
      flags: 'f force i I r R recursive d dir v verbose one-file-system no-preserve-root help version',
      optionals: 'interactive preserve-root',
    },
    operands: 'removes',
  }),
  ...programs('unlink trash trash-put srm', 'high', 'local', { operands: 'removes' }),
  ...programs('rmdir', 'medium', 'local', {
    grammar: { flags: 'p parents v verbose ignore-fail-on-non-empty' },
    operands: 'removes',
  }),
  ...programs('chmod chgrp chattr setfacl setfattr', 'high', 'local', {
    grammar: { open: true, flags: 'R recursive v verbose f silent quiet c changes', reads: 'reference' },
    // The first operand is the mode.
    operands: 'script-then-reads',
    scriptOptions: 'reference',
  }),
  ...programs('tee', 'medium', 'local', {
    grammar: { flags: 'a append i ignore-interrupts p', optionals: 'output-error' },
    operands: 'writes',
  }),
  ...programs('split csplit', 'medium', 'local', {
    grammar: {
      flags: 'd x e elide-empty-files verbose u unbuffered k keep-files s quiet silent z',
      values:
        'a suffix-length additional-suffix b bytes C line-bytes l lines n number t separator f prefix digits',
      optionals: 'numeric-suffixes hex-suffixes',
      executes: 'filter',
    },
    operands: 'reads',
  }),
  ...programs('realpath readlink basename dirname', 'low', 'local', {
    grammar: {
      flags:
        'f canonicalize e canonicalize-existing m canonicalize-missing n no-newline q quiet s no-symlinks strip z zero a multiple v verbose silent L logical P physical no-symlinks',
      values: 'S suffix relative-to relative-base',
    },
    operands: 'none',
  }),
  ...programs(
    'stat file du df wc cksum md5sum sha1sum sha224sum sha256sum sha512sum b2sum sum shasum',
    'low',
    'local',
    {
      // None of their options writes or runs anything but `file -C`.
      grammar: {
        open: true,
        values: 'c format printf t d max-depth B block-size threshold a algorithm total type x',
        reads: 'files0-from f files-from m magic-file exclude-from X',
        writing: 'C compile',
      },
      operands: 'reads',
    },
  ),
  ...programs('which', 'low', 'local', {
    grammar: { flags: 'a s' },
    operands: 'none',
    strict: (use) => [
      ...atLeast(1, 'needs a name')(use),
      ...use.operands
        .filter(({ text }) => text.includes('/'))
        .map(({ word }) => ({
          effect: 'invalid',
          code: 'arguments',
          message: 'takes names, not paths',
          words: [word.source],
        })),
    ],
  }),
  ...programs('whereis locate type', 'low', 'local', { operands: 'none' }),
];
function copiesDirectories(use) {
  return hasOption(use, 'a archive r R recursive');
}

// src/policy/commands/git-config.ts
var HARMLESS_SECTIONS =
  /^(?:color|column|advice|branch|pretty|log|blame|apply|rerere|grep|status|versionsort|i18n|format|stash|rebase|pull|push|fetch|merge|diff|commit|tag|init|user|feature|index|pack|gc|transfer)\./;
var PROGRAMS =
  /(?:^|\.)(?:pager|editor|sshcommand|fsmonitor|hookspath|askpass|gitproxy|external|textconv|command|program|driver|cmd|tool|guitool|path|template|templatedir|helper|alternaterefscommand|uploadpack|receivepack|packobjectshook|insteadof|pushinsteadof|proxy|excludesfile|attributesfile|signingkey|gpgsign|sequence|smtpserver|recursesubmodules|trustctime|worktree|allow|url|pushurl|fetch|mergeoptions|signaturekey|gpg|defaultbranchfile|headercmd|tocmd|cccmd|backgroundcommand|postbuffer|bundleuri|logfile|noticefile|vcs|variant)$/;
var HARMLESS_KEYS = /* @__PURE__ */ new Set([
  'core.quotepath',
  'core.autocrlf',
  'core.eol',
  'core.safecrlf',
  'core.abbrev',
  'core.ignorecase',
  'core.filemode',
  'core.precomposeunicode',
  'core.longpaths',
  'core.commentchar',
  'core.whitespace',
  'core.symlinks',
  'core.compression',
  'core.preloadindex',
  'protocol.version',
  'safe.directory',
  'http.postbuffer',
  'http.lowspeedlimit',
  'http.lowspeedtime',
  'http.version',
  'diff.external.trustexitcode',
  'commit.gpgsign',
  'tag.gpgsign',
  'push.default',
  'fetch.prune',
]);
var HARMLESS_VALUES2 = {
  'core.pager': /^(?:cat|less(?: -[A-Z]+)?|)$/,
  'core.editor': /^(?:true|:|cat)$/,
  'sequence.editor': /^(?:true|:)$/,
  'core.fsmonitor': /^(?:false|0|)$/,
  'core.hookspath': /^(?:\/dev\/null|)$/,
  'credential.helper': /^$/,
  'core.askpass': /^(?:true|)$/,
};
function isHarmlessSetting(setting) {
  const equals = setting.indexOf('=');
  const key = (equals < 0 ? setting : setting.slice(0, equals)).toLowerCase();
  const value = equals < 0 ? 'true' : setting.slice(equals + 1);
  if (HARMLESS_VALUES2[key]?.test(value) === true) return true;
  if (HARMLESS_KEYS.has(key)) return true;
  return HARMLESS_SECTIONS.test(key) && !PROGRAMS.test(key);
}

// src/policy/commands/programs/git.ts
var DIFF = {
  numeric: true,
  flags:
    'p u patch s no-patch raw patch-with-raw indent-heuristic no-indent-heuristic minimal patience histogram numstat shortstat compact-summary summary patch-with-stat z name-only name-status no-color check full-index binary R a text b ignore-space-change w ignore-all-space ignore-blank-lines ignore-space-at-eol ignore-cr-at-eol W function-context exit-code quiet q no-ext-diff no-textconv no-prefix default-prefix pickaxe-all pickaxe-regex find-copies-harder no-renames rename-empty no-index cached staged merge-base cc c combined-all-paths m t l no-relative ita-invisible-in-index D irreversible-delete no-color-moved dd remerge-diff 0 1 2 3 theirs ours base v verbose h',
  values:
    'S G l O anchored inter-hunk-context ws-error-highlight diff-filter diff-algorithm line-prefix src-prefix dst-prefix output-indicator-new output-indicator-old output-indicator-context find-object rotate-to skip-to diff-merges',
  optionals:
    'U unified stat stat-width stat-name-width stat-count stat-graph-width X dirstat cumulative dirstat-by-file color color-moved color-moved-ws word-diff word-diff-regex color-words B break-rewrites M find-renames C find-copies abbrev relative ignore-submodules submodule',
  writes: 'output',
  executing: 'ext-diff textconv',
};
var LOG = {
  ...DIFF,
  flags: `${DIFF.flags} oneline graph follow no-decorate all merges no-merges first-parent reverse date-order author-date-order topo-order no-walk left-right left-only right-only cherry cherry-pick cherry-mark boundary simplify-by-decoration full-history dense sparse simplify-merges ancestry-path show-pulls stdin parents children relative-date no-notes show-signature log-size clear-decorations no-mailmap mailmap use-mailmap no-max-parents no-min-parents i regexp-ignore-case E extended-regexp F fixed-strings P perl-regexp all-match invert-grep walk-reflogs g count source full-diff objects e n s summary numbered email committer root reflog merge not bisect single-worktree ignore-missing stable patch-id`,
  values: `${DIFF.values} n max-count skip since after until before author committer grep grep-reflog min-parents max-parents L date exclude glob decorate-refs decorate-refs-exclude encoding expand-tabs`,
  optionals: `${DIFF.optionals} pretty format decorate branches tags remotes notes show-notes no-graph group`,
};
var READING = { risk: 'low', operands: 'revisions', grammar: LOG };
var PLAIN = { risk: 'low', operands: 'revisions', grammar: { open: true } };
var CHANGING = { risk: 'medium', operands: 'revisions' };
var REMOTE = {
  open: true,
  executes: 'upload-pack receive-pack exec u',
  values:
    'o server-option origin depth branch b jobs j refmap shallow-since shallow-exclude filter push-option',
};
function inspectRemote(use) {
  return use.operands
    .filter(({ text }) => /^(?:ext|fd)::|^-/.test(text) || /^(?!https?|ssh|git|file|ftps?)\w+::/.test(text))
    .map(({ word }) => finding('executes', 'transport', 'uses a transport that runs a program', word.source));
}
function listsUnless(pattern, harmless = /^$/) {
  return (use) => {
    const found = use.command.words.filter(({ value }) => value === void 0 || pattern.test(value));
    const listing = use.command.words.some(({ value }) => value !== void 0 && harmless.test(value));
    const names2 = listing ? [] : use.operands.map(({ word }) => word);
    return [...found, ...names2]
      .slice(0, 1)
      .map(({ source: source2 }) =>
        finding('writes', 'changes_repository', 'changes the repository', source2),
      );
  };
}
function inspectConfig(use) {
  const has = (names2) => use.command.words.some(({ value }) => value !== void 0 && names2.test(value));
  if (has(/^--(?:get|get-all|get-regexp|get-urlmatch|list|get-color)$|^-l$/) && !has(/^--(?:add|unset)/))
    return [];
  const [first, second] = use.operands;
  if (first === void 0) return has(/^(?:-e|--edit)$/) ? [changesConfig('--edit')] : [];
  if (first.complete && (first.text === 'list' || first.text === 'get')) return [];
  if (
    second === void 0 &&
    first.complete &&
    first.text.includes('.') &&
    !has(/^--(?:unset|remove|rename|add)/)
  ) {
    return [];
  }
  return [changesConfig(first.word.source)];
}
function changesConfig(source2) {
  return finding('writes', 'changes_config', 'changes settings that may name programs', source2);
}
function inspectGit(use) {
  const findings = [];
  for (const { name, value, word } of use.options) {
    if (name !== 'c' || (use.verbs.length > 0 && !isGlobal(use, word.span.start))) continue;
    if (value?.complete !== true || !isHarmlessSetting(value.text)) {
      findings.push(
        finding(
          'executes',
          'git_setting',
          'gets a setting that may name a program',
          value?.word.source ?? word.source,
        ),
      );
    }
  }
  return findings;
}
function isGlobal(use, start) {
  const verb = use.command.words.find(({ value }) => value === use.verbs[0]);
  return verb === void 0 || start < verb.span.start;
}
var VERBS = {
  ...verbs('log show diff whatchanged shortlog range-diff', READING),
  ...verbs('diff-tree diff-index diff-files', READING),
  ...verbs(
    'status rev-parse rev-list describe ls-files ls-tree name-rev cat-file show-ref for-each-ref merge-base cherry count-objects var check-ignore check-attr check-mailmap check-ref-format fsck verify-commit verify-tag show-branch help version get-tar-commit-id merge-tree patch-id stripspace column',
    PLAIN,
  ),
  // Runs the filters of the repository's own configuration only.
  'format-patch': {
    risk: 'medium',
    operands: 'revisions',
    grammar: {
      ...LOG,
      writes: 'o output-directory output',
      values: `${LOG.values} v reroll-count subject-prefix to cc in-reply-to`,
    },
  },
  blame: {
    ...PLAIN,
    grammar: { open: true, values: 'L date S M C ignore-rev', reads: 'contents ignore-revs-file' },
  },
  annotate: PLAIN,
  grep: {
    risk: 'low',
    operands: 'none',
    grammar: {
      numeric: true,
      flags:
        'i ignore-case w word-regexp v invert-match h H l files-with-matches name-only L files-without-match n line-number c count r recursive no-recursive a text I p show-function W function-context E extended-regexp G basic-regexp P perl-regexp F fixed-strings o only-matching column break heading q quiet z null cached untracked no-index full-name and or not all-match no-color recurse-submodules exclude-standard no-exclude-standard no-textconv',
      values: 'e m max-count max-depth A after-context B before-context C context threads parent-basename',
      optionals: 'color',
      reads: 'f',
      executing: 'O open-files-in-pager textconv ext-grep',
    },
  },
  archive: {
    risk: 'low',
    operands: 'revisions',
    grammar: { open: true, values: 'format prefix', writes: 'o output', executes: 'exec', network: 'remote' },
  },
  bundle: CHANGING,
  reflog: {
    ...READING,
    verbs: { ...verbs('show exists list', READING), ...verbs('expire delete drop', CHANGING) },
  },
  branch: {
    risk: 'low',
    operands: 'none',
    inspect: listsUnless(
      /^(?:-[a-z]*[dDmMcCfut][a-zA-Z]*|--(?:delete|move|copy|force|set-upstream-to|unset-upstream|edit-description|track)(?:=.*)?)$/,
      /^(?:-l|--list|-a|-r|-v+|--all|--remotes|--contains|--no-contains|--merged|--no-merged|--points-at|--show-current|--sort|--format=?.*|-[arv]+)$/,
    ),
  },
  tag: {
    risk: 'low',
    operands: 'none',
    inspect: listsUnless(
      /^(?:-[a-z]*[adfFsum][a-z]*|--(?:delete|force|annotate|sign|message|file|edit)(?:=.*)?)$/,
      /^(?:-l|--list|-n\d*|--contains|--no-contains|--merged|--no-merged|--points-at|--sort=.*|--format=.*|--sort)$/,
    ),
  },
  remote: {
    risk: 'low',
    operands: 'none',
    grammar: { flags: 'v verbose' },
    verbs: {
      'get-url': { risk: 'low' },
      ...verbs('show', { risk: 'medium', reach: 'network' }),
      ...verbs('update prune', { risk: 'medium', reach: 'network' }),
      ...verbs('add set-url rename rm remove set-head set-branches', {
        risk: 'medium',
        inspect: inspectRemote,
      }),
    },
  },
  config: { risk: 'low', operands: 'none', inspect: inspectConfig },
  stash: {
    risk: 'medium',
    operands: 'none',
    verbs: {
      ...verbs('list show', READING),
      ...verbs('push save drop pop apply clear branch create store', { risk: 'medium', operands: 'none' }),
    },
  },
  worktree: {
    risk: 'medium',
    operands: 'guess',
    verbs: {
      list: { risk: 'low' },
      ...verbs('add move', { risk: 'medium', operands: 'guess' }),
      ...verbs('remove prune lock unlock repair', { risk: 'medium' }),
    },
  },
  submodule: {
    risk: 'medium',
    operands: 'none',
    verbs: {
      ...verbs('status summary', { risk: 'low' }),
      ...verbs('add update init deinit sync set-url set-branch absorbgitdirs', {
        risk: 'medium',
        reach: 'network',
        inspect: inspectRemote,
      }),
      foreach: { risk: 'low' },
    },
  },
  notes: { ...CHANGING, verbs: verbs('list show', { risk: 'low' }) },
  bisect: { ...CHANGING, verbs: verbs('log', { risk: 'low' }) },
  add: { risk: 'medium', operands: 'reads' },
  rm: { risk: 'high', operands: 'removes' },
  clean: { risk: 'medium', operands: 'guess' },
  mv: { risk: 'medium', operands: 'moves-then-writes' },
  commit: {
    risk: 'medium',
    operands: 'revisions',
    grammar: {
      open: true,
      flags: 'a v q s n p z i o e',
      values: 'm message author date C c reuse-message reedit-message fixup squash cleanup trailer',
      optionals: 'S gpg-sign u untracked-files',
      reads: 'F file t template pathspec-from-file',
    },
  },
  rebase: {
    ...CHANGING,
    // What `--exec` runs is listed as a command of its own.
    grammar: {
      open: true,
      values: 'onto x exec s strategy X strategy-option C whitespace',
      flags: 'i q v f m r p',
    },
  },
  ...verbs(
    'reset merge cherry-pick revert checkout switch restore am apply init gc prune repack pack-refs replace update-ref update-index symbolic-ref read-tree write-tree commit-tree hash-object mktree rerere sparse-checkout maintenance filter-branch filter-repo fast-import fast-export notes lfs flow request-pull mergetool difftool citool gui gitk instaweb daemon credential fsmonitor--daemon hook',
    {
      risk: 'medium',
      operands: 'revisions',
      grammar: { open: true, executes: 'extcmd x tool-cmd', values: 'm b B c C' },
    },
  ),
  ...verbs('fetch pull push', {
    risk: 'medium',
    reach: 'network',
    operands: 'none',
    grammar: REMOTE,
    inspect: inspectRemote,
  }),
  'ls-remote': {
    risk: 'medium',
    reach: 'network',
    operands: 'none',
    grammar: REMOTE,
    inspect: inspectRemote,
  },
  clone: {
    risk: 'medium',
    reach: 'network',
    operands: 'guess',
    grammar: {
      ...REMOTE,
      executes: 'u upload-pack c config template',
      writes: 'separate-git-dir',
      reads: 'reference reference-if-able',
    },
    inspect: inspectRemote,
  },
  ...verbs(
    'svn p4 cvsimport send-email imap-send http-fetch http-push send-pack fetch-pack upload-pack receive-pack',
    {
      risk: 'high',
      reach: 'network',
    },
  ),
};
var GIT = [
  {
    name: 'git',
    risk: 'medium',
    reach: 'unknown',
    operands: 'none',
    grammar: {
      flags:
        'p paginate P no-pager no-replace-objects bare literal-pathspecs glob-pathspecs noglob-pathspecs icase-pathspecs no-optional-locks no-lazy-fetch no-advice html-path man-path info-path version help v h',
      values: 'c list-cmds attr-source super-prefix',
      reads: 'C',
      loads: 'git-dir work-tree namespace',
      executing: 'exec-path',
      executes: 'config-env',
    },
    inspect: inspectGit,
    verbs: VERBS,
  },
  {
    name: 'gh',
    risk: 'high',
    reach: 'network',
    operands: 'none',
    verbs: {
      ...verbs('pr issue run release repo workflow', {
        verbs: verbs('list view status diff checks', { risk: 'medium' }),
      }),
      ...verbs('version help status', { risk: 'medium' }),
    },
  },
  { name: 'glab', risk: 'high', reach: 'network', operands: 'none' },
  { name: 'hub', risk: 'high', reach: 'network', operands: 'none' },
  { name: 'svn', risk: 'medium', reach: 'network', operands: 'guess' },
  { name: 'hg', risk: 'medium', reach: 'unknown', operands: 'guess' },
  { name: 'jj', risk: 'medium', reach: 'unknown', operands: 'guess' },
  { name: 'tig', risk: 'medium', reach: 'unknown', operands: 'none' },
  { name: 'lazygit', risk: 'medium', reach: 'unknown', operands: 'none' },
  { name: 'pre-commit', risk: 'medium', reach: 'network', operands: 'none' },
];

// src/policy/commands/programs/javascript.ts
var CHANGES = { risk: 'medium', reach: 'network', operands: 'none' };
var SCRIPT = { risk: 'low', reach: 'network', operands: 'none' };
var READS = { risk: 'low', reach: 'network', operands: 'none' };
var VERBS2 = {
  ...verbs(
    'install i in ins inst insta instal isnt isnta isntal isntall add a ci clean-install ic install-clean isntall-clean install-test it install-ci-test cit update up upgrade udpate uninstall un unlink remove rm r link ln rebuild rb dedupe ddp prune shrinkwrap import fetch',
    CHANGES,
  ),
  ...verbs(
    'publish unpublish deprecate dist-tag dist-tags owner access team org token login logout adduser add-user star unstar hook profile pack version set config c get pkg cache init create innit exec x dlx start restart stop edit explore undeprecate trust store patch patch-commit env setup self-update global workspace workspaces plugin set-script deploy approve-builds licenses node server docs repo bugs',
    CHANGES,
  ),
  ...verbs('run run-script rum urn test t tst build lint', SCRIPT),
  ...verbs(
    'ls list la ll outdated view info show v why explain doctor help root prefix bin ping whoami search fund query diff sbom completion find-dupes',
    READS,
  ),
  audit: { ...READS, verbs: verbs('fix', CHANGES) },
  config: { ...CHANGES, verbs: verbs('get list ls', READS) },
  c: { ...CHANGES, verbs: verbs('get list ls', READS) },
};
var JAVASCRIPT = [
  ...programs('npm pnpm yarn', 'medium', 'network', {
    operands: 'none',
    grammar: {
      open: true,
      flags:
        's silent q quiet d dd ddd g global D save-dev no-audit no-fund offline prefer-offline r recursive ws if-present json',
      values: 'w workspace F filter loglevel registry tag otp',
      reads: 'C prefix dir cwd',
      writes: 'cache userconfig globalconfig',
      executes: 'script-shell shell node-options git viewer editor browser onload-script init-module',
    },
    verbs: VERBS2,
  }),
  ...programs('bun', 'medium', 'network', {
    operands: 'guess',
    verbs: { ...VERBS2, ...verbs('test', SCRIPT), ...verbs('run build x create upgrade', CHANGES) },
  }),
  ...programs('npx bunx pnpx yarnpkg corepack nvm fnm volta n', 'medium', 'network', { operands: 'none' }),
  ...programs(
    'node nodejs deno tsx ts-node ts-node-esm esno swc-node nodemon babel-node zx electron',
    'medium',
    'network',
    {
      grammar: {
        open: true,
        flags: 'c check i interactive watch test enable-source-maps no-warnings',
        values: 'e eval p print input-type C conditions test-name-pattern test-reporter',
        // A module by name or path, loaded before the script.
        loads: 'r require import loader experimental-loader env-file',
      },
      operands: 'guess',
    },
  ),
  // Their configuration is code of the workspace, like a test that they run.
  ...programs(
    'tsc tsgo vue-tsc eslint jest vitest mocha ava tap c8 nyc karma biome oxlint xo standard stylelint knip depcheck madge ncu attw publint tsd dpdm size-limit',
    'low',
    'unknown',
    {
      grammar: {
        open: true,
        values: 't testNamePattern w ext format rule reporter maxWorkers testPathPattern env target module',
        reads: 'p project root',
        loads: 'c config r require setupFiles globalSetup',
        writes: 'o output-file outDir outFile outputFile coverageDirectory',
        // eslint --fix and its kin change what they are given.
        writing: 'fix write init u updateSnapshot',
        executes: 'plugin resolve-plugins-relative-to rulesdir parser',
      },
      operands: 'guess',
    },
  ),
  ...programs('prettier', 'low', 'unknown', {
    grammar: { open: true, reads: 'ignore-path', loads: 'config plugin', writing: 'w write' },
    operands: 'guess',
  }),
  ...programs(
    'vite next nuxt astro webpack rollup esbuild parcel turbo nx lerna tsup rslib rspack unbuild storybook svelte-kit gatsby ng vue expo metro remix rimraf playwright cypress puppeteer lighthouse husky lint-staged changeset semantic-release prisma drizzle-kit typeorm sequelize wrangler vercel netlify firebase http-server serve concurrently npm-run-all run-s run-p cross-env dotenv pm2 gulp grunt bower lefthook nest',
    'medium',
    'unknown',
    { operands: 'guess' },
  ),
];

// src/policy/commands/programs/languages.ts
var LOW = { risk: 'low' };
var MEDIUM = { risk: 'medium' };
var LANGUAGES = [
  ...programs('cargo', 'medium', 'network', {
    operands: 'none',
    grammar: {
      open: true,
      flags: 'v verbose q quiet offline locked frozen',
      values: 'color Z',
      reads: 'C',
      executes: 'config',
    },
    verbs: {
      ...verbs(
        'build b check c test t bench doc d clippy tree metadata search info locate-project pkgid read-manifest verify-project version help report nextest audit deny outdated machete udeps llvm-cov expand',
        {
          risk: 'low',
          operands: 'none',
          grammar: {
            open: true,
            values:
              'p package F features j jobs bin example target profile message-format exclude test color',
            reads: 'manifest-path lockfile-path',
            writes: 'target-dir artifact-dir',
            executes: 'config',
            writing: 'fix',
          },
        },
      ),
      fmt: {
        risk: 'low',
        operands: 'none',
        grammar: { open: true, flags: 'check', reads: 'manifest-path' },
        inspect: ({ command }) =>
          command.words.some(({ value }) => value === '--check')
            ? []
            : [finding('writes', 'rewrites', 'rewrites files', 'fmt')],
      },
      ...verbs(
        'add remove rm install uninstall clean publish update yank owner login logout new init fix package vendor fetch generate-lockfile run r',
        {
          risk: 'medium',
          operands: 'none',
          grammar: { open: true, reads: 'manifest-path path', writes: 'target-dir root', executes: 'config' },
        },
      ),
    },
  }),
  ...programs('rustc rustdoc', 'medium', 'unknown', {
    grammar: {
      open: true,
      values: 'C codegen crate-type crate-name edition emit cfg A W D F',
      writes: 'o out-dir',
      executes: 'linker',
    },
    operands: 'guess',
  }),
  ...programs(
    'rustup rustfmt cbindgen bindgen wasm-pack trunk maturin cross miri just task mage',
    'medium',
    'unknown',
    { operands: 'guess' },
  ),
  ...programs('go', 'medium', 'network', {
    operands: 'guess',
    grammar: { style: 'single-dash', open: true, reads: 'C' },
    verbs: {
      ...verbs('build test vet list env version doc help', {
        risk: 'low',
        operands: 'guess',
        grammar: {
          style: 'single-dash',
          open: true,
          values: 'run bench count timeout tags ldflags gcflags mod p cpu covermode coverpkg f short skip',
          writes: 'o coverprofile cpuprofile memprofile trace outputdir',
          executes: 'exec toolexec vettool',
        },
      }),
      env: {
        risk: 'low',
        operands: 'none',
        grammar: { style: 'single-dash', open: true, writing: 'w u' },
      },
      mod: {
        risk: 'medium',
        operands: 'none',
        verbs: verbs('graph verify why', { risk: 'low' }),
      },
      ...verbs('run get install generate clean work tool fix telemetry bug fmt', {
        risk: 'medium',
        operands: 'guess',
      }),
    },
  }),
  ...programs('gofmt goimports gofumpt', 'low', 'local', {
    grammar: { style: 'single-dash', open: true, flags: 'l d e s', values: 'r', writing: 'w' },
    operands: 'reads',
  }),
  ...programs('golangci-lint staticcheck golint gotestsum gopls revive dlv', 'low', 'unknown', {
    operands: 'guess',
  }),
  ...programs(
    'mvn mvnw gradle gradlew ant sbt lein mill bazel bazelisk buck2 pants scala-cli kotlinc scalac groovy',
    'medium',
    'unknown',
    {
      grammar: { open: true, reads: 'f file p project-dir', values: 'pl P D' },
      operands: 'none',
    },
  ),
  ...programs('java javaw jshell jbang kotlin scala clojure clj', 'medium', 'network', { operands: 'guess' }),
  ...programs('javac javap jar javadoc jps jcmd jstack jmap jdeps keytool', 'medium', 'unknown', {
    operands: 'guess',
  }),
  ...programs('ruby irb rails rake bundle bundler rspec erb jruby', 'medium', 'network', {
    operands: 'guess',
    grammar: { open: true, values: 'e', loads: 'r' },
    verbs: {
      ...verbs('list show info check outdated', LOW),
      ...verbs('exec install update add remove', MEDIUM),
    },
  }),
  ...programs('rubocop standardrb brakeman sorbet srb steep reek', 'low', 'unknown', {
    grammar: {
      open: true,
      flags: 'D',
      loads: 'c config r require',
      writes: 'o out output',
      writing: 'a A autocorrect autocorrect-all auto-correct x',
    },
    operands: 'guess',
  }),
  ...programs('php artisan composer symfony wp drush', 'medium', 'network', {
    operands: 'guess',
    grammar: { open: true, values: 'r d', flags: 'l i m', reads: 'working-dir' },
    verbs: verbs('show validate outdated why diagnose licenses', LOW),
  }),
  ...programs('phpunit phpstan psalm phpcs pest', 'low', 'unknown', {
    grammar: { open: true, loads: 'bootstrap a autoload-file c configuration prepend' },
    operands: 'guess',
  }),
  ...programs('php-cs-fixer phpcbf rector', 'medium', 'unknown', { operands: 'guess' }),
  ...programs('dotnet', 'medium', 'network', {
    operands: 'guess',
    verbs: {
      ...verbs('build test', LOW),
      ...verbs('run add remove publish restore new tool nuget clean pack ef format', MEDIUM),
    },
  }),
  ...programs('swift', 'medium', 'network', {
    operands: 'guess',
    verbs: { ...verbs('build test', LOW), ...verbs('run package', MEDIUM) },
  }),
  ...programs('swiftc swiftlint swiftformat xcodebuild xcrun pod fastlane', 'medium', 'unknown', {
    operands: 'guess',
  }),
  ...programs(
    'lua luajit tclsh wish expect osascript R Rscript julia octave matlab ghci runghc ocaml erl elixir iex escript racket guile sbcl swipl gnuplot dart flutter crystal nim zig pwsh powershell dc bc',
    'medium',
    'network',
    {
      operands: 'guess',
    },
  ),
  ...programs(
    'ghc stack cabal mix rebar3 dune opam luac luarocks hlint fourmolu ormolu elm purs gleam idris2 agda coqc lake lean',
    'medium',
    'unknown',
    { operands: 'guess' },
  ),
];

// src/policy/commands/programs/network.ts
var NETWORK = [
  ...programs('curl', 'high', 'network', {
    grammar: {
      open: true,
      flags:
        's S f L k v i I g G j J R N O silent show-error fail location insecure verbose include head compressed',
      values:
        'X H d A e u b c m r x w request header user-agent user max-time connect-timeout retry proxy url',
      reads: 'T upload-file cacert cert key E',
      loads: 'K config',
      writes: 'o output D dump-header output-dir cookie-jar trace stderr',
    },
    operands: 'none',
  }),
  ...programs('wget wget2', 'high', 'network', {
    grammar: {
      open: true,
      flags: 'q c nv N S r',
      values: 'U t T header user-agent timeout tries',
      reads: 'i input-file post-file body-file',
      writes: 'O output-document P directory-prefix o output-file a append-output',
      executes: 'use-askpass e execute',
    },
    operands: 'none',
  }),
  ...programs(
    'nc ncat netcat nc.openbsd nc.traditional socat telnet ftp sftp lftp tftp ssh scp sshfs mosh autossh ssh-keyscan ssh-copy-id rlogin rsh rexec websocat httpie http https xh hurl grpcurl aria2c axel youtube-dl yt-dlp lynx w3m links elinks',
    'high',
    'network',
    {
      operands: 'none',
    },
  ),
  ...programs('rsync', 'high', 'network', {
    grammar: {
      open: true,
      values: 'f filter exclude include e rsh',
      executes: 'rsync-path',
      writes: 'log-file',
    },
    operands: 'guess',
    paths: ({ operands }) =>
      writtenAt(operands, operands.length - 1).filter(({ argument }) => !/^[^/]*:/.test(argument.text)),
  }),
  ...programs(
    'dig nslookup host ping ping6 fping traceroute tracepath mtr whois getent nmap masscan arp arping resolvectl drill kdig finger ntpdate',
    'high',
    'network',
    {
      operands: 'none',
    },
  ),
  ...programs(
    'ip ifconfig route tc bridge ethtool iw nmcli tcpdump tshark wireshark wg wg-quick openvpn tailscale cloudflared ngrok ssserver tor torsocks proxychains',
    'high',
    'network',
    {
      operands: 'none',
    },
  ),
  ...programs('ss netstat', 'low', 'local', { operands: 'none' }),
  ...programs('openssl', 'high', 'network', { operands: 'guess' }),
  ...programs(
    'ssh-keygen ssh-add ssh-agent gpg gpg2 gpgconf age pass secret-tool vault op bw sops',
    'high',
    'unknown',
    { operands: 'guess' },
  ),
  ...programs('mail mailx sendmail mutt swaks msmtp telegram-cli', 'high', 'network', { operands: 'none' }),
  ...programs('ab wrk hey k6 siege vegeta newman', 'high', 'network', { operands: 'guess' }),
];

// src/policy/commands/programs/packages.ts
var PACKAGES = [
  ...programs(
    'apt apt-get aptitude dnf yum zypper pacman apk brew snap flatpak nix nix-env nix-shell nix-build guix port emerge pkg xbps-install opkg microdnf',
    'high',
    'network',
    {
      operands: 'none',
      verbs: verbs('list search show info policy', { risk: 'low', reach: 'network' }),
    },
  ),
  ...programs(
    'dpkg rpm apt-key add-apt-repository update-alternatives debconf-set-selections dpkg-reconfigure',
    'high',
    'unknown',
    { operands: 'guess' },
  ),
  ...programs('dpkg-query apt-cache apt-mark apt-file', 'low', 'unknown', { operands: 'none' }),
  ...programs('gem', 'medium', 'network', {
    operands: 'none',
    verbs: verbs('list search info which environment', { risk: 'low' }),
  }),
  ...programs('cpan cpanm pear pecl tlmgr asdf mise sdk proto', 'medium', 'network', { operands: 'none' }),
];

// src/policy/commands/programs/python.ts
var CHANGES2 = { risk: 'medium', reach: 'network', operands: 'guess' };
var READS2 = { risk: 'low', operands: 'none' };
var PYTHON = [
  ...programs('python python2 python3 pypy pypy3 ipython jupyter bpython', 'medium', 'network', {
    grammar: { open: true, stopAtOperand: true, flags: 'b B d E i I O q s S u v x P', values: 'c m W X' },
    operands: 'guess',
  }),
  ...programs(
    'pip pip3 uv pipx conda mamba micromamba poetry pdm hatch pipenv rye easy_install',
    'medium',
    'network',
    {
      grammar: {
        open: true,
        flags: 'q quiet v verbose no-input',
        values: 'index-url i extra-index-url',
        reads: 'r requirement c constraint directory project C',
        loads: 'python',
        writes: 'target t prefix root cache-dir log',
      },
      operands: 'none',
      verbs: {
        ...verbs(
          'install uninstall download wheel add remove sync lock update upgrade init new venv run tool build publish cache config create env self python exec shell compile',
          CHANGES2,
        ),
        ...verbs('list show freeze check tree help inspect debug version info', {
          ...READS2,
          reach: 'network',
        }),
        pip: { ...CHANGES2, verbs: verbs('list show freeze check tree', { ...READS2, reach: 'network' }) },
      },
    },
  ),
  // Runs a tool that it downloads if need be; the tables of reach of the field call it unknown.
  ...programs('uvx', 'medium', 'unknown', { operands: 'none' }),
  ...programs(
    'pytest py.test nose2 mypy pyright basedpyright pyre pytype pylint flake8 pycodestyle pydocstyle bandit vulture radon ty',
    'low',
    'unknown',
    {
      grammar: {
        open: true,
        values: 'k m n W tb maxfail durations cov-report select ignore max-line-length cov',
        reads: 'rootdir confcutdir',
        writes: 'o output junitxml junit-xml html-report basetemp output-file',
        loads: 'p c rcfile config config-file load-plugins init-hook override-ini',
      },
      operands: 'guess',
    },
  ),
  ...programs('ruff', 'low', 'unknown', {
    grammar: { open: true, reads: 'config' },
    operands: 'guess',
    verbs: {
      check: {
        risk: 'low',
        operands: 'guess',
        grammar: {
          open: true,
          values: 'select ignore extend-select output-format line-length target-version',
          reads: 'config',
          writing: 'fix fix-only unsafe-fixes add-noqa',
          writes: 'o output-file cache-dir',
        },
      },
      format: {
        risk: 'low',
        operands: 'guess',
        grammar: { open: true, flags: 'check diff', reads: 'config', values: 'line-length' },
        inspect: ({ options, command }) =>
          options.some(({ name }) => name === 'check' || name === 'diff')
            ? []
            : [
                {
                  effect: 'writes',
                  code: 'rewrites',
                  message: 'rewrites files',
                  words: [command.words[1]?.source ?? ''],
                },
              ],
      },
    },
  }),
  ...programs('black isort autopep8 yapf autoflake pyupgrade docformatter', 'low', 'unknown', {
    grammar: { open: true, flags: 'check diff c check-only', values: 'l line-length k', reads: 'config' },
    operands: 'guess',
    inspect: ({ options, command }) =>
      options.some(({ name }) => name === 'check' || name === 'diff' || name === 'check-only' || name === 'c')
        ? []
        : [
            {
              effect: 'writes',
              code: 'rewrites',
              message: 'rewrites files',
              words: [command.words[0]?.source ?? ''],
            },
          ],
  }),
  ...programs(
    'tox nox coverage celery gunicorn uvicorn flask django-admin alembic streamlit twine sphinx-build mkdocs cookiecutter scrapy dbt airflow locust manim invoke fab ansible ansible-playbook virtualenv pyenv pyinstaller cython f2py pydoc pydoc3 2to3',
    'medium',
    'unknown',
    { operands: 'guess' },
  ),
];

// src/policy/environment.ts
var SECRET_NAME =
  /KEY|SECRET|TOKEN|PASSW|PASSPHRASE|CREDENTIAL|AUTH|PRIVATE|COOKIE|SESSION|_PAT$|_PWD$|DSN$|CONNECTION_STRING/i;
function looksSecret(name) {
  return SECRET_NAME.test(name);
}

// src/policy/commands/programs/readers.ts
function needsFile(use) {
  return use.operands.length > 0 ? [] : [finding('invalid', 'arguments', 'needs a file here')];
}
function strictHead(use) {
  const findings = [];
  for (const { name, value, word } of use.options) {
    if (name !== 'n' && name !== 'c' && name !== 'lines' && name !== 'bytes') continue;
    if (value?.complete !== true || !/^[1-9]\d{0,8}$/.test(value.text)) {
      findings.push(finding('invalid', 'count', 'takes a positive number of lines or bytes', word.source));
    }
  }
  return use.command.words.length > 1 ? findings : needsFile(use);
}
function strictPrintenv(use) {
  const [name, ...rest] = use.operands;
  if (name === void 0) return [finding('invalid', 'arguments', 'needs the name of a variable here')];
  if (rest.length > 0) {
    return [finding('invalid', 'arguments', 'takes one name', ...rest.map(({ word }) => word.source))];
  }
  return name.complete && /^[A-Za-z_]\w*$/.test(name.text)
    ? []
    : [finding('invalid', 'arguments', 'takes the plain name of a variable', name.word.source)];
}
function inspectPrintenv(use) {
  return use.operands
    .filter(({ text }) => looksSecret(text))
    .map(({ word }) => finding('reads', 'secret', 'prints a variable that looks like a secret', word.source));
}
function inspectPager(use) {
  return use.operands
    .filter(({ text }) => /^\+\+?[^\d/G]|^\+.*!/.test(text))
    .map(({ word }) => finding('executes', 'pager_command', 'runs a command of the pager', word.source));
}
var READERS = [
  ...programs('cat tac', 'low', 'local', {
    grammar: {
      flags:
        'b number-nonblank n number t T show-tabs A show-all e E show-ends s squeeze-blank u v show-nonprinting before r regex',
      values: 'separator',
    },
    operands: 'reads',
    strict: needsFile,
  }),
  ...programs('bat batcat', 'low', 'local', {
    grammar: {
      flags: 'A show-all p plain n number S chop-long-lines f force-colorization L list-languages',
      values:
        'l language H highlight-line file-name tabs wrap terminal-width color italic-text decorations paging m map-syntax theme style r line-range diff-context',
      optionals: 'nonprintable-notation',
      executes: 'pager',
    },
    operands: 'reads',
  }),
  ...programs('head', 'low', 'local', {
    grammar: {
      numeric: true,
      flags: 'q quiet silent v verbose z zero-terminated',
      values: 'n lines c bytes',
    },
    operands: 'reads',
    strict: strictHead,
  }),
  ...programs('tail', 'low', 'local', {
    grammar: {
      numeric: true,
      flags: 'F q quiet silent v verbose z zero-terminated retry f',
      values: 'n lines c bytes s sleep-interval pid max-unchanged-stats',
      optionals: 'follow',
    },
    operands: 'reads',
  }),
  ...programs('less more most pg', 'low', 'local', {
    grammar: {
      numeric: true,
      flags:
        'a A c C d e E f F g G i I J K L m M n N q Q r R s S u U w W X quit-at-eof quit-if-one-screen RAW-CONTROL-CHARS chop-long-lines no-init LINE-NUMBERS ignore-case IGNORE-CASE squeeze-blank-lines',
      values: 'b B h j p P x y z tabs pattern',
      writes: 'o O log-file LOG-FILE',
      loads: 'k lesskey-file lesskey-src',
      reads: 'T tag-file',
      executes: 't tag',
    },
    operands: 'reads',
    inspect: inspectPager,
  }),
  ...programs('man info apropos whatis tldr', 'low', 'local', {
    grammar: {
      flags:
        'a all f k w where location K i I t c e h help d u l local-file ascii regex wildcard names-only no-subpages',
      values: 's S sections L locale m systems R recode E encoding',
      executes: 'P pager H html p preprocessor T troff-device X gxditview Z ditroff',
      loads: 'C config-file M manpath',
    },
    operands: 'guess',
  }),
  ...programs('printenv', 'low', 'local', {
    grammar: { flags: '0 null' },
    operands: 'none',
    inspect: inspectPrintenv,
    strict: strictPrintenv,
  }),
  ...programs(
    'date cal uname hostname arch nproc id whoami groups users who w uptime tty logname hostid getconf locale lscpu lsblk lsusb lspci free vmstat iostat ps top htop pgrep pidof pstree lsof lsns tput clear reset stty sleep seq yes expr factor numfmt',
    'low',
    'local',
    { operands: 'none' },
  ),
  ...programs('hexdump hd od xxd strings', 'low', 'local', {
    grammar: {
      open: true,
      flags: 'C b c d o x v a i p r u E e',
      values: 'n s l t A j N w g len seek cols format radix width skip-bytes read-bytes',
      reads: 'f',
    },
    paths: ({ program, operands }) => writtenAt(operands, program.name === 'xxd' ? 1 : -1),
    operands: 'reads',
    // The second file of xxd is its output.
    inspect: ({ program, operands }) => {
      const target = program.name === 'xxd' ? operands[1] : void 0;
      return target === void 0
        ? []
        : [finding('writes', 'writes_output', 'writes its second file', target.word.source)];
    },
  }),
  ...programs('cmp diff diff3 sdiff comm colordiff', 'low', 'local', {
    grammar: {
      open: true,
      flags:
        'q r u N a b B w i y s t T E Z p c n e d brief recursive unified new-file ignore-case side-by-side',
      values: 'U C W I x F label L width exclude ignore-matching-lines D',
      optionals: 'color unified context palette',
      reads: 'S X exclude-from from-file to-file',
      writes: 'o output',
      executes: 'diff-program pager',
    },
    operands: 'reads',
  }),
];

// src/policy/commands/programs/runners.ts
var SHELL = {
  stopAtOperand: true,
  flags:
    'a b e f h i k l m n p r t u v x B C E H P T login norc noprofile posix restricted verbose noediting',
  values: 'o O',
  // The text is listed command by command.
  optionals: 'c',
  loads: 'rcfile init-file',
  executing: 's',
};
function inspectShell(use) {
  const text = use.options.some(({ name, word }) => name === 'c' || /^-[a-zA-Z]*c/.test(word.value ?? ''));
  if (text) return [];
  const [script2] = use.operands;
  return script2 === void 0
    ? [
        finding(
          'executes',
          'executes_input',
          'runs what it reads from its standard input',
          use.command.words[0]?.source ?? '',
        ),
      ]
    : [finding('loads', 'runs_script', 'runs a script', script2.word.source)];
}
var RUNNERS = [
  ...programs(
    'command exec builtin nohup timeout nice ionice chrt taskset stdbuf setsid unbuffer setarch linux64 linux32 env xargs chronic ts caffeinate dbus-run-session faketime tini dumb-init catchsegv',
    'low',
    'local',
    {
      operands: 'none',
      grammar: { open: true, stopAtOperand: true },
    },
  ),
  ...programs('time', 'low', 'local', {
    operands: 'none',
    grammar: {
      stopAtOperand: true,
      flags: 'p a append v verbose q quiet portability',
      values: 'f format',
      writes: 'o output',
    },
  }),
  ...programs('parallel watch entr flock script busybox toybox', 'medium', 'local', { operands: 'none' }),
  ...programs('sh bash dash zsh ksh mksh ash fish csh tcsh rbash', 'low', 'network', {
    operands: 'guess',
    grammar: SHELL,
    inspect: inspectShell,
  }),
  ...programs(
    'chroot unshare nsenter bwrap firejail proot fakeroot fakechroot setpriv capsh run-parts start-stop-daemon runuser sg newgrp',
    'high',
    'unknown',
    {
      operands: 'none',
    },
  ),
  ...programs('ld.so ld-linux.so.2 ld-linux-x86-64.so.2 ld-linux-aarch64.so.1', 'medium', 'unknown', {
    operands: 'guess',
  }),
];

// src/policy/commands/programs/search.ts
var FIND_TESTS = new Set(
  '-name -iname -path -ipath -wholename -iwholename -regex -iregex -lname -ilname -type -xtype -size -mtime -atime -ctime -mmin -amin -cmin -user -group -uid -gid -perm -links -inum -maxdepth -mindepth -fstype -used -printf -regextype -context -D'.split(
    ' ',
  ),
);
var FIND_FILES = new Set(
  '-newer -anewer -cnewer -samefile -files0-from -newermm -newerac -newercc'.split(' '),
);
var FIND_FLAGS = new Set(
  '-H -L -P -daystart -depth -d -follow -help -ignore_readdir_race -noignore_readdir_race -mount -xdev -noleaf -warn -nowarn -empty -executable -readable -writable -false -true -nouser -nogroup -print -print0 -ls -prune -quit -not -a -and -o -or -O0 -O1 -O2 -O3 --version --help -version'.split(
    ' ',
  ),
);
function inspectFind({ command }) {
  const findings = [];
  const { words: words2 } = command;
  for (let index = 1; index < words2.length; index++) {
    const text = words2[index]?.value;
    const source2 = words2[index]?.source ?? '';
    if (text === void 0 || text[0] !== '-') continue;
    if (text === '-exec' || text === '-execdir' || text === '-ok' || text === '-okdir') {
      while (index + 1 < words2.length && !/^(?:;|\+)$/.test(words2[index + 1]?.value ?? '')) index++;
      index++;
      findings.push(finding('reads', 'runs_listed', 'runs a program for each file', source2));
    } else if (text === '-delete') {
      findings.push(finding('removes', 'deletes', 'deletes what it finds', source2));
    } else if (/^-(?:fls|fprint0?|fprintf)$/.test(text)) {
      findings.push(finding('writes', 'writes_by_option', `writes a file through ${text}`, source2));
      index += text === '-fprintf' ? 2 : 1;
    } else if (FIND_TESTS.has(text) || FIND_FILES.has(text) || /^-newer[aBcm][aBcmt]$/.test(text)) {
      index++;
    } else if (!FIND_FLAGS.has(text)) {
      findings.push(
        finding('invalid', 'unknown_option', 'has no such test or action in the tables', source2),
      );
    }
  }
  return findings;
}
function pathsOfFind({ command }) {
  const found = [];
  let expression2 = false;
  for (let index = 1; index < command.words.length; index++) {
    const word = command.words[index];
    const next = command.words[index + 1];
    if (word === void 0) break;
    const text = leadingText(word);
    if (/^-[HLPDO]/.test(text) && !expression2) continue;
    expression2 ||= /^(?:-.|[(!,]$)/.test(text);
    if (!expression2) found.push({ argument: argumentOf(word), effect: 'reads' });
    else if (next === void 0) break;
    else if (FIND_FILES.has(text)) found.push({ argument: argumentOf(next), effect: 'reads' });
    else if (/^-(?:fls|fprint0?|fprintf)$/.test(text))
      found.push({ argument: argumentOf(next), effect: 'writes' });
  }
  return found;
}
var GREP_FLAGS =
  'E extended-regexp F fixed-strings G basic-regexp P perl-regexp i ignore-case y no-ignore-case v invert-match w word-regexp x line-regexp z null-data s no-messages b byte-offset n line-number line-buffered H with-filename h no-filename o only-matching q quiet silent a text I r recursive R dereference-recursive L files-without-match l files-with-matches c count T initial-tab Z null U binary V version help';
var SEARCH = [
  ...programs('grep egrep fgrep zgrep rgrep pcregrep ugrep', 'low', 'local', {
    grammar: {
      numeric: true,
      flags: GREP_FLAGS,
      values:
        'e regexp m max-count A after-context B before-context C context d directories D devices include exclude exclude-dir label binary-files group-separator',
      optionals: 'color colour no-group-separator',
      reads: 'f file exclude-from',
    },
    operands: 'script-then-reads',
    scriptOptions: 'e regexp f file',
  }),
  ...programs('rg', 'low', 'local', {
    grammar: {
      flags:
        's case-sensitive count-matches c count column no-column crlf debug stats E F fixed-strings L follow no-follow hidden . i ignore-case v invert-match n line-number N no-line-number x line-regexp w word-regexp l files-with-matches files-without-match files U multiline multiline-dotall no-config no-ignore no-ignore-vcs no-ignore-parent no-ignore-dot no-ignore-global no-ignore-files no-messages no-heading heading H with-filename I no-filename no-hidden 0 null null-data o only-matching P pcre2 p pretty q quiet json S smart-case sort-files text a trim u unrestricted vimgrep passthru passthrough b byte-offset one-file-system no-unicode auto-hybrid-regex type-list block-buffered line-buffered include-zero no-mmap mmap stop-on-nonmatch binary no-binary version V help h trace no-require-git no-pcre2 no-json glob-case-insensitive no-context-separator pcre2-version no-multiline no-stats no-trim no-text no-sort-files ignore no-pre no-search-zip',
      values:
        'e regexp A after-context B before-context C context color colors context-separator d max-depth maxdepth dfa-size-limit encoding engine g glob iglob m max-count max-columns M max-filesize path-separator r replace regex-size-limit sort sortr t type T type-not type-add type-clear j threads field-context-separator field-match-separator hyperlink-format generate',
      optionals: 'max-columns-preview',
      reads: 'f file ignore-file',
      executes: 'pre pre-glob hostname-bin',
      // Runs gzip, xz and others from PATH.
      executing: 'z search-zip',
    },
    operands: 'script-then-reads',
    scriptOptions: 'e regexp f file files type-list',
  }),
  ...programs('ag ack', 'low', 'local', {
    grammar: {
      open: true,
      flags: 'i l n w c v Q s S a u t f L H',
      values: 'A B C m G ignore ignore-dir depth color',
      executes: 'pager',
    },
    operands: 'script-then-reads',
  }),
  ...programs('find', 'low', 'local', {
    // Its words are read by `inspectFind`.
    grammar: { open: true, style: 'single-dash' },
    operands: 'guess',
    paths: pathsOfFind,
    inspect: inspectFind,
  }),
  ...programs('fd fdfind', 'low', 'local', {
    grammar: {
      flags:
        'H hidden I no-ignore u unrestricted no-ignore-vcs no-ignore-parent s case-sensitive i ignore-case g glob regex F fixed-strings and a absolute-path l list-details L follow p full-path 0 print0 prune 1 q quiet show-errors one-file-system h help V version strip-cwd-prefix no-require-git',
      values:
        'd max-depth min-depth exact-depth t type e extension E exclude S size changed-within changed-before newer older c color j threads max-results max-buffer-time path-separator search-path C base-directory o owner batch-size format',
      reads: 'ignore-file',
      // What they run is listed as a command of its own.
      optionals: 'x exec X exec-batch',
    },
    operands: 'guess',
  }),
  ...programs('fzf sk', 'medium', 'local', { operands: 'none' }),
  ...programs('ast-grep semgrep tokei cloc scc ctags etags cscope', 'medium', 'local', { operands: 'guess' }),
];

// src/policy/commands/sed-script.ts
function inspectSedScript(script2, source2) {
  const findings = [];
  let at = 0;
  const invalid = () => [
    ...findings,
    finding('invalid', 'sed_script', 'has a script that does not parse', source2),
  ];
  const behind = (from, delimiter) => {
    let bracket = false;
    for (let index = from; index < script2.length; index++) {
      const char = script2[index];
      if (char === '\\') index++;
      else if (bracket) bracket = char !== ']';
      else if (char === '[' && delimiter !== '[' && script2.indexOf(']', index + 2) > 0) {
        bracket = true;
        if (script2[index + 1] === '^') index++;
        if (script2[index + 1] === ']') index++;
      } else if (char === delimiter) return index + 1;
    }
    return -1;
  };
  const behindPlain = (from, delimiter) => {
    for (let index = from; index < script2.length; index++) {
      if (script2[index] === '\\') index++;
      else if (script2[index] === delimiter) return index + 1;
    }
    return -1;
  };
  const skip = (pattern) => {
    pattern.lastIndex = at;
    const match = pattern.exec(script2);
    if (match === null || match.index !== at) return '';
    at += match[0].length;
    return match[0];
  };
  const address = () => {
    if (/[/\\]/.test(script2[at] ?? '')) {
      const custom = script2[at] === '\\';
      const delimiter = script2[custom ? at + 1 : at] ?? '';
      const end = behind(at + (custom ? 2 : 1), delimiter);
      if (delimiter === '' || end < 0) return false;
      at = end;
      skip(/[IM]*/y);
    } else {
      skip(/\d+(?:~\d+)?|\$/y);
    }
    return true;
  };
  while (at < script2.length) {
    skip(/[\s;]+/y);
    if (at >= script2.length) break;
    if (!address()) return invalid();
    skip(/\s*/y);
    if (script2[at] === ',') {
      at++;
      skip(/\s*/y);
      if (skip(/[+~]\d+/y) === '' && !address()) return invalid();
    }
    skip(/[\s!]*/y);
    const command = script2[at] ?? '';
    at++;
    switch (command) {
      case '{':
      case '}':
      case '=':
      case 'd':
      case 'D':
      case 'g':
      case 'G':
      case 'h':
      case 'H':
      case 'n':
      case 'N':
      case 'p':
      case 'P':
      case 'x':
      case 'z':
      case 'F':
        break;
      case '#':
        skip(/[^\n]*/y);
        break;
      case ':':
        skip(/[^\n;]*/y);
        break;
      case 'b':
      case 't':
      case 'T':
        skip(/[^\n;}]*/y);
        break;
      case 'q':
      case 'Q':
      case 'l':
      case 'L':
        skip(/\s*\d*/y);
        break;
      case 'a':
      case 'i':
      case 'c':
        skip(/(?:\\\n|\\[\s\S]|[^\n\\])*/y);
        break;
      case 'e':
        findings.push(finding('executes', 'sed_executes', 'runs a command through its script (e)', source2));
        skip(/[^\n]*/y);
        break;
      case 'w':
      case 'W': {
        const file = skip(/[^\n]*/y).trim();
        if (!/^\/dev\/std(?:out|err)$/.test(file)) {
          findings.push(
            finding('writes', 'sed_writes', `writes ${file || 'a file'} through its script`, source2),
          );
        }
        break;
      }
      case 'r':
      case 'R': {
        const file = skip(/[^\n]*/y).trim();
        if (file !== '/dev/stdin') {
          findings.push(
            finding('reads', 'sed_reads', `reads ${file || 'a file'} through its script`, source2),
          );
        }
        break;
      }
      case 'y':
      case 's': {
        const delimiter = script2[at] ?? '';
        if (delimiter === '' || delimiter === '\n' || delimiter === '\\') return invalid();
        const middle = command === 's' ? behind(at + 1, delimiter) : behindPlain(at + 1, delimiter);
        const end = middle < 0 ? -1 : behindPlain(middle, delimiter);
        if (end < 0) return invalid();
        at = end;
        if (command === 'y') break;
        const flags = skip(/[gpiIemM\d]*/y);
        if (flags.includes('e')) {
          findings.push(finding('executes', 'sed_executes', 'runs what it substitutes (s///e)', source2));
        }
        if (script2[at] === 'w') {
          at++;
          const file = skip(/[^\n]*/y).trim();
          if (!/^\/dev\/std(?:out|err)$/.test(file)) {
            findings.push(
              finding('writes', 'sed_writes', `writes ${file || 'a file'} through s///w`, source2),
            );
          }
        }
        break;
      }
      default:
        return invalid();
    }
    if (command !== '{' && command !== '}' && !/^\s*(?:[;}\n#]|$)/.test(script2.slice(at, at + 64)))
      return invalid();
  }
  return findings;
}

// src/policy/commands/programs/sed-and-awk.ts
function scriptsOf(use, scriptOptions, fileOptions) {
  const given = use.options.flatMap(({ name, value }) =>
    scriptOptions.includes(name) && value !== void 0 ? [value] : [],
  );
  if (given.length > 0 || use.options.some(({ name }) => fileOptions.includes(name))) return given;
  return use.operands.slice(0, 1);
}
function inspectSed(use) {
  return scriptsOf(use, ['e', 'expression'], ['f', 'file']).flatMap((script2) =>
    script2.complete
      ? inspectSedScript(script2.text, script2.word.source)
      : inspectUnknownSed(script2.word.source),
  );
}
function inspectUnknownSed(source2) {
  return [finding('invalid', 'dynamic_script', 'has a script that is only known when it runs', source2)];
}
function strictSed(use) {
  return inspectSed(use)
    .filter(({ effect }) => effect === 'reads')
    .map((found) => ({ ...found, effect: 'invalid' }));
}
function withoutStrings(program) {
  return program.replace(/"(?:\\[\s\S]|[^"\\])*"/g, '""').replace(/#[^\n]*/g, '');
}
function inspectAwk(use) {
  return scriptsOf(use, ['e', 'source'], ['f', 'file', 'E', 'exec']).flatMap((script2) => {
    const source2 = script2.word.source;
    if (!script2.complete) {
      return [finding('invalid', 'dynamic_script', 'has a program that is only known when it runs', source2)];
    }
    const code = withoutStrings(script2.text);
    const found = [];
    if (/\bsystem\s*\(|@load|@include|@\w+\s*\(/.test(code)) {
      found.push(finding('executes', 'awk_executes', 'runs a command through its program (system)', source2));
    }
    if (/(?<!\|)\|(?!\|)/.test(code.replace(/\/(?:\\.|[^/\\\n])+\//g, '//'))) {
      found.push(finding('executes', 'awk_executes', 'pipes to or from a command in its program', source2));
    }
    if (/\/inet[46]?\//.test(script2.text)) {
      found.push(finding('network', 'awk_network', 'connects through its program (/inet)', source2));
    }
    if (/\b(?:print|printf)\b[^;}\n]*>/.test(code) && !/>\s*"\/dev\/(?:stderr|stdout)"/.test(script2.text)) {
      found.push(finding('writes', 'awk_writes', 'may write a file through its program', source2));
    }
    return found;
  });
}
var SED_AND_AWK = [
  ...programs('sed gsed', 'low', 'local', {
    grammar: {
      flags:
        'n quiet silent E r regexp-extended s separate u unbuffered z null-data posix debug sandbox b binary follow-symlinks help version',
      values: 'e expression l line-length',
      writing: 'i in-place',
      loads: 'f file',
    },
    operands: 'script-then-reads',
    scriptOptions: 'e expression f file',
    inspect: inspectSed,
    strict: strictSed,
  }),
  ...programs('awk gawk mawk nawk', 'low', 'local', {
    grammar: {
      flags:
        'b characters-as-bytes c traditional C copyright h help n non-decimal-data N use-lc-numeric O optimize P posix r re-interval s no-optimize S sandbox t lint-old V version g gen-pot I trace csv k',
      values: 'F field-separator v assign e source W',
      optionals: 'L lint',
      writing: 'd dump-variables p profile o pretty-print D debug',
      loads: 'f file E exec i include l load',
    },
    operands: 'script-then-reads',
    scriptOptions: 'e source f file E exec',
    inspect: inspectAwk,
  }),
  ...programs('perl', 'medium', 'network', {
    grammar: { open: true, values: 'e E M m I 0 i', flags: 'n p l a w' },
    operands: 'guess',
  }),
];

// src/policy/commands/programs/system.ts
var SYSTEM = [
  ...programs(
    'renice prlimit sync timedatectl hostnamectl localectl loginctl busctl dbus-send gdbus gsettings dconf logger wall write mesg xhost xrandr setterm chvt openvt loadkeys',
    'high',
    'local',
    {
      operands: 'none',
    },
  ),
  ...programs('xdotool xte ydotool wmctrl gnome-terminal xterm konsole', 'high', 'unknown', {
    operands: 'none',
  }),
];

// src/policy/commands/programs/text.ts
var TEXT = [
  ...programs('sort', 'low', 'local', {
    grammar: {
      flags:
        'b ignore-leading-blanks d dictionary-order f ignore-case g general-numeric-sort h human-numeric-sort i ignore-nonprinting M month-sort n numeric-sort R random-sort r reverse V version-sort c C m merge s stable u unique z zero-terminated debug help version',
      values: 'k key t field-separator S buffer-size parallel batch-size sort',
      optionals: 'check',
      reads: 'files0-from random-source',
      writes: 'o output T temporary-directory',
      executes: 'compress-program',
    },
    operands: 'reads',
  }),
  ...programs('uniq', 'low', 'local', {
    grammar: {
      flags: 'c count d repeated D i ignore-case u unique z zero-terminated',
      values: 'f skip-fields s skip-chars w check-chars',
      optionals: 'all-repeated group',
    },
    paths: ({ operands }) => writtenAt(operands, 1),
    operands: 'reads',
    // The second file of uniq is its output.
    inspect: ({ operands }) =>
      operands[1] === void 0
        ? []
        : [finding('writes', 'writes_output', 'writes its second file', operands[1].word.source)],
  }),
  ...programs('shuf', 'low', 'local', {
    grammar: {
      flags: 'e echo r repeat z zero-terminated',
      values: 'i input-range n head-count',
      reads: 'random-source',
      writes: 'o output',
    },
    operands: 'reads',
  }),
  ...programs('nl fold fmt cut paste join column rev tac expand unexpand pr look tsort', 'low', 'local', {
    grammar: {
      open: true,
      values:
        'd f c b delimiter fields characters bytes delimiters t e s N o H separator output-separator table-columns 1 2 j v a',
    },
    operands: 'reads',
  }),
  ...programs('iconv', 'low', 'local', {
    grammar: { flags: 'c l list s verbose', values: 'f t from-code to-code', writes: 'o output' },
    operands: 'reads',
  }),
  ...programs('dos2unix unix2dos ptx', 'medium', 'local', { operands: 'writes' }),
  ...programs('envsubst', 'low', 'local', { operands: 'none' }),
  ...programs('tr', 'low', 'local', { operands: 'none' }),
  ...programs('jq gojq jaq', 'low', 'local', {
    grammar: {
      flags:
        'r raw-output R raw-input s slurp n null-input c compact-output C color-output M monochrome-output a ascii-output S sort-keys j join-output e exit-status seq stream tab unbuffered h help V version args jsonargs stream-errors raw-output0',
      values: 'indent arg argjson',
      reads: 'slurpfile rawfile f from-file L library-path argfile',
    },
    operands: 'script-then-reads',
    scriptOptions: 'f from-file',
  }),
  ...programs('yq', 'low', 'local', {
    grammar: {
      open: true,
      flags: 'r y Y n P C M e j N raw-output prettyPrint null-input exit-status no-doc',
      values: 'o p output-format input-format I indent arg',
      // One file per document with -s.
      writing: 'i inplace in-place s split-exp',
    },
    operands: 'script-then-reads',
  }),
  ...programs('xmllint', 'low', 'local', {
    grammar: {
      open: true,
      flags: 'noout format nonet',
      values: 'xpath encode',
      reads: 'schema dtdvalid relaxng',
      writes: 'o output',
      style: 'single-dash',
    },
    operands: 'reads',
  }),
  ...programs('base64 base32 basenc', 'low', 'local', {
    grammar: { flags: 'd D decode i ignore-garbage', values: 'w wrap' },
    operands: 'reads',
  }),
  ...programs(
    'pandoc csvcut csvlook csvgrep csvstat mlr xsv miller fx gron dasel tomlq hjson',
    'medium',
    'local',
    {
      grammar: {
        open: true,
        values: 'f t from to c d',
        writes: 'o output',
        executes: 'F filter L lua-filter pdf-engine',
      },
      operands: 'guess',
    },
  ),
];

// src/policy/commands/registry.ts
var FAMILIES = [
  BUILTINS,
  FILES,
  READERS,
  TEXT,
  SEARCH,
  SED_AND_AWK,
  ARCHIVES,
  GIT,
  JAVASCRIPT,
  PYTHON,
  LANGUAGES,
  BUILD,
  PACKAGES,
  RUNNERS,
  NETWORK,
  CLOUD,
  DATA,
  DEBUGGING,
  EDITORS,
  SYSTEM,
  DANGEROUS,
];
var BY_NAME = new Map(FAMILIES.flatMap((family) => family.map((program) => [program.name, program])));
var VERSIONED =
  /^(python|pip|node|perl|ruby|php|lua|gcc|g\+\+|clang|clang\+\+|clang-format|clang-tidy|java|pypy|vim|nc|mkfs|mount|awk)(?:[-.]?[\d.]+|\.(?:[a-z]+\d?|fat|vfat))$/;
function findProgram(name) {
  const exact = BY_NAME.get(name);
  if (exact !== void 0) return exact;
  const general = VERSIONED.exec(name)?.[1];
  return general === void 0 ? void 0 : BY_NAME.get(general);
}

// src/policy/commands/describe.ts
var SYSTEM_DIRECTORIES = /* @__PURE__ */ new Set([
  '/bin',
  '/sbin',
  '/usr/bin',
  '/usr/sbin',
  '/usr/local/bin',
  '/usr/local/sbin',
  '/snap/bin',
  '/opt/homebrew/bin',
  '/home/linuxbrew/.linuxbrew/bin',
]);
function unlisted(name) {
  return { name, risk: 'medium', reach: 'unknown', operands: 'guess', unlisted: true };
}
function programName(command, isForeign) {
  const name = command.words[0]?.value;
  if (name === void 0 || name === '') return void 0;
  const slash = name.lastIndexOf('/');
  if (slash >= 0) {
    return SYSTEM_DIRECTORIES.has(name.slice(0, slash)) ? name.slice(slash + 1) : void 0;
  }
  if (command.assignments.some((assignment) => assignment.name === 'PATH')) return void 0;
  return isForeign?.(name) === true ? void 0 : name;
}
function describeCommand(command, isForeign) {
  const first = command.words[0];
  if (first === void 0) return void 0;
  const name = programName(command, isForeign);
  const program = (name === void 0 ? void 0 : findProgram(name)) ?? unlisted(name ?? first.source);
  const options = [];
  const operands = [];
  const unknown = [];
  const openEnded = [];
  const path = [];
  let behaviour = program;
  let grammar = program.grammar;
  let { risk, reach } = program;
  let index = 1;
  let afterDashes = 0;
  for (;;) {
    const parsed = parseOptions(
      command.words,
      index,
      grammar,
      grammar?.stopAtOperand === true || behaviour.verbs !== void 0,
    );
    options.push(...parsed.options);
    operands.push(...parsed.operands);
    if (grammar !== void 0 && grammar.open !== true) unknown.push(...parsed.unknown);
    openEnded.push(...parsed.openEnded);
    afterDashes = parsed.afterDashes;
    index = parsed.next;
    const verb = behaviour.verbs === void 0 ? void 0 : command.words[index]?.value;
    const inner =
      verb !== void 0 && behaviour.verbs !== void 0 && Object.hasOwn(behaviour.verbs, verb)
        ? behaviour.verbs[verb]
        : void 0;
    if (verb === void 0 || inner === void 0) break;
    path.push(verb);
    index++;
    behaviour = inner;
    grammar = inner.grammar;
    risk = inner.risk ?? risk;
    reach = inner.reach ?? reach;
  }
  for (; index < command.words.length; index++) {
    const word = command.words[index];
    if (word === void 0) break;
    operands.push({ word, start: 0, text: word.value ?? '', complete: word.value !== void 0 });
  }
  return {
    command,
    program,
    verbs: path,
    behaviour,
    risk,
    reach,
    options,
    operands,
    afterDashes,
    unknown,
    openEnded,
  };
}
function inherited(use, key) {
  let value = use.program[key];
  let level = use.program;
  for (const verb of use.verbs) {
    level = level?.verbs?.[verb];
    if (level?.[key] !== void 0) value = level[key];
  }
  return value;
}

// src/policy/commands/findings.ts
function findingsOf(use) {
  const findings = [];
  for (const option of use.options) {
    const dashed = option.name.length === 1 ? `-${option.name}` : `--${option.name}`;
    switch (option.effect) {
      case 'harmless':
      case 'reads':
        break;
      case 'writes':
        if (option.value !== void 0 && isSink(option.value.text)) break;
        findings.push(
          finding(option.effect, 'writes_by_option', `writes through ${dashed}`, option.word.source),
        );
        break;
      case 'removes':
        findings.push(
          finding(option.effect, 'removes_by_option', `deletes through ${dashed}`, option.word.source),
        );
        break;
      case 'loads':
        findings.push(
          finding(
            option.effect,
            'loads_by_option',
            `runs code from a file through ${dashed}`,
            option.word.source,
          ),
        );
        break;
      case 'executes':
        findings.push(
          finding(
            option.effect,
            'executes_by_option',
            `can run a program through ${dashed}`,
            option.word.source,
          ),
        );
        break;
      case 'network':
        findings.push(
          finding(
            option.effect,
            'network_by_option',
            `uses the network through ${dashed}`,
            option.word.source,
          ),
        );
        break;
    }
  }
  if (use.program.inspect !== void 0) findings.push(...use.program.inspect(use));
  const inspect = inherited(use, 'inspect');
  if (inspect !== void 0 && inspect !== use.program.inspect) findings.push(...inspect(use));
  return findings;
}
var SINKS = /* @__PURE__ */ new Set(['-', '/dev/null', '/dev/stdout', '/dev/stderr', '/dev/tty']);
function isSink(path) {
  return SINKS.has(path);
}

// src/policy/commands/risk.ts
function higherRisk(left, right) {
  return RISKS.indexOf(left) >= RISKS.indexOf(right) ? left : right;
}
function riskOfLine(parsed, isForeign) {
  if (!parsed.understood) return 'high';
  return parsed.line.commands.reduce(
    (risk, command) => (risk === 'high' ? risk : higherRisk(risk, riskOf(command, isForeign))),
    'low',
  );
}
function riskOf(command, isForeign) {
  const use = describeCommand(command, isForeign);
  const own = use === void 0 ? 'low' : riskOfUse(use);
  return command.redirects.some(writesFile) ? higherRisk(own, 'medium') : own;
}
function riskOfUse(use) {
  if (asksForHelp(use)) return 'low';
  return findingsOf(use).reduce((risk, { effect }) => higherRisk(risk, riskOfEffect(effect)), use.risk);
}
function riskOfEffect(effect) {
  switch (effect) {
    case 'reads':
    case 'invalid':
      return 'low';
    case 'writes':
    case 'loads':
      return 'medium';
    case 'removes':
    case 'executes':
    case 'network':
      return 'high';
    default:
      return assertNever(effect);
  }
}
var HELP = /* @__PURE__ */ new Set(['--version', '--help', '-version', '--usage']);
var SHORT_VERSION = {
  node: '-v',
  npm: '-v',
  pnpm: '-v',
  yarn: '-v',
  php: '-v',
  ruby: '-v',
  perl: '-v',
  python: '-V',
  python3: '-V',
};
function asksForHelp(use) {
  const { words: words2 } = use.command;
  const only2 = words2[words2.length - 1]?.value;
  if (only2 === void 0 || use.program.unlisted === true) return false;
  if (words2.length === 2) return HELP.has(only2) || SHORT_VERSION[use.program.name] === only2;
  return use.verbs.length === words2.length - 2 && (only2 === '--help' || only2 === '--version');
}
function writesFile(redirect) {
  const target = redirect.target.value;
  switch (redirect.operator) {
    case '<':
    case '<&':
    case '<<':
    case '<<-':
    case '<<<':
      return false;
    case '>&':
      return target === void 0 || !/^(?:\d+|-)$/.test(target);
    case '>':
    case '>>':
    case '>|':
    case '<>':
    case '&>':
    case '&>>':
      return target === void 0 || !isSink(target);
    default:
      return assertNever(redirect.operator);
  }
}

// src/policy/checks/nested-repository.ts
function nestedRepository(command, use, context) {
  const cwds = directoriesOf(command, context);
  const moves2 = use.options.filter(({ name, value }) => name === 'C' && value !== void 0);
  if (moves2.length > 1) return moves2.map(({ value }) => value?.word.source).join(' ');
  const [move] = moves2;
  if (move?.value !== void 0) {
    const locations = locationsOf(move.value, cwds, context);
    if (locations === 'foreign-home' || locations.length === 0) return move.value.word.source;
    for (const { resolved, partial } of locations) {
      if (partial || resolved?.kind !== 'directory' || holdsRepository(resolved.canonical, context)) {
        return move.value.word.source;
      }
    }
    return void 0;
  }
  for (const cwd of cwds) {
    if (cwd === void 0) return command.words[0]?.source;
    if (cwd === context.rules.workspace) continue;
    if (context.paths.resolve(cwd).kind !== 'directory' || holdsRepository(cwd, context)) return cwd;
  }
  return void 0;
}
function holdsRepository(directory, { paths, rules }) {
  return [directory, ...directoriesBetween(directory, rules.workspace)].some(
    (path) =>
      path !== rules.workspace &&
      (paths.resolve(`${path}/.git`).kind !== 'missing' || paths.resolve(`${path}/HEAD`).kind !== 'missing'),
  );
}

// src/policy/checks/reasons.ts
function reasonFor(check) {
  return (verdict, code, message, words2) => ({ check, verdict, code, message, words: words2 });
}
function commandsOf(parsed) {
  return parsed.understood ? parsed.line.commands : parsed.problem.recognized;
}

// src/policy/checks/arguments.ts
var reason = reasonFor('arguments');
var argumentsCheck = {
  name: 'arguments',
  summary: 'flags that run programs are asked about; under an allow-list only flags of the tables are used',
  judge: (context) => {
    const isForeign = isForeignTo(context);
    const mode =
      context.rules.allow !== void 0
        ? 'allow-list'
        : context.autonomy === 'autonomous'
          ? 'autonomous'
          : 'supervised';
    return commandsOf(context.parsed).flatMap((command) => {
      const use = describeCommand(command, isForeign);
      return use === void 0 || (mode !== 'allow-list' && asksForHelp(use))
        ? []
        : judgeUse(command, use, mode, context);
    });
  },
};
function judgeUse(command, use, mode, context) {
  const { name } = use.program;
  const reasons = [];
  const strict = mode === 'allow-list';
  const findings = strict
    ? [...findingsOf(use), ...(inherited(use, 'strict')?.(use) ?? [])]
    : findingsOf(use);
  for (const found of findings) {
    const verdict = verdictOf(found, mode, use);
    if (verdict !== void 0)
      reasons.push(reason(verdict, found.code, `${name} ${found.message}`, found.words));
  }
  if (strict || (mode === 'supervised' && isPowerful(use))) {
    const verdict = strict ? 'deny' : 'ask';
    for (const { source: source2 } of use.unknown) {
      reasons.push(
        reason(verdict, 'unknown_option', `${name} has no option ${source2} in the tables`, [source2]),
      );
    }
    for (const { source: source2 } of use.openEnded) {
      reasons.push(
        reason(
          verdict,
          'dynamic_option',
          `${source2} may become an option of ${name}; put -- before it, or ./`,
          [source2],
        ),
      );
    }
  }
  if (mode === 'supervised' && name === 'git') {
    const nested = nestedRepository(command, use, context);
    if (nested !== void 0) {
      reasons.push(
        reason('ask', 'nested_repository', `git would obey the settings of another repository: ${nested}`, [
          nested,
        ]),
      );
    }
  }
  if (strict && name === 'cp' && !copiesDirectories(use)) reasons.push(...judgeCopy(command, use, context));
  return reasons;
}
function verdictOf(found, mode, use) {
  switch (found.effect) {
    case 'executes':
      return mode === 'allow-list' ? 'deny' : 'ask';
    case 'loads':
      return mode === 'allow-list' ? 'deny' : mode === 'supervised' ? 'ask' : void 0;
    case 'writes':
      return mode === 'allow-list' && !(use.program.name === 'sed' && found.code === 'writes_by_option')
        ? 'deny'
        : void 0;
    case 'removes':
    case 'network':
      return mode === 'allow-list' ? 'deny' : void 0;
    case 'invalid':
      return mode === 'allow-list' ? 'deny' : mode === 'supervised' ? 'ask' : void 0;
    case 'reads':
      if (found.code !== 'secret') return void 0;
      return mode === 'allow-list' ? 'deny' : mode === 'supervised' ? 'ask' : void 0;
    default:
      return assertNever(found.effect);
  }
}
function isPowerful({ program, verbs: verbs2 }) {
  let level = program;
  for (const verb of [void 0, ...verbs2]) {
    if (verb !== void 0) level = level?.verbs?.[verb];
    if (level?.inspect !== void 0) return true;
    if (level?.grammar !== void 0 && optionTable(level.grammar).powerful) return true;
  }
  return false;
}
function judgeCopy(command, use, context) {
  const cwds = directoriesOf(command, context);
  return use.operands.slice(0, -1).flatMap((argument) => {
    const locations = locationsOf(argument, cwds, context);
    return locations !== 'foreign-home' && locations.some(({ resolved }) => resolved?.kind === 'directory')
      ? [
          reason('deny', 'arguments', `cp does not copy directories without -r: ${argument.word.source}`, [
            argument.word.source,
          ]),
        ]
      : [];
  });
}

// src/policy/commands/path-uses.ts
function pathUses(command, use) {
  const found = [];
  for (const redirect of command.redirects) {
    switch (redirect.operator) {
      case '<<':
      case '<<-':
      case '<<<':
      case '<&':
        break;
      case '<':
        found.push({ argument: argumentOf(redirect.target), effect: 'reads' });
        break;
      case '>':
      case '>>':
      case '>|':
      case '<>':
      case '&>':
      case '&>>':
      case '>&':
        if (writesFile(redirect)) found.push({ argument: argumentOf(redirect.target), effect: 'writes' });
        break;
      default:
        assertNever(redirect.operator);
    }
  }
  if (use === void 0) return found;
  const program = command.words[0];
  if (program !== void 0 && leadingText(program).includes('/')) {
    found.push({ argument: argumentOf(program), effect: 'reads' });
  }
  for (const { effect, value, inPlace } of use.options) {
    if (value === void 0 || inPlace) continue;
    if (effect === 'reads' || effect === 'loads') found.push({ argument: value, effect: 'reads' });
    else if (effect === 'writes') found.push({ argument: value, effect: 'writes' });
    else if (effect === 'executes' && looksLikePath(value)) found.push({ argument: value, effect: 'reads' });
  }
  found.push(...(inherited(use, 'paths')?.(use) ?? operandPaths(use)));
  return found;
}
function operandPaths(use) {
  const kind = inherited(use, 'operands') ?? 'guess';
  const { operands } = use;
  const plain = use.options.some(({ inPlace }) => inPlace) ? 'writes' : 'reads';
  switch (kind) {
    case 'none':
      return [];
    case 'reads':
      return all(operands, plain);
    case 'writes':
    case 'removes':
      return all(operands, kind);
    case 'reads-then-writes':
    case 'moves-then-writes': {
      const sources2 = kind === 'reads-then-writes' ? 'reads' : 'removes';
      const target = inherited(use, 'targetOptions')?.split(' ') ?? [];
      if (use.options.some(({ name }) => target.includes(name)) || operands.length === 1)
        return all(operands, sources2);
      return [...all(operands.slice(0, -1), sources2), ...all(operands.slice(-1), 'writes')];
    }
    case 'script-then-reads': {
      const given = inherited(use, 'scriptOptions')?.split(' ') ?? [];
      const hasScript = use.options.some(({ name }) => given.includes(name));
      return all(hasScript ? operands : operands.slice(1), plain);
    }
    case 'revisions': {
      const noIndex = use.options.some(({ name }) => name === 'no-index');
      return noIndex ? all(operands, plain) : all(operands.slice(use.afterDashes), plain);
    }
    case 'guess':
      return [
        ...all(operands.filter(looksLikePath), plain),
        ...all([...use.unknown, ...attachedTo(use)].flatMap(attachedPath), 'reads'),
      ];
    default:
      return assertNever(kind);
  }
}
function attachedTo({ command, program }) {
  return program.grammar === void 0 || program.grammar.open === true
    ? command.words.slice(1).filter((word) => leadingText(word).startsWith('-'))
    : [];
}
function attachedPath(word) {
  const match = /^(?:--[\w.-]+=|-[A-Za-z]=?)(?=[/~]|\.\.?\/|\.\.$)/.exec(leadingText(word));
  return match === null ? [] : [argumentOf(word, match[0].length)];
}
function all(operands, effect) {
  return operands.map((argument) => ({ argument, effect }));
}
function looksLikePath({ text, word }) {
  if (/^(?:\/|~|\.\.?(?:\/|$))/.test(text)) return !/[\n;(){}|<>"']/.test(text);
  if (text === '' && word.value === void 0)
    return word.parts.some(({ kind }) => kind === 'brace' || kind === 'parameter');
  return /(?:^|\/)\.\.(?:\/|$)/.test(text) && !/^\w+:\/\//.test(text) && !/[\s:]/.test(text);
}

// src/policy/checks/dangerous.ts
var reason2 = reasonFor('dangerous');
var SENTENCES = {
  privilege: 'changes the user or gains privileges; run the command without it',
  device: 'works on devices or destroys data beyond recovery',
  system: 'changes the system and not the workspace',
  container: 'controls containers, which are outside of the sandbox',
  power: 'stops or restarts the machine',
  kernel: 'changes the running kernel',
};
var REMOVERS = /* @__PURE__ */ new Set(['rm', 'rmdir', 'unlink', 'srm', 'trash', 'trash-put', 'mv']);
var dangerousCheck = {
  name: 'dangerous',
  summary:
    'privileges, devices, the system, containers and whole trees are left alone unless the policy permits it',
  judge: (context) => {
    const isForeign = isForeignTo(context);
    return commandsOf(context.parsed).flatMap((command) => {
      const use = describeCommand(command, isForeign);
      if (use === void 0 || context.rules.permitDangerous.includes(use.program.name)) return [];
      return judgeCommand(command, use, context);
    });
  },
};
function judgeCommand(command, use, context) {
  const { name, danger } = use.program;
  const [first] = command.words;
  if (danger !== void 0) {
    return [
      reason2('deny', danger, `${name} ${SENTENCES[danger]}; commands.permit_dangerous can permit it`, [
        first?.source ?? name,
      ]),
    ];
  }
  if (REMOVERS.has(name)) return judgeRemoval(command, use, context);
  if (name === 'dd') return judgeDd(use);
  if (name === 'chmod') return judgeChmod(command, use, context);
  return [];
}
function judgeRemoval(command, use, context) {
  const cwds = directoriesOf(command, context);
  const { rules } = context;
  return pathUses(command, use)
    .filter(({ effect }) => effect === 'removes')
    .flatMap(({ argument }) => {
      const locations = locationsOf(argument, cwds, context);
      if (locations === 'foreign-home') return [];
      return locations.flatMap(({ text, resolved, partial }) => {
        if (resolved === void 0 || partial) return [];
        const path = resolved.canonical.replace(/\/(?:\*|\.\[!\.\]\*|\.\*|\{\*,\.\*\})$/, '') || '/';
        const whole =
          isBeneath(rules.workspace, path) ||
          path === `${rules.workspace}/.git` ||
          isBeneath(rules.home, path);
        return whole
          ? [
              reason2('deny', 'destroys_tree', `${use.program.name} would take away all of ${text}`, [
                argument.word.source,
              ]),
            ]
          : [];
      });
    });
}
function judgeDd({ operands }) {
  return operands
    .filter(({ text }) => text.startsWith('of=/dev/') && !isHarmlessDevice(text.slice(3)))
    .map(({ word }) => reason2('deny', 'device', `dd would write a device: ${word.source}`, [word.source]));
}
var SETUID = /^(?:0?[2-7]\d{3}|[ugoa]*[+=][rwxXt]*s[rwxXst]*|.*,[ugoa]*[+=][rwxXt]*s.*)$/;
function judgeChmod(command, use, context) {
  const mode = use.operands[0];
  if (mode?.complete === true && SETUID.test(mode.text)) {
    return [
      reason2('deny', 'setuid', `chmod ${mode.text} makes a program run with the rights of its owner`, [
        mode.word.source,
      ]),
    ];
  }
  const cwds = directoriesOf(command, context);
  return use.operands.slice(1).flatMap((argument) => {
    const locations = locationsOf(argument, cwds, context);
    const outside =
      locations !== 'foreign-home' &&
      locations.some(({ resolved }) => resolved !== void 0 && !mayWrite(resolved.canonical, context));
    return outside
      ? [
          reason2(
            'deny',
            'system',
            `chmod would change permissions outside of the workspace: ${argument.word.source}`,
            [argument.word.source],
          ),
        ]
      : [];
  });
}

// src/policy/checks/environment.ts
var reason3 = reasonFor('environment');
var environmentCheck = {
  name: 'environment',
  summary: 'setting a variable that changes what runs (PATH, LD_*, GIT_*, PAGER \u2026) is asked about',
  judge: ({ parsed, autonomy }) => {
    const reasons = [];
    for (const command of commandsOf(parsed)) {
      for (const { name, value, source: source2 } of settingsOf(command)) {
        const rule = variableRule(name, value);
        if (rule === void 0 || (rule.contained === true && autonomy === 'autonomous')) continue;
        reasons.push(reason3('ask', 'variable', `${name} ${rule.reason}: ${source2}`, [source2]));
      }
    }
    return reasons;
  },
};
function settingsOf(command) {
  const settings = command.assignments.map(({ name, value, append }) => ({
    name,
    value: append ? void 0 : value.value,
    source: `${name}${append ? '+=' : '='}${value.source}`,
  }));
  switch (programName(command)) {
    case 'export':
    case 'declare':
    case 'typeset':
    case 'readonly':
    case 'local':
      settings.push(...command.words.slice(1).flatMap(settingOf));
      break;
    case 'env':
      settings.push(...environmentOf(command.words));
      break;
    default:
      break;
  }
  return settings;
}
function environmentOf(words2) {
  const settings = [];
  for (let index = 1; index < words2.length; index++) {
    const word = words2[index];
    if (word === void 0) break;
    const text = leadingText(word);
    if (/^(?:-[uCS]|--unset|--chdir|--split-string)$/.test(text)) index++;
    if (text.startsWith('-')) continue;
    const found = settingOf(word);
    if (found.length === 0) break;
    settings.push(...found);
  }
  return settings;
}
function settingOf(word) {
  const text = leadingText(word);
  const match = /^([A-Za-z_]\w*)(\+?=)/.exec(text);
  const name = match?.[1];
  if (match === null || name === void 0) return [];
  const complete = word.value !== void 0 && match[2] === '=';
  return [{ name, value: complete ? text.slice(match[0].length) : void 0, source: word.source }];
}

// src/policy/checks/paths.ts
var reason4 = reasonFor('paths');
var SECRETS =
  /^\.(?:ssh|aws|gnupg|kube|azure|netrc|git-credentials|pgpass|password-store|docker\/config\.json|config\/(?:gcloud|gh|op)|npmrc|pypirc|cargo\/credentials|mozilla|bash_history|zsh_history)(?:\/|\.|$)/;
var pathsCheck = {
  name: 'paths',
  summary:
    'paths lead into the workspace or to what the policy lets a command read, and protected ones are not written',
  judge: (context) => {
    const reasons = [];
    const isForeign = isForeignTo(context);
    for (const command of commandsOf(context.parsed)) {
      const uses = pathUses(command, describeCommand(command, isForeign));
      if (uses.length === 0) continue;
      const cwds = directoriesOf(command, context);
      for (const use of uses) {
        const found = judgePath(use, cwds, context);
        if (found !== void 0) reasons.push(found);
      }
    }
    return reasons;
  },
};
function judgePath(use, cwds, context) {
  const { source: source2 } = use.argument.word;
  const locations = locationsOf(use.argument, cwds, context);
  if (locations === 'foreign-home') {
    return reason4(
      'deny',
      'foreign_home',
      `path escapes the workspace root: ${source2} is the home of another user`,
      [source2],
    );
  }
  for (const location of locations) {
    const found = judgeLocation(use, location, context);
    if (found !== void 0) return found;
  }
  return void 0;
}
function judgeLocation(use, { text, resolved, partial }, context) {
  const { source: source2 } = use.argument.word;
  const { rules } = context;
  if (resolved === void 0) {
    return reason4('deny', 'unresolved', `it cannot be told where ${text} leads`, [source2]);
  }
  const path = resolved.canonical;
  if (isHarmlessDevice(text) || isHarmlessDevice(path)) return void 0;
  if (isBeneath(path, rules.home) && SECRETS.test(path.slice(rules.home.length + 1))) {
    return reason4('deny', 'secret_path', `${text} holds credentials`, [source2]);
  }
  const writes = use.effect !== 'reads';
  if (partial && leadsToRoot(path, context)) return void 0;
  const inside = writes || rules.allow !== void 0 ? mayWrite(path, context) : mayRead(path, context);
  if (!inside && !(rules.allow !== void 0 && isProgramWord(use) && mayRead(path, context))) {
    return reason4('deny', 'escapes_workspace', `path escapes the workspace root: ${text}`, [source2]);
  }
  if (writes && !partial && touchesProtected(path, use, context)) {
    return reason4(
      'deny',
      'protected',
      `${text} is protected: what is written there is run or obeyed later by something trusted`,
      [source2],
    );
  }
  return void 0;
}
function leadsToRoot(path, { rules }) {
  return [rules.workspace, ...rules.writable, ...rules.readable].some((root) => isBeneath(root, path));
}
function isProgramWord({ argument, effect }) {
  return (
    effect === 'reads' &&
    argument.word.span.start >= 0 &&
    /^\/(?:usr\/)?(?:local\/)?s?bin\//.test(argument.text)
  );
}
function touchesProtected(path, use, { rules }) {
  return rules.protected.some(
    (root) =>
      isBeneath(path, root) ||
      (path !== rules.workspace &&
        isBeneath(root, path) &&
        isBeneath(path, rules.workspace) &&
        use.effect !== 'reads'),
  );
}

// src/policy/checks/risk.ts
var reason5 = reasonFor('risk');
var SENTENCES2 = {
  medium: 'changes something, or is not a program that is known',
  high: 'may destroy data, change permissions or use the network',
};
var riskCheck = {
  name: 'risk',
  summary: 'under supervision, medium and high risk is asked about unless the request is approved',
  judge: (context) => {
    if (context.risk === 'low' || context.autonomy === 'autonomous') return [];
    if (context.approved) {
      return [reason5(void 0, 'approved', `The ${context.risk} risk was approved.`, [])];
    }
    const isForeign = isForeignTo(context);
    const { risk } = context;
    const words2 = commandsOf(context.parsed)
      .filter((command) => riskOf(command, isForeign) === risk)
      .map((command) => command.words[0]?.source ?? command.redirects[0]?.target.source ?? '');
    const named = words2.length === 0 ? 'The command' : words2.join(', ');
    return [reason5('ask', risk, `${named}: ${risk} risk, ${SENTENCES2[risk]}.`, words2)];
  },
};

// src/policy/checks/syntax.ts
var reason6 = reasonFor('syntax');
var syntaxCheck = {
  name: 'syntax',
  summary:
    'what is not understood is refused (autonomous: asked about); network devices, fork bombs and kernel files are refused',
  judge: ({ parsed, autonomy }) => {
    const reasons = [];
    const commands = commandsOf(parsed);
    if (!parsed.understood) {
      const { code, message } = parsed.problem;
      reasons.push(reason6(autonomy === 'autonomous' ? 'ask' : 'deny', code, message, []));
      if (isForkBomb(commands)) {
        reasons.push(reason6('deny', 'fork_bomb', 'The command starts itself again and again.', []));
      }
    }
    for (const { redirects } of commands) {
      for (const redirect of redirects) reasons.push(...judgeRedirect(redirect));
    }
    return reasons;
  },
};
function judgeRedirect(redirect) {
  const { source: source2 } = redirect.target;
  const text = leadingText(redirect.target);
  if (/^\/dev\/(?:tcp|udp)(?:\/|$)/.test(text)) {
    return [reason6('deny', 'network_device', `bash would open a network connection: ${source2}`, [source2])];
  }
  if (
    /^\/+(?:proc|sys)(?:\/|$)/.test(text) &&
    !/^\/proc\/self\/fd\/\d+$/.test(text) &&
    writesFile(redirect)
  ) {
    return [
      reason6('deny', 'kernel_interface', `the command would change settings of the kernel: ${source2}`, [
        source2,
      ]),
    ];
  }
  return [];
}
function isForkBomb(commands) {
  const names2 = commands.map(({ words: words2 }) => (words2.length === 1 ? words2[0]?.value : void 0));
  return commands.some(
    ({ background }, index) =>
      background && names2[index] !== void 0 && names2.filter((name) => name === names2[index]).length > 1,
  );
}

// src/policy/checks/text-checks.ts
var TEXT_CHECKS = [syntaxCheck, argumentsCheck, dangerousCheck, pathsCheck, environmentCheck, riskCheck];

// src/policy/commands/reach.ts
function furtherReach(left, right) {
  return REACHES.indexOf(left) >= REACHES.indexOf(right) ? left : right;
}
function reachOfLine(parsed, isForeign) {
  if (!parsed.understood) return 'unknown';
  return parsed.line.commands.reduce(
    (reach, command) => (reach === 'network' ? reach : furtherReach(reach, reachOf(command, isForeign))),
    'local',
  );
}
function reachOf(command, isForeign) {
  let reach = 'local';
  if (command.redirects.some(({ target }) => /^\/dev\/(?:tcp|udp)\//.test(target.value ?? target.source))) {
    reach = 'network';
  }
  const use = describeCommand(command, isForeign);
  if (use === void 0) return reach;
  if (asksForHelp(use)) return furtherReach(reach, 'local');
  reach = furtherReach(reach, use.reach);
  for (const { effect } of findingsOf(use)) {
    if (effect === 'network') return 'network';
    if (effect === 'executes' || effect === 'loads') reach = furtherReach(reach, 'unknown');
  }
  return reach;
}

// src/policy/profiles/protected-paths.ts
var PROTECTED_PATHS = [
  '.git/hooks',
  '.git/config',
  '.git/config.worktree',
  // Would redirect git to another config and other hooks (gitrepository-layout(5)).
  '.git/commondir',
  '.husky',
  '.envrc',
  '.bashrc',
  '.bash_profile',
  '.bash_login',
  '.profile',
  '.zshrc',
  '.zshenv',
  '.zprofile',
  '.vscode',
  '.idea',
  '.devcontainer',
  '.claude',
  '.cursor',
  '.codex',
  '.gemini',
  '.mcp.json',
  'sandbox-run.toml',
  '.sandbox-run.toml',
];

// src/policy/profiles/system-paths.ts
var row = (access, path, reason7) => ({
  path,
  access,
  required: false,
  reason: reason7,
});
var SYSTEM_PATHS = [
  row('read', '/usr', 'programs, libraries and their data'),
  row('read', '/bin', 'programs (a link to /usr/bin on current systems)'),
  row('read', '/sbin', 'programs'),
  row('read', '/lib', 'libraries'),
  row('read', '/lib64', 'the dynamic loader'),
  row('read', '/lib32', '32-bit libraries'),
  row('read', '/libx32', 'x32 libraries'),
  row('read', '/nix/store', 'programs of Nix'),
  row('read', '/gnu/store', 'programs of Guix'),
  row('read', '/home/linuxbrew/.linuxbrew', 'programs of Homebrew'),
  row('read', '/opt/hostedtoolcache', 'tool chains of hosted runners'),
  row('data', '/etc/alternatives', 'links from /usr/bin to the chosen implementation'),
  row('data', '/etc/ld.so.cache', 'the loader finds libraries without searching'),
  row('data', '/etc/ld.so.conf', 'library directories'),
  row('data', '/etc/ld.so.conf.d', 'library directories'),
  row('data', '/etc/passwd', 'names of users (id, os.userInfo)'),
  row('data', '/etc/group', 'names of groups'),
  row('data', '/etc/nsswitch.conf', 'how names are looked up'),
  row('data', '/etc/hosts', 'localhost'),
  row('data', '/etc/host.conf', 'how host names are looked up'),
  row('data', '/etc/hostname', 'name of the machine'),
  row('data', '/etc/resolv.conf', 'name servers; refused, some resolvers wait for a time-out'),
  row('data', '/etc/gai.conf', 'address preference'),
  row('data', '/etc/services', 'names of ports'),
  row('data', '/etc/protocols', 'names of protocols'),
  row('data', '/etc/localtime', 'time zone'),
  row('data', '/etc/timezone', 'time zone'),
  row('data', '/etc/locale.conf', 'locale'),
  // Not /etc/ssl and /etc/pki as a whole: private keys of servers lie beside the certificates.
  row('data', '/etc/ssl/certs', 'certificates; refused, npm stops'),
  row('data', '/etc/ssl/openssl.cnf', 'settings of OpenSSL; refused, node stops'),
  row('data', '/etc/ssl/cert.pem', 'certificates (Alpine, Arch)'),
  row('data', '/etc/ssl/ca-bundle.pem', 'certificates (SUSE)'),
  row('data', '/etc/pki/ca-trust', 'certificates (Red Hat)'),
  row('data', '/etc/pki/tls/certs', 'certificates (Red Hat)'),
  row('data', '/etc/pki/tls/cert.pem', 'certificates (Red Hat)'),
  row('data', '/etc/pki/tls/openssl.cnf', 'settings of OpenSSL (Red Hat)'),
  row('data', '/etc/pki/java', 'certificates for Java (Red Hat)'),
  row('data', '/etc/ca-certificates', 'certificates'),
  row('data', '/etc/crypto-policies', 'TLS settings (Red Hat)'),
  row('data', '/etc/gitconfig', 'a file that exists and is refused is fatal to git'),
  row('data', '/etc/os-release', 'name of the distribution'),
  row('data', '/etc/debian_version', 'name of the distribution'),
  row('data', '/etc/lsb-release', 'name of the distribution'),
  row('data', '/etc/mime.types', 'file types'),
  row('data', '/etc/magic', 'file types (file)'),
  row('data', '/etc/inputrc', 'line editing'),
  row('data', '/etc/terminfo', 'terminals'),
  row('data', '/etc/vim', 'vim starts with it'),
  row('data', '/etc/manpath.config', 'man finds its pages'),
  row('data', '/etc/groff', 'man formats them'),
  row('data', '/etc/fonts', 'font rendering in tests'),
  row('data', '/etc/perl', 'perl modules'),
  row('data', '/etc/python3', 'python of the distribution'),
  row('data', '/etc/python3.11', 'python of the distribution'),
  row('data', '/etc/python3.12', 'python of the distribution'),
  row('data', '/etc/python3.13', 'python of the distribution'),
  row('data', '/etc/python3.14', 'python of the distribution'),
  row('data', '/etc/java-8-openjdk', 'configuration of the JVM, linked from /usr/lib/jvm'),
  row('data', '/etc/java-11-openjdk', 'configuration of the JVM'),
  row('data', '/etc/java-17-openjdk', 'configuration of the JVM'),
  row('data', '/etc/java-21-openjdk', 'configuration of the JVM'),
  row('data', '/etc/java-25-openjdk', 'configuration of the JVM'),
  // Not settings.xml beside them, which may hold passwords of repositories.
  row('data', '/etc/maven/m2.conf', 'maven starts with it'),
  row('data', '/etc/maven/logging', 'configuration of maven'),
  row('data', '/etc/maven/toolchains.xml', 'configuration of maven'),
  row(
    'data',
    '/proc',
    'own processes (the domain keeps what is secret in others closed), memory and CPU counts',
  ),
  row('data', '/sys/devices/system/cpu', 'number of processors'),
  row('device', '/dev/null', 'bit bucket'),
  row('device', '/dev/zero', 'zeros'),
  row('device', '/dev/full', 'tests of a full disk'),
  row('data', '/dev/random', 'random numbers'),
  row('data', '/dev/urandom', 'random numbers'),
  row('device', '/dev/tty', 'the terminal, if the command has one'),
];

// node_modules/unbash/dist/traversal.js
function forEachChild(node, callback) {
  switch (node.type) {
    case 'Script':
    case 'CompoundList':
    case 'AndOr':
      for (const command of node.commands) callback(command);
      return;
    case 'Statement':
      callback(node.command);
      return;
    case 'Command':
      for (const child of node.prefix) callback(child);
      if (node.name) callback(node.name);
      for (const child of node.suffix) callback(child);
      return;
    case 'Pipeline':
      for (const prefix of node.prefixes) callback(prefix);
      for (const command of node.commands) callback(command);
      return;
    case 'Redirected':
      callback(node.command);
      for (const redirect of node.redirects) callback(redirect);
      return;
    case 'If':
      callback(node.clause);
      callback(node.then);
      for (const branch of node.elif) callback(branch);
      if (node.else) callback(node.else);
      return;
    case 'Elif':
      callback(node.clause);
      callback(node.then);
      return;
    case 'For':
    case 'Select':
      callback(node.name);
      if (node.wordlist) for (const word of node.wordlist) callback(word);
      callback(node.body);
      return;
    case 'While':
      callback(node.clause);
      callback(node.body);
      return;
    case 'Function':
    case 'Coproc':
      if (node.name) callback(node.name);
      callback(node.body);
      return;
    case 'Subshell':
    case 'BraceGroup':
      callback(node.body);
      return;
    case 'Case':
      callback(node.word);
      for (const item of node.items) callback(item);
      return;
    case 'CaseItem':
      for (const pattern of node.pattern) callback(pattern);
      callback(node.body);
      return;
    case 'ArithmeticFor': {
      const initialize = node.initialize;
      if (initialize) callback(initialize);
      const test = node.test;
      if (test) callback(test);
      const update = node.update;
      if (update) callback(update);
      callback(node.body);
      return;
    }
    case 'Word':
    case 'Glob':
    case 'ArithmeticWord':
    case 'HereDocBody':
    case 'BraceExpansion':
    case 'ExtendedGlob': {
      const parts = node.parts;
      if (parts) for (const part of parts) callback(part);
      return;
    }
    case 'DoubleQuoted':
    case 'LocaleString':
      for (const part of node.parts) callback(part);
      return;
    case 'ParameterExpansion':
      if (node.index) callback(node.index);
      if (node.operation) callback(node.operation);
      return;
    case 'Default':
    case 'Remove':
    case 'Transform':
      callback(node.operand);
      return;
    case 'CaseModification':
      if (node.operand) callback(node.operand);
      return;
    case 'Replace':
      callback(node.pattern);
      callback(node.replacement);
      return;
    case 'Slice':
      callback(node.offset);
      if (node.length) callback(node.length);
      return;
    case 'Assignment': {
      const index = node.index;
      if (index) callback(index);
      callback(node.value);
      return;
    }
    case 'ArrayValue':
      for (const element of node.elements) callback(element);
      return;
    case 'Redirect':
    case 'HereString':
      if (node.descriptor) callback(node.descriptor);
      if (node.target) callback(node.target);
      return;
    case 'HereDoc':
      if (node.descriptor) callback(node.descriptor);
      if (node.delimiter) callback(node.delimiter);
      callback(node.body);
      return;
    case 'CommandExpansion':
    case 'ProcessSubstitution':
    case 'ArithmeticCommandExpansion': {
      const script2 = node.script;
      if (script2) callback(script2);
      return;
    }
    case 'ArithmeticExpansion':
    case 'ArithmeticCommand':
    case 'ArithmeticGroup':
    case 'TestCommand':
    case 'TestGroup': {
      const expression2 = node.expression;
      if (expression2) callback(expression2);
      return;
    }
    case 'ArithmeticBinary':
    case 'TestBinary':
      callback(node.left);
      callback(node.right);
      return;
    case 'ArithmeticUnary':
    case 'TestUnary':
      callback(node.operand);
      return;
    case 'ArithmeticTernary':
      callback(node.test);
      callback(node.consequent);
      callback(node.alternate);
      return;
    case 'TestLogical':
      for (const operand of node.operands) callback(operand);
      return;
    case 'TestNot':
      for (const negation of node.negations) callback(negation);
      callback(node.operand);
      return;
    case 'Literal':
    case 'SingleQuoted':
    case 'AnsiCQuoted':
    case 'SimpleExpansion':
    case 'Names':
    case 'Unknown':
    case 'FileDescriptor':
    case 'FileDescriptorVariable':
    case 'HereDocDelimiter':
    case 'Time':
    case 'Negation':
      return;
    default: {
      const exhaustive = node;
      throw new TypeError(`Unexpected syntax node: ${exhaustive}`);
    }
  }
}

// node_modules/unbash/dist/ansi-c.js
function isOctal(code) {
  return code >= 48 && code <= 55;
}
function isHex(code) {
  return (code >= 48 && code <= 57) || (code >= 65 && code <= 70) || (code >= 97 && code <= 102);
}
function codePoint(value, fallback) {
  try {
    return String.fromCodePoint(value);
  } catch {
    return fallback;
  }
}
var utf8 = new TextDecoder('utf-8', { ignoreBOM: true });
function decodeBytes(bytes) {
  return utf8.decode(new Uint8Array(bytes));
}
function readByteEscape(source2, pos, limit) {
  if (source2.charCodeAt(pos) !== 92 || pos + 2 > limit) return void 0;
  const escaped = source2.charCodeAt(pos + 1);
  const digitsStart = pos + 2;
  let end = digitsStart;
  if (escaped === 120) {
    while (end < limit && end - digitsStart < 2 && isHex(source2.charCodeAt(end))) end++;
    if (end === digitsStart) return void 0;
    return { value: Number.parseInt(source2.slice(digitsStart, end), 16), end };
  }
  if (!isOctal(escaped)) return void 0;
  while (end < limit && end - digitsStart < 2 && isOctal(source2.charCodeAt(end))) end++;
  return { value: Number.parseInt(source2.slice(pos + 1, end), 8) & 255, end };
}
function decodeAnsiCQuoted(source2, start, limit) {
  let pos = start;
  let value = '';
  let bytes = [];
  let nul = -1;
  while (pos < limit && source2.charCodeAt(pos) !== 39) {
    const escapeStart = pos;
    const byte = readByteEscape(source2, pos, limit);
    if (byte && byte.value >= 128) {
      bytes.push(byte.value);
      pos = byte.end;
      continue;
    }
    if (bytes.length > 0) {
      value += decodeBytes(bytes);
      bytes = [];
    }
    if (byte) {
      if (byte.value === 0 && nul === -1) nul = value.length;
      value += String.fromCharCode(byte.value);
      pos = byte.end;
      continue;
    }
    if (source2.charCodeAt(pos) !== 92 || pos + 1 >= limit) {
      const runStart = pos;
      while (pos < limit) {
        const code = source2.charCodeAt(pos);
        if (code === 39 || (code === 92 && pos + 1 < limit)) break;
        pos++;
      }
      value += source2.slice(runStart, pos);
      continue;
    }
    pos++;
    const escaped = source2[pos++];
    switch (escaped) {
      case 'a':
        value += '\x07';
        break;
      case 'b':
        value += '\b';
        break;
      case 'e':
      case 'E':
        value += '\x1B';
        break;
      case 'f':
        value += '\f';
        break;
      case 'n':
        value += '\n';
        break;
      case 'r':
        value += '\r';
        break;
      case 't':
        value += '	';
        break;
      case 'v':
        value += '\v';
        break;
      case '\\':
        value += '\\';
        break;
      case "'":
        value += "'";
        break;
      case '"':
        value += '"';
        break;
      case '?':
        value += '?';
        break;
      case '\n':
        break;
      case 'c': {
        const code = pos < limit ? source2.charCodeAt(pos) : 39;
        if (code === 39) {
          value += source2.slice(escapeStart, pos);
          break;
        }
        pos++;
        if (code === 92) {
          const pair = pos < limit && source2.charCodeAt(pos) === 92;
          if (pair) pos++;
          value += '';
          if (!pair && pos < limit) {
            value += source2[pos];
            pos++;
          }
          break;
        }
        const control = code === 63 ? 127 : code & 31;
        if (control === 0 && code < 128 && nul === -1) nul = value.length;
        value += String.fromCharCode(control);
        break;
      }
      case 'u':
      case 'U': {
        const digitsStart = pos;
        const maxDigits = escaped === 'u' ? 4 : 8;
        while (pos < limit && pos - digitsStart < maxDigits && isHex(source2.charCodeAt(pos))) pos++;
        if (pos === digitsStart) {
          value += `\\${escaped}`;
          break;
        }
        const raw = source2.slice(escapeStart, pos);
        const point = Number.parseInt(source2.slice(digitsStart, pos), 16);
        if (point === 0 && nul === -1) nul = value.length;
        value += codePoint(point, raw);
        break;
      }
      default:
        value += `\\${escaped}`;
        break;
    }
  }
  if (bytes.length > 0) value += decodeBytes(bytes);
  if (nul !== -1) value = value.slice(0, nul);
  const closed = pos < limit;
  if (closed) pos++;
  return { value, end: pos, closed };
}

// node_modules/unbash/dist/expansion.js
var ScriptExpansionImpl = class _ScriptExpansionImpl {
  static _resolveScript;
  type;
  pos;
  end;
  text;
  #window;
  #script = void 0;
  constructor(type, pos, end, text, window) {
    this.type = type;
    this.pos = pos;
    this.end = end;
    this.text = text;
    this.#window = window;
  }
  get script() {
    const window = this.#window;
    if (window !== void 0) {
      const script2 = _ScriptExpansionImpl._resolveScript(
        window.source,
        window.start,
        window.end,
        window.depth,
        window.parenBoundary,
        window.context,
      );
      if (window.context === void 0) script2.source = window.source;
      this.script = script2;
    }
    return this.#script;
  }
  set script(script2) {
    this.#script = script2;
    this.#window = void 0;
  }
  toJSON() {
    return { type: this.type, pos: this.pos, end: this.end, text: this.text, script: this.script };
  }
};
var ProcessSubstitutionImpl = class extends ScriptExpansionImpl {
  operator;
  constructor(pos, end, text, operator, window) {
    super('ProcessSubstitution', pos, end, text, window);
    this.operator = operator;
  }
  toJSON() {
    return {
      type: this.type,
      pos: this.pos,
      end: this.end,
      text: this.text,
      operator: this.operator,
      script: this.script,
    };
  }
};
var ArithmeticExpansionImpl = class _ArithmeticExpansionImpl {
  static _resolveExpression;
  type = 'ArithmeticExpansion';
  pos;
  end;
  text;
  #window;
  #expression = void 0;
  constructor(pos, end, text, window) {
    this.pos = pos;
    this.end = end;
    this.text = text;
    this.#window = window;
  }
  get expression() {
    const window = this.#window;
    if (window !== void 0) {
      this.expression = _ArithmeticExpansionImpl._resolveExpression(
        window.body,
        window.offset,
        window.source,
        window.depth,
        window.context,
        window.depth + 1,
      );
    }
    return this.#expression;
  }
  set expression(expression2) {
    this.#expression = expression2;
    this.#window = void 0;
  }
  toJSON() {
    return { type: this.type, pos: this.pos, end: this.end, text: this.text, expression: this.expression };
  }
};

// node_modules/unbash/dist/limits.js
var MAX_SYNTAX_NESTING = 256;

// node_modules/unbash/dist/word-value.js
function dequoteValue(parts) {
  let s = '';
  for (const c of parts) s += c.type === 'Literal' ? c.value : c.text;
  return s;
}
function unescapeBareValue(text) {
  const first = text.indexOf('\\');
  if (first === -1) return text;
  let s = '';
  let start = 0;
  for (let i = first; i < text.length; i++) {
    if (text.charCodeAt(i) !== 92) continue;
    s += text.slice(start, i);
    i++;
    if (i >= text.length) {
      s += '\\';
      start = i;
      break;
    }
    if (text.charCodeAt(i) !== 10) s += text[i];
    start = i + 1;
  }
  return s + text.slice(start);
}
function continuedExpansionValue(text) {
  let pos = 1;
  while (text[pos] === '\\' && text[pos + 1] === '\n') pos += 2;
  return pos === 1 || text[pos] !== '(' ? text : text[0] + text.slice(pos);
}
function wordPartsValue(parts) {
  let value = '';
  for (const part of parts) {
    switch (part.type) {
      case 'Literal':
      case 'Glob':
      case 'SingleQuoted':
      case 'AnsiCQuoted':
        value += part.value;
        break;
      case 'DoubleQuoted':
      case 'LocaleString':
        value += dequoteValue(part.parts);
        break;
      case 'CommandExpansion':
        value += part.text[0] === '$' ? continuedExpansionValue(part.text) : part.text;
        break;
      case 'ExtendedGlob':
        value += continuedExpansionValue(part.text);
        break;
      default:
        value += part.text;
        break;
    }
  }
  return value;
}

// node_modules/unbash/dist/word.js
var WordImpl = class {
  type = 'Word';
  text;
  pos;
  end;
  #source;
  #resolver;
  #depth;
  #parts;
  #value = null;
  constructor(text, pos, end, source2, resolver, depth = 0) {
    this.text = text;
    this.pos = pos;
    this.end = end;
    this.#source = source2;
    this.#resolver = resolver;
    this.#depth = depth;
    this.#parts = resolver === void 0 ? void 0 : null;
  }
  get value() {
    if (this.#value === null) {
      const parts = this.#source === void 0 && this.#parts === null ? void 0 : this.parts;
      this.#value = parts ? wordPartsValue(parts) : unescapeBareValue(this.text);
    }
    return this.#value;
  }
  get parts() {
    if (this.#parts === null) {
      this.#parts = this.#resolver?.(this.#source ?? '', this, this.#depth) ?? void 0;
    }
    return this.#parts;
  }
  set parts(v) {
    this.#parts = v ?? void 0;
  }
  toJSON() {
    return {
      type: this.type,
      text: this.text,
      pos: this.pos,
      end: this.end,
      parts: this.parts,
      value: this.value,
    };
  }
};

// node_modules/unbash/dist/substitution-context.js
function createSubstitutionContext(parent) {
  const boundaries = parent === void 0 ? void 0 : substitutionBoundaries(parent);
  return { boundaries, wordParts: void 0, embeddedParts: void 0, arrayParts: void 0 };
}
function substitutionBoundaries(context) {
  return context.boundaries ?? (context.boundaries = /* @__PURE__ */ new Map());
}

// node_modules/unbash/dist/chars.js
var CH_TAB = 9;
var CH_NL = 10;
var CH_SPACE = 32;
var CH_BANG = 33;
var CH_DQUOTE = 34;
var CH_HASH = 35;
var CH_DOLLAR = 36;
var CH_PERCENT = 37;
var CH_AMP = 38;
var CH_SQUOTE = 39;
var CH_LPAREN = 40;
var CH_RPAREN = 41;
var CH_STAR = 42;
var CH_PLUS = 43;
var CH_COMMA = 44;
var CH_DASH = 45;
var CH_DOT = 46;
var CH_SLASH = 47;
var CH_0 = 48;
var CH_9 = 57;
var CH_COLON = 58;
var CH_SEMI = 59;
var CH_LT = 60;
var CH_EQ = 61;
var CH_GT = 62;
var CH_QUESTION = 63;
var CH_AT = 64;
var CH_A = 65;
var CH_Z = 90;
var CH_LBRACKET = 91;
var CH_BACKSLASH = 92;
var CH_RBRACKET = 93;
var CH_CARET = 94;
var CH_UNDERSCORE = 95;
var CH_BACKTICK = 96;
var CH_a = 97;
var CH_z = 122;
var CH_LBRACE = 123;
var CH_PIPE = 124;
var CH_RBRACE = 125;
var CH_TILDE = 126;
function skipLineContinuations(source2, pos, end) {
  while (pos + 1 < end && source2.charCodeAt(pos) === CH_BACKSLASH && source2.charCodeAt(pos + 1) === CH_NL)
    pos += 2;
  return pos;
}

// node_modules/unbash/dist/glob.js
function hasGlobCharacters(text) {
  return /[*?[]/.test(text);
}
var bracketSyntax = new Uint8Array(128);
bracketSyntax[CH_BANG] = 1;
bracketSyntax[CH_CARET] = 1;
bracketSyntax[CH_LBRACKET] = 1;
bracketSyntax[CH_RBRACKET] = 1;
bracketSyntax[CH_COLON] = 1;
bracketSyntax[CH_DOT] = 1;
bracketSyntax[CH_EQ] = 1;
bracketSyntax[CH_DASH] = 1;
bracketSyntax[CH_BACKSLASH] = 1;
function bracketEnds(source2, start, end, parts, offset) {
  let close = end - 1;
  while (close > start && source2.charCodeAt(close) !== CH_RBRACKET) close--;
  if (close === start) return null;
  const positions = [];
  const kinds = [];
  const members = [];
  let partIndex = 0;
  let symbols = false;
  for (let pos = start; pos < end; pos++) {
    while (parts && partIndex < parts.length && parts[partIndex].end <= pos + offset) partIndex++;
    const part = parts?.[partIndex];
    const tokenPos = pos;
    let kind = 0;
    if (part && part.pos <= pos + offset && part.type !== 'Literal') {
      pos = part.end - offset - 1;
    } else {
      kind = source2.charCodeAt(pos);
      if (kind === CH_BACKSLASH && pos + 1 < end && source2.charCodeAt(pos + 1) === CH_NL) {
        pos++;
        continue;
      }
      if (kind >= 128 || !bracketSyntax[kind]) kind = 0;
    }
    const last = kinds.length - 1;
    if (kind === 0 && last >= 0 && kinds[last] === 0) {
      members[last]++;
      continue;
    }
    if (
      last >= 0 &&
      kinds[last] === CH_LBRACKET &&
      (kind === CH_COLON || kind === CH_EQ || kind === CH_DOT)
    ) {
      symbols = true;
    }
    positions.push(tokenPos);
    kinds.push(kind);
    members.push(1);
  }
  const count = kinds.length;
  let symbolEnd;
  if (symbols) {
    symbolEnd = new Int32Array(count).fill(-1);
    let close2 = -1;
    let colon = -1;
    let eq = -1;
    let dot = -1;
    for (let i = count - 1; i >= 0; i--) {
      const kind = kinds[i + 2];
      if (kind === CH_RBRACKET) close2 = i + 2;
      else if (kinds[i + 3] === CH_RBRACKET) {
        if (kind === CH_COLON) colon = i + 2;
        else if (kind === CH_EQ) eq = i + 2;
        else if (kind === CH_DOT) dot = i + 2;
      }
      if (kinds[i] !== CH_LBRACKET) continue;
      const type = kinds[i + 1];
      const found = type === CH_COLON ? colon : type === CH_EQ ? eq : type === CH_DOT ? dot : -1;
      if (found !== -1 && (type === CH_DOT || close2 === -1 || close2 > found)) symbolEnd[i] = found + 2;
    }
  }
  const subBracket = (open) => (symbolEnd === void 0 ? -1 : symbolEnd[open]);
  const endFrom = new Int32Array(count + 2).fill(-1);
  const resume = (next, range) => {
    if (next >= count) return -1;
    if (range && kinds[next] === CH_DASH && next + 1 < count && kinds[next + 1] !== CH_RBRACKET) {
      let last = next + 1;
      if (kinds[last] === CH_BACKSLASH) {
        if (last + 1 >= count) return -1;
        last++;
      }
      let after = last + 1;
      if (kinds[last] === CH_LBRACKET && kinds[last + 1] === CH_DOT) {
        const symbol = subBracket(last);
        if (symbol !== -1) after = symbol;
      } else if (kinds[last] === 0 && members[last] > 1) {
        return endFrom[last];
      }
      if (after >= count) return -1;
      return kinds[after] === CH_RBRACKET ? after + 1 : endFrom[after];
    }
    return kinds[next] === CH_RBRACKET ? next + 1 : endFrom[next];
  };
  for (let t = count - 1; t >= 0; t--) {
    const kind = kinds[t];
    let after = t + 1;
    let range = true;
    if (kind === CH_BACKSLASH) {
      if (t + 1 >= count) continue;
      after = t + 2;
    } else if (kind === CH_LBRACKET) {
      const type = kinds[t + 1];
      if (type === CH_COLON || type === CH_EQ || type === CH_DOT) {
        const symbol = subBracket(t);
        if (symbol !== -1) {
          after = symbol;
          range = type === CH_DOT;
        }
      }
    }
    endFrom[t] = resume(after, range);
  }
  const ends = /* @__PURE__ */ new Map();
  for (let t = 0; t < count; t++) {
    if (kinds[t] !== CH_LBRACKET) continue;
    let first = t + 1;
    if (kinds[first] === CH_BANG || kinds[first] === CH_CARET) first++;
    if (first >= count) continue;
    const close2 = kinds[first] === CH_RBRACKET ? resume(first + 1, true) : endFrom[first];
    if (close2 !== -1) ends.set(positions[t], positions[close2 - 1] + 1);
  }
  return ends;
}
function appendRange(source2, start, end, parts, index, offset, result) {
  while (start < end) {
    while (parts && index < parts.length && parts[index].end <= start + offset) index++;
    const part = parts?.[index];
    if (part && part.pos === start + offset && part.end <= end + offset) {
      result.push(part);
      start = part.end - offset;
      index++;
      continue;
    }
    const stop = part ? Math.min(end, (part.pos > start + offset ? part.pos : part.end) - offset) : end;
    const text = source2.slice(start, stop);
    result.push({
      type: 'Literal',
      pos: start + offset,
      end: stop + offset,
      text,
      value: unescapeBareValue(text),
    });
    start = stop;
  }
  return index;
}
function parseGlobParts(source2, start, end, parts, offset = 0) {
  let result;
  let brackets;
  let partIndex = 0;
  let emittedIndex = 0;
  let literalStart = start;
  for (let pos = start; pos < end; pos++) {
    while (parts && partIndex < parts.length && parts[partIndex].end <= pos + offset) partIndex++;
    const part = parts?.[partIndex];
    if (part && part.pos <= pos + offset && part.type !== 'Literal') {
      pos = part.end - offset - 1;
      continue;
    }
    const character = source2.charCodeAt(pos);
    if (character === CH_BACKSLASH) {
      pos++;
      continue;
    }
    let globEnd;
    if (character === CH_STAR || character === CH_QUESTION) {
      const limit = part ? Math.min(end, part.end - offset) : end;
      const next = skipLineContinuations(source2, pos + 1, limit);
      if (next < limit && source2.charCodeAt(next) === CH_LPAREN) continue;
      globEnd = pos + 1;
      if (character === CH_STAR) {
        while (globEnd < limit && source2.charCodeAt(globEnd) === CH_STAR) {
          const next2 = skipLineContinuations(source2, globEnd + 1, limit);
          if (next2 < limit && source2.charCodeAt(next2) === CH_LPAREN) break;
          globEnd++;
        }
      }
    } else if (character === CH_LBRACKET) {
      if (brackets === void 0) brackets = bracketEnds(source2, pos, end, parts, offset);
      const close = brackets?.get(pos);
      if (close === void 0) continue;
      globEnd = close;
    } else {
      continue;
    }
    if (!result) result = [];
    emittedIndex = appendRange(source2, literalStart, pos, parts, emittedIndex, offset, result);
    const text = source2.slice(pos, globEnd);
    let glob;
    if (character === CH_LBRACKET) {
      const interior = [];
      emittedIndex = appendRange(source2, pos + 1, globEnd - 1, parts, emittedIndex, offset, interior);
      glob = {
        type: 'Glob',
        kind: 'bracket',
        pos: pos + offset,
        end: globEnd + offset,
        text,
        value: '[' + wordPartsValue(interior) + ']',
        parts: interior,
      };
    } else {
      glob = {
        type: 'Glob',
        kind: character === CH_STAR ? 'star' : 'question',
        pos: pos + offset,
        end: globEnd + offset,
        text,
        value: text,
        parts: void 0,
      };
    }
    result.push(glob);
    literalStart = globEnd;
    pos = globEnd - 1;
  }
  if (!result) return parts ?? void 0;
  appendRange(source2, literalStart, end, parts, emittedIndex, offset, result);
  return result;
}

// node_modules/unbash/dist/lexer.js
var Token = {
  Word: 0,
  Assignment: 1,
  Semi: 2,
  Newline: 3,
  Pipe: 4,
  And: 5,
  Or: 6,
  Amp: 7,
  LParen: 8,
  RParen: 9,
  LBrace: 10,
  RBrace: 11,
  Bang: 12,
  If: 13,
  Then: 14,
  Else: 15,
  Elif: 16,
  Fi: 17,
  Do: 18,
  Done: 19,
  For: 20,
  While: 21,
  Until: 22,
  In: 23,
  Case: 24,
  Esac: 25,
  Function: 26,
  DoubleSemi: 27,
  SemiAmp: 28,
  DoubleSemiAmp: 29,
  Select: 30,
  DblLBracket: 31,
  DblRBracket: 32,
  EOF: 33,
  ArithCmd: 34,
  Coproc: 35,
  Redirect: 36,
};
var TokenValue = class {
  token = Token.EOF;
  // Materialized token value, or null for word tokens whose value has not been
  // requested yet (computed from [pos, end) on demand via the owning lexer).
  _value = '';
  _owner;
  pos = 0;
  end = 0;
  fileDescriptor = void 0;
  variableName = void 0;
  descriptorEnd = 0;
  delimiterQuoted = false;
  content = void 0;
  targetPos = 0;
  targetEnd = 0;
  assignmentOperatorPos = -1;
  // True when `value` is exactly the raw source span [pos, end) — lets consumers
  // reuse the string instead of slicing the source again.
  raw = false;
  // True when a word contains no quoting, escaped characters, or expansions.
  // Backslash-newline continuations preserve keyword eligibility.
  keywordEligible = false;
  constructor(owner = null) {
    this._owner = owner;
  }
  get value() {
    return (
      this._value ??
      (this._value = this._owner === null ? '' : this._owner._tokenValue(this.pos, this.end, this.raw))
    );
  }
  set value(v) {
    this._value = v;
  }
  reset() {
    this.token = Token.EOF;
    this._value = '';
    this.pos = 0;
    this.end = 0;
    this.fileDescriptor = void 0;
    this.variableName = void 0;
    this.descriptorEnd = 0;
    this.delimiterQuoted = false;
    this.content = void 0;
    this.targetPos = 0;
    this.targetEnd = 0;
    this.assignmentOperatorPos = -1;
    this.raw = false;
    this.keywordEligible = false;
  }
  copyFrom(other) {
    this.token = other.token;
    this._value = other._value;
    this.pos = other.pos;
    this.end = other.end;
    this.fileDescriptor = other.fileDescriptor;
    this.variableName = other.variableName;
    this.descriptorEnd = other.descriptorEnd;
    this.delimiterQuoted = other.delimiterQuoted;
    this.content = other.content;
    this.targetPos = other.targetPos;
    this.targetEnd = other.targetEnd;
    this.assignmentOperatorPos = other.assignmentOperatorPos;
    this.raw = other.raw;
    this.keywordEligible = other.keywordEligible;
  }
};
var RESERVED_WORDS = /* @__PURE__ */ new Map([
  ['if', Token.If],
  ['then', Token.Then],
  ['else', Token.Else],
  ['elif', Token.Elif],
  ['fi', Token.Fi],
  ['do', Token.Do],
  ['done', Token.Done],
  ['for', Token.For],
  ['while', Token.While],
  ['until', Token.Until],
  ['in', Token.In],
  ['case', Token.Case],
  ['esac', Token.Esac],
  ['function', Token.Function],
  ['select', Token.Select],
  ['coproc', Token.Coproc],
  ['!', Token.Bang],
  ['{', Token.LBrace],
  ['}', Token.RBrace],
]);
var charType = new Uint8Array(128);
charType[CH_PIPE] = 1;
charType[CH_AMP] = 1;
charType[CH_SEMI] = 1;
charType[CH_LPAREN] = 1;
charType[CH_RPAREN] = 1;
charType[CH_LT] = 1;
charType[CH_GT] = 1;
charType[CH_SPACE] = 1;
charType[CH_TAB] = 1;
charType[CH_NL] = 1;
charType[CH_BACKSLASH] = 2;
charType[CH_SQUOTE] = 2;
charType[CH_DQUOTE] = 2;
charType[CH_DOLLAR] = 2;
charType[CH_BACKTICK] = 2;
charType[CH_LBRACE] = 2;
function skipBlanks(source2, pos, end) {
  while (pos < end) {
    const ch = source2.charCodeAt(pos);
    if (ch === CH_SPACE || ch === CH_TAB) pos++;
    else if (ch === CH_BACKSLASH && pos + 1 < end && source2.charCodeAt(pos + 1) === CH_NL) pos += 2;
    else break;
  }
  return pos;
}
var arithmeticWordDelimiter = new Uint8Array(128);
for (const ch of [
  CH_TAB,
  CH_NL,
  CH_SPACE,
  CH_BANG,
  CH_PERCENT,
  CH_AMP,
  CH_LPAREN,
  CH_RPAREN,
  CH_STAR,
  CH_PLUS,
  CH_COMMA,
  CH_DASH,
  CH_SLASH,
  CH_COLON,
  CH_LT,
  CH_EQ,
  CH_GT,
  CH_QUESTION,
  CH_CARET,
  CH_PIPE,
]) {
  arithmeticWordDelimiter[ch] = 1;
}
function hasEmbeddedWordStructure(source2, start, end) {
  for (let pos = start; pos < end; pos++) {
    const ch = source2.charCodeAt(pos);
    if (
      ch === CH_BACKSLASH ||
      ch === CH_SQUOTE ||
      ch === CH_DQUOTE ||
      ch === CH_DOLLAR ||
      ch === CH_BACKTICK ||
      ((ch === CH_LT || ch === CH_GT) && pos + 1 < end && source2.charCodeAt(pos + 1) === CH_LPAREN)
    ) {
      return true;
    }
  }
  return false;
}
function findUnnested(s, target, pairTernaries = false, findNestedEnd) {
  let depth = 0;
  let ternaryDepth = 0;
  for (let i = 0; i < s.length; i++) {
    const c = s.charCodeAt(i);
    if (c === CH_BACKSLASH) {
      i++;
      continue;
    }
    if (c === CH_LBRACE) {
      depth++;
      continue;
    }
    if (c === CH_RBRACE) {
      if (depth > 0) depth--;
      continue;
    }
    if (c === CH_SQUOTE) {
      i++;
      while (i < s.length && s.charCodeAt(i) !== CH_SQUOTE) i++;
      continue;
    }
    if (c === CH_DQUOTE) {
      i++;
      while (i < s.length) {
        const quoted2 = s.charCodeAt(i);
        if (quoted2 === CH_DQUOTE) break;
        if (quoted2 === CH_BACKSLASH) {
          i += 2;
          continue;
        }
        const nestedEnd2 = findNestedEnd?.(i, true) ?? i;
        if (nestedEnd2 > i) {
          i = nestedEnd2;
          continue;
        }
        i++;
      }
      continue;
    }
    const nestedEnd = findNestedEnd?.(i, false) ?? i;
    if (nestedEnd > i) {
      i = nestedEnd - 1;
      continue;
    }
    if (pairTernaries && depth === 0) {
      if (c === CH_QUESTION) {
        ternaryDepth++;
        continue;
      }
      if (c === CH_COLON && ternaryDepth > 0) {
        ternaryDepth--;
        continue;
      }
    }
    if (c === target && depth === 0) return i;
  }
  return -1;
}
var isIdChar = new Uint8Array(128);
for (let i = CH_a; i <= CH_z; i++) isIdChar[i] = 3;
for (let i = CH_A; i <= CH_Z; i++) isIdChar[i] = 3;
for (let i = CH_0; i <= CH_9; i++) isIdChar[i] = 2;
isIdChar[CH_UNDERSCORE] = 3;
var extglobPrefix = new Uint8Array(128);
extglobPrefix[CH_QUESTION] = 1;
extglobPrefix[CH_AT] = 1;
extglobPrefix[CH_STAR] = 1;
extglobPrefix[CH_PLUS] = 1;
extglobPrefix[CH_BANG] = 1;
extglobPrefix[CH_EQ] = 1;
function isExtglobOpen(prefix) {
  return prefix < 128 && prefix !== CH_EQ && extglobPrefix[prefix] === 1;
}
var extglobOp = {
  [CH_QUESTION]: '?',
  [CH_AT]: '@',
  [CH_STAR]: '*',
  [CH_PLUS]: '+',
  [CH_BANG]: '!',
};
function isDQChild(p) {
  const t = p.type;
  return (
    t === 'Literal' ||
    t === 'SimpleExpansion' ||
    t === 'ParameterExpansion' ||
    t === 'CommandExpansion' ||
    t === 'ArithmeticExpansion'
  );
}
function isAllDigitsRange(src, start, end) {
  for (let i = start; i < end; i++) {
    const c = src.charCodeAt(i);
    if (c < CH_0 || c > CH_9) return false;
  }
  return end > start;
}
var ASSIGNMENT_INVALID = -1;
var ASSIGNMENT_NAME_START = 0;
var ASSIGNMENT_NAME = 1;
var ASSIGNMENT_AFTER_INDEX = 2;
var ASSIGNMENT_AFTER_PLUS = 3;
var ASSIGNMENT_INDEX_BASE = 4;
function joinWordParts(head, tail) {
  const last = head[head.length - 1];
  const first = tail[0];
  let start = 0;
  if (last?.type === 'Literal' && first?.type === 'Literal' && last.end === first.pos) {
    head[head.length - 1] = {
      type: 'Literal',
      pos: last.pos,
      end: first.end,
      text: last.text + first.text,
      value: last.value + first.value,
    };
    start = 1;
  }
  for (let i = start; i < tail.length; i++) head.push(tail[i]);
  return head;
}
function isMatchedAssignment(state) {
  return state < ASSIGNMENT_INVALID;
}
function assignmentOperatorPos(state) {
  return -state - 2;
}
function scanAssignmentPrefix(src, start, end, initialState) {
  let state = initialState;
  for (let i = start; i < end && state >= 0; i++) {
    const c = src.charCodeAt(i);
    if (state >= ASSIGNMENT_INDEX_BASE) {
      if (c === CH_LBRACKET) state++;
      else if (c === CH_RBRACKET && --state === ASSIGNMENT_INDEX_BASE) state = ASSIGNMENT_AFTER_INDEX;
    } else if (state === ASSIGNMENT_NAME_START) {
      state = c < 128 && isIdChar[c] & 1 ? ASSIGNMENT_NAME : ASSIGNMENT_INVALID;
    } else if (state === ASSIGNMENT_NAME) {
      if (c < 128 && isIdChar[c] & 2) continue;
      if (c === CH_LBRACKET) state = ASSIGNMENT_INDEX_BASE + 1;
      else if (c === CH_PLUS) state = ASSIGNMENT_AFTER_PLUS;
      else state = c === CH_EQ ? -i - 2 : ASSIGNMENT_INVALID;
    } else if (state === ASSIGNMENT_AFTER_INDEX) {
      if (c === CH_PLUS) state = ASSIGNMENT_AFTER_PLUS;
      else state = c === CH_EQ ? -i - 2 : ASSIGNMENT_INVALID;
    } else {
      state = c === CH_EQ ? -i - 2 : ASSIGNMENT_INVALID;
    }
  }
  return state;
}
function setToken(out, token, value, pos = 0, end = 0) {
  out.token = token;
  out._value = value;
  out.pos = pos;
  out.end = end;
  out.fileDescriptor = void 0;
  out.variableName = void 0;
  out.descriptorEnd = 0;
  out.delimiterQuoted = false;
  out.content = void 0;
  out.assignmentOperatorPos = -1;
  out.raw = false;
  out.keywordEligible = false;
}
function setSpanToken(out, token, pos, end, raw) {
  out.token = token;
  out._value = null;
  out.pos = pos;
  out.end = end;
  out.fileDescriptor = void 0;
  out.variableName = void 0;
  out.descriptorEnd = 0;
  out.delimiterQuoted = false;
  out.content = void 0;
  out.assignmentOperatorPos = -1;
  out.raw = raw;
  out.keywordEligible = false;
}
function matchReservedWord(src, start, len) {
  switch (src.charCodeAt(start)) {
    case CH_BANG:
      return len === 1 ? Token.Bang : void 0;
    case CH_LBRACE:
      return len === 1 ? Token.LBrace : void 0;
    case CH_RBRACE:
      return len === 1 ? Token.RBrace : void 0;
    case 105: {
      if (len !== 2) return void 0;
      const c = src.charCodeAt(start + 1);
      return c === 102 ? Token.If : c === 110 ? Token.In : void 0;
    }
    case 102:
      if (len === 2) return src.charCodeAt(start + 1) === 105 ? Token.Fi : void 0;
      if (len === 3) return src.startsWith('for', start) ? Token.For : void 0;
      if (len === 8) return src.startsWith('function', start) ? Token.Function : void 0;
      return void 0;
    case 116:
      return len === 4 && src.startsWith('then', start) ? Token.Then : void 0;
    case 101:
      if (len !== 4) return void 0;
      if (src.startsWith('else', start)) return Token.Else;
      if (src.startsWith('elif', start)) return Token.Elif;
      if (src.startsWith('esac', start)) return Token.Esac;
      return void 0;
    case 100:
      if (len === 2) return src.charCodeAt(start + 1) === 111 ? Token.Do : void 0;
      if (len === 4) return src.startsWith('done', start) ? Token.Done : void 0;
      return void 0;
    case 99:
      if (len === 4) return src.startsWith('case', start) ? Token.Case : void 0;
      if (len === 6) return src.startsWith('coproc', start) ? Token.Coproc : void 0;
      return void 0;
    case 119:
      return len === 5 && src.startsWith('while', start) ? Token.While : void 0;
    case 117:
      return len === 5 && src.startsWith('until', start) ? Token.Until : void 0;
    case 115:
      return len === 6 && src.startsWith('select', start) ? Token.Select : void 0;
    default:
      return void 0;
  }
}
var LexContext = {
  Normal: 0,
  CommandStart: 1,
  TestMode: 2,
  // After a prefix element: assignments still recognized, reserved words not.
  CommandPrefix: 3,
  // Assignment arguments retain ordinary word boundaries inside subscripts.
  Declaration: 4,
  ArrayElement: 5,
  FunctionName: 6,
  CasePattern: 7,
  // Arguments of eval and let: ordinary words, but `name=(…)` keeps its array value as in Bash.
  EvalArgument: 8,
};
function isBraceCommandOpener(after) {
  return after === CH_SPACE || after === CH_TAB || after === CH_NL || after === CH_PIPE;
}
var Lexer = class _Lexer {
  static _findSubstitutionEnd;
  src;
  srcEnd;
  parenBoundary;
  pos;
  current;
  nextState;
  hasPeek;
  pendingHereDocs;
  substitutionContext;
  _errors = null;
  _buildParts = false;
  // Build processed text while scanning. Off on the normal token path (values
  // materialize lazily); on for redirect targets, heredoc delimiters, arithmetic
  // command bodies, and bounded value re-lexes. _buildParts implies it.
  _buildValue = false;
  // Nesting depth of the window being lexed (enclosing sub-fields plus substitution
  // scripts), sharing the MAX_SYNTAX_NESTING budget across lazily created lexers.
  _nestingDepth = 0;
  // `start`/`end` bound the lexer to a window of `src` so substitution scripts can be
  // parsed in place against the original source — every position is then absolute, with
  // no slicing or re-basing. Defaults cover the whole string (the common top-level parse).
  constructor(
    src,
    start = 0,
    end = src.length,
    parenBoundary = false,
    context = createSubstitutionContext(),
  ) {
    this.src = src;
    this.srcEnd = end;
    this.parenBoundary = parenBoundary;
    this.pos = start;
    this.current = new TokenValue(this);
    this.nextState = new TokenValue(this);
    this.hasPeek = false;
    this.pendingHereDocs = null;
    this.substitutionContext = context;
    if (start === 0 && src.charCodeAt(0) === CH_HASH && src.charCodeAt(1) === CH_BANG) {
      const nl = src.indexOf('\n');
      this.pos = nl === -1 ? this.srcEnd : nl + 1;
    }
  }
  getSource() {
    return this.src;
  }
  // Fresh window sharing source, depth and substitution context; tokens, errors, heredocs and build flags reset.
  fork(start, end, parenBoundary = false) {
    const lexer = new _Lexer(this.src, start, end, parenBoundary, this.substitutionContext);
    lexer._nestingDepth = this._nestingDepth;
    return lexer;
  }
  getSubstitutionContext() {
    return this.substitutionContext;
  }
  get errors() {
    return this._errors ?? (this._errors = []);
  }
  // A substitution's script parses lazily, one level below the window it was found in, in
  // place over `inner` at `start`, sharing this scan's substitution boundaries.
  commandExpansion(pos, text, start, inner, parenBoundary = false) {
    const window = this.scriptWindow(this.src, start, start + inner.length, parenBoundary);
    return new ScriptExpansionImpl('CommandExpansion', pos, this.pos, text, window);
  }
  // Escaped backticks rebuild `inner` with the escapes removed, so it is no longer a verbatim
  // substring of the source: that script parses the decoded body as its own source.
  decodedCommandExpansion(pos, text, inner) {
    const window = this.scriptWindow(inner, 0, inner.length, false, true);
    return new ScriptExpansionImpl('CommandExpansion', pos, this.pos, text, window);
  }
  processSubstitution(pos, text, operator, inner) {
    const window = this.scriptWindow(this.src, pos + 2, pos + 2 + inner.length, !this._unbalanced);
    return new ProcessSubstitutionImpl(pos, this.pos, text, operator, window);
  }
  // Past the nesting budget the part gets no window, so lazy materialization bottoms out.
  scriptWindow(source2, start, end, parenBoundary, decoded = false) {
    if (this._nestingDepth > MAX_SYNTAX_NESTING) return void 0;
    const context = decoded ? void 0 : this.substitutionContext;
    return { source: source2, start, end, depth: this._nestingDepth + 1, parenBoundary, context };
  }
  getPos() {
    return this.pos;
  }
  findSubstitutionEnd(start, end, depth = this._nestingDepth + 1) {
    if (_Lexer._findSubstitutionEnd === void 0) return -1;
    return _Lexer._findSubstitutionEnd(this.src, start, end, depth, this.substitutionContext);
  }
  /** Materialize a word token's value: raw spans slice directly, others re-lex the span. */
  _tokenValue(pos, end, raw) {
    return raw ? this.src.slice(pos, end) : this.wordValueOf(pos, end);
  }
  // Re-lex [start, end) in value mode to produce the processed word text. Bounded
  // to the span, so every expansion the original scan consumed closes within it.
  // Errors were already reported by the original scan; suppress duplicates.
  wordValueOf(start, end) {
    const savedPos = this.pos;
    const savedEnd = this.srcEnd;
    const savedBracketWindow = this._bracketWindow;
    const savedArithmeticBracketWindow = this._arithmeticBracketWindow;
    const savedBuildValue = this._buildValue;
    const savedUnbalanced = this._unbalanced;
    const errorCount = this._errors === null ? 0 : this._errors.length;
    this.pos = start;
    this.srcEnd = end;
    this._buildValue = true;
    this.readWordText();
    if (
      this.pos < end &&
      this._wordAssignmentState !== void 0 &&
      this._wordAssignmentState >= ASSIGNMENT_INDEX_BASE
    ) {
      this.pos = start;
      this.readWordText(true);
    }
    const value = this._wordText;
    this.pos = savedPos;
    this.srcEnd = savedEnd;
    this._bracketWindow = savedBracketWindow;
    this._arithmeticBracketWindow = savedArithmeticBracketWindow;
    this._buildValue = savedBuildValue;
    this._unbalanced = savedUnbalanced;
    if (this._errors !== null) this._errors.length = errorCount;
    return value;
  }
  /** Find the closing bracket for a shell subscript, ignoring brackets inside nested shell syntax. */
  findClosingBracket(start, end = this.srcEnd) {
    const limit = Math.min(end, this.srcEnd);
    let window = this._bracketWindow;
    if (!window || window.limit !== limit) {
      window = { limit, depth: this._nestingDepth, last: this.src.lastIndexOf(']', limit - 1) };
      this._bracketWindow = window;
    }
    if (start > window.last) return -1;
    if (window.depth !== this._nestingDepth) {
      window = { limit, depth: this._nestingDepth, last: window.last };
      this._bracketWindow = window;
    }
    if (window.failed?.has(start)) return -1;
    const unmatched = [];
    const close = this.findClosingShellDelimiter(start, end, CH_RBRACKET, false, true, unmatched);
    if (close === -1) {
      const failed = window.failed ?? (window.failed = /* @__PURE__ */ new Set());
      for (const starts of unmatched) for (const pos of starts) failed.add(pos);
    }
    return close;
  }
  /** Find the closing bracket of `$[ … ]`, which unlike a subscript does not recurse into `${ }`. */
  findClosingArithmeticBracket(start, end = this.srcEnd) {
    const limit = Math.min(end, this.srcEnd);
    let window = this._arithmeticBracketWindow;
    if (!window || window.end !== limit || window.depth !== this._nestingDepth) {
      window = { end: limit, depth: this._nestingDepth, failed: /* @__PURE__ */ new Set() };
      this._arithmeticBracketWindow = window;
    }
    if (window.failed.has(start)) return -1;
    return this.findClosingShellDelimiter(start, end, CH_RBRACKET, false, false, void 0, window.failed);
  }
  /** Find the closing brace for a parameter expansion, ignoring braces inside nested shell syntax. */
  findClosingBrace(start, end = this.srcEnd) {
    return this.findClosingShellDelimiter(start, end, CH_RBRACE);
  }
  /** Find the closing parenthesis for a shell substitution using the command-aware scanner. */
  findClosingParenthesis(start, end = this.srcEnd) {
    const savedPos = this.pos;
    const savedEnd = this.srcEnd;
    const savedBracketWindow = this._bracketWindow;
    const savedArithmeticBracketWindow = this._arithmeticBracketWindow;
    const savedUnbalanced = this._unbalanced;
    this.pos = start;
    this.srcEnd = Math.min(end, this.srcEnd);
    this.extractBalanced();
    const close = this._unbalanced ? -1 : this.pos - 1;
    this.pos = savedPos;
    this.srcEnd = savedEnd;
    this._bracketWindow = savedBracketWindow;
    this._arithmeticBracketWindow = savedArithmeticBracketWindow;
    this._unbalanced = savedUnbalanced;
    return close;
  }
  /** Find the end of one arithmetic expansion using the canonical lexer scanner. */
  findArithmeticExpansionEnd(start, end = this.srcEnd) {
    const scanner = this.fork(start, end);
    scanner.pos = start + 1;
    scanner.scanArithmeticBody();
    return scanner.pos;
  }
  /** Find the end of one shell-expanded arithmetic word using the canonical lexer scanners. */
  findArithmeticWordEnd(start, end = this.srcEnd) {
    const scanner = this.fork(start, end);
    scanner.pos = start;
    return scanner.scanArithmeticWordEnd();
  }
  scanArithmeticWordEnd() {
    while (this.pos < this.srcEnd) {
      const ch = this.src.charCodeAt(this.pos);
      if (ch === CH_DOLLAR) {
        this.readDollar();
        continue;
      }
      if (ch === CH_BACKTICK) {
        this.readBacktickExpansion();
        continue;
      }
      if (ch === CH_SQUOTE) {
        this.pos++;
        this.skipSQ();
        continue;
      }
      if (ch === CH_DQUOTE) {
        this.pos++;
        this.skipDQ();
        continue;
      }
      if (ch === CH_BACKSLASH) {
        this.pos += 2;
        continue;
      }
      if (ch === CH_LBRACKET) {
        const close = this.findClosingBracket(this.pos + 1);
        if (close !== -1) {
          this.pos = close + 1;
          continue;
        }
      }
      if ((ch === CH_LT || ch === CH_GT) && this.src.charCodeAt(this.pos + 1) === CH_LPAREN) {
        this.pos += 2;
        this.extractBalanced();
        continue;
      }
      if (ch < 128 && arithmeticWordDelimiter[ch]) break;
      this.pos++;
    }
    return this.pos;
  }
  // Only array assignment bodies take comments and leading `[` subscripts and reject operators;
  // extglob shares this scanner, and `#` is pattern data there.
  findClosingShellDelimiter(
    start,
    end,
    closing,
    array = false,
    braces = true,
    bracketStarts,
    failedBrackets,
  ) {
    const savedPos = this.pos;
    const savedEnd = this.srcEnd;
    const savedBracketWindow = this._bracketWindow;
    const savedArithmeticBracketWindow = this._arithmeticBracketWindow;
    const savedUnbalanced = this._unbalanced;
    this.srcEnd = Math.min(end, this.srcEnd);
    const delimiters = [closing];
    bracketStarts?.push([]);
    const failedStarts = failedBrackets ? [start] : void 0;
    let pos = start;
    let wordStart = true;
    let invalid = -1;
    while (pos < this.srcEnd) {
      const expected = delimiters[delimiters.length - 1];
      if (bracketStarts && expected === CH_RBRACKET) bracketStarts[bracketStarts.length - 1].push(pos);
      const ch = this.src.charCodeAt(pos);
      if (ch === CH_BACKSLASH) {
        if (pos + 1 < this.srcEnd && this.src.charCodeAt(pos + 1) !== CH_NL) wordStart = false;
        pos += 2;
        continue;
      }
      if (ch === CH_HASH && array && delimiters.length === 1 && wordStart) {
        while (pos < this.srcEnd && this.src.charCodeAt(pos) !== CH_NL) pos++;
        continue;
      }
      if (ch === CH_SQUOTE) {
        this.pos = pos + 1;
        this.skipSQ();
        pos = this.pos;
        wordStart = false;
        continue;
      }
      if (ch === CH_DQUOTE) {
        this.pos = pos + 1;
        this.skipDQ();
        pos = this.pos;
        wordStart = false;
        continue;
      }
      if (ch === CH_BACKTICK) {
        pos++;
        while (pos < this.srcEnd && this.src.charCodeAt(pos) !== CH_BACKTICK) {
          if (this.src.charCodeAt(pos) === CH_BACKSLASH) pos++;
          pos++;
        }
        if (pos < this.srcEnd) pos++;
        wordStart = false;
        continue;
      }
      if (
        (ch === CH_DOLLAR && pos + 1 < this.srcEnd && this.src.charCodeAt(pos + 1) === CH_LPAREN) ||
        ((ch === CH_LT || ch === CH_GT) &&
          pos + 1 < this.srcEnd &&
          this.src.charCodeAt(pos + 1) === CH_LPAREN)
      ) {
        this.pos = pos + 2;
        this.extractBalanced();
        pos = this.pos;
        wordStart = false;
        continue;
      }
      if (ch === CH_DOLLAR && pos + 1 < this.srcEnd) {
        const after = this.src.charCodeAt(pos + 1);
        if (after === CH_SQUOTE) {
          pos = decodeAnsiCQuoted(this.src, pos + 2, this.srcEnd).end;
          wordStart = false;
          continue;
        }
        if (after === CH_DOLLAR) {
          pos += 2;
          wordStart = false;
          continue;
        }
        if (after === CH_LBRACE && braces) {
          delimiters.push(CH_RBRACE);
          bracketStarts?.push([]);
          pos += 2;
          wordStart = false;
          continue;
        }
      }
      if (array && delimiters.length === 1) {
        if (ch === CH_LBRACKET && wordStart) {
          delimiters.push(CH_RBRACKET);
          bracketStarts?.push([]);
        } else if (
          invalid === -1 &&
          (ch === CH_SEMI ||
            ch === CH_AMP ||
            ch === CH_PIPE ||
            ch === CH_LT ||
            ch === CH_GT ||
            (ch === CH_LPAREN && !isExtglobOpen(this.src.charCodeAt(pos - 1))))
        ) {
          invalid = pos;
        }
      }
      if (expected === CH_RBRACKET && ch === CH_LBRACKET) {
        delimiters.push(CH_RBRACKET);
        bracketStarts?.push([]);
        failedStarts?.push(pos + 1);
      } else if (expected === CH_RPAREN && ch === CH_LPAREN) {
        delimiters.push(CH_RPAREN);
        bracketStarts?.push([]);
      } else if (ch === expected) {
        delimiters.pop();
        failedStarts?.pop();
        bracketStarts?.pop();
        if (delimiters.length === 0) {
          this.pos = savedPos;
          this.srcEnd = savedEnd;
          this._bracketWindow = savedBracketWindow;
          this._arithmeticBracketWindow = savedArithmeticBracketWindow;
          this._unbalanced = savedUnbalanced;
          if (invalid !== -1)
            this.errors.push({
              message: `unexpected '${this.src[invalid]}' in array assignment`,
              pos: invalid,
            });
          return pos;
        }
        wordStart = false;
        pos++;
        continue;
      }
      wordStart = ch < 128 && (charType[ch] & 1) !== 0;
      pos++;
    }
    if (failedStarts) for (const start2 of failedStarts) failedBrackets.add(start2);
    this.pos = savedPos;
    this.srcEnd = savedEnd;
    this._bracketWindow = savedBracketWindow;
    this._arithmeticBracketWindow = savedArithmeticBracketWindow;
    this._unbalanced = savedUnbalanced;
    return -1;
  }
  // End of the brace expansion opened at `start`, or -1. As in Bash's brace_gobbler, quotes,
  // escapes, parameter expansions and substitutions are opaque; an unquoted metacharacter
  // ends the word before the brace closes. The word scan reports errors in the skipped text.
  scanBraceExpansion(start, results) {
    const src = this.src;
    const len = this.srcEnd;
    const cached = results.get(start);
    if (cached !== void 0) return cached;
    const savedPos = this.pos;
    const savedUnbalanced = this._unbalanced;
    const errorCount = this._errors === null ? 0 : this._errors.length;
    const frames = [start, 0];
    let pos = start + 1;
    while (pos < len) {
      const ch = src.charCodeAt(pos);
      const type = ch < 128 ? charType[ch] : 0;
      if (type === 0) {
        pos++;
        if (ch === CH_RBRACE) {
          const hasSep = frames.pop();
          results.set(frames.pop(), hasSep ? pos : -1);
          if (frames.length === 0) break;
        } else if (ch === 44 || (ch === 46 && src.charCodeAt(pos) === 46)) {
          frames[frames.length - 1] = 1;
        }
        continue;
      }
      const next = pos + 1 < len ? src.charCodeAt(pos + 1) : 0;
      if (type & 1) {
        if (next === CH_LPAREN && (ch === CH_LT || ch === CH_GT)) {
          this.pos = pos + 2;
          this.extractBalanced();
          pos = this.pos;
        } else if (ch === CH_LPAREN && isExtglobOpen(src.charCodeAt(pos - 1))) {
          const close = this.findClosingShellDelimiter(pos + 1, len, CH_RPAREN);
          if (close === -1) break;
          pos = close + 1;
        } else {
          break;
        }
      } else if (ch === CH_BACKSLASH) {
        pos += 2;
      } else if (ch === CH_SQUOTE) {
        this.pos = pos + 1;
        this.skipSQ();
        pos = this.pos;
      } else if (ch === CH_DQUOTE) {
        this.pos = pos + 1;
        this.skipDQ();
        pos = this.pos;
      } else if (ch === CH_BACKTICK) {
        pos++;
        while (pos < len && src.charCodeAt(pos) !== CH_BACKTICK)
          pos += src.charCodeAt(pos) === CH_BACKSLASH ? 2 : 1;
        pos++;
      } else if (ch === CH_LBRACE) {
        frames.push(pos, 0);
        pos++;
      } else if (next === CH_SQUOTE) {
        pos = decodeAnsiCQuoted(src, pos + 2, len).end;
      } else if (next === CH_LBRACE) {
        const close = this.findClosingBrace(pos + 2, len);
        if (close === -1) break;
        pos = close + 1;
      } else if (next === CH_LPAREN) {
        this.pos = pos + 2;
        this.extractBalanced();
        pos = this.pos;
      } else {
        pos++;
      }
    }
    this.pos = savedPos;
    this._unbalanced = savedUnbalanced;
    if (this._errors !== null) this._errors.length = errorCount;
    for (let index = 0; index < frames.length; index += 2) results.set(frames[index], -1);
    return results.get(start);
  }
  skipSubshellBody() {
    this.extractBalanced(false);
    return this._unbalanced ? -1 : this.pos;
  }
  skipCompoundBody(closeToken) {
    const frames = [{ close: closeToken, phase: closeToken === Token.Esac ? 'case-pattern' : 'commands' }];
    let commandStart = true;
    for (;;) {
      const phase = frames[frames.length - 1].phase;
      let ctx = commandStart ? LexContext.CommandStart : LexContext.Normal;
      if (phase === 'function-name') ctx = LexContext.FunctionName;
      else if (phase === 'case-pattern' && commandStart) ctx = LexContext.CasePattern;
      const value = this.next(ctx);
      const token = value.token;
      if (token === Token.EOF) return -1;
      const last = frames.length - 1;
      const frame = frames[last];
      if (frame.phase === 'function-name') {
        if (token === Token.Newline) continue;
        frame.phase = 'function-body';
        commandStart = true;
        continue;
      } else if (frame.phase === 'function-body') {
        if (token === Token.Newline) continue;
        frame.phase = 'commands';
        commandStart = true;
        if (token === Token.LParen && this.peek(LexContext.Normal).token === Token.RParen) {
          this.next(LexContext.Normal);
          frame.phase = 'function-body';
          continue;
        }
      } else if (frame.phase === 'coproc-command') {
        if (token === Token.Newline) continue;
        if (token === Token.Word) {
          frame.phase = 'coproc-body';
          commandStart = true;
          continue;
        }
        frame.phase = 'commands';
        commandStart = true;
      } else if (frame.phase === 'coproc-body') {
        if (token === Token.Newline) continue;
        frame.phase =
          token === Token.Word && value.keywordEligible && value.value === 'time'
            ? 'time-command'
            : 'commands';
        commandStart = true;
        if (frame.phase === 'time-command') continue;
      } else if (frame.phase === 'time-command') {
        if (token === Token.Word && value.keywordEligible && value.value === '-p') {
          frame.phase = 'time-command-after-p';
          continue;
        }
        if (token === Token.Word && value.keywordEligible && value.value === '--') {
          frame.phase = 'commands';
          continue;
        }
        frame.phase = 'commands';
        commandStart = true;
      } else if (frame.phase === 'time-command-after-p') {
        if (token === Token.Word && value.keywordEligible && value.value === '--') {
          frame.phase = 'commands';
          continue;
        }
        frame.phase = 'commands';
        commandStart = true;
      } else if (frame.phase === 'for-header') {
        if (token === Token.ArithCmd || token === Token.Semi || token === Token.Newline) {
          commandStart = true;
          continue;
        }
        if (token === Token.Do || token === Token.LBrace) {
          frame.close = token === Token.Do ? Token.Done : Token.RBrace;
          frame.phase = 'commands';
          commandStart = true;
          continue;
        }
      } else if (frame.phase === 'case-word') {
        if (token === Token.Newline) continue;
        frame.phase = 'case-in';
        commandStart = false;
        continue;
      } else if (frame.phase === 'case-in') {
        if (token === Token.Newline) {
          commandStart = true;
          continue;
        }
        frame.phase = 'case-pattern';
        commandStart = true;
        continue;
      } else if (frame.phase === 'case-pattern') {
        if (token === Token.Esac && commandStart) {
          frames.pop();
          if (frames.length === 0) return value.end;
          commandStart = false;
          continue;
        }
        if (token === Token.RParen) {
          frame.phase = 'commands';
          commandStart = true;
        } else {
          commandStart = token === Token.Newline;
        }
        continue;
      }
      if (token === frame.close) {
        frames.pop();
        if (frames.length === 0) return value.end;
        commandStart = false;
        continue;
      }
      if (commandStart) {
        switch (token) {
          case Token.LParen:
            frames.push({ close: Token.RParen, phase: 'commands' });
            break;
          case Token.LBrace:
            frames.push({ close: Token.RBrace, phase: 'commands' });
            break;
          case Token.If:
            frames.push({ close: Token.Fi, phase: 'commands' });
            break;
          case Token.For:
            frames.push({ close: Token.Done, phase: 'for-header' });
            break;
          case Token.While:
          case Token.Until:
          case Token.Select:
            frames.push({ close: Token.Done, phase: 'commands' });
            break;
          case Token.Case:
            frames.push({ close: Token.Esac, phase: 'case-word' });
            break;
          case Token.DblLBracket:
            if (!this.skipTestCommandBody()) return -1;
            commandStart = false;
            continue;
          case Token.Assignment:
          case Token.Redirect:
          case Token.Bang:
          case Token.Then:
          case Token.Else:
          case Token.Elif:
          case Token.Do:
          case Token.In:
            break;
          case Token.Semi:
          case Token.Newline:
          case Token.Pipe:
          case Token.And:
          case Token.Or:
          case Token.Amp:
          case Token.DoubleSemi:
          case Token.SemiAmp:
          case Token.DoubleSemiAmp:
            break;
          case Token.Function:
            frame.phase = 'function-name';
            break;
          case Token.Coproc:
            frame.phase = 'coproc-command';
            break;
          default:
            if (token === Token.Word && value.keywordEligible && value.value === 'time') {
              frame.phase = 'time-command';
              commandStart = true;
            } else {
              commandStart = false;
            }
            continue;
        }
      }
      switch (token) {
        case Token.Semi:
        case Token.Newline:
        case Token.Pipe:
        case Token.And:
        case Token.Or:
        case Token.Amp:
          commandStart = true;
          break;
        case Token.DoubleSemi:
        case Token.SemiAmp:
        case Token.DoubleSemiAmp:
          if (frame.close === Token.Esac) frame.phase = 'case-pattern';
          commandStart = true;
          break;
        case Token.RParen:
          commandStart = true;
          break;
      }
    }
  }
  skipTestGroup() {
    let depth = 1;
    for (;;) {
      const value = this.next(LexContext.TestMode);
      if (value.token === Token.EOF) return -1;
      if (value.token === Token.DblRBracket) {
        this.unshift(value);
        return -1;
      }
      if (value.token === Token.LParen) depth++;
      else if (value.token === Token.RParen && --depth === 0) return value.end;
    }
  }
  skipTestCommandBody() {
    for (;;) {
      const token = this.next(LexContext.TestMode).token;
      if (token === Token.DblRBracket) return true;
      if (token === Token.EOF) return false;
    }
  }
  /** Set position and scan a word, building parts. Used by computeWordParts. */
  buildWordParts(startPos) {
    this._buildParts = true;
    this.pos = startPos;
    const ch = this.src.charCodeAt(startPos);
    if ((ch === 60 || ch === 62) && startPos + 1 < this.srcEnd && this.src.charCodeAt(startPos + 1) === 40) {
      this.pos = startPos + 2;
      const inner = this.extractBalanced();
      const text = this.src.slice(startPos, this.pos);
      const part = this.processSubstitution(startPos, text, ch === 60 ? '<' : '>', inner);
      if (this.pos < this.srcEnd) {
        this.readWordText();
        if (this._wordParts) {
          this._wordParts.unshift(part);
        } else {
          this._wordParts = [part];
        }
      } else {
        this._wordParts = [part];
      }
    } else {
      this.readWordText();
      if (
        this.pos < this.srcEnd &&
        this._wordAssignmentState !== void 0 &&
        this._wordAssignmentState >= ASSIGNMENT_INDEX_BASE
      ) {
        this.pos = startPos;
        this.readWordText(true);
      }
    }
    return this._wordParts;
  }
  /** Scan a bounded word-like span without treating shell operators or whitespace as terminators. */
  buildEmbeddedWordParts(startPos, arithmetic = false) {
    this._buildParts = true;
    this.pos = startPos;
    this.readInnerWordText(false, arithmetic);
    return this._wordParts;
  }
  buildArrayElementParts(startPos) {
    const close = this.findClosingBracket(startPos + 1);
    if (close === -1) return this.buildWordParts(startPos);
    const src = this.src;
    this._buildParts = true;
    const head = hasEmbeddedWordStructure(src, startPos, close + 1)
      ? this.parseSubFieldWord(startPos, close + 1, 'embedded')
      : void 0;
    this.pos = close + 1;
    this.readWordText(false, LexContext.ArrayElement);
    const end = this.pos;
    const operator = skipLineContinuations(src, close + 1, end);
    const after = src.charCodeAt(operator);
    const keyed = after === CH_EQ || (after === CH_PLUS && src.charCodeAt(operator + 1) === CH_EQ);
    let headParts = head?.parts;
    let tailParts = this._wordParts;
    if (keyed) tailParts = parseGlobParts(src, close + 1, end, tailParts) ?? tailParts;
    if (!headParts && !tailParts) return keyed ? null : (parseGlobParts(src, startPos, end, void 0) ?? null);
    const headText = src.slice(startPos, close + 1);
    if (!headParts)
      headParts = [
        { type: 'Literal', pos: startPos, end: close + 1, text: headText, value: head?.value ?? headText },
      ];
    if (!tailParts)
      tailParts =
        end > close + 1
          ? [{ type: 'Literal', pos: close + 1, end, text: src.slice(close + 1, end), value: this._wordText }]
          : [];
    let parts = joinWordParts(headParts, tailParts);
    if (!keyed) parts = parseGlobParts(src, startPos, end, parts) ?? parts;
    return parts.length > 1 || parts[0].type !== 'Literal' ? parts : null;
  }
  /** Scan a heredoc body for expansions, building parts. Spaces/newlines are literal. */
  buildHereDocParts(bodyPos, bodyEnd) {
    this._buildParts = true;
    const src = this.src;
    const parts = [];
    let hasExpansion = false;
    let litBuf = '';
    let litStart = bodyPos;
    let i = bodyPos;
    const flushLit = () => {
      if (i > litStart) {
        parts.push({ type: 'Literal', pos: litStart, end: i, value: litBuf, text: src.slice(litStart, i) });
        litBuf = '';
      }
    };
    while (i < bodyEnd) {
      const ch = src.charCodeAt(i);
      if (ch === 92) {
        if (i + 1 < bodyEnd) {
          const nc = src.charCodeAt(i + 1);
          if (nc === CH_NL) {
            i += 2;
            continue;
          }
          if (nc === 36 || nc === 96 || nc === 92) {
            litBuf += String.fromCharCode(nc);
            i += 2;
            continue;
          }
        }
        litBuf += '\\';
        i++;
        continue;
      }
      if (ch === 36 && src.charCodeAt(i + 1) !== CH_SQUOTE && src.charCodeAt(i + 1) !== CH_DQUOTE) {
        flushLit();
        litStart = i;
        this.pos = i;
        this.readDollar();
        if (this._resultPart) {
          hasExpansion = true;
          parts.push(this._resultPart);
          litStart = this.pos;
        } else {
          litBuf += src.slice(i, this.pos);
        }
        i = this.pos;
        continue;
      }
      if (ch === 96) {
        flushLit();
        litStart = i;
        this.pos = i;
        this.readBacktickExpansion();
        if (this._resultPart) {
          hasExpansion = true;
          parts.push(this._resultPart);
          litStart = this.pos;
        } else {
          litBuf += src.slice(i, this.pos);
        }
        i = this.pos;
        continue;
      }
      litBuf += src[i];
      i++;
    }
    flushLit();
    return hasExpansion ? parts : null;
  }
  registerHereDocTarget(target) {
    if (this.pendingHereDocs === null) return;
    for (const hd of this.pendingHereDocs) {
      if (!hd.target) {
        hd.target = target;
        return;
      }
    }
  }
  // Read the right-hand operand of =~ in [[ ]]. Bash ends the operand at
  // depth-zero whitespace, `)`, `;`, `&`, `<`, or `>` (but `<(`/`>(` open a
  // process substitution and `|` never delimits). An unquoted `(` opens a
  // group that consumes everything — `]]`, newlines, and metacharacters
  // included — until its matching `)`; inside a group only quotes stay opaque
  // and expansion parens count naively, matching bash. Quotes and expansions
  // at depth zero skip via the same readers normal words use, so their errors
  // and spans stay identical. The token is the raw source span; value and
  // parts resolve lazily like every other word.
  readTestRegexWord() {
    this.hasPeek = false;
    this.skipSpacesAndTabs();
    const src = this.src;
    const len = this.srcEnd;
    const start = this.pos;
    let depth = 0;
    while (this.pos < len) {
      const ch = src.charCodeAt(this.pos);
      if (ch === CH_LPAREN) {
        depth++;
        this.pos++;
        continue;
      }
      if (ch === CH_BACKSLASH) {
        this.pos += this.pos + 1 < len ? 2 : 1;
        continue;
      }
      if (ch === CH_SQUOTE) {
        const quotePos = this.pos++;
        const ansiC = quotePos > start && src.charCodeAt(quotePos - 1) === CH_DOLLAR;
        while (this.pos < len && src.charCodeAt(this.pos) !== CH_SQUOTE) {
          if (ansiC && src.charCodeAt(this.pos) === CH_BACKSLASH && this.pos + 1 < len) this.pos++;
          this.pos++;
        }
        if (this.pos < len) this.pos++;
        else
          this.errors.push({
            message: ansiC ? 'unterminated ANSI-C quote' : 'unterminated single quote',
            pos: quotePos,
          });
        continue;
      }
      if (ch === CH_DQUOTE) {
        this.pos++;
        this.readDoubleQuoted();
        continue;
      }
      if (ch === CH_BACKTICK) {
        this.readBacktickExpansion();
        continue;
      }
      if (depth > 0) {
        if (ch === CH_RPAREN) depth--;
        this.pos++;
        continue;
      }
      if (ch === CH_DOLLAR) {
        this.readDollar();
        continue;
      }
      if (
        (ch === CH_LT || ch === CH_GT) &&
        this.pos + 1 < len &&
        src.charCodeAt(this.pos + 1) === CH_LPAREN
      ) {
        const subPos = this.pos;
        this.pos += 2;
        this.extractBalanced();
        if (this._unbalanced) this.errors.push({ message: 'unterminated process substitution', pos: subPos });
        continue;
      }
      if (ch < 128 && charType[ch] & 1 && ch !== CH_PIPE) break;
      this.pos++;
    }
    setToken(this.current, Token.Word, src.slice(start, this.pos), start, this.pos);
    return this.current;
  }
  // Read C-style for expressions: called after first '(' consumed by parser.
  // Expects pos at second '('. Returns [init, test, update] raw text.
  readCStyleForExprs() {
    this.hasPeek = false;
    const src = this.src;
    const len = this.srcEnd;
    while (this.pos < len && (src.charCodeAt(this.pos) === CH_SPACE || src.charCodeAt(this.pos) === CH_TAB))
      this.pos++;
    const openPos = this.pos;
    if (this.pos < len && src.charCodeAt(this.pos) === CH_LPAREN) this.pos++;
    const starts = [this.pos, 0, 0];
    const parts = ['', '', '', 0, 0, 0];
    let partIdx = 0;
    let depth = 1;
    let partStart = this.pos;
    let extra = false;
    const setPart = (end) => {
      const raw = src.slice(partStart, end);
      parts[partIdx] = raw.trim();
      parts[3 + partIdx] = starts[partIdx] + raw.length - raw.trimStart().length;
    };
    while (this.pos < len && depth > 0) {
      const c = src.charCodeAt(this.pos);
      if (c === CH_LPAREN) {
        depth++;
        this.pos++;
      } else if (c === CH_RPAREN) {
        depth--;
        if (depth === 0) {
          if (!extra) setPart(this.pos);
          if (partIdx < 2)
            this.errors.push({
              message: 'expected three arithmetic expressions in for header',
              pos: this.pos,
            });
          this.pos++;
          while (
            this.pos < len &&
            (src.charCodeAt(this.pos) === CH_SPACE || src.charCodeAt(this.pos) === CH_TAB)
          )
            this.pos++;
          if (this.pos < len && src.charCodeAt(this.pos) === CH_RPAREN) this.pos++;
          break;
        }
        this.pos++;
      } else if (c === CH_SEMI && depth === 1) {
        if (partIdx === 2) {
          if (!extra) {
            setPart(this.pos);
            this.errors.push({
              message: 'expected three arithmetic expressions in for header',
              pos: this.pos,
            });
          }
          extra = true;
          this.pos++;
          continue;
        }
        setPart(this.pos);
        partIdx++;
        this.pos++;
        partStart = this.pos;
        starts[partIdx] = partStart;
      } else if (c === CH_DOLLAR) {
        this.readDollar();
      } else if (c === CH_BACKTICK) {
        this.readBacktickExpansion();
      } else if (c === CH_BACKSLASH) {
        this.pos += this.pos + 1 < len ? 2 : 1;
      } else if (c === CH_SQUOTE) {
        this.pos++;
        this.skipSQ();
      } else if (c === CH_DQUOTE) {
        this.pos++;
        this.skipDQ();
      } else {
        this.pos++;
      }
    }
    if (depth > 0) {
      if (!extra) setPart(this.pos);
      this.errors.push({ message: 'unterminated arithmetic for header', pos: openPos });
    }
    return parts;
  }
  peek(ctx = LexContext.Normal) {
    if (!this.hasPeek) {
      this.readNext(this.nextState, ctx);
      this.hasPeek = true;
    }
    return this.nextState;
  }
  // Peek where the context depends on the token just consumed. peek() ignores its ctx once a
  // token is cached, so the caller's context must only be derived when a read actually happens.
  peekFollow(closers) {
    if (!this.hasPeek) {
      const ctx = closers[this.current.token] ? LexContext.CommandStart : LexContext.Normal;
      this.readNext(this.nextState, ctx);
      this.hasPeek = true;
    }
    return this.nextState;
  }
  next(ctx = LexContext.Normal) {
    if (this.hasPeek) {
      this.hasPeek = false;
      const temp = this.current;
      this.current = this.nextState;
      this.nextState = temp;
      return this.current;
    }
    this.readNext(this.current, ctx);
    return this.current;
  }
  unshift(tok) {
    this.nextState.copyFrom(tok);
    this.hasPeek = true;
  }
  readNext(out, ctx) {
    const src = this.src;
    const len = this.srcEnd;
    let pos = this.pos;
    while (true) {
      pos = skipBlanks(src, pos, len);
      if (ctx === LexContext.TestMode) {
        while (pos < len && src.charCodeAt(pos) === CH_NL) pos = skipBlanks(src, pos + 1, len);
      }
      if (pos >= len || src.charCodeAt(pos) !== CH_HASH) break;
      while (pos < len && src.charCodeAt(pos) !== CH_NL) pos++;
    }
    this.pos = pos;
    if (pos >= len) {
      this.consumePendingHereDocs();
      setToken(out, Token.EOF, '', pos, pos);
      return;
    }
    const tokenStart = pos;
    const ch = src.charCodeAt(pos);
    if (ch === CH_NL) {
      this.pos++;
      this.consumePendingHereDocs();
      setToken(out, Token.Newline, '\n', tokenStart, this.pos);
      return;
    }
    if (
      ctx === LexContext.TestMode &&
      (ch === CH_LT || ch === CH_GT) &&
      !(this.pos + 1 < this.srcEnd && src.charCodeAt(this.pos + 1) === CH_LPAREN)
    ) {
      this.pos++;
      setToken(out, Token.Word, ch === CH_LT ? '<' : '>', tokenStart, this.pos);
      out.keywordEligible = true;
      return;
    }
    if (ch < 128 && charType[ch] & 1 && this.tryReadOperator(out, ch, ctx, tokenStart)) return;
    if (ch === CH_LBRACKET && ctx === LexContext.ArrayElement && this.readArrayElement(out, tokenStart))
      return;
    this.readWord(out, ctx, tokenStart);
  }
  tryReadOperator(out, ch, ctx, tokenStart) {
    const src = this.src;
    const pos = this.pos;
    const next = pos + 1 < this.srcEnd ? src.charCodeAt(pos + 1) : 0;
    switch (ch) {
      case CH_SEMI:
        if (next === CH_SEMI) {
          if (pos + 2 < this.srcEnd && src.charCodeAt(pos + 2) === CH_AMP) {
            this.pos += 3;
            setToken(out, Token.DoubleSemiAmp, ';;&', tokenStart, this.pos);
            return true;
          }
          this.pos += 2;
          setToken(out, Token.DoubleSemi, ';;', tokenStart, this.pos);
          return true;
        }
        if (next === CH_AMP) {
          this.pos += 2;
          setToken(out, Token.SemiAmp, ';&', tokenStart, this.pos);
          return true;
        }
        this.pos++;
        setToken(out, Token.Semi, ';', tokenStart, this.pos);
        return true;
      case CH_PIPE:
        if (next === CH_PIPE) {
          this.pos += 2;
          setToken(out, Token.Or, '||', tokenStart, this.pos);
          return true;
        }
        if (next === CH_AMP) {
          this.pos += 2;
          setToken(out, Token.Pipe, '|&', tokenStart, this.pos);
          return true;
        }
        this.pos++;
        setToken(out, Token.Pipe, '|', tokenStart, this.pos);
        return true;
      case CH_AMP:
        if (next === CH_AMP) {
          this.pos += 2;
          setToken(out, Token.And, '&&', tokenStart, this.pos);
          return true;
        }
        if (next === CH_GT) {
          this.pos += 2;
          const append = this.pos < this.srcEnd && src.charCodeAt(this.pos) === CH_GT;
          if (append) this.pos++;
          return this.readRedirectTarget(out, append ? '&>>' : '&>', tokenStart);
        }
        this.pos++;
        setToken(out, Token.Amp, '&', tokenStart, this.pos);
        return true;
      case CH_LPAREN:
        if (ctx === LexContext.CommandStart && next === CH_LPAREN) {
          const savedErrors = this.errors.length;
          this.readArithmeticCommand(out, tokenStart);
          if (!this._notArithmetic) return true;
          this.errors.length = savedErrors;
          this.pos = tokenStart;
        }
        this.pos++;
        setToken(out, Token.LParen, '(', tokenStart, this.pos);
        return true;
      case CH_RPAREN:
        this.pos++;
        setToken(out, Token.RParen, ')', tokenStart, this.pos);
        return true;
      case CH_LT:
      case CH_GT:
        return this.readRedirection(out, tokenStart);
      default:
        return false;
    }
  }
  readRedirection(out, tokenStart) {
    const src = this.src;
    const ch = src.charCodeAt(this.pos);
    let op = '';
    if (ch === CH_LT) {
      this.pos++;
      const next = this.pos < this.srcEnd ? src.charCodeAt(this.pos) : 0;
      if (next === CH_LT) {
        this.pos++;
        const third = this.pos < this.srcEnd ? src.charCodeAt(this.pos) : 0;
        if (third === CH_LT) {
          this.pos++;
          op = '<<<';
        } else {
          const dash = third === CH_DASH;
          if (dash) this.pos++;
          this.skipSpacesAndTabs();
          const targetPos = this.pos;
          if (this.pos >= this.srcEnd || src.charCodeAt(this.pos) !== CH_HASH) this.readHereDocDelimiter();
          const hasTarget = this.pos > targetPos;
          if (hasTarget) {
            (this.pendingHereDocs ?? (this.pendingHereDocs = [])).push({
              delimiter: this._hereDelim,
              strip: dash,
              quoted: this._hereQuoted,
            });
          }
          setToken(out, Token.Redirect, dash ? '<<-' : '<<', tokenStart, this.pos);
          out.content = hasTarget ? this._hereDelim : void 0;
          out.delimiterQuoted = hasTarget && this._hereQuoted;
          out.targetPos = targetPos;
          out.targetEnd = hasTarget ? this.pos : targetPos;
          return true;
        }
      } else if (next === CH_LPAREN) {
        this.readProcessSubstitution(out, '<', tokenStart);
        return true;
      } else if (next === CH_GT) {
        op = '<>';
        this.pos++;
      } else if (next === CH_AMP) {
        op = '<&';
        this.pos++;
      } else {
        op = '<';
      }
    } else if (ch === CH_GT) {
      this.pos++;
      const next = this.pos < this.srcEnd ? src.charCodeAt(this.pos) : 0;
      if (next === CH_LPAREN) {
        this.readProcessSubstitution(out, '>', tokenStart);
        return true;
      }
      if (next === CH_GT) {
        op = '>>';
        this.pos++;
      } else if (next === CH_AMP) {
        op = '>&';
        this.pos++;
      } else if (next === CH_PIPE) {
        op = '>|';
        this.pos++;
      } else {
        op = '>';
      }
    }
    return this.readRedirectTarget(out, op, tokenStart);
  }
  readRedirectTarget(out, op, tokenStart) {
    const src = this.src;
    this.skipSpacesAndTabs();
    if (this.pos < this.srcEnd) {
      const nc = src.charCodeAt(this.pos);
      if (
        (nc === CH_LT || nc === CH_GT) &&
        this.pos + 1 < this.srcEnd &&
        src.charCodeAt(this.pos + 1) === CH_LPAREN
      ) {
        const psStart = this.pos;
        this.pos += 2;
        this.extractBalanced();
        if (this._unbalanced)
          this.errors.push({ message: 'unterminated process substitution', pos: psStart });
        const psText = src.slice(psStart, this.pos);
        setToken(out, Token.Redirect, op, tokenStart, this.pos);
        out.content = psText;
        out.targetPos = psStart;
        out.targetEnd = this.pos;
        return true;
      }
      const targetPos = this.pos;
      if (nc !== CH_NL && nc !== CH_HASH) this.readRedirectTargetText();
      this.redirectToken(out, op, tokenStart, targetPos);
      return true;
    }
    this.redirectToken(out, op, tokenStart, this.pos);
    return true;
  }
  // Redirect targets keep their processed text eagerly (it becomes the target
  // word's content), so scan them in value mode.
  readRedirectTargetText() {
    const savedBuildValue = this._buildValue;
    this._buildValue = true;
    this.readWordText();
    this._buildValue = savedBuildValue;
  }
  redirectToken(out, operator, tokenStart, targetPos) {
    const hasTarget = this.pos > targetPos && (this._wordText.length > 0 || this._wordQuoted);
    setToken(out, Token.Redirect, operator, tokenStart, this.pos);
    out.content = hasTarget ? this._wordText : void 0;
    out.targetPos = targetPos;
    out.targetEnd = hasTarget ? this.pos : targetPos;
  }
  readProcessSubstitution(out, operator, tokenStart) {
    this.pos++;
    this.extractBalanced();
    if (this._unbalanced) this.errors.push({ message: 'unterminated process substitution', pos: tokenStart });
    const text = this.src.slice(tokenStart, this.pos);
    setToken(out, Token.Word, text, tokenStart, this.pos);
  }
  // The delimiter is the word after quote removal: quote and escape segments may
  // appear anywhere in the word, any of them makes the heredoc quoted, and inside
  // double quotes a backslash is removed only before $ ` " \.
  readHereDocDelimiter() {
    const src = this.src;
    const len = this.srcEnd;
    const savedBuildValue = this._buildValue;
    this._buildValue = true;
    let delimiter = '';
    let quoted2 = false;
    while (this.pos < len) {
      const c = src.charCodeAt(this.pos);
      if (c === CH_SQUOTE) {
        quoted2 = true;
        this.pos++;
        while (this.pos < len && src.charCodeAt(this.pos) !== CH_SQUOTE) {
          delimiter += src[this.pos];
          this.pos++;
        }
        if (this.pos < len) this.pos++;
      } else if (c === CH_DQUOTE) {
        quoted2 = true;
        this.pos++;
        while (this.pos < len && src.charCodeAt(this.pos) !== CH_DQUOTE) {
          if (src.charCodeAt(this.pos) === CH_BACKSLASH && this.pos + 1 < len) {
            const next = src.charCodeAt(this.pos + 1);
            if (next === CH_NL) {
              this.pos += 2;
              continue;
            }
            if (next === CH_DOLLAR || next === CH_BACKTICK || next === CH_DQUOTE || next === CH_BACKSLASH)
              this.pos++;
          }
          delimiter += src[this.pos];
          this.pos++;
        }
        if (this.pos < len) this.pos++;
      } else if (c === CH_BACKSLASH) {
        if (this.pos + 1 < len && src.charCodeAt(this.pos + 1) === CH_NL) {
          this.pos += 2;
          continue;
        }
        quoted2 = true;
        this.pos++;
        if (this.pos < len) {
          delimiter += src[this.pos];
          this.pos++;
        } else {
          delimiter += '\\';
        }
      } else if (c === CH_BACKTICK) {
        const btStart = this.pos;
        this.pos++;
        while (this.pos < len && src.charCodeAt(this.pos) !== CH_BACKTICK) {
          if (src.charCodeAt(this.pos) === CH_BACKSLASH) this.pos++;
          this.pos++;
        }
        if (this.pos < len) this.pos++;
        delimiter += src.slice(btStart, this.pos);
      } else if (c === CH_DOLLAR) {
        const next = this.pos + 1 < len ? src.charCodeAt(this.pos + 1) : 0;
        if (next === CH_SQUOTE || next === CH_DQUOTE) quoted2 = true;
        this.readDollar();
        delimiter += this._resultText;
      } else if (c < 128 && charType[c] & 1) {
        break;
      } else {
        delimiter += src[this.pos];
        this.pos++;
      }
    }
    this._buildValue = savedBuildValue;
    this._hereDelim = delimiter;
    this._hereQuoted = quoted2;
  }
  consumePendingHereDocs() {
    const pending = this.pendingHereDocs;
    if (pending === null || pending.length === 0) return;
    for (const hd of pending) {
      const bodyPos = this.pos;
      const bodyEnd = this.skipHereDocBody(hd.delimiter, hd.strip, this.parenBoundary, hd.quoted);
      if (hd.target) {
        hd.target.body.pos = bodyPos;
        hd.target.body.end = bodyEnd;
        hd.target.body.text = this.src.slice(bodyPos, bodyEnd);
        if (this.hereDocClosingPos !== -1)
          hd.target.closing = { pos: this.hereDocClosingPos, end: this.hereDocClosingEnd };
      }
    }
    pending.length = 0;
  }
  hereDocClosingPos = -1;
  hereDocClosingEnd = -1;
  // Advance past the heredoc body and its delimiter line; return the body end
  // (start of the delimiter line, or srcEnd when delimited by end-of-input).
  // With parenEnds (inside $(...)), a line starting with the delimiter directly
  // followed by ")" also terminates the body, resuming at the ")" — bash treats
  // the substitution's closing paren as end-of-file for its heredocs.
  // `join` crosses `\`+newline pairs, which an unquoted delimiter may straddle.
  matchHereDocDelimiter(delimiter, lineStart, end, join) {
    const src = this.src;
    let pos = lineStart;
    for (let i = 0; i < delimiter.length; ) {
      if (
        join &&
        src.charCodeAt(pos) === CH_BACKSLASH &&
        pos + 1 < end &&
        src.charCodeAt(pos + 1) === CH_NL
      ) {
        pos += 2;
        continue;
      }
      if (pos >= end || src.charCodeAt(pos) !== delimiter.charCodeAt(i)) return -1;
      pos++;
      i++;
    }
    return pos;
  }
  // A `\` consumes the next character, so `\`+newline continues the line and `\\` does not.
  logicalLineEnd(from, end, join) {
    const src = this.src;
    let lineEnd = src.indexOf('\n', from);
    while (lineEnd !== -1 && lineEnd < end) {
      if (!join) return lineEnd;
      let backslashes = lineEnd;
      while (backslashes > from && src.charCodeAt(backslashes - 1) === CH_BACKSLASH) backslashes--;
      if ((lineEnd - backslashes) % 2 === 0) return lineEnd;
      from = lineEnd + 1;
      lineEnd = src.indexOf('\n', from);
    }
    return end;
  }
  skipHereDocBody(delimiter, strip, parenEnds = false, quoted2 = false) {
    this.hereDocClosingPos = -1;
    this.hereDocClosingEnd = -1;
    const src = this.src;
    const len = this.srcEnd;
    while (this.pos < len) {
      let lineStart = this.pos;
      const lineEnd = this.logicalLineEnd(lineStart, len, !quoted2);
      for (;;) {
        const before = lineStart;
        if (strip) while (lineStart < lineEnd && src.charCodeAt(lineStart) === CH_TAB) lineStart++;
        if (!quoted2) lineStart = skipLineContinuations(src, lineStart, lineEnd);
        if (lineStart === before) break;
      }
      let afterDelim = this.matchHereDocDelimiter(delimiter, lineStart, lineEnd, !quoted2);
      if (afterDelim !== -1 && !quoted2) afterDelim = skipLineContinuations(src, afterDelim, lineEnd);
      if (afterDelim === lineEnd) {
        const bodyEnd = this.pos;
        if (!parenEnds || !this.parenBoundary || lineEnd !== len) {
          this.hereDocClosingPos = lineStart;
          this.hereDocClosingEnd = lineEnd;
        }
        this.pos = lineEnd < len ? lineEnd + 1 : lineEnd;
        return bodyEnd;
      }
      if (parenEnds && afterDelim !== -1) {
        let paren = afterDelim;
        while (paren < lineEnd && src.charCodeAt(paren) !== CH_RPAREN) paren++;
        if (paren < lineEnd || (this.parenBoundary && lineEnd === len)) {
          const bodyEnd = this.pos;
          this.pos = afterDelim;
          return bodyEnd;
        }
      }
      this.pos = lineEnd < len ? lineEnd + 1 : lineEnd;
    }
    return this.pos;
  }
  _wordText = '';
  _wordRaw = false;
  _wordQuoted = false;
  _wordHasExpansions = false;
  _wordKeywordEligible = false;
  _wordAssignmentState;
  _bracketWindow;
  _arithmeticBracketWindow;
  _wordParts = null;
  _resultText = '';
  // True when the last $-construct's value is exactly its raw source span.
  _resultIsRaw = true;
  _resultHasExpansion = false;
  _resultPart;
  // Set by extractBalanced when the input ended before the closing paren, so
  // callers can report the construct they were scanning.
  _unbalanced = false;
  // Set by scanArithmeticBody when the construct turns out not to be arithmetic, so the
  // caller can re-read it as a subshell or command substitution instead.
  _notArithmetic = false;
  _arithUnterminated = false;
  _dqText = '';
  _dqHasExpansions = false;
  _dqParts = null;
  // Content end (before the closing quote, or end of input when unterminated).
  _dqEnd = 0;
  _hereDelim = '';
  _hereQuoted = false;
  readWord(out, ctx, tokenStart = 0) {
    const errorStart = this._errors === null ? 0 : this._errors.length;
    this.readWordText(false, ctx, true);
    if (ctx === LexContext.Normal) {
      const next = this.pos < this.srcEnd ? this.src.charCodeAt(this.pos) : 0;
      if (!this._wordRaw || (next !== CH_LT && next !== CH_GT)) {
        setSpanToken(out, Token.Word, tokenStart, this.pos, this._wordRaw);
        out.keywordEligible = this._wordKeywordEligible;
        return;
      }
    }
    this.classifyWord(out, ctx, tokenStart, errorStart);
  }
  isRedirectVariable(start, end) {
    const src = this.src;
    for (let i = start; i < end; i++) {
      const c = src.charCodeAt(i);
      if (c === CH_LBRACKET && i > start) {
        return (
          i + 2 < end &&
          src.charCodeAt(end - 1) === CH_RBRACKET &&
          this.findClosingShellDelimiter(i + 1, end, CH_RBRACKET) === end - 1
        );
      }
      if (c >= 128 || !(isIdChar[c] & (i === start ? 1 : 2))) return false;
    }
    return end > start;
  }
  readArrayElement(out, tokenStart) {
    const close = this.findClosingBracket(tokenStart + 1);
    if (close === -1) return false;
    this.pos = close + 1;
    this.readWordText();
    setSpanToken(out, Token.Word, tokenStart, this.pos, true);
    return true;
  }
  classifyWord(out, ctx, tokenStart, errorStart) {
    const src = this.src;
    const raw = this._wordRaw;
    const hasExpansions = this._wordHasExpansions;
    const quoted2 = this._wordQuoted;
    const keywordEligible = this._wordKeywordEligible;
    let assignmentState = this._wordAssignmentState;
    const wordEnd = this.pos;
    const wordLen = wordEnd - tokenStart;
    if (ctx === LexContext.CasePattern) {
      let token = Token.Word;
      if (keywordEligible) {
        const reserved = raw
          ? matchReservedWord(src, tokenStart, wordLen)
          : RESERVED_WORDS.get(this.wordValueOf(tokenStart, wordEnd));
        if (reserved === Token.Esac) token = reserved;
      }
      setSpanToken(out, token, tokenStart, wordEnd, raw);
      out.keywordEligible = keywordEligible;
      return;
    }
    let value = null;
    if (
      !raw &&
      !hasExpansions &&
      keywordEligible &&
      (ctx === LexContext.CommandStart || ctx === LexContext.TestMode)
    ) {
      const nextCh = wordEnd < this.srcEnd ? src.charCodeAt(wordEnd) : 0;
      if ((!quoted2 && wordLen <= 16) || nextCh === CH_LT || nextCh === CH_GT) {
        value = this.wordValueOf(tokenStart, wordEnd);
      }
    }
    if (ctx === LexContext.CommandStart && keywordEligible) {
      if (raw) {
        if (wordLen <= 8) {
          const reserved = matchReservedWord(src, tokenStart, wordLen);
          if (reserved !== void 0) {
            setSpanToken(out, reserved, tokenStart, wordEnd, true);
            return;
          }
        }
        if (
          wordLen === 2 &&
          src.charCodeAt(tokenStart) === CH_LBRACKET &&
          src.charCodeAt(tokenStart + 1) === CH_LBRACKET
        ) {
          setSpanToken(out, Token.DblLBracket, tokenStart, wordEnd, true);
          return;
        }
      } else if (value !== null && value.length > 0) {
        const fc = value.charCodeAt(0);
        if (
          (fc >= CH_a && fc <= CH_z && value.length <= 8) ||
          fc === CH_BANG ||
          fc === CH_LBRACE ||
          fc === CH_RBRACE
        ) {
          const reserved = RESERVED_WORDS.get(value);
          if (reserved !== void 0) {
            setToken(out, reserved, value, tokenStart, wordEnd);
            return;
          }
        }
        if (fc === CH_LBRACKET && value === '[[') {
          setToken(out, Token.DblLBracket, value, tokenStart, wordEnd);
          return;
        }
      }
    }
    if (
      ctx === LexContext.CommandStart ||
      ctx === LexContext.CommandPrefix ||
      ctx === LexContext.Declaration
    ) {
      if (assignmentState === void 0) {
        let eq = -1;
        let bracket = false;
        for (let i = tokenStart + 1; i < wordEnd; i++) {
          const c = src.charCodeAt(i);
          if (c === CH_EQ) {
            eq = i;
            break;
          }
          if (c === CH_LBRACKET) bracket = true;
        }
        if (eq !== -1 || (ctx !== LexContext.Declaration && bracket)) {
          assignmentState = scanAssignmentPrefix(src, tokenStart, wordEnd, ASSIGNMENT_NAME_START);
        }
      }
      if (assignmentState !== void 0) {
        if (ctx !== LexContext.Declaration && assignmentState >= ASSIGNMENT_INDEX_BASE) {
          if (wordEnd < this.srcEnd) {
            if (this._errors !== null) this._errors.length = errorStart;
            this.pos = tokenStart;
            this.readWordText(true, ctx, true);
            if (this.pos > wordEnd) {
              this.classifyWord(out, ctx, tokenStart, errorStart);
              return;
            }
          }
          if (this._errors === null || this._errors.length === errorStart) {
            this.errors.push({ message: 'unterminated array subscript', pos: src.indexOf('[', tokenStart) });
          }
        }
        if (isMatchedAssignment(assignmentState)) {
          setSpanToken(out, Token.Assignment, tokenStart, wordEnd, raw);
          if (value !== null) out._value = value;
          out.assignmentOperatorPos = assignmentOperatorPos(assignmentState);
          return;
        }
      }
    }
    if ((ctx === LexContext.CommandStart || ctx === LexContext.TestMode) && keywordEligible) {
      if (raw) {
        if (
          wordLen === 2 &&
          src.charCodeAt(tokenStart) === CH_RBRACKET &&
          src.charCodeAt(tokenStart + 1) === CH_RBRACKET
        ) {
          setSpanToken(out, Token.DblRBracket, tokenStart, wordEnd, true);
          return;
        }
      } else if (value === ']]') {
        setToken(out, Token.DblRBracket, value, tokenStart, wordEnd);
        return;
      }
    }
    if (!hasExpansions && this.pos < this.srcEnd) {
      const nc = src.charCodeAt(this.pos);
      if (nc === CH_LT || nc === CH_GT) {
        if (raw) {
          const fc = src.charCodeAt(tokenStart);
          if (fc >= CH_0 && fc <= CH_9 && isAllDigitsRange(src, tokenStart, wordEnd)) {
            const fd2 = Number.parseInt(src.slice(tokenStart, wordEnd), 10);
            if (this.readRedirection(out, tokenStart)) {
              out.fileDescriptor = fd2;
              out.descriptorEnd = wordEnd;
              return;
            }
          }
          if (
            fc === CH_LBRACE &&
            src.charCodeAt(wordEnd - 1) === CH_RBRACE &&
            this.isRedirectVariable(tokenStart + 1, wordEnd - 1)
          ) {
            const varname = src.slice(tokenStart + 1, wordEnd - 1);
            if (this.readRedirection(out, tokenStart)) {
              out.variableName = varname;
              out.descriptorEnd = wordEnd;
              return;
            }
          }
        }
      }
    }
    setSpanToken(out, Token.Word, tokenStart, wordEnd, raw);
    if (value !== null) out._value = value;
    out.keywordEligible = keywordEligible;
  }
  // `subscripts` re-reads a word known to stop inside an array subscript, where
  // metacharacters are ordinary text.
  // `scanning` marks the first scan of a token, which decides where the word ends.
  readWordText(subscripts = false, ctx = LexContext.Normal, scanning = false) {
    const src = this.src;
    const len = this.srcEnd;
    let pos = this.pos;
    const fastStart = pos;
    let exitCh = 0;
    while (pos < len) {
      const c = src.charCodeAt(pos);
      if (c < 128 && charType[c]) {
        exitCh = c;
        break;
      }
      pos++;
    }
    if (
      pos >= len ||
      (charType[exitCh] & 1 &&
        !(exitCh === CH_LPAREN && pos > fastStart && extglobPrefix[src.charCodeAt(pos - 1)]) &&
        !subscripts)
    ) {
      this.pos = pos;
      this._wordText =
        (this._buildParts || this._buildValue) && pos > fastStart ? src.slice(fastStart, pos) : '';
      this._wordRaw = true;
      this._wordQuoted = false;
      this._wordHasExpansions = false;
      this._wordKeywordEligible = true;
      this._wordAssignmentState = void 0;
      if (this._buildParts) {
        this._wordParts =
          hasGlobCharacters(this._wordText) && ctx !== LexContext.ArrayElement
            ? (parseGlobParts(src, fastStart, pos, void 0) ?? null)
            : null;
      }
      return;
    }
    const bp = this._buildParts;
    const bt = bp || this._buildValue;
    let text = bt && pos > fastStart ? src.slice(fastStart, pos) : '';
    let quoted2 = false;
    let hasExpansions = false;
    let keywordEligible = true;
    let valueIsRaw = true;
    let lastValueChar = pos > fastStart ? src.charCodeAt(pos - 1) : 0;
    let assignmentState = scanAssignmentPrefix(src, fastStart, pos, ASSIGNMENT_NAME_START);
    let parts;
    let litBuf = '';
    let litStart = 0;
    let hasGlobs = false;
    let braceResults;
    if (bp) {
      parts = [];
      litBuf = text;
      litStart = fastStart;
      hasGlobs = text.length > 0 && hasGlobCharacters(text);
    }
    while (pos < len) {
      const ch = src.charCodeAt(pos);
      if (ch >= 128 || !charType[ch]) {
        const runStart = pos;
        pos++;
        while (pos < len) {
          const c = src.charCodeAt(pos);
          if (c < 128 && charType[c]) break;
          pos++;
        }
        lastValueChar = src.charCodeAt(pos - 1);
        assignmentState = scanAssignmentPrefix(src, runStart, pos, assignmentState);
        if (bt) {
          const chunk = src.slice(runStart, pos);
          text += chunk;
          if (bp) {
            litBuf += chunk;
            hasGlobs = hasGlobs || hasGlobCharacters(chunk);
          }
        }
        continue;
      }
      if (charType[ch] & 1) {
        if (subscripts && assignmentState >= ASSIGNMENT_INDEX_BASE) {
          const close = this.findClosingBracket(pos);
          if (close !== -1) {
            const spanEnd = close + 1;
            assignmentState =
              assignmentState === ASSIGNMENT_INDEX_BASE + 1 ? ASSIGNMENT_AFTER_INDEX : assignmentState - 1;
            lastValueChar = src.charCodeAt(close);
            if (bt) {
              const chunk = src.slice(pos, spanEnd);
              text += chunk;
              if (bp) {
                litBuf += chunk;
                hasGlobs = hasGlobs || hasGlobCharacters(chunk);
              }
            }
            pos = spanEnd;
            continue;
          }
        }
        if (ch === CH_LPAREN && lastValueChar < 128 && extglobPrefix[lastValueChar]) {
          if (
            ctx === LexContext.FunctionName ||
            (assignmentState >= ASSIGNMENT_INDEX_BASE &&
              (ctx === LexContext.CommandStart || ctx === LexContext.CommandPrefix))
          )
            break;
          if (
            ctx === LexContext.CommandStart &&
            lastValueChar === CH_BANG &&
            keywordEligible &&
            src.charCodeAt(fastStart) === CH_BANG &&
            skipLineContinuations(src, fastStart + 1, len) === pos
          )
            break;
          const prefixChar = lastValueChar;
          if (
            prefixChar === CH_EQ &&
            scanning &&
            !(
              (ctx === LexContext.CommandStart ||
                ctx === LexContext.CommandPrefix ||
                ctx === LexContext.Declaration ||
                ctx === LexContext.EvalArgument) &&
              isMatchedAssignment(assignmentState) &&
              skipLineContinuations(src, assignmentOperatorPos(assignmentState) + 1, len) === pos
            )
          )
            break;
          const innerStart = pos + 1;
          const close = this.findClosingShellDelimiter(innerStart, len, CH_RPAREN, prefixChar === CH_EQ);
          if (close === -1 && !scanning && !subscripts && assignmentState >= ASSIGNMENT_INDEX_BASE) break;
          if (
            ctx === LexContext.CommandStart &&
            prefixChar !== CH_EQ &&
            close !== -1 &&
            skipBlanks(src, innerStart, close) === close
          )
            break;
          keywordEligible = false;
          const patternEnd = close === -1 ? len : close;
          pos = close === -1 ? len : close + 1;
          if (close === -1) this.errors.push({ message: 'unterminated extended glob', pos: innerStart - 2 });
          lastValueChar = src.charCodeAt(pos - 1);
          if (bt) {
            const eg = '(' + src.slice(innerStart, pos);
            text += eg;
            if (bp && prefixChar !== CH_EQ) {
              let prefixPos = innerStart - 2;
              while (src.charCodeAt(prefixPos) === CH_NL && src.charCodeAt(prefixPos - 1) === CH_BACKSLASH) {
                prefixPos -= 2;
              }
              if (litBuf.length > 0) {
                const trimmed = litBuf.slice(0, -1);
                if (prefixPos > litStart)
                  parts.push({
                    type: 'Literal',
                    pos: litStart,
                    end: prefixPos,
                    value: trimmed,
                    text: src.slice(litStart, prefixPos),
                  });
                litBuf = '';
              }
              const op = extglobOp[prefixChar];
              parts.push({
                type: 'ExtendedGlob',
                pos: prefixPos,
                end: pos,
                text: src.slice(prefixPos, pos),
                operator: op,
                pattern: src.slice(innerStart, patternEnd),
                parts: this.subFieldParts(innerStart, patternEnd),
              });
              litStart = pos;
            } else if (bp) {
              litBuf += eg;
              hasGlobs = hasGlobs || hasGlobCharacters(eg);
            }
          }
          continue;
        }
        break;
      }
      if (ch === CH_BACKSLASH) {
        pos++;
        if (pos < len) {
          if (src.charCodeAt(pos) === CH_NL) {
            pos++;
            valueIsRaw = false;
          } else {
            if (assignmentState >= 0 && assignmentState < ASSIGNMENT_INDEX_BASE)
              assignmentState = ASSIGNMENT_INVALID;
            quoted2 = true;
            keywordEligible = false;
            valueIsRaw = false;
            lastValueChar = src.charCodeAt(pos);
            if (bt) {
              text += src[pos];
              if (bp) litBuf += src[pos];
            }
            pos++;
          }
        } else {
          if (assignmentState >= 0 && assignmentState < ASSIGNMENT_INDEX_BASE)
            assignmentState = ASSIGNMENT_INVALID;
          quoted2 = true;
          keywordEligible = false;
          lastValueChar = CH_BACKSLASH;
          if (bt) {
            text += '\\';
            if (bp) litBuf += '\\';
          }
        }
        continue;
      }
      if (ch === CH_SQUOTE) {
        const sqStart = pos;
        if (assignmentState >= 0 && assignmentState < ASSIGNMENT_INDEX_BASE)
          assignmentState = ASSIGNMENT_INVALID;
        quoted2 = true;
        keywordEligible = false;
        valueIsRaw = false;
        pos++;
        const start = pos;
        while (pos < len && src.charCodeAt(pos) !== CH_SQUOTE) pos++;
        if (pos > start) lastValueChar = src.charCodeAt(pos - 1);
        const value = bt ? src.slice(start, pos) : '';
        if (bt) text += value;
        if (pos < len) pos++;
        else this.errors.push({ message: 'unterminated single quote', pos: start - 1 });
        if (bp) {
          if (sqStart > litStart) {
            parts.push({
              type: 'Literal',
              pos: litStart,
              end: sqStart,
              value: litBuf,
              text: src.slice(litStart, sqStart),
            });
            litBuf = '';
          }
          parts.push({ type: 'SingleQuoted', pos: sqStart, end: pos, value, text: src.slice(sqStart, pos) });
          litStart = pos;
        }
        continue;
      }
      if (ch === CH_DQUOTE) {
        const dqStart = pos;
        if (assignmentState >= 0 && assignmentState < ASSIGNMENT_INDEX_BASE)
          assignmentState = ASSIGNMENT_INVALID;
        quoted2 = true;
        keywordEligible = false;
        valueIsRaw = false;
        pos++;
        this.pos = pos;
        this.readDoubleQuoted();
        pos = this.pos;
        if (this._dqEnd > dqStart + 1) lastValueChar = src.charCodeAt(this._dqEnd - 1);
        if (this._dqHasExpansions) hasExpansions = true;
        if (bt) text += this._dqText;
        if (bp) {
          if (dqStart > litStart) {
            parts.push({
              type: 'Literal',
              pos: litStart,
              end: dqStart,
              value: litBuf,
              text: src.slice(litStart, dqStart),
            });
            litBuf = '';
          }
          const dqText = src.slice(dqStart, pos);
          parts.push({
            type: 'DoubleQuoted',
            pos: dqStart,
            end: pos,
            text: dqText,
            parts: this._dqParts ?? [
              {
                type: 'Literal',
                pos: dqStart + 1,
                end: this._dqEnd,
                value: this._dqText,
                text: src.slice(dqStart + 1, this._dqEnd),
              },
            ],
          });
          litStart = pos;
        }
        continue;
      }
      if (ch === CH_DOLLAR) {
        keywordEligible = false;
        const dollarStart = pos;
        if (assignmentState >= 0 && assignmentState < ASSIGNMENT_INDEX_BASE)
          assignmentState = ASSIGNMENT_INVALID;
        const next = pos + 1 < len ? src.charCodeAt(pos + 1) : 0;
        if (next === CH_SQUOTE || next === CH_DQUOTE) quoted2 = true;
        this.pos = pos;
        this.readDollar();
        pos = this.pos;
        if (!this._resultIsRaw) valueIsRaw = false;
        if (pos > dollarStart) lastValueChar = src.charCodeAt(pos - 1);
        if (this._resultHasExpansion) hasExpansions = true;
        if (bt) text += this._resultText;
        if (bp) {
          if (this._resultPart) {
            if (dollarStart > litStart) {
              parts.push({
                type: 'Literal',
                pos: litStart,
                end: dollarStart,
                value: litBuf,
                text: src.slice(litStart, dollarStart),
              });
              litBuf = '';
            }
            parts.push(this._resultPart);
            litStart = pos;
          } else {
            litBuf += this._resultText;
          }
        }
        continue;
      }
      if (ch === CH_BACKTICK) {
        keywordEligible = false;
        const btStart = pos;
        if (assignmentState >= 0 && assignmentState < ASSIGNMENT_INDEX_BASE)
          assignmentState = ASSIGNMENT_INVALID;
        this.pos = pos;
        this.readBacktickExpansion();
        pos = this.pos;
        valueIsRaw = false;
        lastValueChar = src.charCodeAt(pos - 1);
        hasExpansions = true;
        if (bt) text += this._resultText;
        if (bp) {
          if (btStart > litStart) {
            parts.push({
              type: 'Literal',
              pos: litStart,
              end: btStart,
              value: litBuf,
              text: src.slice(litStart, btStart),
            });
            litBuf = '';
          }
          parts.push(this._resultPart);
          litStart = pos;
        }
        continue;
      }
      if (ch === CH_LBRACE) {
        if (assignmentState >= 0 && assignmentState < ASSIGNMENT_INDEX_BASE)
          assignmentState = ASSIGNMENT_INVALID;
        const first = pos + 1 < len ? src.charCodeAt(pos + 1) : 0;
        const braceEnd =
          first <= CH_SPACE || first === CH_RBRACE
            ? -1
            : this.scanBraceExpansion(pos, braceResults ?? (braceResults = /* @__PURE__ */ new Map()));
        if (braceEnd > 0) {
          keywordEligible = false;
          lastValueChar = src.charCodeAt(braceEnd - 1);
          if (bt) {
            const braceText = src.slice(pos, braceEnd);
            text += braceText;
            if (bp) {
              if (pos > litStart) {
                parts.push({
                  type: 'Literal',
                  pos: litStart,
                  end: pos,
                  value: litBuf,
                  text: src.slice(litStart, pos),
                });
                litBuf = '';
              }
              parts.push({
                type: 'BraceExpansion',
                pos,
                end: braceEnd,
                text: braceText,
                parts: this.subFieldParts(pos + 1, braceEnd - 1),
              });
              litStart = braceEnd;
            }
          }
          pos = braceEnd;
          continue;
        }
        lastValueChar = CH_LBRACE;
        if (bt) {
          text += '{';
          if (bp) litBuf += '{';
        }
        pos++;
        continue;
      }
      pos++;
    }
    if (bp && pos > litStart)
      parts.push({ type: 'Literal', pos: litStart, end: pos, value: litBuf, text: src.slice(litStart, pos) });
    this.pos = pos;
    this._wordText = text;
    this._wordRaw = valueIsRaw;
    this._wordQuoted = quoted2;
    this._wordHasExpansions = hasExpansions;
    this._wordKeywordEligible = keywordEligible;
    this._wordAssignmentState = assignmentState;
    if (bp) {
      this._wordParts =
        parts.length > 1 || (parts.length === 1 && parts[0].type !== 'Literal') ? parts : null;
      if (hasGlobs && ctx !== LexContext.ArrayElement)
        this._wordParts = parseGlobParts(src, fastStart, pos, this._wordParts) ?? null;
    }
  }
  // Arithmetic text gets expansions and quote removal but no process substitution.
  readInnerWordText(insideDoubleQuotes = false, arithmetic = false, globs = false) {
    const src = this.src;
    const len = this.srcEnd;
    let pos = this.pos;
    const start = pos;
    let text = '';
    const bp = this._buildParts;
    let parts;
    let litBuf = '';
    let litStart = 0;
    let preserveLiteral = false;
    let hasGlobs = false;
    if (bp) {
      parts = [];
      litStart = pos;
    }
    while (pos < len) {
      const ch = src.charCodeAt(pos);
      if (ch === CH_BACKSLASH) {
        pos++;
        if (pos < len) {
          if (src.charCodeAt(pos) === CH_NL) {
            pos++;
          } else {
            const next = src.charCodeAt(pos);
            if (
              insideDoubleQuotes &&
              next !== CH_DOLLAR &&
              next !== CH_BACKTICK &&
              next !== CH_DQUOTE &&
              next !== CH_BACKSLASH &&
              next !== CH_RBRACE
            ) {
              text += '\\';
              if (bp) litBuf += '\\';
              preserveLiteral = true;
            }
            const escaped = src[pos++];
            text += escaped;
            if (bp) litBuf += escaped;
          }
        }
        continue;
      }
      if (ch === CH_SQUOTE && !insideDoubleQuotes) {
        const sqStart = pos;
        pos++;
        const start2 = pos;
        while (pos < len && src.charCodeAt(pos) !== CH_SQUOTE) pos++;
        const value = src.slice(start2, pos);
        text += value;
        if (pos < len) pos++;
        if (bp) {
          if (sqStart > litStart) {
            parts.push({
              type: 'Literal',
              pos: litStart,
              end: sqStart,
              value: litBuf,
              text: src.slice(litStart, sqStart),
            });
            litBuf = '';
          }
          parts.push({ type: 'SingleQuoted', pos: sqStart, end: pos, value, text: src.slice(sqStart, pos) });
          litStart = pos;
        }
        continue;
      }
      if (ch === CH_DQUOTE) {
        const dqStart = pos;
        pos++;
        this.pos = pos;
        this.readDoubleQuoted(insideDoubleQuotes);
        pos = this.pos;
        text += this._dqText;
        if (bp) {
          if (dqStart > litStart) {
            parts.push({
              type: 'Literal',
              pos: litStart,
              end: dqStart,
              value: litBuf,
              text: src.slice(litStart, dqStart),
            });
            litBuf = '';
          }
          const dqText = src.slice(dqStart, pos);
          parts.push({
            type: 'DoubleQuoted',
            pos: dqStart,
            end: pos,
            text: dqText,
            parts: this._dqParts ?? [
              {
                type: 'Literal',
                pos: dqStart + 1,
                end: this._dqEnd,
                value: this._dqText,
                text: src.slice(dqStart + 1, this._dqEnd),
              },
            ],
          });
          litStart = pos;
        }
        continue;
      }
      if (ch === CH_DOLLAR) {
        const dollarStart = pos;
        this.pos = pos;
        this.readDollar(insideDoubleQuotes);
        pos = this.pos;
        text += this._resultText;
        if (bp) {
          if (this._resultPart) {
            if (dollarStart > litStart) {
              parts.push({
                type: 'Literal',
                pos: litStart,
                end: dollarStart,
                value: litBuf,
                text: src.slice(litStart, dollarStart),
              });
              litBuf = '';
            }
            parts.push(this._resultPart);
            litStart = pos;
          } else {
            litBuf += this._resultText;
          }
        }
        continue;
      }
      if (ch === CH_BACKTICK) {
        const btStart = pos;
        this.pos = pos;
        this.readBacktickExpansion(insideDoubleQuotes);
        pos = this.pos;
        text += this._resultText;
        if (bp) {
          if (btStart > litStart) {
            parts.push({
              type: 'Literal',
              pos: litStart,
              end: btStart,
              value: litBuf,
              text: src.slice(litStart, btStart),
            });
            litBuf = '';
          }
          parts.push(this._resultPart);
          litStart = pos;
        }
        continue;
      }
      if (
        !insideDoubleQuotes &&
        !arithmetic &&
        (ch === CH_LT || ch === CH_GT) &&
        pos + 1 < len &&
        src.charCodeAt(pos + 1) === CH_LPAREN
      ) {
        const psStart = pos;
        this.pos = pos + 2;
        const inner = this.extractBalanced();
        pos = this.pos;
        const raw = src.slice(psStart, pos);
        text += raw;
        if (bp) {
          if (psStart > litStart) {
            parts.push({
              type: 'Literal',
              pos: litStart,
              end: psStart,
              value: litBuf,
              text: src.slice(litStart, psStart),
            });
            litBuf = '';
          }
          parts.push(this.processSubstitution(psStart, raw, ch === CH_LT ? '<' : '>', inner));
          litStart = pos;
        }
        continue;
      }
      text += src[pos];
      if (bp) {
        litBuf += src[pos];
        if (globs && (ch === CH_STAR || ch === CH_QUESTION || ch === CH_LBRACKET)) hasGlobs = true;
      }
      pos++;
    }
    if (bp && pos > litStart)
      parts.push({ type: 'Literal', pos: litStart, end: pos, value: litBuf, text: src.slice(litStart, pos) });
    this.pos = pos;
    this._wordText = text;
    this._wordRaw = false;
    this._wordQuoted = false;
    this._wordHasExpansions = false;
    this._wordKeywordEligible = false;
    if (bp) {
      this._wordParts =
        parts.length > 1 || (parts.length === 1 && (parts[0].type !== 'Literal' || preserveLiteral))
          ? parts
          : null;
      if (hasGlobs) this._wordParts = parseGlobParts(src, start, pos, this._wordParts) ?? null;
    }
  }
  subFieldParts(start, end) {
    if (this._nestingDepth >= MAX_SYNTAX_NESTING) return void 0;
    return hasEmbeddedWordStructure(this.src, start, end)
      ? this.parseSubFieldWord(start, end).parts
      : parseGlobParts(this.src, start, end, void 0);
  }
  // Parse a parameter-expansion sub-field (operand, slice bound, replacement pattern) over
  // the window [start, end) of the original source. Parsing in place — rather than against a
  // detached slice — gives the word and any nested substitutions absolute offsets, and
  // composes through nested ${...}. The `${...}` inner is a verbatim substring of the
  // source, so every sub-field offset maps straight back.
  parseSubFieldWord(start, end, context = 'word', arithmetic = false) {
    if (start >= end) return new WordImpl('', start, start);
    if (this._nestingDepth >= MAX_SYNTAX_NESTING) return new WordImpl(this.src.slice(start, end), start, end);
    this._nestingDepth++;
    const savedEnd = this.srcEnd;
    const savedBracketWindow = this._bracketWindow;
    const savedArithmeticBracketWindow = this._arithmeticBracketWindow;
    const savedPos = this.pos;
    const savedText = this._wordText;
    const savedParts = this._wordParts;
    const savedQuoted = this._wordQuoted;
    const savedKeywordEligible = this._wordKeywordEligible;
    this.srcEnd = end;
    this.pos = start;
    this.readInnerWordText(context === 'quoted', arithmetic, context === 'word');
    const word = new WordImpl(this.src.slice(start, end), start, end);
    if (this._buildParts) {
      word.parts = this._wordParts ?? void 0;
    }
    this.srcEnd = savedEnd;
    this._bracketWindow = savedBracketWindow;
    this._arithmeticBracketWindow = savedArithmeticBracketWindow;
    this.pos = savedPos;
    this._wordText = savedText;
    this._wordParts = savedParts;
    this._wordQuoted = savedQuoted;
    this._wordKeywordEligible = savedKeywordEligible;
    this._nestingDepth--;
    return word;
  }
  skipSQ() {
    while (this.pos < this.srcEnd && this.src.charCodeAt(this.pos) !== CH_SQUOTE) this.pos++;
    if (this.pos < this.srcEnd) this.pos++;
  }
  skipAnsiCQuoted() {
    const quotePos = this.pos - 1;
    const result = decodeAnsiCQuoted(this.src, this.pos, this.srcEnd);
    this.pos = result.end;
    if (!result.closed) this.errors.push({ message: 'unterminated ANSI-C quote', pos: quotePos });
  }
  // Plain quoted text is skipped here; the first `$(`, `${`, `$$`, backtick or the end of input
  // hands the rest to the quote scanner, which owns substitution and nesting-limit decisions.
  skipDQ() {
    const src = this.src;
    const len = this.srcEnd;
    this._unbalanced = false;
    if (this._nestingDepth < MAX_SYNTAX_NESTING) {
      while (this.pos < len) {
        const ch = src.charCodeAt(this.pos);
        if (ch === CH_DQUOTE) {
          this.pos++;
          return;
        }
        if (ch === CH_BACKSLASH) {
          this.pos = Math.min(this.pos + 2, len);
          continue;
        }
        if (ch === CH_BACKTICK) break;
        if (ch === CH_DOLLAR) {
          const next = src.charCodeAt(this.pos + 1);
          if (next === CH_LPAREN || next === CH_LBRACE || next === CH_DOLLAR) break;
        }
        this.pos++;
      }
    }
    this.extractBalanced(true, true);
  }
  skipSpacesAndTabs() {
    this.pos = skipBlanks(this.src, this.pos, this.srcEnd);
  }
  readDoubleQuoted(unescapeAll = false) {
    const src = this.src;
    const len = this.srcEnd;
    const contentStart = this.pos;
    let hasExpansions = false;
    const bp = this._buildParts;
    const bt = bp || this._buildValue;
    if (!bp) {
      let p = this.pos;
      while (p < len) {
        const c = src.charCodeAt(p);
        if (c === CH_DQUOTE) {
          this._dqText = bt ? src.slice(contentStart, p) : '';
          this._dqEnd = p;
          this.pos = p + 1;
          this._dqHasExpansions = false;
          this._dqParts = null;
          return;
        }
        if (c === CH_DOLLAR || c === CH_BACKTICK || c === CH_BACKSLASH) break;
        p++;
      }
    }
    let text = '';
    let parts = null;
    let litBuf = '';
    let litStart = bp ? this.pos : 0;
    while (this.pos < len && src.charCodeAt(this.pos) !== CH_DQUOTE) {
      const runStart = this.pos;
      while (this.pos < len) {
        const c = src.charCodeAt(this.pos);
        if (c === CH_DQUOTE || c === CH_BACKSLASH || c === CH_DOLLAR || c === CH_BACKTICK) break;
        this.pos++;
      }
      if (bt && this.pos > runStart) {
        const chunk = src.slice(runStart, this.pos);
        text += chunk;
        if (bp) litBuf += chunk;
      }
      if (this.pos >= len || src.charCodeAt(this.pos) === CH_DQUOTE) break;
      const ch = src.charCodeAt(this.pos);
      if (ch === CH_BACKSLASH) {
        this.pos++;
        if (this.pos < len) {
          const next = src.charCodeAt(this.pos);
          if (next === CH_NL) {
            this.pos++;
            continue;
          }
          if (bt) {
            if (
              unescapeAll ||
              next === CH_DOLLAR ||
              next === CH_BACKTICK ||
              next === CH_DQUOTE ||
              next === CH_BACKSLASH
            ) {
              const c = src[this.pos];
              text += c;
              if (bp) litBuf += c;
            } else {
              const pair = '\\' + src[this.pos];
              text += pair;
              if (bp) litBuf += pair;
            }
          }
          this.pos++;
        }
        continue;
      }
      if (ch === CH_DOLLAR) {
        const afterDollar = this.pos + 1 < len ? src.charCodeAt(this.pos + 1) : 0;
        if (afterDollar === CH_DQUOTE || afterDollar === CH_SQUOTE) {
          if (bt) {
            text += '$';
            if (bp) litBuf += '$';
          }
          this.pos++;
          continue;
        }
        const expStart = this.pos;
        this.readDollar(true);
        if (bt) text += this._resultText;
        if (this._resultHasExpansion) hasExpansions = true;
        if (bp) {
          const rp = this._resultPart;
          if (rp && isDQChild(rp)) {
            if (!parts) parts = [];
            if (expStart > litStart) {
              parts.push({
                type: 'Literal',
                pos: litStart,
                end: expStart,
                value: litBuf,
                text: src.slice(litStart, expStart),
              });
              litBuf = '';
            }
            parts.push(rp);
            litStart = this.pos;
          } else {
            litBuf += this._resultText;
          }
        }
        continue;
      }
      if (ch === CH_BACKTICK) {
        const btStart = this.pos;
        this.readBacktickExpansion(true);
        if (bt) text += this._resultText;
        hasExpansions = true;
        if (bp && this._resultPart && isDQChild(this._resultPart)) {
          if (!parts) parts = [];
          if (btStart > litStart) {
            parts.push({
              type: 'Literal',
              pos: litStart,
              end: btStart,
              value: litBuf,
              text: src.slice(litStart, btStart),
            });
            litBuf = '';
          }
          parts.push(this._resultPart);
          litStart = this.pos;
        }
      }
    }
    if (bp && parts && this.pos > litStart)
      parts.push({
        type: 'Literal',
        pos: litStart,
        end: this.pos,
        value: litBuf,
        text: src.slice(litStart, this.pos),
      });
    this._dqEnd = this.pos;
    if (this.pos < len) this.pos++;
    else this.errors.push({ message: 'unterminated double quote', pos: contentStart - 1 });
    this._dqText = text;
    this._dqHasExpansions = hasExpansions;
    this._dqParts = parts;
  }
  readDollar(insideDoubleQuotes = false) {
    const dollarPos = this.pos;
    this.pos++;
    const src = this.src;
    const len = this.srcEnd;
    const bt = this._buildParts || this._buildValue;
    if (this.pos >= len) {
      this._resultText = '$';
      this._resultIsRaw = true;
      this._resultHasExpansion = false;
      this._resultPart = void 0;
      return;
    }
    const logicalPos = skipLineContinuations(src, this.pos, len);
    if (
      logicalPos > this.pos &&
      src.charCodeAt(logicalPos) === CH_LPAREN &&
      src.charCodeAt(logicalPos + 1) !== CH_LPAREN
    )
      this.pos = logicalPos;
    const ch = src.charCodeAt(this.pos);
    if (ch === CH_LPAREN) {
      if (this.pos + 1 < len && src.charCodeAt(this.pos + 1) === CH_LPAREN) {
        const savedPos = this.pos;
        const savedErrors = this.errors.length;
        this.readArithmeticExpansion(dollarPos);
        if (!this._notArithmetic) return;
        this.errors.length = savedErrors;
        this.pos = savedPos;
      }
      this.readCommandSubstitution(dollarPos);
      return;
    }
    if (ch === CH_LBRACE) {
      const after = this.pos + 1 < len ? src.charCodeAt(this.pos + 1) : 0;
      if (after === CH_SPACE || after === CH_TAB || after === CH_NL) {
        this.readBraceCommandSubstitution();
        return;
      }
      if (after === CH_PIPE) {
        this.readValueSubstitution();
        return;
      }
      this.readParameterExpansion(insideDoubleQuotes);
      return;
    }
    if (ch === CH_SQUOTE) {
      this.pos++;
      if (bt) {
        const value = this.readAnsiCQuoted();
        this._resultText = value;
        this._resultPart = this._buildParts
          ? {
              type: 'AnsiCQuoted',
              pos: dollarPos,
              end: this.pos,
              text: src.slice(dollarPos, this.pos),
              value,
            }
          : void 0;
      } else {
        this.skipAnsiCQuoted();
        this._resultText = '';
        this._resultPart = void 0;
      }
      this._resultIsRaw = false;
      this._resultHasExpansion = false;
      return;
    }
    if (ch === CH_DQUOTE) {
      this.pos++;
      this.readDoubleQuoted(insideDoubleQuotes);
      this._resultText = this._dqText;
      this._resultIsRaw = false;
      this._resultHasExpansion = this._dqHasExpansions;
      if (this._buildParts) {
        const text = src.slice(dollarPos, this.pos);
        this._resultPart = {
          type: 'LocaleString',
          pos: dollarPos,
          end: this.pos,
          text,
          parts: this._dqParts ?? [
            {
              type: 'Literal',
              pos: dollarPos + 2,
              end: this._dqEnd,
              value: this._dqText,
              text: src.slice(dollarPos + 2, this._dqEnd),
            },
          ],
        };
      } else {
        this._resultPart = void 0;
      }
      return;
    }
    if (
      ch === CH_AT ||
      ch === CH_STAR ||
      ch === CH_HASH ||
      ch === CH_QUESTION ||
      ch === CH_DASH ||
      ch === CH_DOLLAR ||
      ch === CH_BANG ||
      (ch >= CH_0 && ch <= CH_9)
    ) {
      this.pos++;
      const text = bt ? src.slice(this.pos - 2, this.pos) : '';
      this._resultText = text;
      this._resultIsRaw = true;
      this._resultHasExpansion = false;
      this._resultPart = this._buildParts
        ? { type: 'SimpleExpansion', pos: dollarPos, end: this.pos, text }
        : void 0;
      return;
    }
    if (ch < 128 && isIdChar[ch] & 1) {
      const namePos = this.pos - 1;
      while (this.pos < len) {
        const c = src.charCodeAt(this.pos);
        if (c < 128 && isIdChar[c] & 2) this.pos++;
        else break;
      }
      const text = bt ? src.slice(namePos, this.pos) : '';
      this._resultText = text;
      this._resultIsRaw = true;
      this._resultHasExpansion = false;
      this._resultPart = this._buildParts
        ? { type: 'SimpleExpansion', pos: dollarPos, end: this.pos, text }
        : void 0;
      return;
    }
    if (ch === CH_LBRACKET) {
      const errorCount = this._errors === null ? 0 : this._errors.length;
      const close = this.findClosingArithmeticBracket(this.pos + 1);
      if (close !== -1) {
        const bodyStart = this.pos + 1;
        const body = src.slice(bodyStart, close);
        this.pos = close + 1;
        const text = bt ? src.slice(dollarPos, this.pos) : '';
        this._resultText = text;
        this._resultIsRaw = true;
        this._resultHasExpansion = false;
        this._resultPart = this._buildParts
          ? this.arithmeticExpansion(bodyStart - 2, text, body, bodyStart)
          : void 0;
        return;
      }
      if (this._errors !== null) this._errors.length = errorCount;
    }
    this._resultText = '$';
    this._resultIsRaw = true;
    this._resultHasExpansion = false;
    this._resultPart = void 0;
  }
  scanArithmeticBody() {
    this._notArithmetic = false;
    this._arithUnterminated = false;
    this.pos += 2;
    let depth = 1;
    let parenDepth = 0;
    let parentParenDepth = 0;
    let parenDepths;
    let reported = false;
    const src = this.src;
    const len = this.srcEnd;
    const start = this.pos;
    while (this.pos < len && depth > 0) {
      const c = src.charCodeAt(this.pos);
      if (c === CH_BACKSLASH) {
        this.pos += this.pos + 1 < len ? 2 : 1;
      } else if (c === CH_SQUOTE) {
        this.pos++;
        this.skipSQ();
      } else if (c === CH_DQUOTE) {
        this.pos++;
        this.skipDQ();
      } else if (c === CH_BACKTICK) {
        this.pos++;
        while (this.pos < len && src.charCodeAt(this.pos) !== CH_BACKTICK) {
          if (src.charCodeAt(this.pos) === CH_BACKSLASH) this.pos++;
          this.pos++;
        }
        if (this.pos < len) this.pos++;
      } else if (
        c === CH_DOLLAR &&
        this.pos + 2 < len &&
        src.charCodeAt(this.pos + 1) === CH_LPAREN &&
        src.charCodeAt(this.pos + 2) !== CH_LPAREN
      ) {
        const dollarPos = this.pos;
        this.pos += 2;
        this.extractBalanced();
        if (this._unbalanced)
          this.errors.push({ message: 'unterminated command substitution', pos: dollarPos });
      } else if (c === CH_DOLLAR && this.pos + 1 < len && src.charCodeAt(this.pos + 1) === CH_LBRACE) {
        const close = this.findClosingBrace(this.pos + 2, len);
        this.pos = close === -1 ? len : close + 1;
      } else if (
        (c === CH_LT || c === CH_GT) &&
        this.pos + 1 < len &&
        src.charCodeAt(this.pos + 1) === CH_LPAREN
      ) {
        this.pos += 2;
        this.extractBalanced();
      } else if (c === CH_LPAREN) {
        if (src.charCodeAt(this.pos - 1) === CH_DOLLAR && src.charCodeAt(this.pos + 1) === CH_LPAREN) {
          if (depth === 1) parentParenDepth = parenDepth;
          else (parenDepths ?? (parenDepths = [])).push(parenDepth);
          depth++;
          parenDepth = 0;
          if (depth + this._nestingDepth > MAX_SYNTAX_NESTING && !reported) {
            this.errors.push({
              message: 'maximum arithmetic expansion nesting depth exceeded',
              pos: this.pos - 1,
            });
            reported = true;
          }
          this.pos += 2;
        } else {
          if (++parenDepth + depth - 1 + this._nestingDepth > MAX_SYNTAX_NESTING && !reported) {
            this.errors.push({
              message: 'maximum arithmetic expression nesting depth exceeded',
              pos: this.pos,
            });
            reported = true;
          }
          this.pos++;
        }
      } else if (c === CH_RPAREN && parenDepth > 0) {
        parenDepth--;
        this.pos++;
      } else if (c === CH_RPAREN && this.pos + 1 < len && src.charCodeAt(this.pos + 1) === CH_RPAREN) {
        if (--depth === 0) {
          this.pos += 2;
          break;
        }
        parenDepth = depth === 1 ? parentParenDepth : parenDepths.pop();
        this.pos += 2;
      } else if (c === CH_RPAREN && depth === 1) {
        this._notArithmetic = true;
        return '';
      } else {
        this.pos++;
      }
    }
    const bt = this._buildParts || this._buildValue;
    if (depth > 0) {
      this._arithUnterminated = true;
      return bt ? src.slice(start, this.pos) : '';
    }
    return bt ? src.slice(start, this.pos - 2) : '';
  }
  readArithmeticExpansion(dollarPos) {
    const bodyStart = this.pos + 2;
    const body = this.scanArithmeticBody();
    if (this._notArithmetic) return;
    if (this._arithUnterminated)
      this.errors.push({ message: 'unterminated arithmetic expansion', pos: dollarPos });
    const text = this._buildParts || this._buildValue ? this.src.slice(dollarPos, this.pos) : '';
    this._resultText = text;
    this._resultIsRaw = true;
    this._resultHasExpansion = false;
    this._resultPart = this._buildParts ? this.arithmeticExpansion(dollarPos, text, body, bodyStart) : void 0;
  }
  arithmeticExpansion(pos, text, body, bodyStart) {
    return new ArithmeticExpansionImpl(pos, this.pos, text, {
      source: this.src,
      body,
      offset: bodyStart,
      depth: this._nestingDepth,
      context: this.substitutionContext,
    });
  }
  readArithmeticCommand(out, tokenStart) {
    const savedBuildValue = this._buildValue;
    this._buildValue = true;
    const body = this.scanArithmeticBody();
    this._buildValue = savedBuildValue;
    if (this._arithUnterminated)
      this.errors.push({ message: 'unterminated arithmetic command', pos: tokenStart });
    setToken(out, Token.ArithCmd, body, tokenStart, this.pos);
  }
  readCommandSubstitution(dollarPos) {
    const openPos = this.pos;
    this.pos++;
    const inner = this.extractBalanced();
    if (this._unbalanced) this.errors.push({ message: 'unterminated command substitution', pos: dollarPos });
    const bt = this._buildParts || this._buildValue;
    const rawText = bt ? this.src.slice(dollarPos, this.pos) : '';
    const text = !bt || openPos === dollarPos + 1 ? rawText : '$' + this.src.slice(openPos, this.pos);
    this._resultText = text;
    this._resultIsRaw = openPos === dollarPos + 1;
    this._resultHasExpansion = true;
    if (this._buildParts) {
      this._resultPart = this.commandExpansion(dollarPos, rawText, openPos + 1, inner, !this._unbalanced);
    } else {
      this._resultPart = void 0;
    }
  }
  readBraceCommandSubstitution() {
    this.readBraceSubstitution(1);
  }
  readValueSubstitution() {
    this.readBraceSubstitution(2);
  }
  readBraceSubstitution(skip) {
    const dollarPos = this.pos - 1;
    this.pos += skip;
    const src = this.src;
    const len = this.srcEnd;
    let depth = 1;
    const start = this.pos;
    while (this.pos < len) {
      const c = src.charCodeAt(this.pos);
      if (c === CH_LBRACE) depth++;
      else if (c === CH_RBRACE) {
        if (--depth === 0) {
          this.pos++;
          break;
        }
      } else if (c === CH_SQUOTE) {
        this.pos++;
        this.skipSQ();
        continue;
      } else if (c === CH_DQUOTE) {
        this.pos++;
        this.skipDQ();
        continue;
      } else if (c === CH_BACKSLASH) this.pos++;
      this.pos++;
    }
    this._resultIsRaw = true;
    this._resultHasExpansion = true;
    if (this._buildParts || this._buildValue) {
      const rawInner = src.slice(start, this.pos - 1);
      const inner = rawInner.trim();
      const text = src.slice(dollarPos, this.pos);
      this._resultText = text;
      if (this._buildParts) {
        const innerStart = start + (rawInner.length - rawInner.trimStart().length);
        this._resultPart = this.commandExpansion(dollarPos, text, innerStart, inner);
      } else {
        this._resultPart = void 0;
      }
    } else {
      this._resultText = '';
      this._resultPart = void 0;
    }
  }
  readBacktickExpansion(insideDoubleQuotes = false) {
    this.pos++;
    const src = this.src;
    const len = this.srcEnd;
    const start = this.pos;
    if (!this._buildParts && !this._buildValue) {
      while (this.pos < len && src.charCodeAt(this.pos) !== CH_BACKTICK) {
        if (src.charCodeAt(this.pos) === CH_BACKSLASH && this.pos + 1 < len) this.pos++;
        this.pos++;
      }
      if (this.pos < len) this.pos++;
      else this.errors.push({ message: 'unterminated backtick', pos: start - 1 });
      this._resultText = '';
      this._resultIsRaw = false;
      this._resultHasExpansion = true;
      this._resultPart = void 0;
      return;
    }
    let inner = '';
    let hasEscapes = false;
    while (this.pos < len && src.charCodeAt(this.pos) !== CH_BACKTICK) {
      if (src.charCodeAt(this.pos) === CH_BACKSLASH) {
        hasEscapes = true;
        break;
      }
      this.pos++;
    }
    if (!hasEscapes) {
      inner = src.slice(start, this.pos);
    } else {
      inner = src.slice(start, this.pos);
      while (this.pos < len && src.charCodeAt(this.pos) !== CH_BACKTICK) {
        if (src.charCodeAt(this.pos) === CH_BACKSLASH) {
          this.pos++;
          if (this.pos < len) {
            const c = src.charCodeAt(this.pos);
            if (
              c === CH_DOLLAR ||
              c === CH_BACKTICK ||
              c === CH_BACKSLASH ||
              (insideDoubleQuotes && c === CH_DQUOTE)
            ) {
              inner += src[this.pos];
            } else {
              inner += '\\' + src[this.pos];
            }
            this.pos++;
          }
        } else {
          const runStart = this.pos;
          while (this.pos < len) {
            const c = src.charCodeAt(this.pos);
            if (c === CH_BACKTICK || c === CH_BACKSLASH) break;
            this.pos++;
          }
          inner += src.slice(runStart, this.pos);
        }
      }
    }
    if (this.pos < len) this.pos++;
    else this.errors.push({ message: 'unterminated backtick', pos: start - 1 });
    const text = src.slice(start - 1, this.pos);
    this._resultText = inner;
    this._resultHasExpansion = true;
    if (this._buildParts) {
      this._resultPart = hasEscapes
        ? this.decodedCommandExpansion(start - 1, text, inner)
        : this.commandExpansion(start - 1, text, start, inner);
    } else {
      this._resultPart = void 0;
    }
  }
  readParameterExpansion(insideDoubleQuotes) {
    const src = this.src;
    const len = this.srcEnd;
    const start = this.pos;
    this.pos++;
    let depth = 1;
    let reported = false;
    while (this.pos < len && depth > 0) {
      const ch = src.charCodeAt(this.pos);
      if (ch === CH_DOLLAR) {
        const next = this.pos + 1 < len ? src.charCodeAt(this.pos + 1) : 0;
        if (next === CH_LBRACE) {
          depth++;
          if (this._nestingDepth + depth > MAX_SYNTAX_NESTING && !reported) {
            this.errors.push({
              message: 'maximum parameter expansion nesting depth exceeded',
              pos: this.pos,
            });
            reported = true;
          }
          this.pos += 2;
          continue;
        }
        if (next === CH_DOLLAR) {
          this.pos += 2;
          continue;
        }
        if (next === CH_LPAREN) {
          const dollarPos = this.pos;
          this.pos += 2;
          this.extractBalanced();
          if (this._unbalanced)
            this.errors.push({ message: 'unterminated command substitution', pos: dollarPos });
          continue;
        }
      } else if (ch === CH_BACKTICK) {
        this.pos++;
        while (this.pos < len && src.charCodeAt(this.pos) !== CH_BACKTICK) {
          if (src.charCodeAt(this.pos) === CH_BACKSLASH) this.pos++;
          this.pos++;
        }
        if (this.pos < len) this.pos++;
        continue;
      } else if (ch === CH_RBRACE) {
        if (--depth === 0) {
          this.pos++;
          break;
        }
      } else if (ch === CH_BACKSLASH) {
        if (this.pos + 1 < len) this.pos++;
      } else if (ch === CH_SQUOTE) {
        this.pos++;
        if (this.pos > start + 1 && src.charCodeAt(this.pos - 2) === CH_DOLLAR) this.skipAnsiCQuoted();
        else this.skipSQ();
        continue;
      } else if (ch === CH_DQUOTE) {
        this.pos++;
        this.skipDQ();
        continue;
      }
      this.pos++;
    }
    const closed = depth === 0;
    if (!closed) this.errors.push({ message: 'unterminated parameter expansion', pos: start - 1 });
    const text = this._buildParts || this._buildValue ? src.slice(start - 1, this.pos) : '';
    this._resultText = text;
    this._resultIsRaw = true;
    this._resultHasExpansion = false;
    if (this._buildParts) {
      const inner = src.slice(start + 1, closed ? this.pos - 1 : this.pos);
      this._resultPart = this.parseParamInner(text, inner, start + 1, insideDoubleQuotes);
    } else {
      this._resultPart = void 0;
    }
  }
  // `innerStart` is the absolute offset of `inner` in the original source, so each sub-field
  // word is parsed in place at its true position. `sub(a, b)` maps inner-relative offsets to
  // that absolute window.
  parseParamInner(text, inner, innerStart, insideDoubleQuotes) {
    const result = {
      type: 'ParameterExpansion',
      pos: innerStart - 2,
      end: this.pos,
      text,
      parameter: '',
      parameterPos: innerStart,
      parameterEnd: innerStart,
      prefix: void 0,
      index: void 0,
      operation: void 0,
    };
    const ilen = inner.length;
    if (ilen === 0) return result;
    const sub = (a, b, context = 'word') => this.parseSubFieldWord(innerStart + a, innerStart + b, context);
    const closeBracket = (start) => {
      const close = this.findClosingBracket(innerStart + start, innerStart + ilen);
      return close === -1 ? -1 : close - innerStart;
    };
    let i = 0;
    if (ilen > 1 && inner.charCodeAt(0) === CH_BANG) {
      result.prefix = '!';
      i = 1;
    }
    if (ilen > 1 && inner.charCodeAt(0) === CH_HASH) {
      const nameEnd = this.scanParamName(inner, 1);
      let parameterEnd = nameEnd;
      let indexEnd = -1;
      if (parameterEnd < ilen && inner.charCodeAt(parameterEnd) === CH_LBRACKET) {
        indexEnd = closeBracket(parameterEnd + 1);
        if (indexEnd !== -1) parameterEnd = indexEnd + 1;
      }
      if (nameEnd > 1 && parameterEnd === ilen) {
        result.prefix = '#';
        result.parameter = inner.slice(1, nameEnd);
        result.parameterPos = innerStart + 1;
        result.parameterEnd = innerStart + nameEnd;
        if (indexEnd !== -1) result.index = sub(nameEnd + 1, indexEnd, 'embedded');
        return result;
      }
    }
    const nameStart = i;
    i = this.scanParamName(inner, i);
    result.parameter = inner.slice(nameStart, i);
    result.parameterPos = innerStart + nameStart;
    result.parameterEnd = innerStart + i;
    if (i < ilen && inner.charCodeAt(i) === CH_LBRACKET) {
      const closeB = closeBracket(i + 1);
      if (closeB !== -1) {
        result.index = sub(i + 1, closeB, 'embedded');
        i = closeB + 1;
      }
    }
    if (i >= ilen) return result;
    const pos = innerStart + i;
    const end = innerStart + ilen;
    const opChar = inner.charCodeAt(i);
    const nextChar = inner.charCodeAt(i + 1);
    const defaultChar = inner[opChar === CH_COLON ? i + 1 : i];
    if (defaultChar === '-' || defaultChar === '=' || defaultChar === '+' || defaultChar === '?') {
      const operandStart = i + (opChar === CH_COLON ? 2 : 1);
      result.operation = {
        type: 'Default',
        pos,
        end,
        operatorEnd: innerStart + operandStart,
        operator: opChar === CH_COLON ? `:${defaultChar}` : defaultChar,
        operand: sub(operandStart, ilen, insideDoubleQuotes ? 'quoted' : 'word'),
      };
      return result;
    }
    if (opChar === CH_COLON) {
      i++;
      const sliceStart = innerStart + i;
      const colonIdx = findUnnested(inner.slice(i), CH_COLON, true, (index, quoted2) => {
        return this.findNestedShellEnd(sliceStart + index, end, quoted2) - sliceStart;
      });
      result.operation = {
        type: 'Slice',
        pos,
        end,
        operatorEnd: sliceStart,
        operator: ':',
        offset: sub(i, colonIdx === -1 ? ilen : i + colonIdx, 'embedded'),
        length: colonIdx === -1 ? void 0 : sub(i + colonIdx + 1, ilen, 'embedded'),
      };
      return result;
    }
    if (opChar === CH_HASH || opChar === CH_PERCENT) {
      const doubled = nextChar === opChar;
      const operator = opChar === CH_HASH ? (doubled ? '##' : '#') : doubled ? '%%' : '%';
      const operandStart = i + (doubled ? 2 : 1);
      result.operation = {
        type: 'Remove',
        pos,
        end,
        operatorEnd: innerStart + operandStart,
        operator,
        operand: sub(operandStart, ilen),
      };
      return result;
    }
    if (opChar === CH_SLASH) {
      i++;
      let operator = '/';
      if (nextChar === CH_SLASH || nextChar === CH_HASH || nextChar === CH_PERCENT) {
        operator = nextChar === CH_SLASH ? '//' : nextChar === CH_HASH ? '/#' : '/%';
        i++;
      }
      let separatorStart = i;
      if (nextChar === CH_SLASH) {
        separatorStart = skipLineContinuations(inner, i, ilen);
        if (inner.charCodeAt(separatorStart) === CH_SLASH) separatorStart++;
      }
      const sepIdx = findUnnested(inner.slice(separatorStart), CH_SLASH);
      const patternEnd = sepIdx === -1 ? ilen : separatorStart + sepIdx;
      result.operation = {
        type: 'Replace',
        pos,
        end,
        operatorEnd: innerStart + i,
        operator,
        pattern: sub(i, patternEnd),
        replacement: sub(sepIdx === -1 ? ilen : patternEnd + 1, ilen),
      };
      return result;
    }
    if (opChar === CH_CARET || opChar === CH_COMMA) {
      const doubled = nextChar === opChar;
      const operator = opChar === CH_CARET ? (doubled ? '^^' : '^') : doubled ? ',,' : ',';
      const operandStart = i + (doubled ? 2 : 1);
      result.operation = {
        type: 'CaseModification',
        pos,
        end,
        operatorEnd: innerStart + operandStart,
        operator,
        operand: operandStart === ilen ? void 0 : sub(operandStart, ilen),
      };
      return result;
    }
    if (
      result.prefix === '!' &&
      result.index === void 0 &&
      i + 1 === ilen &&
      (opChar === CH_AT || opChar === CH_STAR)
    ) {
      result.operation = {
        type: 'Names',
        pos,
        end,
        operatorEnd: end,
        operator: opChar === CH_AT ? '@' : '*',
      };
      return result;
    }
    if (opChar === CH_AT) {
      result.operation = {
        type: 'Transform',
        pos,
        end,
        operatorEnd: pos + 1,
        operator: '@',
        operand: sub(i + 1, ilen),
      };
      return result;
    }
    result.operation = { type: 'Unknown', pos, end, operatorEnd: end, operator: inner.slice(i) };
    return result;
  }
  findNestedShellEnd(start, end, quoted2) {
    const ch = this.src.charCodeAt(start);
    if (ch === CH_BACKTICK) {
      let pos = start + 1;
      while (pos < end) {
        const current = this.src.charCodeAt(pos);
        if (current === CH_BACKSLASH) {
          pos += 2;
          continue;
        }
        pos++;
        if (current === CH_BACKTICK) return pos;
      }
      return end;
    }
    let close;
    if (ch === CH_DOLLAR) {
      const next = start + 1;
      if (next < end && this.src.charCodeAt(next) === CH_LBRACE) {
        close = this.findClosingBrace(next + 1, end);
      } else {
        const open = skipLineContinuations(this.src, next, end);
        if (open >= end || this.src.charCodeAt(open) !== CH_LPAREN) return start;
        close = this.findClosingParenthesis(open + 1, end);
      }
    } else {
      const open = start + 1;
      if (
        quoted2 ||
        (ch !== CH_LT && ch !== CH_GT) ||
        open >= end ||
        this.src.charCodeAt(open) !== CH_LPAREN
      ) {
        return start;
      }
      close = this.findClosingParenthesis(open + 1, end);
    }
    return close === -1 ? end : close + 1;
  }
  scanParamName(s, start) {
    let i = start;
    if (i >= s.length) return i;
    const c = s.charCodeAt(i);
    if (
      c === CH_AT ||
      c === CH_STAR ||
      c === CH_HASH ||
      c === CH_QUESTION ||
      c === CH_DASH ||
      c === CH_DOLLAR ||
      c === CH_BANG
    ) {
      return i + 1;
    }
    if (c >= CH_0 && c <= CH_9) {
      while (i < s.length && s.charCodeAt(i) >= CH_0 && s.charCodeAt(i) <= CH_9) i++;
      return i;
    }
    if ((c >= CH_a && c <= CH_z) || (c >= CH_A && c <= CH_Z) || c === CH_UNDERSCORE) {
      i++;
      while (i < s.length) {
        const ch = s.charCodeAt(i);
        if (
          (ch >= CH_a && ch <= CH_z) ||
          (ch >= CH_A && ch <= CH_Z) ||
          (ch >= CH_0 && ch <= CH_9) ||
          ch === CH_UNDERSCORE
        )
          i++;
        else break;
      }
    }
    return i;
  }
  readAnsiCQuoted() {
    const quotePos = this.pos - 1;
    const result = decodeAnsiCQuoted(this.src, this.pos, this.srcEnd);
    this.pos = result.end;
    if (!result.closed) this.errors.push({ message: 'unterminated ANSI-C quote', pos: quotePos });
    return result.value;
  }
  // Quotes resume when a nested substitution returns to their parenthesis depth.
  extractBalanced(useGrammar = true, quoteOnly = false) {
    const src = this.src;
    const len = this.srcEnd;
    const bt = this._buildParts || this._buildValue;
    let depth = quoteOnly ? 0 : 1;
    const start = this.pos;
    this._unbalanced = false;
    const knownEnd = useGrammar && !quoteOnly ? this.substitutionContext.boundaries?.get(start) : void 0;
    if (knownEnd !== void 0 && knownEnd <= len && this._nestingDepth < MAX_SYNTAX_NESTING) {
      this.pos = knownEnd;
      return bt ? src.slice(start, knownEnd - 1) : '';
    }
    let wordStart = true;
    while (!quoteOnly && this.pos < len) {
      const c = src.charCodeAt(this.pos);
      if (c === CH_RPAREN) {
        const result = bt ? src.slice(start, this.pos) : '';
        this.pos++;
        return result;
      } else if (
        c === CH_LPAREN ||
        c === CH_BACKSLASH ||
        c === CH_SQUOTE ||
        c === CH_DQUOTE ||
        c === CH_BACKTICK ||
        (c === CH_DOLLAR &&
          (src.charCodeAt(this.pos + 1) === CH_SQUOTE ||
            src.charCodeAt(this.pos + 1) === CH_DOLLAR ||
            src.charCodeAt(this.pos + 1) === CH_LBRACE))
      ) {
        break;
      } else if (c === CH_LT && this.pos + 1 < len && src.charCodeAt(this.pos + 1) === CH_LT) {
        break;
      } else if (c === CH_HASH && wordStart) {
        break;
      } else if (
        c === 99 &&
        wordStart &&
        this.pos + 3 < len &&
        src.charCodeAt(this.pos + 1) === 97 &&
        src.charCodeAt(this.pos + 2) === 115 &&
        src.charCodeAt(this.pos + 3) === 101 &&
        (this.pos + 4 >= len ||
          (src.charCodeAt(this.pos + 4) < 128 && charType[src.charCodeAt(this.pos + 4)] & 1))
      ) {
        break;
      } else {
        wordStart = c < 128 && (charType[c] & 1) !== 0;
        this.pos++;
      }
    }
    let caseDepth = 0;
    let caseParens = 0;
    const wordStartAfterParen = [];
    let pendingDelims = null;
    let scripts;
    let arithBase = -1;
    let arithExtent =
      start >= 2 &&
      src.charCodeAt(start) === CH_LPAREN &&
      src.charCodeAt(start - 1) === CH_LPAREN &&
      src.charCodeAt(start - 2) === CH_DOLLAR;
    let substitutions = 0;
    let reported = false;
    const quotes = quoteOnly ? [{ close: CH_DQUOTE, depth: 0 }] : [];
    let quotedDepth = quoteOnly ? 1 : 0;
    let parameterDepth = 0;
    let arithmeticOpens;
    let continuedDollarPos = -1;
    let continuedParenPos = -1;
    let escapedEnd = -1;
    let lastParenEnd = -1;
    let checkedGrammar = false;
    while (this.pos < len && (depth > 0 || quotes.length > 0)) {
      let ch = src.charCodeAt(this.pos);
      const quote = quotes.length === 0 ? void 0 : quotes[quotes.length - 1];
      if (quote !== void 0 && quote.depth === depth) {
        let commandOpen = false;
        if (ch === CH_BACKSLASH) {
          this.pos = Math.min(this.pos + 2, len);
          continue;
        }
        if (ch === quote.close) {
          quotes.pop();
          if (ch === CH_DQUOTE) quotedDepth--;
          else parameterDepth--;
          this.pos++;
          if (quoteOnly && depth === 0 && quotes.length === 0) return '';
          continue;
        }
        if (ch === CH_DQUOTE) {
          quotes.push({ close: CH_DQUOTE, depth });
          quotedDepth++;
        } else if (ch === CH_SQUOTE && quote.close === CH_RBRACE) {
          this.pos++;
          this.skipSQ();
          continue;
        } else if (ch === CH_BACKTICK) {
          this.pos++;
          while (this.pos < len && src.charCodeAt(this.pos) !== CH_BACKTICK) {
            if (src.charCodeAt(this.pos) === CH_BACKSLASH) this.pos++;
            if (this.pos < len) this.pos++;
          }
          if (this.pos < len) this.pos++;
          continue;
        } else if (ch === CH_DOLLAR) {
          const next = src.charCodeAt(this.pos + 1);
          if (next === CH_SQUOTE && quote.close === CH_RBRACE) {
            this.pos += 2;
            this.skipAnsiCQuoted();
            continue;
          }
          if (next === CH_LBRACE) {
            quotes.push({ close: CH_RBRACE, depth });
            parameterDepth++;
            this.pos++;
          } else if (next === CH_LPAREN) {
            this.pos++;
            ch = CH_LPAREN;
            commandOpen = true;
          } else if (next === CH_DOLLAR) {
            this.pos += src.charCodeAt(this.pos + 2) === CH_LPAREN ? 1 : 2;
            continue;
          }
        }
        if (!reported && this._nestingDepth + Math.max(quotedDepth, parameterDepth) > MAX_SYNTAX_NESTING) {
          this.errors.push({ message: 'maximum word nesting depth exceeded', pos: this.pos });
          reported = true;
        }
        if (!commandOpen) {
          this.pos++;
          while (this.pos < len) {
            const c = src.charCodeAt(this.pos);
            if (
              c === CH_BACKSLASH ||
              c === CH_DQUOTE ||
              c === CH_DOLLAR ||
              c === CH_BACKTICK ||
              c === CH_RBRACE ||
              c === CH_SQUOTE
            )
              break;
            this.pos++;
          }
          continue;
        }
      }
      if (
        ch === CH_HASH &&
        lastParenEnd !== -1 &&
        !arithExtent &&
        arithBase < 0 &&
        useGrammar &&
        !checkedGrammar &&
        this._nestingDepth + (scripts?.length ?? 0) < MAX_SYNTAX_NESTING &&
        skipBlanks(src, lastParenEnd, len) === this.pos
      ) {
        checkedGrammar = true;
        const scope = scripts?.[scripts.length - 1];
        const end = this.findSubstitutionEnd(
          scope?.start ?? start,
          len,
          this._nestingDepth + (scripts?.length ?? 0) + 1,
        );
        if (end !== -1) {
          if (scope === void 0) {
            this.pos = end;
            return bt ? src.slice(start, end - 1) : '';
          }
          this.pos = end - 1;
          depth = scope.depth + 1;
          caseDepth = 0;
          caseParens = 0;
          wordStartAfterParen.length = scope.parens + 1;
          ch = CH_RPAREN;
        }
      }
      if (ch === CH_LPAREN) {
        const prev = this.pos > start && this.pos !== escapedEnd ? src.charCodeAt(this.pos - 1) : 0;
        const commandDollarPos =
          prev === CH_DOLLAR ? this.pos - 1 : this.pos === continuedParenPos ? continuedDollarPos : -1;
        const wordParen =
          commandDollarPos !== -1 ||
          prev === CH_LT ||
          prev === CH_GT ||
          prev === CH_EQ ||
          prev === CH_AT ||
          prev === CH_QUESTION ||
          prev === CH_STAR ||
          prev === CH_PLUS ||
          prev === CH_BANG ||
          (prev === CH_LPAREN && wordStartAfterParen[wordStartAfterParen.length - 1] === false) ||
          (arithExtent && this.pos === start);
        const script2 =
          (commandDollarPos !== -1 && src.charCodeAt(this.pos + 1) !== CH_LPAREN) ||
          ((prev === CH_LT || prev === CH_GT) && arithBase < 0 && !arithExtent);
        if (script2) {
          (scripts ?? (scripts = [])).push({
            start: this.pos + 1,
            dollar: commandDollarPos,
            depth,
            parens: wordStartAfterParen.length,
            caseDepth,
            caseParens,
            arithBase,
            arithExtent,
            substitutions,
            checkedGrammar,
            pendingDelims,
          });
          caseDepth = 0;
          caseParens = 0;
          arithBase = -1;
          arithExtent = false;
          checkedGrammar = false;
          pendingDelims = null;
        }
        wordStartAfterParen.push(!wordParen);
        wordStart = true;
        if (!script2 && arithBase < 0 && this.pos + 1 < len && src.charCodeAt(this.pos + 1) === CH_LPAREN) {
          arithBase = depth;
        }
        if (commandDollarPos !== -1) {
          if (script2) substitutions++;
          else (arithmeticOpens ?? (arithmeticOpens = [])).push(depth);
          if (
            substitutions + (arithmeticOpens?.length ?? 0) + this._nestingDepth + (quoteOnly ? 0 : 1) >
              MAX_SYNTAX_NESTING &&
            !reported
          ) {
            this.errors.push({
              message: 'maximum command substitution nesting depth exceeded',
              pos: commandDollarPos,
            });
            reported = true;
          }
        }
        continuedDollarPos = -1;
        continuedParenPos = -1;
        depth++;
        if (caseDepth > 0) caseParens++;
        this.pos++;
      } else if (ch === CH_RPAREN) {
        if (caseDepth > 0 && caseParens === 0) {
          this.pos++;
          wordStart = true;
        } else {
          if (caseDepth > 0) caseParens--;
          depth--;
          if (depth === 0 && !quoteOnly) {
            const result = bt ? src.slice(start, this.pos) : '';
            this.pos++;
            return result;
          }
          if (depth <= arithBase) arithBase = -1;
          if (arithmeticOpens !== void 0) {
            while (arithmeticOpens.length > 0 && arithmeticOpens[arithmeticOpens.length - 1] >= depth)
              arithmeticOpens.pop();
          }
          wordStart = wordStartAfterParen.pop() ?? true;
          this.pos++;
          const scope = scripts?.[scripts.length - 1];
          if (scope !== void 0 && scope.depth === depth) {
            scripts.pop();
            caseDepth = scope.caseDepth;
            caseParens = scope.caseParens;
            arithBase = scope.arithBase;
            arithExtent = scope.arithExtent;
            substitutions = scope.substitutions;
            checkedGrammar = scope.checkedGrammar;
            pendingDelims = scope.pendingDelims;
          }
        }
        lastParenEnd = this.pos;
      } else if (ch === CH_BACKSLASH) {
        if (this.pos > start && src.charCodeAt(this.pos - 1) === CH_DOLLAR) {
          const logicalPos = skipLineContinuations(src, this.pos, len);
          if (
            logicalPos > this.pos &&
            src.charCodeAt(logicalPos) === CH_LPAREN &&
            src.charCodeAt(logicalPos + 1) !== CH_LPAREN
          ) {
            continuedDollarPos = this.pos - 1;
            continuedParenPos = logicalPos;
          }
        }
        this.pos++;
        if (this.pos < len) {
          if (src.charCodeAt(this.pos) !== CH_NL) {
            wordStart = false;
          }
          this.pos++;
        }
        escapedEnd = this.pos;
      } else if (ch === CH_DOLLAR) {
        const next = src.charCodeAt(++this.pos);
        if (next === CH_SQUOTE) {
          this.pos++;
          this.skipAnsiCQuoted();
        } else if (next === CH_DOLLAR) {
          this.pos++;
        } else if (next === CH_LBRACE && !isBraceCommandOpener(src.charCodeAt(this.pos + 1))) {
          quotes.push({ close: CH_RBRACE, depth });
          parameterDepth++;
          this.pos++;
        }
        wordStart = false;
      } else if (ch === CH_SQUOTE) {
        this.pos++;
        this.skipSQ();
        wordStart = false;
      } else if (ch === CH_DQUOTE) {
        quotes.push({ close: CH_DQUOTE, depth });
        quotedDepth++;
        this.pos++;
        wordStart = false;
      } else if (ch === CH_BACKTICK) {
        this.pos++;
        while (this.pos < len && src.charCodeAt(this.pos) !== CH_BACKTICK) {
          if (src.charCodeAt(this.pos) === CH_BACKSLASH) this.pos++;
          if (this.pos < len) this.pos++;
        }
        if (this.pos < len) this.pos++;
        wordStart = false;
      } else if (
        ch === CH_LT &&
        arithBase < 0 &&
        this.pos + 1 < len &&
        src.charCodeAt(this.pos + 1) === CH_LT
      ) {
        if (this.pos + 2 < len && src.charCodeAt(this.pos + 2) === CH_LT) {
          this.pos += 3;
        } else {
          this.pos += 2;
          const strip = this.pos < len && src.charCodeAt(this.pos) === CH_DASH;
          if (strip) this.pos++;
          this.skipSpacesAndTabs();
          this.readHereDocDelimiter();
          if (this._hereDelim || this._hereQuoted) {
            (pendingDelims ?? (pendingDelims = [])).push({
              delimiter: this._hereDelim,
              strip,
              quoted: this._hereQuoted,
            });
          }
        }
        wordStart = false;
      } else if (ch === CH_NL && pendingDelims) {
        this.pos++;
        for (const hd of pendingDelims) this.skipHereDocBody(hd.delimiter, hd.strip, true, hd.quoted);
        pendingDelims = null;
        wordStart = true;
      } else if (ch === CH_HASH && arithBase < 0 && !arithExtent && wordStart) {
        while (this.pos < len && src.charCodeAt(this.pos) !== CH_NL) this.pos++;
      } else {
        const wStart = this.pos;
        while (this.pos < len) {
          const wc = src.charCodeAt(this.pos);
          if (wc < 128 && charType[wc]) break;
          this.pos++;
        }
        if (this.pos > wStart) {
          const wLen = this.pos - wStart;
          if (wLen === 4 && wordStart && arithBase < 0 && !arithExtent) {
            const c0 = src.charCodeAt(wStart);
            if (
              c0 === 99 &&
              src.charCodeAt(wStart + 1) === 97 &&
              src.charCodeAt(wStart + 2) === 115 &&
              src.charCodeAt(wStart + 3) === 101
            ) {
              caseDepth++;
            } else if (
              c0 === 101 &&
              src.charCodeAt(wStart + 1) === 115 &&
              src.charCodeAt(wStart + 2) === 97 &&
              src.charCodeAt(wStart + 3) === 99 &&
              caseDepth > 0
            ) {
              caseDepth--;
              if (caseDepth === 0) caseParens = 0;
            }
          }
          wordStart = false;
        } else {
          const wc = src.charCodeAt(this.pos);
          wordStart = wc < 128 && (charType[wc] & 1) !== 0;
          this.pos++;
        }
      }
    }
    this._unbalanced = true;
    if (quoteOnly && scripts !== void 0 && scripts.length > 0) {
      this.errors.push({ message: 'unterminated command substitution', pos: scripts[0].dollar });
    }
    return bt ? src.slice(start, this.pos) : '';
  }
};

// node_modules/unbash/dist/arithmetic.js
function opPrec(op) {
  switch (op) {
    case ',':
      return 1;
    case '=':
    case '+=':
    case '-=':
    case '*=':
    case '/=':
    case '%=':
    case '<<=':
    case '>>=':
    case '&=':
    case '|=':
    case '^=':
      return 2;
    case '||':
      return 4;
    case '&&':
      return 5;
    case '|':
      return 6;
    case '^':
      return 7;
    case '&':
      return 8;
    case '==':
    case '!=':
      return 9;
    case '<':
    case '<=':
    case '>':
    case '>=':
      return 10;
    case '<<':
    case '>>':
      return 11;
    case '+':
    case '-':
      return 12;
    case '*':
    case '/':
    case '%':
      return 13;
    case '**':
      return 14;
    case '?':
      return 3;
    default:
      return -1;
  }
}
function trimEnd(src, start, end) {
  while (end > start) {
    const c = src.charCodeAt(end - 1);
    if (c !== CH_SPACE && c !== CH_TAB && c !== CH_NL) break;
    end--;
  }
  return end;
}
function opRightAssoc(op) {
  switch (op) {
    case '=':
    case '+=':
    case '-=':
    case '*=':
    case '/=':
    case '%=':
    case '<<=':
    case '>>=':
    case '&=':
    case '|=':
    case '^=':
    case '**':
      return true;
    default:
      return false;
  }
}
function parseArithmeticExpression(src, offset = 0, collector, nestingDepth = 0) {
  let pos = 0;
  const len = src.length;
  const initialWordCount = collector?.embeddedWords.length ?? 0;
  function makeWord(start2, end, embedded = false) {
    const node = {
      type: 'ArithmeticWord',
      pos: start2 + offset,
      end: end + offset,
      value: src.slice(start2, end),
      parts: void 0,
    };
    if (embedded) collector?.embeddedWords.push(node);
    return node;
  }
  function skipWS() {
    while (pos < len) {
      const c = src.charCodeAt(pos);
      if (c === CH_SPACE || c === CH_TAB || c === CH_NL) pos++;
      else break;
    }
  }
  function tryReadBinOp() {
    if (pos >= len) return null;
    const c = src.charCodeAt(pos);
    const nc = pos + 1 < len ? src.charCodeAt(pos + 1) : 0;
    const nnc = pos + 2 < len ? src.charCodeAt(pos + 2) : 0;
    switch (c) {
      case CH_COMMA:
        pos++;
        return ',';
      case CH_EQ:
        if (nc === CH_EQ) {
          pos += 2;
          return '==';
        }
        pos++;
        return '=';
      case CH_BANG:
        if (nc === CH_EQ) {
          pos += 2;
          return '!=';
        }
        return null;
      // unary
      case CH_LT:
        if (nc === CH_LT) {
          if (nnc === CH_EQ) {
            pos += 3;
            return '<<=';
          }
          pos += 2;
          return '<<';
        }
        if (nc === CH_EQ) {
          pos += 2;
          return '<=';
        }
        pos++;
        return '<';
      case CH_GT:
        if (nc === CH_GT) {
          if (nnc === CH_EQ) {
            pos += 3;
            return '>>=';
          }
          pos += 2;
          return '>>';
        }
        if (nc === CH_EQ) {
          pos += 2;
          return '>=';
        }
        pos++;
        return '>';
      case CH_PLUS:
        if (nc === CH_EQ) {
          pos += 2;
          return '+=';
        }
        if (nc === CH_PLUS) return null;
        pos++;
        return '+';
      case CH_DASH:
        if (nc === CH_EQ) {
          pos += 2;
          return '-=';
        }
        if (nc === CH_DASH) return null;
        pos++;
        return '-';
      case CH_STAR:
        if (nc === CH_STAR) {
          pos += 2;
          return '**';
        }
        if (nc === CH_EQ) {
          pos += 2;
          return '*=';
        }
        pos++;
        return '*';
      case CH_SLASH:
        if (nc === CH_EQ) {
          pos += 2;
          return '/=';
        }
        pos++;
        return '/';
      case CH_PERCENT:
        if (nc === CH_EQ) {
          pos += 2;
          return '%=';
        }
        pos++;
        return '%';
      case CH_PIPE:
        if (nc === CH_PIPE) {
          pos += 2;
          return '||';
        }
        if (nc === CH_EQ) {
          pos += 2;
          return '|=';
        }
        pos++;
        return '|';
      case CH_AMP:
        if (nc === CH_AMP) {
          pos += 2;
          return '&&';
        }
        if (nc === CH_EQ) {
          pos += 2;
          return '&=';
        }
        pos++;
        return '&';
      case CH_CARET:
        if (nc === CH_EQ) {
          pos += 2;
          return '^=';
        }
        pos++;
        return '^';
      case CH_QUESTION:
        pos++;
        return '?';
      default:
        return null;
    }
  }
  function skipTruncatedUnary() {
    skipWS();
    while (pos < len) {
      const c2 = src.charCodeAt(pos);
      if (c2 !== CH_BANG && c2 !== CH_TILDE && c2 !== CH_PLUS && c2 !== CH_DASH) break;
      if (src.charCodeAt(pos + 1) === CH_EQ) break;
      pos++;
      skipWS();
    }
    if (src.charCodeAt(pos) === CH_LPAREN) {
      let groups = 1;
      pos++;
      while (pos < len && groups > 0) {
        const wordEnd = collector?.findArithmeticWordEnd?.(pos + offset, offset + len) ?? pos + offset;
        if (wordEnd > pos + offset) {
          pos = wordEnd - offset;
          continue;
        }
        const c2 = src.charCodeAt(pos++);
        if (c2 === CH_LPAREN) groups++;
        else if (c2 === CH_RPAREN) groups--;
      }
    } else if (pos < len && src.charCodeAt(pos) !== CH_RPAREN && src.charCodeAt(pos) !== CH_COLON) {
      parseAtom(0);
    }
    skipWS();
    const c = src.charCodeAt(pos);
    if ((c === CH_PLUS || c === CH_DASH) && src.charCodeAt(pos + 1) === c) pos += 2;
  }
  function recoverExpression(minPrec) {
    skipWS();
    const start2 = pos;
    if (start2 === len) return makeWord(start2, start2);
    const wordCount = collector?.embeddedWords.length ?? 0;
    let ternaries = 0;
    for (;;) {
      skipTruncatedUnary();
      skipWS();
      if (src.charCodeAt(pos) === CH_COLON && ternaries > 0) {
        ternaries--;
        pos++;
        continue;
      }
      const saved = pos;
      const op = tryReadBinOp();
      if (op === null || (ternaries === 0 && opPrec(op) < minPrec)) {
        pos = saved;
        break;
      }
      if (op === '?') ternaries++;
    }
    if (collector) collector.embeddedWords.length = wordCount;
    return makeWord(start2, trimEnd(src, start2, pos));
  }
  function parseBinExpr(minPrec, depth) {
    if (depth > MAX_SYNTAX_NESTING) return recoverExpression(minPrec);
    let left = parseUnaryExpr(depth);
    while (true) {
      skipWS();
      if (pos >= len) break;
      const saved = pos;
      const op = tryReadBinOp();
      if (!op) break;
      if (op === '?') {
        if (opPrec(op) < minPrec) {
          pos = saved;
          break;
        }
        const consequent = parseBinExpr(1, depth + 1);
        skipWS();
        if (pos < len && src.charCodeAt(pos) === CH_COLON) pos++;
        const alternate = parseBinExpr(3, depth + 1);
        left = {
          type: 'ArithmeticTernary',
          pos: left.pos,
          end: alternate.end,
          test: left,
          consequent,
          alternate,
        };
        continue;
      }
      const prec = opPrec(op);
      if (prec < minPrec) {
        pos = saved;
        break;
      }
      const nextPrec = opRightAssoc(op) ? prec : prec + 1;
      const right = parseBinExpr(nextPrec, depth + 1);
      left = { type: 'ArithmeticBinary', pos: left.pos, end: right.end, operator: op, left, right };
    }
    return left;
  }
  function parseUnaryExpr(depth) {
    skipWS();
    if (depth > MAX_SYNTAX_NESTING) return recoverExpression(15);
    if (pos >= len) return makeWord(pos, pos);
    const start2 = pos;
    const c = src.charCodeAt(pos);
    const nc = pos + 1 < len ? src.charCodeAt(pos + 1) : 0;
    if (c === CH_PLUS && nc === CH_PLUS) {
      pos += 2;
      const operand = parseUnaryExpr(depth + 1);
      return {
        type: 'ArithmeticUnary',
        pos: start2 + offset,
        end: operand.end,
        operator: '++',
        operand,
        prefix: true,
      };
    }
    if (c === CH_DASH && nc === CH_DASH) {
      pos += 2;
      const operand = parseUnaryExpr(depth + 1);
      return {
        type: 'ArithmeticUnary',
        pos: start2 + offset,
        end: operand.end,
        operator: '--',
        operand,
        prefix: true,
      };
    }
    if (c === CH_BANG) {
      pos++;
      const operand = parseUnaryExpr(depth + 1);
      return {
        type: 'ArithmeticUnary',
        pos: start2 + offset,
        end: operand.end,
        operator: '!',
        operand,
        prefix: true,
      };
    }
    if (c === CH_TILDE) {
      pos++;
      const operand = parseUnaryExpr(depth + 1);
      return {
        type: 'ArithmeticUnary',
        pos: start2 + offset,
        end: operand.end,
        operator: '~',
        operand,
        prefix: true,
      };
    }
    if (c === CH_PLUS && nc !== CH_PLUS && nc !== CH_EQ) {
      pos++;
      const operand = parseUnaryExpr(depth + 1);
      return {
        type: 'ArithmeticUnary',
        pos: start2 + offset,
        end: operand.end,
        operator: '+',
        operand,
        prefix: true,
      };
    }
    if (c === CH_DASH && nc !== CH_DASH && nc !== CH_EQ) {
      pos++;
      const operand = parseUnaryExpr(depth + 1);
      return {
        type: 'ArithmeticUnary',
        pos: start2 + offset,
        end: operand.end,
        operator: '-',
        operand,
        prefix: true,
      };
    }
    return parsePostfixExpr(depth);
  }
  function parsePostfixExpr(depth) {
    const operand = parseAtom(depth);
    skipWS();
    if (pos + 1 < len) {
      const c = src.charCodeAt(pos);
      const nc = src.charCodeAt(pos + 1);
      if (c === CH_PLUS && nc === CH_PLUS) {
        pos += 2;
        return {
          type: 'ArithmeticUnary',
          pos: operand.pos,
          end: pos + offset,
          operator: '++',
          operand,
          prefix: false,
        };
      }
      if (c === CH_DASH && nc === CH_DASH) {
        pos += 2;
        return {
          type: 'ArithmeticUnary',
          pos: operand.pos,
          end: pos + offset,
          operator: '--',
          operand,
          prefix: false,
        };
      }
    }
    return operand;
  }
  function parseAtom(depth) {
    skipWS();
    if (pos >= len) return makeWord(pos, pos);
    const c = src.charCodeAt(pos);
    if (c === CH_LPAREN) {
      const start3 = pos;
      pos++;
      const expr = parseBinExpr(0, depth + 1);
      skipWS();
      if (pos < len && src.charCodeAt(pos) === CH_RPAREN) pos++;
      return { type: 'ArithmeticGroup', pos: start3 + offset, end: pos + offset, expression: expr };
    }
    if (c === CH_DOLLAR) {
      const start3 = pos;
      const wordCount2 = collector?.embeddedWords.length ?? 0;
      const atom2 = readDollarAtom();
      const wordEnd2 = collector?.findArithmeticWordEnd?.(start3 + offset, offset + len) ?? pos + offset;
      if (wordEnd2 > pos + offset) {
        if (collector) collector.embeddedWords.length = wordCount2;
        pos = wordEnd2 - offset;
        return makeWord(start3, pos, true);
      }
      return atom2;
    }
    if (c === 96 || c === 34 || c === 39) {
      const start3 = pos;
      pos =
        (collector?.findArithmeticWordEnd?.(start3 + offset, offset + len) ?? start3 + offset + 1) - offset;
      return makeWord(start3, pos, true);
    }
    const start2 = pos;
    const wordCount = collector?.embeddedWords.length ?? 0;
    const atom = readWordAtom();
    const wordEnd = collector?.findArithmeticWordEnd?.(start2 + offset, offset + len) ?? pos + offset;
    if (wordEnd > pos + offset) {
      if (collector) collector.embeddedWords.length = wordCount;
      pos = wordEnd - offset;
      return makeWord(start2, pos, true);
    }
    return atom;
  }
  function readDollarAtom() {
    const start2 = pos;
    pos++;
    if (pos >= len) return makeWord(start2, pos);
    const c = src.charCodeAt(pos);
    if (c === CH_LPAREN) {
      if (pos + 1 < len && src.charCodeAt(pos + 1) === CH_LPAREN) {
        const expansionEnd = collector?.findArithmeticExpansionEnd(start2 + offset, offset + len) ?? -1;
        if (expansionEnd !== -1) {
          pos = expansionEnd - offset;
        } else {
          pos += 2;
          let depth = 1;
          while (pos < len && depth > 0) {
            if (src.charCodeAt(pos) === CH_LPAREN && src.charCodeAt(pos + 1) === CH_LPAREN) {
              depth++;
              pos += 2;
            } else if (src.charCodeAt(pos) === CH_RPAREN && src.charCodeAt(pos + 1) === CH_RPAREN) {
              depth--;
              pos += 2;
            } else {
              pos++;
            }
          }
        }
      } else {
        pos++;
        const close = collector?.findClosingParenthesis(pos + offset, offset + len) ?? -1;
        if (close !== -1) {
          pos = close - offset + 1;
        } else {
          let depth = 1;
          while (pos < len && depth > 0) {
            const ch = src.charCodeAt(pos++);
            if (ch === CH_LPAREN) depth++;
            else if (ch === CH_RPAREN) depth--;
          }
        }
        const text = src.slice(start2, pos);
        return collector
          ? collector.commandExpansion(start2 + offset, pos + offset, text)
          : new ScriptExpansionImpl('ArithmeticCommandExpansion', start2 + offset, pos + offset, text);
      }
    } else if (c === CH_LBRACE) {
      const close = collector?.findClosingBrace(pos + offset + 1, offset + len) ?? -1;
      if (close !== -1) {
        pos = close - offset + 1;
      } else {
        pos++;
        let depth = 1;
        while (pos < len && depth > 0) {
          const ch = src.charCodeAt(pos++);
          if (ch === CH_LBRACE) depth++;
          else if (ch === CH_RBRACE) depth--;
        }
      }
    } else {
      while (pos < len) {
        const ch = src.charCodeAt(pos);
        if (
          (ch >= CH_a && ch <= CH_z) ||
          (ch >= CH_A && ch <= CH_Z) ||
          (ch >= CH_0 && ch <= CH_9) ||
          ch === CH_UNDERSCORE
        )
          pos++;
        else break;
      }
    }
    return makeWord(start2, pos, c === CH_LPAREN || c === CH_LBRACE);
  }
  function readWordAtom() {
    const start2 = pos;
    while (pos < len) {
      const c = src.charCodeAt(pos);
      if (
        (c >= CH_0 && c <= CH_9) ||
        (c >= CH_A && c <= CH_Z) ||
        (c >= CH_a && c <= CH_z) ||
        c === CH_UNDERSCORE ||
        c === 35
      ) {
        pos++;
      } else break;
    }
    if (pos > start2 && pos < len && src.charCodeAt(pos) === CH_LBRACKET) {
      const close = collector?.findClosingBracket?.(pos + offset + 1, offset + len) ?? -1;
      if (close !== -1) {
        pos = close - offset + 1;
      } else {
        pos++;
        let depth = 1;
        while (pos < len && depth > 0) {
          const c = src.charCodeAt(pos);
          if (c === CH_LBRACKET) depth++;
          else if (c === CH_RBRACKET) depth--;
          pos++;
        }
      }
      return makeWord(start2, pos, true);
    }
    if (pos === start2) {
      pos++;
      return makeWord(start2, pos);
    }
    return makeWord(start2, pos);
  }
  skipWS();
  if (pos >= len) return null;
  const start = pos;
  const result = parseBinExpr(0, nestingDepth);
  skipWS();
  if (pos < len) {
    if (collector) collector.embeddedWords.length = initialWordCount;
    return makeWord(start, trimEnd(src, start, len), collector !== void 0);
  }
  return result;
}

// node_modules/unbash/dist/parts.js
var computeBareWordParts = (_source, word) =>
  hasGlobCharacters(word.text) ? parseGlobParts(word.text, 0, word.text.length, void 0, word.pos) : void 0;
function wordPartsResolver(context) {
  return (
    context.wordParts ??
    (context.wordParts = (source2, word, depth) => computeWordParts(source2, word, depth, context))
  );
}
function embeddedPartsResolver(context) {
  return (
    context.embeddedParts ??
    (context.embeddedParts = (source2, word, depth) =>
      computeEmbeddedWordParts(source2, word, depth, context))
  );
}
function arrayPartsResolver(context) {
  return (
    context.arrayParts ??
    (context.arrayParts = (source2, word, depth) => computeArrayElementParts(source2, word, depth, context))
  );
}
function computeWordParts(source2, word, depth = 0, context = createSubstitutionContext()) {
  const lexer = new Lexer(source2, word.pos, word.end, false, context);
  lexer._nestingDepth = depth;
  const parts = lexer.buildWordParts(word.pos);
  return parts ?? void 0;
}
function computeEmbeddedWordParts(source2, word, depth = 0, context, arithmetic = false) {
  if (!hasEmbeddedWordStructure(source2, word.pos, word.end)) return void 0;
  const lexer = new Lexer(source2, word.pos, word.end, false, context);
  lexer._nestingDepth = depth;
  const parts = lexer.buildEmbeddedWordParts(word.pos, arithmetic);
  return parts ?? void 0;
}
function computeArrayElementParts(source2, word, depth = 0, context) {
  const lexer = new Lexer(source2, word.pos, word.end, false, context);
  lexer._nestingDepth = depth;
  const parts = lexer.buildArrayElementParts(word.pos);
  return parts ?? void 0;
}
function computeHereDocBodyParts(source2, word, depth = 0, context) {
  const lexer = new Lexer(source2, word.pos, word.end, false, context);
  lexer._nestingDepth = depth;
  const parts = lexer.buildHereDocParts(word.pos, word.end);
  return parts ?? void 0;
}

// node_modules/unbash/dist/arithmetic-parts.js
function parseArithmeticWithParts(body, offset, source2, depth, context, embeddedDepth = depth) {
  if (!hasEmbeddedWordStructure(source2, offset, offset + body.length)) {
    return parseArithmeticExpression(body, offset, void 0, depth) ?? void 0;
  }
  const embeddedWords = [];
  const lexer = new Lexer(source2, 0, source2.length, false, context);
  lexer._nestingDepth = depth;
  const expression2 =
    parseArithmeticExpression(
      body,
      offset,
      {
        embeddedWords,
        commandExpansion: (pos, end, text) =>
          new ScriptExpansionImpl('ArithmeticCommandExpansion', pos, end, text, {
            source: source2,
            start: pos + 2,
            end: end - 1,
            depth: depth + 1,
            parenBoundary: true,
            context,
          }),
        findClosingBracket: (start, end) => lexer.findClosingBracket(start, end),
        findClosingBrace: (start, end) => lexer.findClosingBrace(start, end),
        findClosingParenthesis: (start, end) => lexer.findClosingParenthesis(start, end),
        findArithmeticExpansionEnd: (start, end) => lexer.findArithmeticExpansionEnd(start, end),
        findArithmeticWordEnd: (start, end) => lexer.findArithmeticWordEnd(start, end),
      },
      depth,
    ) ?? void 0;
  if (embeddedDepth <= MAX_SYNTAX_NESTING) {
    for (const node of embeddedWords)
      node.parts = computeEmbeddedWordParts(source2, node, embeddedDepth, context, true);
  }
  return expression2;
}

// node_modules/unbash/dist/assignment.js
var ArrayValueImpl = class {
  type = 'ArrayValue';
  pos;
  end;
  #source;
  #depth;
  #context;
  #elements;
  constructor(source2, pos, end, depth, context) {
    this.pos = pos;
    this.end = end;
    this.#source = source2;
    this.#depth = depth;
    this.#context = context;
  }
  get elements() {
    if (this.#elements) return this.#elements;
    const lexer = new Lexer(this.#source, this.pos + 1, this.end - 1, false, this.#context);
    lexer._nestingDepth = this.#depth;
    const elements = [];
    while (lexer.peek(LexContext.ArrayElement).token !== Token.EOF) {
      const token = lexer.next(LexContext.ArrayElement);
      if (token.token !== Token.Word && token.token !== Token.Assignment) continue;
      const text = token.raw ? token.value : this.#source.slice(token.pos, token.end);
      const indexed = text.charCodeAt(0) === 91;
      const context = lexer.getSubstitutionContext();
      const source2 = !indexed && token.raw && token.keywordEligible ? void 0 : this.#source;
      const resolver =
        source2 === void 0
          ? computeBareWordParts
          : indexed
            ? arrayPartsResolver(context)
            : wordPartsResolver(context);
      elements.push(new WordImpl(text, token.pos, token.end, source2, resolver, this.#depth));
    }
    this.#elements = elements;
    return elements;
  }
  toJSON() {
    return { type: this.type, pos: this.pos, end: this.end, elements: this.elements };
  }
};
var AssignmentImpl = class {
  type = 'Assignment';
  pos;
  end;
  text;
  #source;
  #depth;
  #context;
  #operatorPos;
  #name = null;
  #append;
  #index;
  #value = null;
  constructor(text, pos, end, source2, operatorPos, depth, context) {
    this.pos = pos;
    this.end = end;
    this.text = text;
    this.#source = source2;
    this.#operatorPos = operatorPos;
    this.#depth = depth;
    this.#context = context;
  }
  get name() {
    return this.#name ?? this.resolveTarget();
  }
  get append() {
    if (this.#name === null) this.resolveTarget();
    return this.#append;
  }
  get index() {
    if (this.#name === null) this.resolveTarget();
    return this.#index;
  }
  get value() {
    if (this.#value !== null) return this.#value;
    const start = this.#operatorPos + 1;
    const arrayStart = skipLineContinuations(this.#source, start, this.end);
    this.#value =
      this.#source.charCodeAt(arrayStart) === 40 && this.#source.charCodeAt(this.end - 1) === 41
        ? new ArrayValueImpl(this.#source, arrayStart, this.end, this.#depth, this.#context)
        : new WordImpl(
            this.#source.slice(start, this.end),
            start,
            this.end,
            this.#source,
            wordPartsResolver(this.#context),
            this.#depth,
          );
    return this.#value;
  }
  resolveTarget() {
    const equal = this.#operatorPos - this.pos;
    let nameEnd = equal;
    let appendPos = equal;
    while (
      appendPos >= 2 &&
      this.text.charCodeAt(appendPos - 2) === 92 &&
      this.text.charCodeAt(appendPos - 1) === 10
    )
      appendPos -= 2;
    if (this.text.charCodeAt(appendPos - 1) === 43) {
      this.#append = true;
      nameEnd = appendPos - 1;
    }
    const bracket = this.text.indexOf('[');
    if (bracket > 0 && bracket < nameEnd) {
      const close = this.text.lastIndexOf(']', equal);
      if (close > bracket) {
        const start = this.pos + bracket + 1;
        const end = this.pos + close;
        this.#index = new WordImpl(
          this.#source.slice(start, end),
          start,
          end,
          this.#source,
          embeddedPartsResolver(this.#context),
          this.#depth,
        );
        nameEnd = bracket;
      }
    }
    const name = this.text.slice(0, nameEnd);
    return (this.#name = name.includes('\\\n') ? name.split('\\\n').join('') : name);
  }
  toJSON() {
    return {
      type: this.type,
      pos: this.pos,
      end: this.end,
      text: this.text,
      name: this.name,
      append: this.append,
      index: this.index,
      value: this.value,
    };
  }
};

// node_modules/unbash/dist/command.js
var isArgument = (item) => item.type === 'Word' || item.type === 'Assignment';
var CommandImpl = class {
  type = 'Command';
  pos;
  end;
  name;
  prefix;
  suffix;
  #args;
  #redirects;
  constructor(pos, end, name, prefix, suffix) {
    this.pos = pos;
    this.end = end;
    this.name = name;
    this.prefix = prefix;
    this.suffix = suffix;
  }
  get args() {
    if (this.#args === void 0) {
      const suffix = this.suffix;
      this.#args = suffix.every(isArgument) ? suffix : suffix.filter(isArgument);
    }
    return this.#args;
  }
  get redirects() {
    if (this.#redirects === void 0) {
      const redirects = [];
      for (const item of this.prefix) if (item.type !== 'Assignment') redirects.push(item);
      for (const item of this.suffix) if (!isArgument(item)) redirects.push(item);
      this.#redirects = redirects;
    }
    return this.#redirects;
  }
  toJSON() {
    return {
      type: this.type,
      pos: this.pos,
      end: this.end,
      name: this.name,
      prefix: this.prefix,
      suffix: this.suffix,
    };
  }
};

// node_modules/unbash/dist/heredoc.js
var HereDocBodyImpl = class {
  type = 'HereDocBody';
  pos;
  end;
  text = '';
  #source;
  #depth;
  #context;
  #parts;
  constructor(source2, pos, quoted2, depth, context) {
    this.pos = pos;
    this.end = pos;
    this.#source = source2;
    this.#depth = depth;
    this.#context = context;
    this.#parts = quoted2 ? void 0 : null;
  }
  get parts() {
    if (this.#parts === null)
      this.#parts = computeHereDocBodyParts(this.#source, this, this.#depth, this.#context);
    return this.#parts;
  }
  toJSON() {
    return { type: this.type, pos: this.pos, end: this.end, text: this.text, parts: this.parts };
  }
};

// node_modules/unbash/dist/parser.js
Lexer._findSubstitutionEnd = findSubstitutionEnd;
ScriptExpansionImpl._resolveScript = parseRegion;
ArithmeticExpansionImpl._resolveExpression = parseArithmeticWithParts;
function isDeclarationCommand(name) {
  switch (name.length) {
    case 5:
      return name === 'local' || name === 'alias';
    case 6:
      return name === 'export';
    case 7:
      return name === 'declare' || name === 'typeset';
    case 8:
      return name === 'readonly';
    default:
      return false;
  }
}
var ArithmeticCommandImpl = class {
  type = 'ArithmeticCommand';
  pos;
  end;
  body;
  #source;
  #depth;
  #context;
  #expression = null;
  constructor(pos, end, body, source2, depth, context) {
    this.pos = pos;
    this.end = end;
    this.body = body;
    this.#source = source2;
    this.#depth = depth;
    this.#context = context;
  }
  get expression() {
    if (this.#expression === null) {
      this.#expression = parseArithmeticWithParts(
        this.body,
        this.pos + 2,
        this.#source,
        this.#depth,
        this.#context,
      );
    }
    return this.#expression;
  }
  set expression(v) {
    this.#expression = v ?? void 0;
  }
  toJSON() {
    return {
      type: this.type,
      pos: this.pos,
      end: this.end,
      expression: this.expression,
      body: this.body,
    };
  }
};
var ArithmeticForImpl = class {
  type = 'ArithmeticFor';
  pos;
  end;
  body;
  #initStr;
  #testStr;
  #updateStr;
  #initPos;
  #testPos;
  #updatePos;
  #source;
  #depth;
  #context;
  #initialize = null;
  #test = null;
  #update = null;
  constructor(
    pos,
    end,
    body,
    initStr,
    testStr,
    updateStr,
    initPos,
    testPos,
    updatePos,
    source2,
    depth,
    context,
  ) {
    this.pos = pos;
    this.end = end;
    this.body = body;
    this.#initStr = initStr;
    this.#testStr = testStr;
    this.#updateStr = updateStr;
    this.#initPos = initPos;
    this.#testPos = testPos;
    this.#updatePos = updatePos;
    this.#source = source2;
    this.#depth = depth;
    this.#context = context;
  }
  get initialize() {
    if (this.#initialize === null) {
      if (this.#initStr) {
        this.#initialize = parseArithmeticWithParts(
          this.#initStr,
          this.#initPos,
          this.#source,
          this.#depth,
          this.#context,
        );
      } else {
        this.#initialize = void 0;
      }
    }
    return this.#initialize;
  }
  set initialize(v) {
    this.#initialize = v ?? void 0;
  }
  get test() {
    if (this.#test === null) {
      if (this.#testStr) {
        this.#test = parseArithmeticWithParts(
          this.#testStr,
          this.#testPos,
          this.#source,
          this.#depth,
          this.#context,
        );
      } else {
        this.#test = void 0;
      }
    }
    return this.#test;
  }
  set test(v) {
    this.#test = v ?? void 0;
  }
  get update() {
    if (this.#update === null) {
      if (this.#updateStr) {
        this.#update = parseArithmeticWithParts(
          this.#updateStr,
          this.#updatePos,
          this.#source,
          this.#depth,
          this.#context,
        );
      } else {
        this.#update = void 0;
      }
    }
    return this.#update;
  }
  set update(v) {
    this.#update = v ?? void 0;
  }
  toJSON() {
    return {
      type: this.type,
      pos: this.pos,
      end: this.end,
      initialize: this.initialize,
      test: this.test,
      update: this.update,
      body: this.body,
    };
  }
};
var CASE_TERMINATORS = {
  [Token.DoubleSemi]: ';;',
  [Token.SemiAmp]: ';&',
  [Token.DoubleSemiAmp]: ';;&',
};
var REDIRECT_OPS = {
  '>': '>',
  '>>': '>>',
  '<': '<',
  '<>': '<>',
  '<&': '<&',
  '>&': '>&',
  '>|': '>|',
  '&>': '&>',
  '&>>': '&>>',
};
var listTerminators = new Uint8Array(37);
listTerminators[Token.EOF] = 1;
listTerminators[Token.RParen] = 1;
listTerminators[Token.RBrace] = 1;
listTerminators[Token.Then] = 1;
listTerminators[Token.Else] = 1;
listTerminators[Token.Elif] = 1;
listTerminators[Token.Fi] = 1;
listTerminators[Token.Do] = 1;
listTerminators[Token.Done] = 1;
listTerminators[Token.Esac] = 1;
listTerminators[Token.DoubleSemi] = 1;
listTerminators[Token.SemiAmp] = 1;
listTerminators[Token.DoubleSemiAmp] = 1;
var compoundClosers = new Uint8Array(37);
compoundClosers[Token.RParen] = 1;
compoundClosers[Token.RBrace] = 1;
compoundClosers[Token.DblRBracket] = 1;
compoundClosers[Token.Fi] = 1;
compoundClosers[Token.Done] = 1;
compoundClosers[Token.Esac] = 1;
compoundClosers[Token.ArithCmd] = 1;
function isTestNegation(t) {
  return t.token === Token.Word && t.keywordEligible && t.value === '!';
}
var commandStarts = new Uint8Array(37);
commandStarts[Token.Word] = 1;
commandStarts[Token.Assignment] = 1;
commandStarts[Token.Bang] = 1;
commandStarts[Token.LParen] = 1;
commandStarts[Token.LBrace] = 1;
commandStarts[Token.DblLBracket] = 1;
commandStarts[Token.If] = 1;
commandStarts[Token.For] = 1;
commandStarts[Token.While] = 1;
commandStarts[Token.Until] = 1;
commandStarts[Token.Case] = 1;
commandStarts[Token.Function] = 1;
commandStarts[Token.Select] = 1;
commandStarts[Token.ArithCmd] = 1;
commandStarts[Token.Coproc] = 1;
commandStarts[Token.Redirect] = 1;
var UNARY_TEST_OPS = {
  '-a': 1,
  '-b': 1,
  '-c': 1,
  '-d': 1,
  '-e': 1,
  '-f': 1,
  '-g': 1,
  '-h': 1,
  '-k': 1,
  '-p': 1,
  '-r': 1,
  '-s': 1,
  '-t': 1,
  '-u': 1,
  '-v': 1,
  '-w': 1,
  '-x': 1,
  '-z': 1,
  '-n': 1,
  '-o': 1,
  '-N': 1,
  '-S': 1,
  '-L': 1,
  '-G': 1,
  '-O': 1,
  '-R': 1,
};
var BINARY_TEST_OPS = {
  '==': 1,
  '!=': 1,
  '=~': 1,
  '=': 1,
  '-eq': 1,
  '-ne': 1,
  '-lt': 1,
  '-le': 1,
  '-gt': 1,
  '-ge': 1,
  '-nt': 1,
  '-ot': 1,
  '-ef': 1,
  '<': 1,
  '>': 1,
};
var EMPTY_REDIRECTS = [];
var EMPTY_PREFIXES = [];
var EMPTY_ELIFS = [];
function parse(source2) {
  return new Parser(source2, 0, source2.length).run();
}
function parseRegion(source2, start, end, depth = 0, parenBoundary = false, context) {
  return new Parser(source2, start, end, depth, parenBoundary, void 0, context).run();
}
var SubstitutionLexer = class _SubstitutionLexer extends Lexer {
  boundaries;
  pending;
  context;
  constructor(source2, boundary, boundaries, pending, context, parenBoundary = true) {
    super(source2, boundary.start, boundary.end, parenBoundary, context);
    this._nestingDepth = boundary.depth;
    this.boundaries = boundaries;
    this.pending = pending;
    this.context = context;
  }
  // Keep child boundary requests on this worklist so nested scans stay iterative.
  fork(start, end, parenBoundary = false) {
    return new _SubstitutionLexer(
      this.getSource(),
      { start, end, depth: this._nestingDepth },
      this.boundaries,
      this.pending,
      this.context,
      parenBoundary,
    );
  }
  findSubstitutionEnd(start, end, depth = this._nestingDepth + 1) {
    const known = this.context.boundaries?.get(start);
    if (known !== void 0) return known <= end ? known : -1;
    const boundary = this.boundaries.get(start);
    if (boundary !== void 0) return boundary <= end ? boundary : -1;
    if (!this.boundaries.has(start)) {
      this.boundaries.set(start, void 0);
      this.pending.push({ start, end, depth });
    }
    return -1;
  }
};
function findSubstitutionEnd(source2, start, end, depth, context) {
  const boundaries = /* @__PURE__ */ new Map([[start, void 0]]);
  const pending = [{ start, end, depth }];
  while (pending.length > 0) {
    const count = pending.length;
    const boundary = pending[count - 1];
    const lexer = new SubstitutionLexer(source2, boundary, boundaries, pending, context);
    const found = new Parser(
      source2,
      boundary.start,
      boundary.end,
      boundary.depth,
      true,
      lexer,
    ).findSubstitutionEnd();
    if (pending.length === count) {
      boundaries.set(boundary.start, found);
      if (found !== -1) substitutionBoundaries(context).set(boundary.start, found);
      pending.pop();
    }
  }
  return boundaries.get(start) ?? -1;
}
var Parser = class {
  tok;
  source;
  start;
  end;
  depth;
  errors = null;
  syntaxDepth = 0;
  // `depth` counts the substitution scripts (and sub-fields) enclosing this region; it
  // shares the MAX_SYNTAX_NESTING budget with the lexer's lazy word-part materialization.
  constructor(source2, start, end, depth = 0, parenBoundary = false, lexer, context) {
    this.tok = lexer ?? new Lexer(source2, start, end, parenBoundary, createSubstitutionContext(context));
    this.tok._nestingDepth = depth;
    this.source = source2;
    this.start = start;
    this.end = end;
    this.depth = depth;
  }
  run() {
    const start = this.start;
    if (this.depth > MAX_SYNTAX_NESTING) this.error('maximum substitution nesting depth exceeded', start);
    let shebang;
    if (start === 0 && this.source.charCodeAt(0) === 35 && this.source.charCodeAt(1) === 33) {
      const nl = this.source.indexOf('\n');
      shebang = nl === -1 ? this.source : this.source.slice(0, nl);
    }
    const commands = this.list();
    for (;;) {
      const unexpected = this.tok.peek(LexContext.CommandStart);
      if (unexpected.token === Token.EOF) break;
      this.unexpectedToken(unexpected);
      if (!listTerminators[unexpected.token] && unexpected.token !== Token.In) break;
      this.tok.next(LexContext.CommandStart);
      let separator = this.tok.peek(LexContext.CommandStart).token;
      if (separator !== Token.Semi && separator !== Token.Newline && separator !== Token.Amp) break;
      while (separator === Token.Semi || separator === Token.Newline || separator === Token.Amp) {
        this.tok.next(LexContext.CommandStart);
        separator = this.tok.peek(LexContext.CommandStart).token;
      }
      const recovered = this.list();
      for (let i = 0; i < recovered.length; i++) commands.push(recovered[i]);
    }
    const lexerErrors = this.tok._errors;
    if (lexerErrors !== null && lexerErrors.length > 0) {
      const errors = this.errors ?? (this.errors = []);
      for (let i = 0; i < lexerErrors.length; i++) errors.push(lexerErrors[i]);
    }
    if (this.errors !== null && this.errors.length > 1) this.errors.sort((a, b) => a.pos - b.pos);
    return { type: 'Script', pos: start, end: this.end, shebang, commands, errors: this.errors ?? void 0 };
  }
  error(message, pos) {
    (this.errors ?? (this.errors = [])).push({ message, pos });
  }
  unexpectedToken(t) {
    this.error(`unexpected token '${t.token === Token.Newline ? 'newline' : t.value}'`, t.pos);
  }
  findSubstitutionEnd() {
    this.list();
    return this.acceptEnd(Token.RParen);
  }
  skipSemi() {
    if (this.tok.peek(LexContext.Normal).token === Token.Semi) this.tok.next(LexContext.Normal);
  }
  accept(token, ctx = LexContext.Normal) {
    if (this.tok.peek(ctx).token === token) return this.tok.next(ctx);
    return null;
  }
  acceptEnd(token, ctx = LexContext.Normal) {
    if (this.tok.peek(ctx).token === token) return this.tok.next(ctx).end;
    return -1;
  }
  skipNewlines(ctx = LexContext.Normal) {
    while (this.tok.peek(ctx).token === Token.Newline) this.tok.next(ctx);
  }
  doBody(hasDo) {
    const body = this.list();
    const emptyPos = hasDo ? this.emptyListPos(body) : -1;
    if (emptyPos >= 0) this.error("expected command after 'do'", emptyPos);
    return body;
  }
  // Where an empty compound list stopped, or -1. An empty condition is reported only
  // once `then` or `do` follows, so a missing keyword is not reported twice.
  emptyListPos(commands) {
    return commands.length === 0 ? this.tok.peek(LexContext.CommandStart).pos : -1;
  }
  makeStatement(command) {
    return {
      type: 'Statement',
      pos: command.pos,
      end: command.end,
      command,
      background: void 0,
    };
  }
  // list := and_or ((';' | '&' | NEWLINE) and_or)* [';' | '&' | NEWLINE]
  list() {
    const commands = [];
    this.skipNewlines(LexContext.CommandStart);
    let t = this.tok.peek(LexContext.CommandStart).token;
    if (listTerminators[t] || !commandStarts[t]) return commands;
    const first = this.andOr();
    if (first) commands.push(this.makeStatement(first));
    for (;;) {
      t = this.tok.peekFollow(compoundClosers).token;
      if (t !== Token.Semi && t !== Token.Newline && t !== Token.Amp) break;
      const isBackground = t === Token.Amp;
      const sepEnd = this.tok.next(LexContext.Normal).end;
      if (isBackground) {
        const stmt = commands[commands.length - 1];
        stmt.background = true;
        stmt.end = sepEnd;
      }
      this.skipNewlines(LexContext.CommandStart);
      t = this.tok.peek(LexContext.CommandStart).token;
      if (listTerminators[t] || !commandStarts[t]) break;
      const node = this.andOr();
      if (node) commands.push(this.makeStatement(node));
    }
    return commands;
  }
  // and_or := pipeline (('&&' | '||') newlines pipeline)*
  andOr() {
    const first = this.pipeline();
    if (!first) return null;
    let t = this.tok.peek(LexContext.Normal).token;
    if (t !== Token.And && t !== Token.Or) return first;
    const commands = [first];
    const operators = [];
    do {
      const operatorToken = this.tok.next(LexContext.Normal);
      const operator = operatorToken.token === Token.And ? '&&' : '||';
      this.skipNewlines(LexContext.CommandStart);
      const next = this.pipeline();
      if (!next) {
        this.error(`expected command after '${operator}'`, operatorToken.end);
        break;
      }
      operators.push(operator);
      commands.push(next);
      t = this.tok.peek(LexContext.Normal).token;
    } while (t === Token.And || t === Token.Or);
    return {
      type: 'AndOr',
      pos: first.pos,
      end: commands[commands.length - 1].end,
      commands,
      operators,
    };
  }
  withRedirects(command) {
    const redirects = this.collectTrailingRedirects();
    if (redirects.length === 0) return command;
    return {
      type: 'Redirected',
      pos: command.pos,
      end: redirects[redirects.length - 1].end,
      command,
      redirects,
    };
  }
  pipeline() {
    let prefixes;
    for (;;) {
      const token = this.tok.peek(LexContext.CommandStart);
      const isTime = token.token === Token.Word && token.keywordEligible && token.value === 'time';
      if (token.token !== Token.Bang && !isTime) break;
      const prefix = this.tok.next(LexContext.CommandStart);
      const pos2 = prefix.pos;
      const keywordEnd = prefix.end;
      let posix;
      let endOfOptions;
      if (isTime) {
        let flag = this.tok.peek(LexContext.CommandStart);
        if (flag.token === Token.Word && flag.keywordEligible && flag.value === '-p') {
          this.tok.next(LexContext.CommandStart);
          posix = { pos: flag.pos, end: flag.end };
          flag = this.tok.peek(LexContext.CommandStart);
        }
        if (flag.token === Token.Word && flag.keywordEligible && flag.value === '--') {
          this.tok.next(LexContext.CommandStart);
          endOfOptions = { pos: flag.pos, end: flag.end };
        }
      }
      if (prefixes === void 0) prefixes = [];
      prefixes.push(
        isTime
          ? {
              type: 'Time',
              pos: pos2,
              end: endOfOptions?.end ?? posix?.end ?? keywordEnd,
              keywordEnd,
              posix,
              endOfOptions,
            }
          : { type: 'Negation', pos: pos2, end: keywordEnd },
      );
    }
    const command = this.pipelineCommands();
    if (!prefixes) return command;
    const pos = prefixes[0].pos;
    if (command?.type === 'Pipeline') {
      command.prefixes = prefixes;
      command.pos = pos;
      return command;
    }
    return {
      type: 'Pipeline',
      pos,
      end: command ? command.end : prefixes[prefixes.length - 1].end,
      prefixes,
      commands: command ? [command] : [],
      operators: [],
    };
  }
  pipelineCommands() {
    const first = this.command();
    if (!first) return null;
    if (this.tok.peek(LexContext.Normal).token !== Token.Pipe) return first;
    const commands = [first];
    const operators = [];
    while (this.tok.peek(LexContext.Normal).token === Token.Pipe) {
      const pipeToken = this.tok.next(LexContext.Normal);
      const operator = pipeToken.value === '|&' ? '|&' : '|';
      this.skipNewlines(LexContext.CommandStart);
      const cmd = this.command();
      if (!cmd) {
        this.error(`expected command after '${operator}'`, pipeToken.end);
        break;
      }
      operators.push(operator);
      commands.push(cmd);
    }
    if (commands.length === 1) {
      return commands[0];
    }
    const pipeline = {
      type: 'Pipeline',
      pos: first.pos,
      end: commands[commands.length - 1].end,
      prefixes: EMPTY_PREFIXES,
      commands,
      operators,
    };
    return pipeline;
  }
  // command := compound_command | function_def | simple_command
  command() {
    let compound;
    switch (this.tok.peek(LexContext.CommandStart).token) {
      case Token.LParen:
        compound = this.subshell();
        break;
      case Token.LBrace:
        compound = this.braceGroup();
        break;
      case Token.If:
        compound = this.ifClause();
        break;
      case Token.For:
        compound = this.forClause();
        break;
      case Token.While:
        compound = this.whileClause();
        break;
      case Token.Until:
        compound = this.untilClause();
        break;
      case Token.Case:
        compound = this.caseClause();
        break;
      case Token.Function:
        return this.functionDef();
      case Token.Select:
        compound = this.selectClause();
        break;
      case Token.DblLBracket:
        compound = this.testCommand();
        break;
      case Token.ArithCmd:
        compound = this.arithCommand();
        break;
      case Token.Coproc:
        return this.coprocCommand();
      case Token.Word:
      case Token.Assignment:
      case Token.Redirect:
        return this.simpleCommandOrFunction(false);
      default:
        return null;
    }
    return this.withRedirects(compound);
  }
  collectTrailingRedirects() {
    let redirects = EMPTY_REDIRECTS;
    while (this.tok.peekFollow(compoundClosers).token === Token.Redirect) {
      if (redirects === EMPTY_REDIRECTS) redirects = [];
      redirects.push(this.readRedirect(LexContext.Normal));
    }
    return redirects;
  }
  // arith_command := (( expr ))
  arithCommand() {
    const tok = this.tok.next(LexContext.CommandStart);
    return new ArithmeticCommandImpl(
      tok.pos,
      tok.end,
      tok.value,
      this.source,
      this.depth,
      this.tok.getSubstitutionContext(),
    );
  }
  // coproc := COPROC ([name] compound_command [redirections] | simple_command)
  coprocCommand() {
    const start = this.tok.next(LexContext.CommandStart);
    const pos = start.pos;
    const first = this.tok.peek(LexContext.CommandStart);
    let name;
    if (first.token === Token.Word) {
      const lookahead = this.tok.fork(first.end, this.end);
      switch (lookahead.peek(LexContext.CommandStart).token) {
        case Token.LParen:
          lookahead.next(LexContext.CommandStart);
          if (lookahead.peek(LexContext.Normal).token !== Token.RParen)
            name = this.readWord(LexContext.CommandStart);
          break;
        case Token.LBrace:
        case Token.If:
        case Token.For:
        case Token.While:
        case Token.Until:
        case Token.Case:
        case Token.Select:
        case Token.DblLBracket:
        case Token.ArithCmd:
          name = this.readWord(LexContext.CommandStart);
      }
    }
    const cmd =
      first.token === Token.Word && name === void 0 ? this.simpleCommandOrFunction(true) : this.command();
    if (cmd && cmd.type !== 'Function' && cmd.type !== 'Coproc') {
      return { type: 'Coproc', pos, end: cmd.end, name, body: cmd };
    }
    this.error("expected command after 'coproc'", cmd?.pos ?? start.end);
    const body = cmd
      ? this.makeCompoundList([this.makeStatement(cmd)])
      : { type: 'CompoundList', pos: start.end, end: start.end, commands: [] };
    return { type: 'Coproc', pos, end: body.end, name, body };
  }
  // subshell := '(' list ')'
  subshell() {
    return this.subshellBody(this.tok.next(LexContext.CommandStart).pos);
  }
  // Continues a subshell whose '(' the caller already consumed.
  subshellBody(pos) {
    if (this.syntaxDepth >= MAX_SYNTAX_NESTING) {
      this.error('maximum subshell nesting depth exceeded', pos);
      const closeEnd2 = this.tok.skipSubshellBody();
      if (closeEnd2 < 0) this.error("expected ')' to close subshell", this.tok.getPos());
      const end2 = closeEnd2 >= 0 ? closeEnd2 : pos;
      return { type: 'Subshell', pos, end: end2, body: this.makeCompoundList([]) };
    }
    this.syntaxDepth++;
    const commands = this.list();
    this.syntaxDepth--;
    if (commands.length === 0) this.error('expected command in subshell', pos);
    const closeEnd = this.acceptEnd(Token.RParen, LexContext.Normal);
    if (closeEnd < 0) this.error("expected ')' to close subshell", this.tok.getPos());
    const end = closeEnd >= 0 ? closeEnd : pos;
    return { type: 'Subshell', pos, end, body: this.makeCompoundList(commands) };
  }
  // brace_group := '{' list '}'
  braceGroup() {
    const pos = this.tok.next(LexContext.CommandStart).pos;
    if (this.syntaxDepth >= MAX_SYNTAX_NESTING) {
      this.error('maximum brace group nesting depth exceeded', pos);
      const closeEnd2 = this.tok.skipCompoundBody(Token.RBrace);
      if (closeEnd2 < 0) this.error("expected '}' to close brace group", this.tok.getPos());
      const end2 = closeEnd2 >= 0 ? closeEnd2 : pos;
      return { type: 'BraceGroup', pos, end: end2, body: this.makeCompoundList([]) };
    }
    this.syntaxDepth++;
    const commands = this.list();
    this.syntaxDepth--;
    if (commands.length === 0) this.error('expected command in brace group', pos);
    const closeEnd = this.acceptEnd(Token.RBrace, LexContext.Normal);
    if (closeEnd < 0) this.error("expected '}' to close brace group", this.tok.getPos());
    const end = closeEnd >= 0 ? closeEnd : pos;
    return { type: 'BraceGroup', pos, end, body: this.makeCompoundList(commands) };
  }
  // if_clause := IF list THEN list (ELIF list THEN list)* [ELSE list] FI
  ifClause() {
    const pos = this.tok.next(LexContext.CommandStart).pos;
    if (this.syntaxDepth >= MAX_SYNTAX_NESTING) {
      this.error('maximum if nesting depth exceeded', pos);
      const closeEnd2 = this.tok.skipCompoundBody(Token.Fi);
      if (closeEnd2 < 0) this.error("expected 'fi' to close 'if'", this.tok.getPos());
      const end = closeEnd2 >= 0 ? closeEnd2 : pos;
      return {
        type: 'If',
        pos,
        end,
        clause: this.makeCompoundList([]),
        then: this.makeCompoundList([]),
        elif: EMPTY_ELIFS,
        else: void 0,
      };
    }
    this.syntaxDepth++;
    let command;
    let branchPos = pos;
    for (;;) {
      const clauseCommands = this.list();
      const emptyClausePos = this.emptyListPos(clauseCommands);
      const clause = this.makeCompoundList(clauseCommands);
      this.skipSemi();
      const thenToken = this.accept(Token.Then, LexContext.CommandStart);
      if (!thenToken) this.error("expected 'then'", this.tok.getPos());
      else if (emptyClausePos >= 0)
        this.error(`expected command after '${branchPos === pos ? 'if' : 'elif'}'`, emptyClausePos);
      const thenCommands = this.list();
      const then_ = this.makeCompoundList(thenCommands);
      if (thenToken && thenCommands.length === 0) {
        this.error("expected command after 'then'", this.tok.peek(LexContext.CommandStart).pos);
        then_.pos = thenToken.end;
        then_.end = thenToken.end;
      }
      if (command) {
        if (command.elif === EMPTY_ELIFS) command.elif = [];
        command.elif.push({
          type: 'Elif',
          pos: branchPos,
          end: then_.end,
          clause,
          then: then_,
        });
      } else {
        command = { type: 'If', pos, end: pos, clause, then: then_, elif: EMPTY_ELIFS, else: void 0 };
      }
      this.skipSemi();
      const elif = this.accept(Token.Elif, LexContext.CommandStart);
      if (!elif) break;
      branchPos = elif.pos;
    }
    if (this.accept(Token.Else, LexContext.CommandStart)) {
      const elseCommands = this.list();
      const emptyElsePos = this.emptyListPos(elseCommands);
      if (emptyElsePos >= 0) this.error("expected command after 'else'", emptyElsePos);
      command.else = this.makeCompoundList(elseCommands);
      this.skipSemi();
    }
    const closeEnd = this.acceptEnd(Token.Fi, LexContext.CommandStart);
    if (closeEnd < 0) this.error("expected 'fi' to close 'if'", this.tok.getPos());
    command.end = closeEnd >= 0 ? closeEnd : branchPos;
    this.syntaxDepth--;
    return command;
  }
  // for_clause := FOR word [IN word* (';'|NL)] DO list DONE
  //            | FOR '((' expr '))' [';'|NL] DO list DONE
  forClause() {
    const pos = this.tok.next(LexContext.CommandStart).pos;
    if (this.tok.peek(LexContext.Normal).token === Token.LParen) {
      return this.cStyleFor(pos);
    }
    const name = this.readRequiredWord('for');
    let wordlist;
    this.skipNewlines(LexContext.CommandStart);
    if (this.tok.peek(LexContext.CommandStart).token === Token.In) {
      this.tok.next(LexContext.CommandStart);
      wordlist = [];
      while (this.tok.peek(LexContext.Normal).token === Token.Word) {
        wordlist.push(this.readWord(LexContext.Normal));
      }
    }
    this.skipSemi();
    this.skipNewlines(LexContext.CommandStart);
    if (this.tok.peek(LexContext.CommandStart).token === Token.LBrace) {
      const bg = this.braceGroup();
      return { type: 'For', pos, end: bg.end, name, wordlist, body: bg.body };
    }
    const hasDo = this.accept(Token.Do, LexContext.CommandStart) !== null;
    if (!hasDo) this.error("expected 'do'", this.tok.getPos());
    if (this.syntaxDepth >= MAX_SYNTAX_NESTING) {
      this.error('maximum for nesting depth exceeded', pos);
      const closeEnd2 = this.tok.skipCompoundBody(Token.Done);
      if (closeEnd2 < 0) this.error("expected 'done' to close 'for'", this.tok.getPos());
      const end2 = closeEnd2 >= 0 ? closeEnd2 : pos;
      return { type: 'For', pos, end: end2, name, wordlist, body: this.makeCompoundList([]) };
    }
    this.syntaxDepth++;
    const body = this.doBody(hasDo);
    this.syntaxDepth--;
    this.skipSemi();
    const closeEnd = this.acceptEnd(Token.Done, LexContext.CommandStart);
    if (closeEnd < 0) this.error("expected 'done' to close 'for'", this.tok.getPos());
    const end = closeEnd >= 0 ? closeEnd : pos;
    return { type: 'For', pos, end, name, wordlist, body: this.makeCompoundList(body) };
  }
  // C-style for: (( expr; expr; expr )) [;|NL] do list done | { list }
  cStyleFor(pos) {
    const [initStr, testStr, updateStr, initPos, testPos, updatePos] = this.tok.readCStyleForExprs();
    if (this.tok.peek(LexContext.CommandStart).token === Token.Semi) this.tok.next(LexContext.CommandStart);
    this.skipNewlines(LexContext.CommandStart);
    if (this.tok.peek(LexContext.CommandStart).token === Token.LBrace) {
      const bg = this.braceGroup();
      return new ArithmeticForImpl(
        pos,
        bg.end,
        bg.body,
        initStr,
        testStr,
        updateStr,
        initPos,
        testPos,
        updatePos,
        this.source,
        this.depth,
        this.tok.getSubstitutionContext(),
      );
    }
    const hasDo = this.accept(Token.Do, LexContext.CommandStart) !== null;
    if (!hasDo) this.error("expected 'do'", this.tok.getPos());
    if (this.syntaxDepth >= MAX_SYNTAX_NESTING) {
      this.error('maximum for nesting depth exceeded', pos);
      const closeEnd2 = this.tok.skipCompoundBody(Token.Done);
      if (closeEnd2 < 0) this.error("expected 'done' to close 'for'", this.tok.getPos());
      const end2 = closeEnd2 >= 0 ? closeEnd2 : pos;
      return new ArithmeticForImpl(
        pos,
        end2,
        this.makeCompoundList([]),
        initStr,
        testStr,
        updateStr,
        initPos,
        testPos,
        updatePos,
        this.source,
        this.depth,
        this.tok.getSubstitutionContext(),
      );
    }
    this.syntaxDepth++;
    const body = this.doBody(hasDo);
    this.syntaxDepth--;
    const closeEnd = this.acceptEnd(Token.Done, LexContext.CommandStart);
    if (closeEnd < 0) this.error("expected 'done' to close 'for'", this.tok.getPos());
    const end = closeEnd >= 0 ? closeEnd : pos;
    return new ArithmeticForImpl(
      pos,
      end,
      this.makeCompoundList(body),
      initStr,
      testStr,
      updateStr,
      initPos,
      testPos,
      updatePos,
      this.source,
      this.depth,
      this.tok.getSubstitutionContext(),
    );
  }
  whileClause() {
    return this.whileOrUntil('while');
  }
  untilClause() {
    return this.whileOrUntil('until');
  }
  whileOrUntil(kind) {
    const pos = this.tok.next(LexContext.CommandStart).pos;
    if (this.syntaxDepth >= MAX_SYNTAX_NESTING) {
      this.error(`maximum ${kind} nesting depth exceeded`, pos);
      const closeEnd2 = this.tok.skipCompoundBody(Token.Done);
      if (closeEnd2 < 0) this.error(`expected 'done' to close '${kind}'`, this.tok.getPos());
      const end2 = closeEnd2 >= 0 ? closeEnd2 : pos;
      return {
        type: 'While',
        pos,
        end: end2,
        kind,
        clause: this.makeCompoundList([]),
        body: this.makeCompoundList([]),
      };
    }
    this.syntaxDepth++;
    const clauseCommands = this.list();
    const emptyClausePos = this.emptyListPos(clauseCommands);
    const clause = this.makeCompoundList(clauseCommands);
    this.skipSemi();
    const hasDo = this.accept(Token.Do, LexContext.CommandStart) !== null;
    if (!hasDo) this.error("expected 'do'", this.tok.getPos());
    else if (emptyClausePos >= 0) this.error(`expected command after '${kind}'`, emptyClausePos);
    const body = this.doBody(hasDo);
    this.skipSemi();
    const closeEnd = this.acceptEnd(Token.Done, LexContext.CommandStart);
    if (closeEnd < 0) this.error(`expected 'done' to close '${kind}'`, this.tok.getPos());
    const end = closeEnd >= 0 ? closeEnd : pos;
    this.syntaxDepth--;
    return { type: 'While', pos, end, kind, clause, body: this.makeCompoundList(body) };
  }
  // case_clause := CASE word IN (pattern) list (;; | ;& | ;;&) ... ESAC
  caseClause() {
    const pos = this.tok.next(LexContext.CommandStart).pos;
    const word = this.readRequiredWord('case');
    this.skipNewlines(LexContext.CommandStart);
    if (!this.accept(Token.In, LexContext.CommandStart))
      this.error("expected 'in' after 'case' word", this.tok.getPos());
    this.skipNewlines(LexContext.CasePattern);
    if (this.syntaxDepth >= MAX_SYNTAX_NESTING) {
      this.error('maximum case nesting depth exceeded', pos);
      const closeEnd2 = this.tok.skipCompoundBody(Token.Esac);
      if (closeEnd2 < 0) this.error("expected 'esac' to close 'case'", this.tok.getPos());
      const end2 = closeEnd2 >= 0 ? closeEnd2 : pos;
      return { type: 'Case', pos, end: end2, word, items: [] };
    }
    this.syntaxDepth++;
    const items = [];
    let invalid = false;
    let t = this.tok.peek(LexContext.CasePattern).token;
    while (t !== Token.Esac && t !== Token.EOF) {
      const itemPos = this.tok.peek(LexContext.Normal).pos;
      this.accept(Token.LParen, LexContext.Normal);
      const pattern = [];
      let expectWord = true;
      let next = this.tok.peek(LexContext.Normal);
      while (next.token !== Token.RParen && next.token !== Token.EOF) {
        const valid = next.token === (expectWord ? Token.Word : Token.Pipe);
        if (valid) expectWord = !expectWord;
        else if (!invalid) {
          this.unexpectedToken(next);
          invalid = true;
        }
        const tok = this.tok.next(LexContext.Normal);
        if (tok.token === Token.Word) pattern.push(this.toWord(tok));
        next = this.tok.peek(LexContext.Normal);
      }
      if (expectWord && next.token === Token.RParen && !invalid) {
        this.unexpectedToken(next);
        invalid = true;
      }
      const rparenEnd = this.acceptEnd(Token.RParen, LexContext.Normal);
      const cmds = this.list();
      const bodyPos =
        rparenEnd >= 0 ? rparenEnd : pattern.length > 0 ? pattern[pattern.length - 1].end : itemPos;
      const itemEnd = cmds.length > 0 ? cmds[cmds.length - 1].end : bodyPos;
      const item = {
        type: 'CaseItem',
        pos: itemPos,
        end: itemEnd,
        pattern,
        body:
          cmds.length > 0
            ? this.makeCompoundList(cmds)
            : { type: 'CompoundList', pos: bodyPos, end: bodyPos, commands: [] },
        terminator: void 0,
      };
      const after = this.tok.peek(LexContext.CommandStart);
      t = after.token;
      if (t === Token.DoubleSemi || t === Token.SemiAmp || t === Token.DoubleSemiAmp) {
        const termTok = this.tok.next(LexContext.CommandStart);
        item.terminator = CASE_TERMINATORS[termTok.token];
        item.end = termTok.end;
      } else if (t !== Token.Esac && t !== Token.EOF && !invalid) {
        this.unexpectedToken(after);
        invalid = true;
      }
      items.push(item);
      this.skipNewlines(LexContext.CasePattern);
      t = this.tok.peek(LexContext.CasePattern).token;
    }
    const closeEnd = this.acceptEnd(Token.Esac, LexContext.CommandStart);
    if (closeEnd < 0) this.error("expected 'esac' to close 'case'", this.tok.getPos());
    const end = closeEnd >= 0 ? closeEnd : pos;
    this.syntaxDepth--;
    return { type: 'Case', pos, end, word, items };
  }
  // select_clause := SELECT word [IN word* (';'|NL)] DO list DONE
  selectClause() {
    const pos = this.tok.next(LexContext.CommandStart).pos;
    const name = this.readRequiredWord('select');
    let wordlist;
    this.skipNewlines(LexContext.CommandStart);
    if (this.tok.peek(LexContext.CommandStart).token === Token.In) {
      this.tok.next(LexContext.CommandStart);
      wordlist = [];
      while (this.tok.peek(LexContext.Normal).token === Token.Word) {
        wordlist.push(this.readWord(LexContext.Normal));
      }
    }
    this.skipSemi();
    this.skipNewlines(LexContext.CommandStart);
    if (this.tok.peek(LexContext.CommandStart).token === Token.LBrace) {
      const bg = this.braceGroup();
      return { type: 'Select', pos, end: bg.end, name, wordlist, body: bg.body };
    }
    const hasDo = this.accept(Token.Do, LexContext.CommandStart) !== null;
    if (!hasDo) this.error("expected 'do'", this.tok.getPos());
    if (this.syntaxDepth >= MAX_SYNTAX_NESTING) {
      this.error('maximum select nesting depth exceeded', pos);
      const closeEnd2 = this.tok.skipCompoundBody(Token.Done);
      if (closeEnd2 < 0) this.error("expected 'done' to close 'select'", this.tok.getPos());
      const end2 = closeEnd2 >= 0 ? closeEnd2 : pos;
      return { type: 'Select', pos, end: end2, name, wordlist, body: this.makeCompoundList([]) };
    }
    this.syntaxDepth++;
    const body = this.doBody(hasDo);
    this.syntaxDepth--;
    this.skipSemi();
    const closeEnd = this.acceptEnd(Token.Done, LexContext.CommandStart);
    if (closeEnd < 0) this.error("expected 'done' to close 'select'", this.tok.getPos());
    const end = closeEnd >= 0 ? closeEnd : pos;
    return { type: 'Select', pos, end, name, wordlist, body: this.makeCompoundList(body) };
  }
  // test_command := [[ test_expr ]]
  testCommand() {
    const pos = this.tok.next(LexContext.CommandStart).pos;
    const expr = this.parseTestOr();
    const closeEnd = this.acceptEnd(Token.DblRBracket, LexContext.TestMode);
    if (closeEnd < 0) this.error("expected ']]' to close '[['", this.tok.getPos());
    const end = closeEnd >= 0 ? closeEnd : pos;
    return { type: 'TestCommand', pos, end, expression: expr };
  }
  // test_or := test_and ('||' test_and)*
  parseTestOr() {
    const first = this.parseTestAnd();
    if (this.tok.peek(LexContext.TestMode).token !== Token.Or) return first;
    const operands = [first];
    do {
      this.tok.next(LexContext.TestMode);
      operands.push(this.parseTestAnd());
    } while (this.tok.peek(LexContext.TestMode).token === Token.Or);
    return {
      type: 'TestLogical',
      pos: first.pos,
      end: operands[operands.length - 1].end,
      operator: '||',
      operands,
    };
  }
  // test_and := test_not ('&&' test_not)*
  parseTestAnd() {
    const first = this.parseTestNot();
    if (this.tok.peek(LexContext.TestMode).token !== Token.And) return first;
    const operands = [first];
    do {
      this.tok.next(LexContext.TestMode);
      operands.push(this.parseTestNot());
    } while (this.tok.peek(LexContext.TestMode).token === Token.And);
    return {
      type: 'TestLogical',
      pos: first.pos,
      end: operands[operands.length - 1].end,
      operator: '&&',
      operands,
    };
  }
  // test_not := '!' test_not | test_primary
  parseTestNot() {
    let t = this.tok.peek(LexContext.TestMode);
    if (!isTestNegation(t)) return this.parseTestPrimary();
    const negations = [];
    while (isTestNegation(t)) {
      const bang = this.tok.next(LexContext.TestMode);
      negations.push({ type: 'Negation', pos: bang.pos, end: bang.end });
      t = this.tok.peek(LexContext.TestMode);
    }
    const operand = this.parseTestPrimary();
    return { type: 'TestNot', pos: negations[0].pos, end: operand.end, negations, operand };
  }
  // test_primary := '(' test_or ')' | unary_op word | word binary_op word | word
  parseTestPrimary() {
    if (this.tok.peek(LexContext.TestMode).token === Token.LParen) {
      const openPos = this.tok.next(LexContext.TestMode).pos;
      if (this.syntaxDepth >= MAX_SYNTAX_NESTING) {
        this.error('maximum test group nesting depth exceeded', openPos);
        const closeEnd2 = this.tok.skipTestGroup();
        if (closeEnd2 < 0) this.error("expected ')' to close test group", this.tok.getPos());
        const end2 = closeEnd2 >= 0 ? closeEnd2 : openPos;
        const operand = new WordImpl('', openPos, openPos);
        const expression2 = {
          type: 'TestUnary',
          pos: openPos,
          end: openPos,
          operator: '-n',
          operand,
        };
        return { type: 'TestGroup', pos: openPos, end: end2, expression: expression2 };
      }
      this.syntaxDepth++;
      const expr = this.parseTestOr();
      this.syntaxDepth--;
      const closeEnd = this.acceptEnd(Token.RParen, LexContext.TestMode);
      if (closeEnd < 0) this.error("expected ')' to close test group", this.tok.getPos());
      const end = closeEnd >= 0 ? closeEnd : openPos;
      return { type: 'TestGroup', pos: openPos, end, expression: expr };
    }
    const first = this.tok.next(LexContext.TestMode);
    if (first.token === Token.And || first.token === Token.Or) this.unexpectedToken(first);
    const val = first.value;
    const firstPos = first.pos;
    const firstEnd = first.end;
    if (first.keywordEligible && UNARY_TEST_OPS[val] === 1) {
      if (this.tok.peek(LexContext.TestMode).token === Token.Word) {
        const operand2 = this.readTestOperand();
        return {
          type: 'TestUnary',
          pos: firstPos,
          end: operand2.end,
          operator: val,
          operand: operand2,
        };
      }
      this.error('expected operand after unary test operator', firstEnd);
      const operand = new WordImpl('', firstEnd, firstEnd);
      return { type: 'TestUnary', pos: firstPos, end: firstEnd, operator: val, operand };
    }
    const nt = this.tok.peek(LexContext.TestMode);
    if (nt.token === Token.Word && nt.keywordEligible && BINARY_TEST_OPS[nt.value] === 1) {
      const op = this.tok.next(LexContext.TestMode).value;
      let right;
      if (op === '=~') {
        const token = this.tok.readTestRegexWord();
        right = new WordImpl(
          this.source.slice(token.pos, token.end),
          token.pos,
          token.end,
          this.source,
          embeddedPartsResolver(this.tok.getSubstitutionContext()),
          this.depth,
        );
      } else {
        right = this.readTestOperand();
      }
      const left = this.toWordFromPosEnd(first, firstPos, firstEnd);
      return {
        type: 'TestBinary',
        pos: firstPos,
        end: right.end,
        operator: op,
        left,
        right,
      };
    }
    const w = this.toWordFromPosEnd(first, firstPos, firstEnd);
    return { type: 'TestUnary', pos: firstPos, end: w.end, operator: '-n', operand: w };
  }
  // Unquoted `<` and `>` are operators in `[[ ]]`, never operands.
  readTestOperand() {
    const t = this.tok.next(LexContext.TestMode);
    if (t.keywordEligible && (t.value === '<' || t.value === '>'))
      this.error(`unexpected argument '${t.value}' to conditional operator`, t.pos);
    return this.toWord(t);
  }
  // function_def with 'function' keyword
  functionDef() {
    const pos = this.tok.next(LexContext.CommandStart).pos;
    const name = this.readWord(LexContext.FunctionName);
    let body;
    if (this.tok.peek(LexContext.CommandStart).token === Token.LParen) {
      const openPos = this.tok.next(LexContext.CommandStart).pos;
      if (this.tok.peek(LexContext.CommandStart).token === Token.RParen) {
        this.tok.next(LexContext.CommandStart);
        this.skipNewlines(LexContext.CommandStart);
        body = this.commandAsBody();
      } else {
        body = this.withRedirects(this.subshellBody(openPos));
      }
    } else {
      this.skipNewlines(LexContext.CommandStart);
      body = this.commandAsBody();
    }
    return { type: 'Function', pos, end: body.end, name, body };
  }
  // simple_command or function_def (word '(' ')' body)
  simpleCommandOrFunction(coproc) {
    const prefix = [];
    const cmdPos = this.tok.peek(LexContext.CommandStart).pos;
    let lastEnd = cmdPos;
    let ctx = LexContext.CommandStart;
    for (;;) {
      const t = this.tok.peek(ctx).token;
      if (t === Token.Assignment) {
        const assignment = this.tok.next(ctx);
        lastEnd = assignment.end;
        prefix.push(this.parseAssignment(assignment));
      } else if (t === Token.Redirect) {
        const redirect = this.readRedirect(ctx);
        prefix.push(redirect);
        lastEnd = redirect.end;
      } else {
        break;
      }
      ctx = LexContext.CommandPrefix;
    }
    if (this.tok.peek(LexContext.Normal).token !== Token.Word) {
      return new CommandImpl(cmdPos, lastEnd, void 0, prefix, []);
    }
    const nameToken = this.tok.next(LexContext.Normal);
    const keyword = nameToken.keywordEligible ? nameToken.value : '';
    const name = this.toWord(nameToken);
    ctx = isDeclarationCommand(keyword)
      ? LexContext.Declaration
      : keyword === 'eval' || keyword === 'let'
        ? LexContext.EvalArgument
        : LexContext.Normal;
    lastEnd = name.end;
    const suffix = [];
    if (coproc) {
      while (this.tok.peek(LexContext.CommandPrefix).token === Token.Assignment) {
        const token = this.tok.next(LexContext.CommandPrefix);
        const word = ctx === LexContext.Declaration ? this.parseAssignment(token) : this.toWord(token);
        suffix.push(word);
        lastEnd = word.end;
      }
    }
    if (this.tok.peek(ctx).token === Token.LParen && suffix.length === 0) {
      this.tok.next(LexContext.Normal);
      if (this.tok.peek(LexContext.Normal).token === Token.RParen) {
        this.tok.next(LexContext.Normal);
        this.skipNewlines(LexContext.CommandStart);
        const body = this.commandAsBody();
        return {
          type: 'Function',
          pos: name.pos,
          end: body.end,
          name,
          body,
        };
      }
    }
    for (;;) {
      const st = this.tok.peek(ctx).token;
      if (st === Token.Word || st === Token.Assignment) {
        const token = this.tok.next(ctx);
        const w = st === Token.Assignment ? this.parseAssignment(token) : this.toWord(token);
        suffix.push(w);
        lastEnd = w.end;
      } else if (st === Token.Redirect) {
        const redirect = this.readRedirect(ctx);
        suffix.push(redirect);
        lastEnd = redirect.end;
      } else {
        break;
      }
    }
    return new CommandImpl(cmdPos, lastEnd, name, prefix, suffix);
  }
  readRedirect(ctx) {
    const t = this.tok.next(ctx);
    const tPos = t.pos;
    const tEnd = t.end;
    const descriptor =
      t.fileDescriptor !== void 0
        ? { type: 'FileDescriptor', pos: tPos, end: t.descriptorEnd, value: t.fileDescriptor }
        : t.variableName !== void 0
          ? { type: 'FileDescriptorVariable', pos: tPos, end: t.descriptorEnd, name: t.variableName }
          : void 0;
    const hasTarget = t.targetEnd > t.targetPos;
    if (!hasTarget) this.error('expected redirect target', t.targetPos);
    if (t.value === '<<' || t.value === '<<-') {
      const r = {
        type: 'HereDoc',
        pos: tPos,
        end: tEnd,
        operator: t.value,
        descriptor,
        delimiter: hasTarget
          ? {
              type: 'HereDocDelimiter',
              pos: t.targetPos,
              end: t.targetEnd,
              text: this.source.slice(t.targetPos, t.targetEnd),
              value: t.content ?? '',
              quoted: t.delimiterQuoted,
            }
          : void 0,
        body: new HereDocBodyImpl(
          this.source,
          tEnd,
          t.delimiterQuoted,
          this.depth,
          this.tok.getSubstitutionContext(),
        ),
        closing: void 0,
      };
      if (hasTarget) this.tok.registerHereDocTarget(r);
      return r;
    }
    const target = hasTarget
      ? new WordImpl(
          this.source.slice(t.targetPos, t.targetEnd),
          t.targetPos,
          t.targetEnd,
          this.source,
          wordPartsResolver(this.tok.getSubstitutionContext()),
          this.depth,
        )
      : void 0;
    return t.value === '<<<'
      ? { type: 'HereString', pos: tPos, end: tEnd, operator: '<<<', descriptor, target }
      : {
          type: 'Redirect',
          pos: tPos,
          end: tEnd,
          operator: REDIRECT_OPS[t.value] ?? '>',
          descriptor,
          target,
        };
  }
  commandAsBody() {
    const cmd = this.command();
    if (cmd && cmd.type !== 'Command' && cmd.type !== 'Function' && cmd.type !== 'Coproc') return cmd;
    this.error('expected compound command as function body', cmd?.pos ?? this.tok.getPos());
    return this.makeCompoundList(cmd ? [this.makeStatement(cmd)] : []);
  }
  readWord(ctx) {
    return this.toWord(this.tok.next(ctx));
  }
  // A missing word stays empty and leaves its token to the rest of the clause.
  readRequiredWord(keyword) {
    const t = this.tok.peek(LexContext.Normal);
    if (t.token === Token.Word) return this.toWord(this.tok.next(LexContext.Normal));
    if (t.token !== Token.EOF) this.error(`expected word after '${keyword}'`, t.pos);
    return new WordImpl('', t.pos, t.pos);
  }
  toWord(tok) {
    const text = tok.raw ? tok.value : this.source.slice(tok.pos, tok.end);
    const source2 = tok.raw && tok.keywordEligible ? void 0 : this.source;
    return new WordImpl(
      text,
      tok.pos,
      tok.end,
      source2,
      source2 === void 0 ? computeBareWordParts : wordPartsResolver(this.tok.getSubstitutionContext()),
      this.depth,
    );
  }
  toWordFromPosEnd(tok, pos, end) {
    if (tok.pos === pos && tok.end === end) return this.toWord(tok);
    return new WordImpl(
      this.source.slice(pos, end),
      pos,
      end,
      this.source,
      wordPartsResolver(this.tok.getSubstitutionContext()),
      this.depth,
    );
  }
  parseAssignment(token) {
    const text = token.raw ? token.value : this.source.slice(token.pos, token.end);
    return new AssignmentImpl(
      text,
      token.pos,
      token.end,
      this.source,
      token.assignmentOperatorPos,
      this.depth,
      this.tok.getSubstitutionContext(),
    );
  }
  makeCompoundList(commands) {
    const p = this.tok.getPos();
    const pos = commands.length > 0 ? commands[0].pos : p;
    const end = commands.length > 0 ? commands[commands.length - 1].end : p;
    return { type: 'CompoundList', pos, end, commands };
  }
};

// src/shell/report.ts
function createReport(maxCommands) {
  return { commands: [], problem: void 0, maxCommands };
}
function refuse(report, code, message, span) {
  report.problem ??= { code, message, span };
}

// src/shell/numbers.ts
function createNumbers() {
  return {
    assigned: /* @__PURE__ */ new Set(),
    tainted: /* @__PURE__ */ new Set(),
    arrays: /* @__PURE__ */ new Set(),
    needed: [],
  };
}
var NUMBER = /^[-+]?[0-9]+$/;
var NUMERIC_PARAMETERS = /* @__PURE__ */ new Set(['?', '#', '$', '!']);
var NUMERIC_VARIABLES = /* @__PURE__ */ new Set([
  'RANDOM',
  'SECONDS',
  'LINENO',
  'UID',
  'EUID',
  'PPID',
  'BASHPID',
  'SRANDOM',
]);
function noteAssignment(numbers, name, value) {
  if (value !== void 0 && holdsNumber(value)) numbers.assigned.add(name);
  else numbers.tainted.add(name);
}
function noteArithmeticAssignment(numbers, name) {
  numbers.assigned.add(name);
}
function needNumber(numbers, name, span, why = 'arithmetic') {
  if (NUMERIC_PARAMETERS.has(name)) return;
  numbers.needed.push({ name, span, why });
}
function holdsNumber(word) {
  if (word.value !== void 0) return NUMBER.test(word.value);
  const [only2, ...others] = word.parts;
  if (only2 === void 0 || others.length > 0) return false;
  if (only2.kind === 'arithmetic') return true;
  if (only2.kind === 'brace') return /^\{[0-9]+\.\.[0-9]+(\.\.[0-9]+)?\}$/.test(only2.text);
  return only2.kind === 'parameter' && only2.plain && NUMERIC_PARAMETERS.has(only2.name);
}
function settleNumbers(numbers, report) {
  for (const { name, span, why } of numbers.needed) {
    const isNumber = numbers.assigned.has(name) || NUMERIC_VARIABLES.has(name);
    if (isNumber && !numbers.tainted.has(name) && !numbers.arrays.has(name)) continue;
    const message =
      why === 'unquoted'
        ? `$${name} could be several words, and one of them an operator: quote it.`
        : `${name} is evaluated as arithmetic and could hold code: only a variable to which this script assigns nothing but numbers is understood there.`;
    refuse(report, why === 'unquoted' ? 'builtin' : 'construct', message, span);
    return;
  }
}

// src/shell/text-checks.ts
var CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f]/;
var EXPANSION = /\$[A-Za-z0-9_{([?#!@*$-]/;
var UNQUOTED_RESIDUE = /[`()<>|&;'"\s]|\$[A-Za-z0-9_{(['"\\?#!@*$-]/;
var OPERAND_RESIDUE = /[`()<>|&;'"\\{}\n]|\$[A-Za-z0-9_{(['"\\?#!@*$-]/;
function badCharacter(source2) {
  if (CONTROL.test(source2))
    return 'A control character stands in the command: only tabs and line feeds are understood.';
  if (/\p{Surrogate}/u.test(source2)) return 'The command is not well-formed Unicode.';
  if (/(?<!\\)(\\\\)*\\$/.test(source2)) return 'The command ends in a backslash: remove it.';
  return void 0;
}
function isPlainUnquoted(raw) {
  return !UNQUOTED_RESIDUE.test(withoutEscapes(raw));
}
function isPlainQuoted(raw) {
  const rest = withoutEscapes(raw);
  return !rest.includes('`') && !EXPANSION.test(rest);
}
function isPlainOperand(raw) {
  return !OPERAND_RESIDUE.test(raw);
}
function unescapeUnquoted(raw) {
  return raw.includes('\\') ? raw.replace(/\\(.)/gs, '$1') : raw;
}
function unescapeQuoted(raw) {
  return raw.includes('\\') ? raw.replace(/\\([$`"\\])/g, '$1') : raw;
}
var ANSI_ESCAPES = { n: '\n', t: '	', '\\': '\\', "'": "'", '"': '"' };
function ansiText(raw) {
  const inner = /^\$'((?:[^\\']|\\[nt\\'"])*)'$/.exec(raw)?.[1];
  return inner?.replace(/\\(.)/g, (_, letter) => ANSI_ESCAPES[letter] ?? letter);
}
function mayExpandBraces(rest) {
  return /\{(?!\}(?![^{}]*,)).*?(,|\.\.).*?\}/s.test(rest);
}
function isPlainDelimiter(raw) {
  return /^(?:\\?[A-Za-z0-9_]+|'[A-Za-z0-9_]+'|"[A-Za-z0-9_]+")$/.test(raw);
}
function isVariableName(text) {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(text);
}
function gluingContinuation(source2, literal) {
  for (let at = source2.indexOf('\\\n'); at !== -1; at = source2.indexOf('\\\n', at + 1)) {
    if (literal(at)) continue;
    let first = at;
    while (source2[first - 1] === '\\') first -= 1;
    if ((at - first) % 2 === 1) continue;
    const before = source2[first - 1];
    if (first !== at || before === void 0 || !/[ \t\n]/.test(before)) return at;
  }
  return void 0;
}
function withoutEscapes(raw) {
  return raw.includes('\\') ? raw.replace(/\\./gs, '') : raw;
}

// src/shell/words.ts
function literalWord(text, span) {
  return { value: text, parts: [{ kind: 'literal', text }], source: text, span };
}
function inputWord(span) {
  return { value: void 0, parts: [{ kind: 'input' }], source: '', span };
}
function withInput(word, marker, path) {
  const holds = (part) => part.kind === 'literal' && part.text.includes(marker);
  if (marker === '' || !word.parts.some(holds)) return word;
  const input = path ? { kind: 'input', path } : { kind: 'input' };
  const parts = word.parts.flatMap((part) => {
    if (part.kind !== 'literal') return [part];
    return part.text
      .split(marker)
      .flatMap((text, index) => [
        ...(index === 0 ? [] : [input]),
        ...(text === '' ? [] : [{ kind: 'literal', text }]),
      ]);
  });
  return { ...word, value: void 0, parts };
}
function wordFrom(text, origin) {
  return literalWord(text, origin.span);
}
function mergeLiterals(parts) {
  if (parts.length < 2) return parts;
  const merged = [];
  for (const part of parts) {
    const last = merged.at(-1);
    if (last?.kind === 'literal' && part.kind === 'literal') {
      merged[merged.length - 1] = { kind: 'literal', text: last.text + part.text };
    } else merged.push(part);
  }
  return merged;
}
function tildeParts(raw, parts, inAssignment) {
  if (!raw.includes('~')) return parts;
  const first = parts[0];
  if (first?.kind !== 'literal') return parts;
  const isAssignment = inAssignment || /^[A-Za-z_][A-Za-z0-9_]*\+?=/.test(raw);
  const at = isAssignment
    ? (/(?:^|[=:])~/.exec(raw)?.[0].length ?? 0) + (/(?:^|[=:])~/.exec(raw)?.index ?? 0) - 1
    : 0;
  if (at < 0 || raw[at] !== '~') return parts;
  const before = first.text.slice(0, at);
  const user = /^[A-Za-z0-9._+-]*/.exec(first.text.slice(at + 1))?.[0] ?? '';
  const after = first.text.slice(at + 1 + user.length);
  return [
    ...(before === '' ? [] : [{ kind: 'literal', text: before }]),
    { kind: 'tilde', user },
    ...(after === '' ? [] : [{ kind: 'literal', text: after }]),
    ...parts.slice(1),
  ];
}
function prefixOf(word) {
  if (word.value !== void 0) return word.value;
  const first = word.parts[0];
  return first?.kind === 'literal' ? first.text : '';
}
function isSingle(word) {
  return word.parts.every((part) => {
    if (part.kind === 'glob' || part.kind === 'brace' || part.kind === 'input') return false;
    if (part.kind === 'parameter') return part.quoted === true && part.plain && !/^[@*]$/.test(part.name);
    return part.kind !== 'command-substitution' || part.quoted === true;
  });
}
function withoutPrefix(word, length) {
  const [first, ...others] = word.parts;
  const text = first?.kind === 'literal' ? first.text.slice(length) : '';
  return {
    value: word.value?.slice(length),
    parts: text === '' && others.length > 0 ? others : [{ kind: 'literal', text }, ...others],
    source: word.source,
    span: word.span,
  };
}

// src/shell/adapter.ts
var KNOWN = /* @__PURE__ */ new Set([
  ...['Script', 'Statement', 'CompoundList', 'CaseItem', 'Elif', 'Command', 'Pipeline', 'AndOr'],
  ...['Time', 'Negation', 'Redirected', 'If', 'For', 'ArithmeticFor', 'While', 'Function', 'Subshell'],
  ...['BraceGroup', 'Case', 'TestCommand', 'ArithmeticCommand', 'Word', 'Literal', 'Glob'],
  ...['SingleQuoted', 'DoubleQuoted', 'AnsiCQuoted', 'SimpleExpansion', 'ParameterExpansion'],
  ...['CommandExpansion', 'ArithmeticExpansion', 'ProcessSubstitution', 'BraceExpansion'],
  ...['Assignment', 'ArrayValue', 'Redirect', 'HereString', 'HereDoc', 'FileDescriptor'],
  ...['HereDocDelimiter', 'HereDocBody', 'ArithmeticBinary', 'ArithmeticUnary', 'ArithmeticTernary'],
  ...['ArithmeticGroup', 'ArithmeticWord', 'TestUnary', 'TestBinary', 'TestLogical', 'TestNot'],
  ...['TestGroup', 'Default', 'Remove', 'Replace', 'Slice', 'CaseModification', 'Transform'],
]);
var NAMES = {
  Coproc: 'A coprocess',
  Select: 'A select loop',
  ExtendedGlob: 'An extended glob',
  LocaleString: '$"\u2026"',
  FileDescriptorVariable: 'A redirect to {variable}',
  ArithmeticCommandExpansion: 'A substitution inside arithmetic',
  Names: 'An expansion to the names of variables',
};
var PARAMETER = /^(?:[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[?#@*$!-])$/;
var ARITHMETIC_WORD =
  /^(?:[0-9]+|0[xX][0-9a-fA-F]+|\$?[A-Za-z_][A-Za-z0-9_]*|\$\{[A-Za-z_][A-Za-z0-9_]*\}|\$[#?])$/;
var NUMERIC_COMPARISONS = /* @__PURE__ */ new Set(['-eq', '-ne', '-lt', '-le', '-gt', '-ge']);
var ASSIGNING = /* @__PURE__ */ new Set([
  '=',
  '+=',
  '-=',
  '*=',
  '/=',
  '%=',
  '<<=',
  '>>=',
  '&=',
  '^=',
  '|=',
  '**=',
]);
function readShell(source2, reading) {
  return new Adapter(source2, reading).read();
}
var Adapter = class {
  source;
  reading;
  /** Spans in which a backslash before a line feed is just text. */
  literals = [];
  statements = 0;
  constructor(source2, reading) {
    this.source = source2;
    this.reading = reading;
  }
  read() {
    const script2 = parse(this.source);
    this.sweep(script2, 0);
    if (this.reading.report.problem !== void 0) return this.recover(script2);
    const tree = this.script(script2, false);
    const isLiteral = (at) => this.literals.some((span) => span.start <= at && at < span.end);
    const glued = gluingContinuation(this.source, isLiteral);
    if (glued !== void 0) {
      const message =
        'A line continuation stands inside a word or operator: put a blank before the backslash.';
      this.refuse('ambiguous', message, { pos: glued, end: glued + 2 });
    }
    return tree;
  }
  /** For messages only: the tree as far as it goes, whatever it is worth. */
  recover(script2) {
    try {
      return this.script(script2, false);
    } catch (error) {
      if (error instanceof TypeError || error instanceof RangeError) return { kind: 'list', items: [] };
      throw error;
    }
  }
  span(node) {
    return this.reading.place ?? { start: node.pos, end: node.end };
  }
  refuse(code, message, node) {
    refuse(this.reading.report, code, message, this.span(node));
  }
  /** Looks at every node once: kinds, depth, number, the errors of nested scripts, and that places fit the source. */
  sweep(node, depth) {
    if (this.reading.report.problem !== void 0) return;
    if (depth > this.reading.maxDepth) {
      this.refuse('too_deep', 'The command is nested too deeply: split it into several.', node);
      return;
    }
    if (!KNOWN.has(node.type)) {
      this.refuse('construct', `${NAMES[node.type] ?? `${node.type} syntax`} is not understood here.`, node);
      return;
    }
    if (node.type === 'Script') this.sweepScript(node);
    if (node.type === 'Command' || node.type === 'Statement') {
      this.statements += 1;
      if (this.statements > this.reading.report.maxCommands * 3) {
        this.refuse('too_many_commands', 'There are too many commands in one string: split it.', node);
        return;
      }
    }
    if ((node.type === 'CommandExpansion' || node.type === 'ProcessSubstitution') && node.script === void 0) {
      this.refuse('syntax_error', 'A substitution could not be read.', node);
    }
    if ('text' in node && node.text !== this.source.slice(node.pos, node.end)) {
      this.refuse(
        'ambiguous',
        'A part of the command is not what it looks like: write it more plainly.',
        node,
      );
      return;
    }
    forEachChild(node, (child) => this.sweep(child, depth + 1));
  }
  sweepScript(script2) {
    const error = script2.errors?.[0];
    if (error !== void 0) {
      const at = { pos: error.pos, end: error.pos + 1 };
      this.refuse('syntax_error', `This is not valid shell syntax: ${error.message}.`, at);
    }
    if (script2.source !== void 0) {
      this.refuse('construct', 'Backslashes inside backticks are not understood: use $(\u2026).', script2);
    }
  }
  script(script2, nested) {
    return this.statementsOf(script2.commands, nested);
  }
  list(list, nested) {
    return this.statementsOf(list.commands, nested);
  }
  statementsOf(statements, nested) {
    const items = statements.map((statement) => ({
      node: this.statement(statement, nested),
      background: statement.background === true,
    }));
    return { kind: 'list', items };
  }
  statement(statement, nested) {
    const { command } = statement;
    if (command.type !== 'AndOr') return this.pipeline(command, nested);
    const nodes = command.commands.map((child) => this.pipeline(child, nested));
    return { kind: 'and-or', nodes, operators: command.operators };
  }
  pipeline(node, nested) {
    if (node.type !== 'Pipeline') return this.command(node, nested);
    const negations = node.prefixes.filter((prefix) => prefix.type === 'Negation').length;
    const nodes = node.commands.map((child) => this.command(child, nested));
    return { kind: 'pipeline', nodes, negated: negations % 2 === 1 };
  }
  command(node, nested) {
    switch (node.type) {
      case 'Command':
        return this.simple(node, nested);
      case 'Redirected': {
        const substitutions = [];
        const body = this.command(node.command, nested);
        const redirects = node.redirects.map((redirect) => this.redirect(redirect, nested, substitutions));
        return { kind: 'redirected', body, redirects, substitutions, span: this.span(node) };
      }
      case 'Subshell':
        if (this.source.startsWith('((', node.pos)) {
          this.refuse(
            'ambiguous',
            '(( that does not begin arithmetic is ambiguous: put a blank between.',
            node,
          );
        }
        return { kind: 'group', subshell: true, body: this.list(node.body, nested) };
      case 'BraceGroup':
        return { kind: 'group', subshell: false, body: this.list(node.body, nested) };
      case 'If':
        return {
          kind: 'if',
          branches: [node, ...node.elif].map((branch) => ({
            condition: this.list(branch.clause, nested),
            body: this.list(branch.then, nested),
          })),
          otherwise: node.else && this.list(node.else, nested),
        };
      case 'While':
        return {
          kind: 'loop',
          condition: this.list(node.clause, nested),
          until: node.kind === 'until',
          body: this.list(node.body, nested),
          substitutions: [],
        };
      case 'For': {
        const substitutions = [];
        const words2 = (node.wordlist ?? []).map((word) => this.word(word, nested, substitutions));
        this.checkNeighbours(node.wordlist ?? []);
        const name = this.word(node.name, nested, substitutions).value;
        if (name === void 0 || !isVariableName(name)) {
          this.refuse('construct', 'The variable of a for loop must be a plain name.', node.name);
        } else if (words2.length === 0) noteAssignment(this.reading.numbers, name, void 0);
        else for (const word of words2) noteAssignment(this.reading.numbers, name, word);
        return {
          kind: 'loop',
          condition: void 0,
          until: false,
          body: this.list(node.body, nested),
          substitutions,
        };
      }
      case 'ArithmeticFor':
        for (const part of [node.initialize, node.test, node.update]) if (part) this.arithmetic(part);
        return {
          kind: 'loop',
          condition: void 0,
          until: false,
          body: this.list(node.body, nested),
          substitutions: [],
        };
      case 'Case': {
        const substitutions = [];
        this.word(node.word, nested, substitutions);
        for (const item of node.items)
          for (const word of item.pattern) this.word(word, nested, substitutions);
        return {
          kind: 'case',
          bodies: node.items.map((item) => this.list(item.body, nested)),
          substitutions,
        };
      }
      case 'Function':
        return this.define(node);
      case 'TestCommand': {
        const substitutions = [];
        this.test(node.expression, nested, substitutions);
        return { kind: 'expression', substitutions };
      }
      case 'ArithmeticCommand':
        if (node.expression === void 0) this.refuse('construct', '(( )) without an expression.', node);
        else this.arithmetic(node.expression);
        return { kind: 'expression', substitutions: [] };
      case 'Select':
      case 'Coproc':
        return node.body.type === 'CompoundList'
          ? this.list(node.body, nested)
          : this.command(node.body, nested);
      default:
        return assertNever(node);
    }
  }
  define(node) {
    const { body } = node;
    if (body.type !== 'BraceGroup' && body.type !== 'Subshell') {
      this.refuse(
        'construct',
        'A function is understood only with a body in { \u2026 } or ( \u2026 ).',
        node,
      );
    }
    const read3 = body.type === 'CompoundList' ? this.list(body, false) : this.command(body, false);
    return { kind: 'function', name: node.name.text, body: read3, span: this.span(node) };
  }
  simple(node, nested) {
    const substitutions = [];
    const words2 = [];
    const assignments = [];
    const redirects = [];
    let input;
    const all2 = [...node.prefix, ...(node.name === void 0 ? [] : [node.name]), ...node.suffix];
    this.checkNeighbours(all2);
    for (const item of all2) {
      if (item.type === 'Word') words2.push(this.word(item, nested, substitutions));
      else if (item.type !== 'Assignment') {
        redirects.push(this.redirect(item, nested, substitutions));
        if (item.type === 'HereDoc' && item.delimiter?.quoted === true) input = this.inputOf(item);
        else if (isInput(item)) input = void 0;
      } else if (words2.length === 0) assignments.push(this.assignment(item, nested, substitutions));
      else words2.push(this.assignmentWord(item, nested, substitutions));
    }
    return {
      kind: 'simple',
      words: words2,
      assignments,
      redirects,
      input,
      substitutions,
      span: this.span(node),
    };
  }
  inputOf(document) {
    const descriptor = document.descriptor;
    if (descriptor !== void 0 && !(descriptor.type === 'FileDescriptor' && descriptor.value === 0))
      return void 0;
    return document.operator === '<<-' ? document.body.text.replace(/^\t+/gm, '') : document.body.text;
  }
  /** Between two pieces of a command stand blanks and line continuations, and at least one where both are words. */
  checkNeighbours(nodes) {
    nodes.forEach((node, index) => {
      const before = nodes[index - 1];
      if (before === void 0) return;
      const gap = this.source.slice(before.end, node.pos);
      const bothWords = !isRedirection(before) && !isRedirection(node);
      if (!/^(?:[ \t]|\\\n)*$/.test(gap) || (gap === '' && bothWords)) {
        this.refuse('ambiguous', 'Two words touch: put a blank between them.', node);
      }
    });
  }
  /** `NAME=value` before a command. */
  assignment(node, nested, substitutions) {
    const value = this.assigned(node, nested, substitutions);
    return { name: node.name, append: node.append === true, value, span: this.span(node) };
  }
  /** `NAME=value` behind a builtin that declares: one word to everyone else. */
  assignmentWord(node, nested, substitutions) {
    if (node.value.type === 'ArrayValue') {
      this.refuse('construct', 'Declaring an array is not understood.', node);
    }
    const value = this.assigned(node, nested, substitutions);
    const prefix = `${node.name}${node.append === true ? '+=' : '='}`;
    return {
      value: value.value === void 0 ? void 0 : prefix + value.value,
      parts: mergeLiterals([{ kind: 'literal', text: prefix }, ...value.parts]),
      source: node.text,
      span: this.span(node),
    };
  }
  assigned(node, nested, substitutions) {
    const { name, value } = node;
    const prefix = `${name}${node.append === true ? '+=' : '='}`;
    if (node.index !== void 0 || !isVariableName(name)) {
      this.refuse(
        'construct',
        'An assignment to an array element is not understood: use a plain variable.',
        node,
      );
    } else if (this.source.slice(node.pos, value.pos) !== prefix) {
      this.refuse('ambiguous', 'An assignment is not what it looks like: write it more plainly.', node);
    }
    if (value.type === 'ArrayValue') return this.array(node, nested, substitutions);
    const word = this.word(value, nested, substitutions, true);
    noteAssignment(this.reading.numbers, name, word);
    return word;
  }
  array(node, nested, substitutions) {
    const { value } = node;
    if (value.type !== 'ArrayValue') return this.word(value, nested, substitutions);
    this.reading.numbers.arrays.add(node.name);
    if (nested) this.refuse('construct', 'An array inside a substitution is not understood.', node);
    const closed = this.source.startsWith('(', value.pos) && this.source[value.end - 1] === ')';
    if (!closed || node.end !== value.end || /[^\s;&|)]/.test(this.source[value.end] ?? ' ')) {
      this.refuse('ambiguous', 'Text touches the closing bracket of an array: put a blank between.', node);
    }
    this.checkNeighbours(value.elements);
    const words2 = value.elements.map((element) => this.word(element, nested, substitutions));
    for (const word of words2) {
      if (/^\[/.test(word.source)) {
        this.refuse('construct', 'An array value with [index]= is not understood.', node);
      }
    }
    return {
      value: void 0,
      parts: words2.flatMap((word) => word.parts),
      source: this.textOf(value),
      span: this.span(value),
    };
  }
  textOf(node) {
    return this.source.slice(node.pos, node.end);
  }
  redirect(node, nested, substitutions) {
    const descriptor = node.descriptor?.type === 'FileDescriptor' ? node.descriptor.value : void 0;
    if (descriptor !== void 0 && descriptor > 255) {
      this.refuse('construct', 'A descriptor above 255 is not understood.', node);
    }
    if (node.descriptor !== void 0 && !/^\d{1,3}$/.test(this.textOf(node.descriptor))) {
      this.refuse('construct', 'A redirect to {variable} is not understood.', node);
    }
    const { operator } = node;
    const target =
      node.type === 'HereDoc'
        ? this.document(node, nested, substitutions)
        : this.target(node, nested, substitutions);
    const gap = node.type === 'HereDoc' ? node.delimiter : node.target;
    const start = node.descriptor?.end ?? node.pos;
    if (gap !== void 0 && !this.isOperator(operator, start, gap.pos)) {
      this.refuse('ambiguous', 'A redirect is not what it looks like: write it more plainly.', node);
    }
    return { operator, descriptor, target, span: this.span(node) };
  }
  /** Between descriptor and target stands the operator, and nothing but blanks behind it. */
  isOperator(operator, start, end) {
    const text = this.source.slice(start, end);
    return text.startsWith(operator) && /^(?:[ \t]|\\\n)*$/.test(text.slice(operator.length));
  }
  target(node, nested, substitutions) {
    if (node.target === void 0) {
      this.refuse('syntax_error', 'A redirect has no target.', node);
      return literalWord('', this.span(node));
    }
    const target = this.word(node.target, nested, substitutions);
    const duplicates = node.operator === '>&' || node.operator === '<&';
    if (duplicates && !/^(?:\d{1,3}|-)$/.test(this.textOf(node.target))) {
      this.refuse(
        'construct',
        `${node.operator} is understood only with a descriptor number or "-": use &> for a file.`,
        node,
      );
    }
    return target;
  }
  document(node, nested, substitutions) {
    const { delimiter, closing, body } = node;
    if (delimiter === void 0 || closing === void 0) {
      this.refuse(
        'construct',
        'A here-document is not closed: end it with its delimiter alone on a line.',
        node,
      );
      return literalWord(delimiter?.value ?? '', this.span(node));
    }
    if (!isPlainDelimiter(delimiter.text)) {
      this.refuse('construct', 'The delimiter of a here-document must be a plain word.', node);
    }
    if (nested)
      this.refuse(
        'construct',
        'A here-document inside this substitution is not understood: keep one command in it.',
        node,
      );
    if (!this.isBodyAsWritten(node, delimiter.value, closing.pos)) {
      this.refuse('ambiguous', 'It is not clear where a here-document ends: write it more plainly.', node);
    }
    if (delimiter.quoted) this.literals.push({ start: body.pos, end: body.end });
    else for (const part of body.parts ?? []) this.part(part, 'document', nested, substitutions);
    if (!delimiter.quoted && body.parts === void 0 && !isPlainQuoted(body.text)) {
      this.refuse(
        'ambiguous',
        'A here-document holds an expansion that is not understood: quote its delimiter.',
        node,
      );
    }
    return {
      value: delimiter.value,
      parts: [{ kind: 'literal', text: delimiter.value }],
      source: delimiter.text,
      span: this.span(delimiter),
    };
  }
  /** The body begins on a line of its own and ends at the first line that is the delimiter. */
  isBodyAsWritten(node, delimiter, closing) {
    const { body } = node;
    if (body.pos > 0 && this.source[body.pos - 1] !== '\n') return false;
    const between = this.source.slice(node.end, body.pos);
    const firstLine = this.source.indexOf('\n', node.end) + 1;
    if (body.pos !== firstLine && !/<</.test(this.lineOf(node.pos))) return false;
    if (between.split('\n').length > 2 && !/<</.test(this.lineOf(node.pos).replace('<<', ''))) return false;
    for (let start = body.pos; start <= this.source.length; ) {
      const end = this.source.indexOf('\n', start);
      const line = this.source.slice(start, end === -1 ? void 0 : end);
      if ((node.operator === '<<-' ? line.replace(/^\t+/, '') : line) === delimiter) {
        return start <= closing && closing <= start + line.length && body.end === start;
      }
      if (end === -1) return false;
      start = end + 1;
    }
    return false;
  }
  lineOf(at) {
    const end = this.source.indexOf('\n', at);
    return this.source.slice(this.source.lastIndexOf('\n', at - 1) + 1, end === -1 ? void 0 : end);
  }
  /** A word; `inAssignment`: it is a value, where bash expands no globs and no braces. */
  word(node, nested, substitutions, inAssignment = false) {
    const raw = this.textOf(node);
    const parts = [];
    let at = node.pos;
    for (const part of node.parts ?? [
      { type: 'Literal', pos: node.pos, end: node.end, text: raw, value: node.value },
    ]) {
      if (part.pos !== at)
        this.refuse('ambiguous', 'A word is not what it looks like: write it more plainly.', node);
      at = part.end;
      const isPart =
        part.type === 'Literal' && !inAssignment && mayExpandBraces(raw.slice(part.pos - node.pos));
      if (
        isPart &&
        /\{/.test(part.text) &&
        !(node.parts ?? []).some((other) => other.type === 'BraceExpansion')
      ) {
        this.refuse('ambiguous', 'A brace expansion is not plain: write the words out.', node);
      }
      if (part.type === 'ProcessSubstitution' && (part.pos !== node.pos || part.end !== node.end)) {
        this.refuse('construct', 'A process substitution is understood only as a word of its own.', node);
      }
      parts.push(...this.part(part, 'none', nested, substitutions));
    }
    if (at !== node.end)
      this.refuse('ambiguous', 'A word is not what it looks like: write it more plainly.', node);
    const first = node.parts?.[0];
    const tilded =
      first === void 0 || first.type === 'Literal' ? tildeParts(raw, parts, inAssignment) : parts;
    const known = inAssignment ? tilded.map(withoutGlob) : tilded;
    const merged = mergeLiterals(known);
    const value = merged.every((part) => part.kind === 'literal')
      ? merged.map(textOfLiteral).join('')
      : void 0;
    return { value, parts: merged, source: raw, span: this.span(node) };
  }
  part(part, quoting, nested, substitutions) {
    const raw = this.textOf(part);
    switch (part.type) {
      case 'Literal': {
        const plain = quoting === 'none' ? isPlainUnquoted(raw) : isPlainQuoted(raw);
        const text = quoting === 'none' ? unescapeUnquoted(raw) : unescapeQuoted(raw);
        if (!plain || (quoting !== 'document' && text !== part.value)) {
          this.refuse(
            'ambiguous',
            'A word holds an operator or expansion where text is expected: quote it.',
            part,
          );
        }
        return [{ kind: 'literal', text }];
      }
      case 'SingleQuoted': {
        const text = raw.slice(1, -1);
        if (raw !== `'${text}'` || text.includes("'") || text !== part.value) {
          this.refuse('ambiguous', 'A quoted text is not what it looks like.', part);
        }
        this.literals.push({ start: part.pos, end: part.end });
        return [{ kind: 'literal', text }];
      }
      case 'AnsiCQuoted': {
        const text = ansiText(raw);
        if (text === void 0 || text !== part.value) {
          this.refuse('construct', `In $'\u2026' only \\n, \\t, \\\\, \\' and \\" are understood.`, part);
        }
        return [{ kind: 'literal', text: text ?? part.value }];
      }
      case 'DoubleQuoted':
        return this.doubleQuoted(part, nested, substitutions);
      case 'Glob':
        for (const inner of part.parts ?? []) {
          if (inner.type !== 'Literal' || !isPlainUnquoted(inner.text)) {
            this.refuse('ambiguous', 'A glob in brackets holds more than text.', part);
          }
        }
        if (!/^(?:\*|\?|\[[^\s`$'"\\();|&<>]*\])$/.test(raw))
          this.refuse('ambiguous', 'A glob is not plain.', part);
        return [{ kind: 'glob', text: raw }];
      case 'SimpleExpansion': {
        const name = raw.slice(1);
        if (!/^\$(?:[A-Za-z_][A-Za-z0-9_]*|[0-9?#@*$!-])$/.test(raw))
          this.refuse('ambiguous', 'An expansion is not plain.', part);
        return [{ kind: 'parameter', name, plain: true, ...quoted(quoting) }];
      }
      case 'ParameterExpansion':
        return [this.parameter(part, quoting, nested, substitutions)];
      case 'CommandExpansion':
        this.substitution(part, quoting, nested, substitutions);
        return [{ kind: 'command-substitution', ...quoted(quoting) }];
      case 'ArithmeticExpansion':
        if (part.expression === void 0 || !/^\$\(\(.*\)\)$/s.test(raw)) {
          this.refuse(
            'construct',
            'Arithmetic is understood only as $((\u2026)) with numbers and plain names.',
            part,
          );
        } else this.arithmetic(part.expression);
        return [{ kind: 'arithmetic' }];
      case 'ProcessSubstitution':
        if (part.script !== void 0) substitutions.push(this.script(part.script, true));
        if (!/^[<>]\(.*\)$/s.test(raw))
          this.refuse('ambiguous', 'A process substitution is not plain.', part);
        return [{ kind: 'process-substitution', direction: part.operator === '<' ? 'in' : 'out' }];
      case 'BraceExpansion':
        if (part.parts !== void 0 || !/^\{[A-Za-z0-9_.,/+@%=:~{}-]*\}$/.test(raw)) {
          this.refuse(
            'construct',
            'A brace expansion is understood only with plain text in it: write the words out.',
            part,
          );
        }
        return [{ kind: 'brace', text: raw }];
      case 'LocaleString':
      case 'ExtendedGlob':
        return [{ kind: 'glob', text: raw }];
      default:
        return assertNever(part);
    }
  }
  doubleQuoted(part, nested, substitutions) {
    const raw = this.textOf(part);
    let at = part.pos + 1;
    const parts = [];
    for (const child of part.parts) {
      if (child.pos !== at) this.refuse('ambiguous', 'A quoted text is not what it looks like.', part);
      at = child.end;
      parts.push(...this.part(child, 'double', nested, substitutions));
    }
    const closed = raw.length >= 2 && raw.startsWith('"') && raw.endsWith('"');
    if (!closed || at !== part.end - 1)
      this.refuse('ambiguous', 'A quoted text is not what it looks like.', part);
    return parts.length === 0 ? [{ kind: 'literal', text: '' }] : parts;
  }
  substitution(part, quoting, nested, substitutions) {
    const raw = this.textOf(part);
    const backticks = raw.startsWith('`');
    if (backticks && (quoting !== 'none' || raw.includes('\\') || raw.slice(1, -1).includes('`'))) {
      this.refuse(
        'construct',
        'Backticks are understood only outside of quotes and without backslashes: use $(\u2026).',
        part,
      );
    }
    if (!backticks && !/^\$\((?!\().*\)$/s.test(raw)) {
      this.refuse(
        'ambiguous',
        'A substitution must begin with $( and no second bracket: put a blank between.',
        part,
      );
    }
    if (part.script === void 0) return;
    const [only2, ...others] = part.script.commands;
    const isSimple = only2?.command.type === 'Command' && others.length === 0 && only2.background !== true;
    substitutions.push(this.script(part.script, nested || backticks || !isSimple));
  }
  parameter(part, quoting, nested, substitutions) {
    const { operation, parameter } = part;
    const raw = this.textOf(part);
    const isElement = part.index !== void 0;
    const everyElement =
      isElement && (part.index?.text === '@' || part.index?.text === '*') && operation === void 0;
    if (!PARAMETER.test(parameter) || part.prefix === '!' || (isElement && !everyElement)) {
      this.refuse('construct', `${raw} is not understood: use a plain variable.`, part);
    }
    if (operation?.type === 'Transform' && operation.operand.text !== 'Q') {
      this.refuse('construct', `${raw} may run what the variable holds.`, part);
    }
    if (quoting !== 'none' && /['"\\]/.test(raw)) {
      this.refuse('ambiguous', 'Quotes inside an expansion inside quotes are not understood.', part);
    }
    for (const operand of operandsOf(part)) this.operand(operand, quoting, nested, substitutions);
    if (operation?.type === 'Slice') {
      for (const word of [operation.offset, operation.length]) if (word !== void 0) this.sliceWord(word);
    }
    if (operation?.type === 'Default' && /=/.test(operation.operator))
      noteAssignment(this.reading.numbers, parameter, void 0);
    if (operation === void 0 && !isElement) {
      const expected = part.prefix === '#' ? `\${#${parameter}}` : `\${${parameter}}`;
      if (raw !== expected) this.refuse('ambiguous', `${raw} is not understood.`, part);
    }
    return {
      kind: 'parameter',
      name: parameter,
      plain: operation === void 0 && part.prefix === void 0 && !isElement,
      ...quoted(quoting),
    };
  }
  /** The `y` of `${x:-y}`: text and whole expansions. */
  operand(word, quoting, nested, substitutions) {
    let at = word.pos;
    const literal = {
      type: 'Literal',
      pos: word.pos,
      end: word.end,
      text: this.textOf(word),
      value: word.value,
    };
    for (const part of word.parts ?? [literal]) {
      if (part.pos !== at)
        this.refuse('ambiguous', 'The text in an expansion is not what it looks like.', word);
      at = part.end;
      if (part.type === 'Literal') {
        if (!isPlainOperand(this.textOf(part)))
          this.refuse('ambiguous', 'The text in an expansion is not plain.', word);
      } else this.part(part, quoting, nested, substitutions);
    }
    if (at !== word.end)
      this.refuse('ambiguous', 'The text in an expansion is not what it looks like.', word);
  }
  sliceWord(word) {
    const text = this.textOf(word).trim();
    const name = /^\$?([A-Za-z_][A-Za-z0-9_]*)$/.exec(text)?.[1];
    if (name !== void 0) needNumber(this.reading.numbers, name, this.span(word));
    else if (!/^-?[0-9]+$/.test(text))
      this.refuse('construct', 'A substring is understood only with numbers for offset and length.', word);
  }
  arithmetic(node) {
    switch (node.type) {
      case 'ArithmeticBinary':
        if (ASSIGNING.has(node.operator)) this.arithmeticTarget(node.left);
        if (node.operator !== '=') this.arithmetic(node.left);
        this.arithmetic(node.right);
        return;
      case 'ArithmeticUnary':
        if (node.operator === '++' || node.operator === '--') this.arithmeticTarget(node.operand);
        this.arithmetic(node.operand);
        return;
      case 'ArithmeticTernary':
        for (const part of [node.test, node.consequent, node.alternate]) this.arithmetic(part);
        return;
      case 'ArithmeticGroup':
        this.arithmetic(node.expression);
        return;
      case 'ArithmeticWord': {
        const text = this.textOf(node);
        const name = /^(?:\$\{|\$)?([A-Za-z_][A-Za-z0-9_]*)\}?$/.exec(text)?.[1];
        if (!ARITHMETIC_WORD.test(text))
          this.refuse('construct', 'Arithmetic is understood only with numbers and plain names.', node);
        else if (name !== void 0) needNumber(this.reading.numbers, name, this.span(node));
        return;
      }
      case 'ArithmeticCommandExpansion':
        return;
      default:
        assertNever(node);
    }
  }
  arithmeticTarget(node) {
    if (node.type === 'ArithmeticWord' && isVariableName(this.textOf(node))) {
      noteArithmeticAssignment(this.reading.numbers, this.textOf(node));
    } else this.refuse('construct', 'Arithmetic may assign only to a plain name.', node);
  }
  test(node, nested, substitutions) {
    switch (node.type) {
      case 'TestUnary':
        if (node.operator === '-v' || node.operator === '-R') {
          this.refuse('construct', `[[ ${node.operator} \u2026 ]] may run what its operand holds.`, node);
        }
        this.word(node.operand, nested, substitutions);
        return;
      case 'TestBinary':
        for (const word of [node.left, node.right]) {
          const read3 = this.word(word, nested, substitutions);
          if (NUMERIC_COMPARISONS.has(node.operator)) this.numericOperand(read3, word);
        }
        return;
      case 'TestLogical':
        for (const operand of node.operands) this.test(operand, nested, substitutions);
        return;
      case 'TestNot':
        this.test(node.operand, nested, substitutions);
        return;
      case 'TestGroup':
        this.test(node.expression, nested, substitutions);
        return;
      default:
        assertNever(node);
    }
  }
  /** `[[ a -eq b ]]` evaluates both sides as arithmetic. */
  numericOperand(word, node) {
    if (word.value !== void 0 && /^-?[0-9]+$/.test(word.value)) return;
    const [only2, ...others] = word.parts;
    if (others.length === 0 && only2?.kind === 'arithmetic') return;
    if (
      others.length === 0 &&
      only2?.kind === 'parameter' &&
      (only2.plain || /^\$\{#\w+\}$/.test(word.source))
    ) {
      if (only2.plain) needNumber(this.reading.numbers, only2.name, word.span);
      return;
    }
    this.refuse(
      'construct',
      'Numbers are compared in [[ ]] only if they are certain to be numbers: use [ "$x" -eq 1 ].',
      node,
    );
  }
};
function operandsOf(part) {
  const { operation } = part;
  switch (operation?.type) {
    case 'Default':
    case 'Remove':
      return [operation.operand];
    case 'Replace':
      return [operation.pattern, operation.replacement];
    case 'CaseModification':
      return operation.operand === void 0 ? [] : [operation.operand];
    default:
      return [];
  }
}
function quoted(quoting) {
  return quoting === 'none' ? {} : { quoted: true };
}
function isRedirection(node) {
  return node.type !== 'Word' && node.type !== 'Assignment';
}
function isInput(node) {
  return node.operator.startsWith('<');
}
function withoutGlob(part) {
  return part.kind === 'glob' ? { kind: 'literal', text: part.text } : part;
}
function textOfLiteral(part) {
  return part.kind === 'literal' ? part.text : '';
}

// src/shell/test-builtin.ts
var UNARY = /^-[abcdefghkLnNoOprsStuwxzG]$/;
var BINARY = /^(?:==?|!=|<|>|-(?:eq|ne|lt|le|gt|ge|nt|ot|ef))$/;
function testProblem(args, numbers) {
  const evaluating = args.find((word) => word.value === '-v' || word.value === '-R');
  if (evaluating !== void 0) return `${evaluating.value} may run what its operand holds`;
  if (args.every((word) => word.value !== void 0)) return void 0;
  const several = args.find((word) => !isSingle(word) && !isNumeric(word, numbers));
  if (several !== void 0) return `${several.source} could be several words: quote it`;
  return isPlainForm(args) ? void 0 : 'with expansions only one comparison is understood: use && between two';
}
function isPlainForm(args) {
  const [first, second, third] = args.map((word) => word.value);
  switch (args.length) {
    case 1:
      return true;
    case 2:
      return first === '!' || UNARY.test(first ?? '');
    case 3:
      if (BINARY.test(second ?? '')) return true;
      return first === '!' && UNARY.test(second ?? '');
    case 4:
      return first === '!' && BINARY.test(third ?? '');
    default:
      return false;
  }
}
function isNumeric(word, numbers) {
  const [only2, ...others] = word.parts;
  if (others.length > 0) return false;
  if (only2?.kind === 'arithmetic') return true;
  if (only2?.kind !== 'parameter') return false;
  if (/^\$\{#\w+\}$/.test(word.source)) return true;
  if (!only2.plain || !/^(?:[?#$]|[A-Za-z_]\w*)$/.test(only2.name)) return false;
  needNumber(numbers, only2.name, word.span, 'unquoted');
  return true;
}

// src/shell/builtins.ts
var anything = () => void 0;
function only(letters) {
  return (args) => {
    for (const word of args) {
      const text = prefixOf(word);
      if (text === '--' || text === '-') return void 0;
      if (word.value === void 0 && text === '') return isHarmless(word) ? void 0 : mustBeWritten(word);
      if (!text.startsWith('-')) return void 0;
      if (word.value === void 0 || [...text.slice(1)].some((letter) => !letters.includes(letter))) {
        return `the option ${word.source} is not understood`;
      }
    }
    return void 0;
  };
}
function isHarmless(word) {
  return word.parts.length === 1 && word.parts[0]?.kind === 'parameter' && word.parts[0].name === '!';
}
function mustBeWritten(word) {
  return `${word.source} could be an option: write it out`;
}
var names = (args, numbers) => {
  for (const word of args) {
    if (word.value === void 0 || !isVariableName(word.value)) return `${word.source} is not a plain name`;
    noteAssignment(numbers, word.value, void 0);
  }
  return void 0;
};
function declares(options) {
  return (args, numbers) => {
    for (const word of args) {
      const text = prefixOf(word);
      if (/^[-+]/.test(text)) {
        if (word.value === void 0 || [...text.slice(1)].some((letter) => !`${options}-`.includes(letter))) {
          return `the option ${word.source} is not understood`;
        }
        continue;
      }
      const name = /^([A-Za-z_][A-Za-z0-9_]*)(?:\+?=|$)/.exec(text)?.[1];
      if (name === void 0 || (word.value === void 0 && !text.includes('=')))
        return `${word.source} is not a plain name`;
      if (numbers.arrays.has(name) || /^[^=]*=\(/.test(text)) return `${word.source} could declare an array`;
      if (text.includes('=') && !/^\d+$/.test(text.slice(text.indexOf('=') + 1)))
        noteAssignment(numbers, name, void 0);
    }
    return void 0;
  };
}
var printf = ([format]) => {
  const text = format === void 0 ? '' : prefixOf(format);
  if (format === void 0 || (text === '' && format.value === void 0)) return 'its format must be written out';
  return text.startsWith('-') && text !== '--' && text !== '-'
    ? `the option ${format.source} is not understood`
    : void 0;
};
var set = (args) => {
  for (let at = 0; at < args.length; at += 1) {
    const text = args[at]?.value;
    if (text === '--' || text === '-') return void 0;
    if (text === void 0 || !/^[-+][eufxCbhmo]*$/.test(text)) return `${args[at]?.source} is not understood`;
    if (!text.includes('o')) continue;
    at += 1;
    const name = args[at]?.value;
    if (name === void 0 || !SET_OPTIONS.has(name)) return `${args[at]?.source ?? '-o'} is not understood`;
  }
  return void 0;
};
var SET_OPTIONS = /* @__PURE__ */ new Set([
  'pipefail',
  'errexit',
  'nounset',
  'xtrace',
  'noglob',
  'noclobber',
  'errtrace',
  'functrace',
]);
var SHOPT_OPTIONS = /* @__PURE__ */ new Set([
  'nullglob',
  'globstar',
  'dotglob',
  'failglob',
  'nocaseglob',
  'inherit_errexit',
]);
var shopt = (args) => {
  const wrong = args.find(
    (word) => !/^-[suqp]$/.test(word.value ?? '') && !SHOPT_OPTIONS.has(word.value ?? ''),
  );
  return wrong === void 0 ? void 0 : `${wrong.source} may change how the rest is read`;
};
var read = (args, numbers) => {
  let at = 0;
  for (; at < args.length; at += 1) {
    const word = args[at];
    const text = word === void 0 ? '' : prefixOf(word);
    if (word?.value === '--') {
      at += 1;
      break;
    }
    if (!text.startsWith('-')) break;
    const letters = /^-([rs]*)([nNtudp]?)(.*)$/s.exec(text);
    if (letters === null || (letters[2] === '' && (letters[3] !== '' || word?.value === void 0))) {
      return `the option ${word?.source} is not understood`;
    }
    if (word !== void 0 && !isSingle(word)) return `${word.source} could be several words: quote it`;
    if (letters[2] !== '' && letters[3] === '' && word?.value !== void 0) {
      at += 1;
      const value = args[at];
      if (value !== void 0 && !isSingle(value)) return `${value.source} could be several words: quote it`;
    }
  }
  return names(args.slice(at), numbers);
};
var mapfile = (args, numbers) => {
  const rest = args[0]?.value === '-t' ? args.slice(1) : args;
  const name = rest[0]?.value;
  if (rest.length > 1 || (rest.length === 1 && (name === void 0 || !isVariableName(name)))) {
    return 'it is understood only as mapfile [-t] NAME';
  }
  numbers.arrays.add(name ?? 'MAPFILE');
  return void 0;
};
var wait = (args, numbers) => {
  for (const word of args) {
    if (word.value !== void 0 ? /^(?:-[nf]|%?[0-9]+|%[%+-])$/.test(word.value) : isHarmless(word)) continue;
    const parameter = word.parts.length === 1 ? word.parts[0] : void 0;
    if (parameter?.kind !== 'parameter' || !parameter.plain) return `${word.source} is not a process: use $!`;
    needNumber(numbers, parameter.name, word.span);
  }
  return void 0;
};
var unset = (args, numbers) => {
  const first = args[0]?.value;
  return names(first === '-v' || first === '-f' ? args.slice(1) : args, numbers);
};
var getopts = (args, numbers) => {
  if (args.length < 2 || args[0]?.value === void 0) return 'its options must be written out';
  return names(args.slice(1, 2), numbers);
};
var hash = (args) => {
  const option = args.find((word) => prefixOf(word).startsWith('-') || word.value === void 0);
  return option === void 0 || option.value === '-r' ? void 0 : `${option.source} is not understood`;
};
var source = (args) => {
  const file = args[0]?.value === '--' ? args[1] : args[0];
  if (file?.value === void 0 || file.value === '') return 'the file must be written out';
  return file.value.startsWith('-') ? `the option ${file.source} is not understood` : void 0;
};
var RULES = {
  ':': anything,
  true: anything,
  false: anything,
  echo: anything,
  cd: anything,
  pwd: anything,
  exit: anything,
  return: anything,
  break: anything,
  continue: anything,
  shift: anything,
  times: anything,
  type: anything,
  umask: anything,
  ulimit: anything,
  kill: anything,
  disown: anything,
  bg: anything,
  fg: anything,
  suspend: anything,
  logout: anything,
  pushd: anything,
  popd: anything,
  dirs: anything,
  help: anything,
  printf,
  test: testProblem,
  '[': (args, numbers) =>
    args.at(-1)?.value === ']' ? testProblem(args.slice(0, -1), numbers) : 'the closing ] is missing',
  export: declares('p'),
  readonly: declares('p'),
  declare: declares('xrglup'),
  typeset: declares('xrglup'),
  local: declares('xrlu'),
  read,
  set,
  shopt,
  mapfile,
  readarray: mapfile,
  wait,
  unset,
  getopts,
  hash,
  jobs: only('lnprs'),
  source,
  '.': source,
  // Runners: what they run is judged on its own.
  eval: anything,
  exec: anything,
  command: anything,
  builtin: anything,
};
var REFUSED = {
  alias: 'an alias changes what later words mean',
  unalias: 'aliases are not understood',
  bind: 'it can bind commands to keys',
  caller: 'it serves debuggers',
  compgen: 'it can run commands',
  complete: 'it can run commands',
  compopt: 'it can run commands',
  enable: 'it changes what names mean',
  fc: 'it runs commands from the history',
  history: 'it changes files',
  let: 'it evaluates its arguments and what they hold: use $((\u2026))',
  trap: 'it runs its argument as commands later',
};
function builtinProblem(name, args, numbers) {
  const reason7 = REFUSED[name];
  if (reason7 !== void 0) return `The builtin ${name} is not understood: ${reason7}.`;
  const problem = RULES[name]?.(args, numbers);
  return problem === void 0 ? void 0 : `The builtin ${name} is not understood here: ${problem}.`;
}
function isBuiltin(name) {
  return Object.hasOwn(RULES, name) || Object.hasOwn(REFUSED, name);
}

// src/shell/directories.ts
var MAX_POSSIBILITIES = 8;
var START = [[]];
function both(directories) {
  return { ok: directories, fail: directories };
}
function afterwards(flow) {
  return union(flow.ok, flow.fail);
}
function union(a, b) {
  if (a === b) return a;
  if (a === void 0 || b === void 0) return void 0;
  const all2 = [...a, ...b.filter((list) => !a.some((other) => isSame(list, other)))];
  return all2.length > MAX_POSSIBILITIES ? void 0 : all2;
}
function changed(directories, target) {
  return { ok: directories?.map((list) => [...list, target]), fail: directories };
}
function isSame(a, b) {
  return a.length === b.length && a.every((word, index) => word === b[index]);
}
var MOVERS = /* @__PURE__ */ new Set(['cd', 'pushd', 'popd', 'eval', 'source', '.', 'command', 'builtin']);
function mayMove(node, functions) {
  const within = (child) => mayMove(child, functions);
  switch (node.kind) {
    case 'simple': {
      const name = node.words[0]?.value;
      return name !== void 0 && (MOVERS.has(name) || functions.has(name));
    }
    case 'list':
      return node.items.some((item) => !item.background && within(item.node));
    case 'and-or':
      return node.nodes.some(within);
    case 'pipeline':
      return node.nodes.length === 1 && node.nodes.some(within);
    case 'group':
      return !node.subshell && within(node.body);
    case 'redirected':
      return within(node.body);
    case 'if':
      return (
        node.branches.some((branch) => within(branch.condition) || within(branch.body)) ||
        (node.otherwise !== void 0 && within(node.otherwise))
      );
    case 'loop':
      return within(node.body) || (node.condition !== void 0 && within(node.condition));
    case 'case':
      return node.bodies.some(within);
    case 'function':
      return within(node.body);
    case 'expression':
      return false;
  }
}

// src/shell/common-programs.ts
var COMMON = new Set(
  `ls cat cp mv rm ln mkdir rmdir touch chmod chown chgrp stat file du df head tail wc sort uniq cut paste tr tee sed awk
  gawk mawk grep egrep fgrep rg fd ag jq yq diff cmp comm patch tar gzip gunzip zip unzip xz zstd bzip2 date sleep which
  whoami id uname hostname env printenv basename dirname realpath readlink seq yes expr bc dd sync ps top pgrep pkill
  killall free uptime git gh hub svn hg make cmake ninja gcc cc clang ld ar go rustc cargo rustup node npm npx pnpm yarn
  bun deno python python3 pip pip3 uv uvx poetry pipenv pytest tox ruby gem bundle rake perl php composer java javac mvn
  gradle dotnet tsc eslint prettier vitest jest mocha curl wget nc ncat netcat socat ssh scp sftp rsync ftp telnet ping
  dig nslookup host openssl gpg sudo su doas docker podman kubectl helm systemctl service journalctl mount umount vim vi
  nano emacs ed ex less more man code open sqlite3 psql mysql redis apt dpkg yum dnf apk brew sh bash dash zsh ksh fish
  crontab at batch shred mkfs fdisk reboot shutdown halt poweroff iptables ip ifconfig useradd passwd base64 md5sum
  sha256sum xxd od hexdump strings column nl tac rev fold fmt split truncate mktemp mkfifo install tree bat
  command_not_found_handle`.split(/\s+/),
);
function isCommonProgram(name) {
  return COMMON.has(name);
}

// src/shell/runners/options.ts
function readOptions(words2, table) {
  const options = [];
  let at = 0;
  while (at < words2.length) {
    const word = words2[at];
    if (word === void 0) break;
    const text = prefixOf(word);
    if (beginsWithPath(word)) break;
    if (word.value === void 0 && (text === '' || !isSingle(word))) {
      return {
        ok: false,
        message: `${word.source} could be an option: only written-out words are understood here.`,
        word,
      };
    }
    if (text === '--') return { ok: true, options, rest: words2.slice(at + 1) };
    if (!text.startsWith('-') || text === '-') break;
    const read3 = text.startsWith('--')
      ? readLong2(word, text, words2[at + 1], table)
      : readShort2(word, text, words2[at + 1], table);
    if (typeof read3 === 'string') return { ok: false, message: read3, word };
    options.push(...read3.options);
    at += read3.used;
  }
  return { ok: true, options, rest: words2.slice(at) };
}
function readAnywhere(words2, table) {
  const options = [];
  const operands = [];
  let rest = words2;
  while (rest.length > 0) {
    const read3 = readOptions(rest, table);
    if (!read3.ok) return read3;
    options.push(...read3.options);
    const used = rest.slice(0, rest.length - read3.rest.length);
    const ended = used.at(-1)?.value === '--';
    operands.push(...read3.rest.slice(0, ended ? void 0 : 1));
    rest = ended ? [] : read3.rest.slice(1);
  }
  return { ok: true, options, rest: operands };
}
function beginsWithPath(word) {
  const first = word.parts[0];
  return first?.kind === 'input' && first.path === true;
}
function readLong2(word, text, next, table) {
  const equals = text.indexOf('=');
  if (word.value === void 0 && equals === -1) return `The option ${word.source} is not written out.`;
  const given = equals === -1 ? text.slice(2) : text.slice(2, equals);
  const name = fullName(given, table);
  const kind = name === void 0 ? void 0 : table.long?.[name];
  if (name === void 0 || kind === void 0) return `The option --${given} is not known here.`;
  if (equals !== -1) {
    if (kind === 'flag') return `The option --${name} takes no value.`;
    return { options: [{ name, value: withoutPrefix(word, equals + 1) }], used: 1 };
  }
  if (kind !== 'value') return { options: [{ name, value: void 0 }], used: 1 };
  return withNext(name, next, []);
}
function fullName(given, table) {
  const names2 = Object.keys(table.long ?? {});
  if (names2.includes(given)) return given;
  const matches = names2.filter((name) => name.startsWith(given));
  return matches.length === 1 ? matches[0] : void 0;
}
function readShort2(word, text, next, table) {
  if (table.numeric?.test(text) === true && word.value !== void 0) {
    return { options: [{ name: text.slice(1), value: void 0 }], used: 1 };
  }
  const options = [];
  for (let at = 1; at < text.length; at += 1) {
    const letter = text[at] ?? '';
    const isLast = at === text.length - 1 && word.value !== void 0;
    if (table.flags?.includes(letter) === true) options.push({ name: letter, value: void 0 });
    else if (table.attached?.includes(letter) === true) {
      return {
        options: [...options, { name: letter, value: isLast ? void 0 : withoutPrefix(word, at + 1) }],
        used: 1,
      };
    } else if (table.values?.includes(letter) === true) {
      if (isLast) return withNext(letter, next, options);
      return { options: [...options, { name: letter, value: withoutPrefix(word, at + 1) }], used: 1 };
    } else return `The option -${letter} is not known here.`;
  }
  if (word.value === void 0) return `The option ${word.source} is not written out.`;
  return { options, used: 1 };
}
function withNext(name, next, before) {
  if (next === void 0) return `The option ${name} has no value.`;
  if (!isSingle(next)) return `${next.source} could be several words: quote it.`;
  return { options: [...before, { name, value: next }], used: 2 };
}
function optionValue(options, ...names2) {
  return options.findLast((option) => names2.includes(option.name))?.value;
}
function hasOption2(options, ...names2) {
  return options.some((option) => names2.includes(option.name));
}

// src/shell/runners/runner.ts
var NOTHING = { runs: [] };
function refused(message, word, code = 'runner') {
  return { refusal: { code, message, ...(word === void 0 ? {} : { word }) } };
}
function runWords(words2, more = {}) {
  return words2.length === 0 ? NOTHING : { runs: [{ kind: 'argv', words: words2, ...more }] };
}

// src/shell/runners/builtins.ts
var BUILTIN_RUNNERS = {
  command: (call) => {
    const read3 = readOptions(call.words.slice(1), { flags: 'pvV' });
    if (!read3.ok) return refused(`command: ${read3.message}`, read3.word);
    if (read3.options.some((option) => option.name !== 'p') || read3.rest.length === 0) return NOTHING;
    return { runs: [{ kind: 'argv', words: read3.rest, inShell: true }] };
  },
  builtin: (call) => {
    const read3 = readOptions(call.words.slice(1), {});
    if (!read3.ok) return refused(`builtin: ${read3.message}`, read3.word);
    return read3.rest.length === 0 ? NOTHING : { runs: [{ kind: 'argv', words: read3.rest, inShell: true }] };
  },
  exec: (call) => {
    const read3 = readOptions(call.words.slice(1), { flags: 'cl', values: 'a' });
    if (!read3.ok) return refused(`exec: ${read3.message}`, read3.word);
    return read3.rest.length === 0 ? NOTHING : { runs: [{ kind: 'argv', words: read3.rest }] };
  },
  eval: (call) => {
    const words2 = call.words[1]?.value === '--' ? call.words.slice(2) : call.words.slice(1);
    return words2.length === 0
      ? NOTHING
      : { runs: [{ kind: 'text', text: words2, dialect: 'bash', sameShell: true }] };
  },
};

// src/shell/runners/fd.ts
var OPTIONS = {
  flags: 'HIusigFalLp01qhV',
  values: 'dteESocj',
  long: {
    hidden: 'flag',
    'no-ignore': 'flag',
    'no-ignore-vcs': 'flag',
    unrestricted: 'flag',
    'case-sensitive': 'flag',
    'ignore-case': 'flag',
    glob: 'flag',
    regex: 'flag',
    'fixed-strings': 'flag',
    'absolute-path': 'flag',
    'list-details': 'flag',
    follow: 'flag',
    'full-path': 'flag',
    print0: 'flag',
    quiet: 'flag',
    help: 'flag',
    version: 'flag',
    'max-depth': 'value',
    'min-depth': 'value',
    'exact-depth': 'value',
    type: 'value',
    extension: 'value',
    exclude: 'value',
    size: 'value',
    owner: 'value',
    color: 'value',
    threads: 'value',
    'changed-within': 'value',
    'changed-before': 'value',
    'max-results': 'value',
    'base-directory': 'value',
    'search-path': 'value',
    'path-separator': 'value',
    'ignore-file': 'value',
    prune: 'flag',
    'strip-cwd-prefix': 'optional',
  },
};
var MARKERS = ['{//}', '{/.}', '{/}', '{.}', '{}'];
var fd = (call) => {
  const runs = [];
  const others = [];
  const args = call.words.slice(1);
  for (let at = 0; at < args.length; at += 1) {
    const word = args[at];
    if (word === void 0) break;
    const text = word.value ?? '';
    if (text === '--') {
      others.push(...args.slice(at));
      break;
    }
    if (/^-[HIusigFalLp01q]*[xX]./.test(text) || /^--exec(?:-batch)?=/.test(text)) {
      return refused(
        `${call.name}: write a blank behind ${text.slice(0, 2)} and the command as words.`,
        word,
      );
    }
    const flags = /^-([HIusigFalLp01q]*)[xX]$/.exec(text)?.[1];
    if (flags === void 0 && text !== '--exec' && text !== '--exec-batch') {
      others.push(word);
      continue;
    }
    const end = args.findIndex((other, index) => index > at && other.value === ';');
    const command = args.slice(at + 1, end === -1 ? void 0 : end);
    if (command.length === 0) return refused(`${call.name}: ${text} runs nothing.`, word);
    runs.push({ kind: 'argv', words: filled(command, word) });
    at += command.length + 1;
  }
  const read3 = readAnywhere(others, OPTIONS);
  return read3.ok ? { runs } : refused(`${call.name}: ${read3.message}`, read3.word);
};
function filled(command, option) {
  const inner = command.map((word) => MARKERS.reduce((now, marker) => withInput(now, marker, false), word));
  return inner.some((word, index) => word !== command[index]) ? inner : [...inner, inputWord(option.span)];
}

// src/shell/runners/find.ts
var words = (list) => new Set(list.split(' '));
var ALONE = words(
  '-print -print0 -ls -delete -prune -quit -depth -d -mount -xdev -empty -daystart -follow -nouser -nogroup -true -false -readable -writable -executable -noleaf -ignore_readdir_race -noignore_readdir_race -warn -nowarn -help --help -version --version -not ! -a -and -o -or ( ) ,',
);
var WITH_ONE = words(
  '-name -iname -path -ipath -wholename -iwholename -regex -iregex -lname -ilname -type -xtype -maxdepth -mindepth -size -mtime -atime -ctime -mmin -amin -cmin -newer -anewer -cnewer -perm -user -group -uid -gid -links -inum -samefile -fstype -used -context -regextype -files0-from -fls -fprint -fprint0 -printf',
);
var EXECUTING = words('-exec -execdir -ok -okdir');
var find = (call) => {
  const args = call.words.slice(1);
  let at = 0;
  while (/^-(?:[HLP]+|O[0-9]|D)$/.test(args[at]?.value ?? '')) at += args[at]?.value === '-D' ? 2 : 1;
  let dashed = false;
  let uncertain;
  for (; at < args.length; at += 1) {
    const path = args[at];
    if (path === void 0 || isExpression(prefixOf(path))) break;
    if (path.value !== void 0 || prefixOf(path) !== '' || path.parts[0]?.kind === 'tilde') continue;
    if (!isSingle(path))
      return refused(
        `find: ${path.source} could be several words, and any of them an action: quote it.`,
        path,
      );
    uncertain = path;
    dashed = true;
  }
  const result = expression(args.slice(at), !dashed);
  const runs = 'runs' in result && result.runs.length > 0;
  const ends = args.slice(at).some((word) => word.value === ';' || word.value === '+');
  if (uncertain !== void 0 && (runs || ends)) {
    return refused(
      `find: ${uncertain.source} could be an action: put ./ before it or write it out.`,
      uncertain,
    );
  }
  return result;
};
function isExpression(text) {
  return /^(?:-.|[(),!]$)/.test(text);
}
function expression(args, path) {
  const runs = [];
  for (let at = 0; at < args.length; at += 1) {
    const word = args[at];
    const name = word?.value;
    if (word === void 0 || name === void 0) {
      return refused(`find: ${word?.source} stands where a test or action is expected: write it out.`, word);
    }
    if (ALONE.has(name)) continue;
    if (WITH_ONE.has(name) || /^-newer[aBcmt]{2}$/.test(name) || name === '-fprintf') {
      const count = name === '-fprintf' ? 2 : 1;
      const values = args.slice(at + 1, at + 1 + count);
      const several = values.find((value) => !isSingle(value));
      if (values.length < count) return refused(`find: ${name} has no value.`, word);
      if (several !== void 0)
        return refused(`find: ${several.source} could be several words: quote it.`, several);
      at += count;
    } else if (EXECUTING.has(name)) {
      const command = commandAt(args, at + 1);
      if (typeof command === 'string') return refused(`find: ${name} ${command}.`, word);
      const inner = command.map((part) => withInput(part, '{}', path));
      runs.push({ kind: 'argv', words: inner, ...(name.endsWith('dir') ? { directory: 'unknown' } : {}) });
      at += command.length + 1;
    } else return refused(`find: ${word.source} is not a known test or action.`, word);
  }
  return { runs };
}
function commandAt(args, start) {
  for (let at = start; at < args.length; at += 1) {
    const word = args[at];
    if (word === void 0) break;
    const ends = word.value === ';' || (word.value === '+' && args[at - 1]?.value === '{}');
    if (ends) return at === start ? 'runs nothing' : args.slice(start, at);
    if (!isSingle(word)) return `runs a command with ${word.source}, which could be several words: quote it`;
  }
  return 'is not closed: end its command with \\;';
}

// src/shell/runners/git-settings.ts
var TEXTS =
  /^(?:core\.(?:pager|editor|sshcommand|askpass|gitproxy|alternaterefscommand)|sequence\.editor|pager\..+|diff\.external|diff\..+\.(?:command|textconv)|filter\..+\.(?:clean|smudge|process)|merge\..+\.driver|(?:merge|diff)tool\..+\.cmd|gpg\.program|gpg\..+\.program|uploadpack\.packobjectshook|remote\..+\.(?:uploadpack|receivepack)|interactive\.difffilter|trailer\..+\.(?:command|cmd)|browser\..+\.cmd|man\..+\.cmd|guitool\..+\.cmd|tar\..+\.command|core\.fsmonitor|credential\.helper|credential\..+\.helper|sendemail\..*cmd)$/;
var LEADING =
  /^(?:include\.path|includeif\..+|core\.hookspath|init\.templatedir|protocol\..*|url\..+|remote\..+\.vcs|submodule\..+\.update|core\.worktree|imap\..*|sendemail\..*|web\.browser|help\.browser|maintenance\..*|hook\..*)$/;
var SWITCH = /^(?:true|false|yes|no|on|off|0|1|)$/i;
function settingOf2(word) {
  const text = prefixOf(word);
  const equals = text.indexOf('=');
  if (equals === -1 && word.value === void 0)
    return { kind: 'refused', why: `the setting ${word.source} is not written out` };
  const key = (equals === -1 ? text : text.slice(0, equals)).toLowerCase();
  if (LEADING.test(key)) return { kind: 'refused', why: `the setting ${key} can lead to other commands` };
  const value = equals === -1 ? wordFrom('true', word) : withoutPrefix(word, equals + 1);
  if (/^alias\./.test(key))
    return { kind: 'alias', name: key.slice('alias.'.length).replace(/\.command$/, ''), value };
  if (!TEXTS.test(key)) return { kind: 'harmless' };
  return executing(key, value);
}
function executing(key, value) {
  const text = value.value;
  if (text === void 0) return { kind: 'refused', why: `the setting ${key} is run and must be written out` };
  const isSwitch = SWITCH.test(text) && /^(?:core\.fsmonitor|pager\.|credential|diff\.external)/.test(key);
  if (isSwitch || text === '') return { kind: 'harmless' };
  if (!key.startsWith('credential'))
    return { kind: 'runs', run: { kind: 'text', text: [value], dialect: 'posix' } };
  if (text.startsWith('!')) {
    return { kind: 'runs', run: { kind: 'text', text: [withoutPrefix(value, 1)], dialect: 'posix' } };
  }
  return { kind: 'refused', why: `the setting ${key} runs a helper that is not written out` };
}

// src/shell/runners/git.ts
var FLAGS = new Set(
  '-p --paginate -P --no-pager --no-replace-objects --no-lazy-fetch --no-optional-locks --no-advice --bare --literal-pathspecs --glob-pathspecs --noglob-pathspecs --icase-pathspecs --version -v --help -h --html-path --man-path --info-path --exec-path'.split(
    ' ',
  ),
);
var VALUES = /* @__PURE__ */ new Set([
  '-C',
  '--git-dir',
  '--work-tree',
  '--namespace',
  '--super-prefix',
  '--attr-source',
]);
var ASSIGNED = /^--(?:git-dir|work-tree|namespace|super-prefix|attr-source|list-cmds)=/;
var git = (call) => {
  const { words: words2 } = call;
  const globals = { runs: [], aliases: /* @__PURE__ */ new Map() };
  let at = 1;
  for (; at < words2.length; at += 1) {
    const word = words2[at];
    if (word === void 0) break;
    const text = prefixOf(word);
    if (word.value === void 0 && text === '')
      return refused(`git: ${word.source} stands where the verb is expected: write it out.`, word);
    if (!text.startsWith('-')) break;
    if (text === '-c') {
      at += 1;
      const problem = note(globals, words2[at]);
      if (problem !== void 0) return refused(`git: ${problem}.`, words2[at] ?? word);
    } else if (VALUES.has(text)) at += 1;
    else if (word.value === void 0 ? !ASSIGNED.test(text) : !FLAGS.has(text) && !ASSIGNED.test(text)) {
      return refused(`git: the option ${word.source} is not known here.`, word);
    }
  }
  const verb = words2[at];
  if (verb === void 0) return { runs: globals.runs };
  if (verb.value === void 0)
    return refused(`git: the verb ${verb.source} must be written out.`, verb, 'dynamic_command');
  const own = ofVerb(verb.value, words2.slice(at + 1), globals, verb, words2[0]);
  return 'refusal' in own ? own : { runs: [...globals.runs, ...own.runs] };
};
function note(globals, word) {
  if (word === void 0) return '-c has no value';
  const setting = settingOf2(word);
  if (setting.kind === 'refused') return setting.why;
  if (setting.kind === 'runs') globals.runs.push(setting.run);
  if (setting.kind === 'alias') globals.aliases.set(setting.name, setting.value);
  return void 0;
}
function ofVerb(name, args, globals, verb, program) {
  const alias = globals.aliases.get(name);
  if (alias !== void 0) return ofAlias(alias, args, program ?? verb);
  const external = args.find((word) => /^[a-z0-9+.-]+::/.test(prefixOf(word)) && TRANSPORTING.has(name));
  if (external !== void 0) return refused(`git: ${external.source} names a program as transport.`, external);
  switch (name) {
    case 'bisect':
      return args[0]?.value === 'run'
        ? { runs: args.length < 2 ? [] : [{ kind: 'argv', words: args.slice(1) }] }
        : written(args[0]);
    case 'submodule':
      return ofSubmodule(args);
    case 'rebase':
      return texts(args, 'x', /^--e(?:x(?:ec?)?)?$/);
    case 'difftool':
      return texts(args, 'x', /^--ext(?:cmd?|c)?$/);
    case 'filter-branch':
    case 'for-each-repo':
      return refused(
        `git ${name} runs commands for many commits or repositories: it is not understood.`,
        verb,
      );
    case 'grep':
      return texts(args, 'O', /^--op[a-z-]*$/, true);
    case 'clone':
      return ofClone(args);
    case 'fetch':
    case 'pull':
    case 'push':
    case 'ls-remote':
    case 'fetch-pack':
    case 'send-pack':
    case 'archive':
      return texts(args, '', /^--(?:up[a-z-]*|rec?e[a-z-]*|exec?|exe)$/);
    default:
      return NOTHING;
  }
}
var TRANSPORTING = /* @__PURE__ */ new Set([
  'clone',
  'fetch',
  'pull',
  'push',
  'ls-remote',
  'archive',
  'remote',
  'submodule',
]);
function written(word) {
  return word !== void 0 && word.value === void 0
    ? refused(`git: ${word.source} must be written out.`, word)
    : NOTHING;
}
function ofAlias(alias, args, program) {
  const text = alias.value;
  if (text === void 0) return refused('git: an alias must be written out.', alias);
  if (text.startsWith('!')) {
    return { runs: [{ kind: 'text', text: [wordFrom(`${text.slice(1)} "$@"`, alias)], dialect: 'posix' }] };
  }
  if (/['"\\]/.test(text)) return refused('git: an alias with quotes is not understood.', alias);
  const words2 = text.split(/\s+/).filter((part) => part !== '');
  return {
    runs: [{ kind: 'argv', words: [program, ...words2.map((part) => wordFrom(part, alias)), ...args] }],
  };
}
function ofSubmodule(args) {
  const first = args.findIndex((word) => !/^(?:-q|--quiet|--cached)$/.test(word.value ?? ''));
  if (args[first]?.value !== 'foreach') return written(args[first]);
  const rest = args.slice(first + 1);
  const start = rest.findIndex((word) => !/^(?:-q|--quiet|--recursive|--)$/.test(word.value ?? ''));
  const command = start === -1 ? [] : rest.slice(start);
  const [only2] = command;
  if (only2 === void 0) return NOTHING;
  if (prefixOf(only2).startsWith('-'))
    return refused(`git submodule: the option ${only2.source} is not known here.`, only2);
  return { runs: [{ kind: 'text', text: command, dialect: 'posix', directory: 'unknown' }] };
}
function ofClone(args) {
  for (const [index, word] of args.entries()) {
    const text = prefixOf(word);
    const isSetting = text === '-c' || /^--conf(?:ig?)?(?:=|$)/.test(text);
    if (/^--te[a-z]*/.test(text)) return refused('git clone: a template can bring hooks.', word);
    if (!isSetting) continue;
    const value =
      text.includes('=') && text !== '-c' ? withoutPrefix(word, text.indexOf('=') + 1) : args[index + 1];
    const setting = value === void 0 ? void 0 : settingOf2(value);
    if (setting?.kind !== 'harmless')
      return refused(`git clone: the setting ${value?.source ?? ''} may run something.`, word);
  }
  return texts(args, 'u', /^--up[a-z-]*$/);
}
function texts(args, letter, long, attachedOnly = false) {
  const runs = [];
  for (const [index, word] of args.entries()) {
    const text = prefixOf(word);
    if (text === '--') break;
    const equals = text.startsWith('--') ? text.indexOf('=') : -1;
    const name = equals === -1 ? text : text.slice(0, equals);
    let value;
    if (long.test(name)) value = equals === -1 ? args[index + 1] : withoutPrefix(word, equals + 1);
    else if (letter !== '' && !text.startsWith('--'))
      value = shortValue(word, letter, args[index + 1], attachedOnly);
    const detached = value === args[index + 1];
    if (value === void 0 || (attachedOnly && detached)) continue;
    runs.push({ kind: 'text', text: [value], dialect: 'posix' });
  }
  return { runs };
}
function shortValue(word, letter, next, attachedOnly) {
  const text = prefixOf(word);
  const at = new RegExp(`^-[a-zA-Z]*?${letter}`).exec(text)?.[0].length;
  if (at === void 0) return void 0;
  if (at === text.length && word.value !== void 0) return attachedOnly ? void 0 : next;
  return withoutPrefix(word, at);
}

// src/shell/runners/launchers.ts
var HELP2 = { help: 'flag', version: 'flag' };
var SIGNALS = {
  'block-signal': 'optional',
  'default-signal': 'optional',
  'ignore-signal': 'optional',
};
var LAUNCHERS = {
  nohup: { options: { long: HELP2 } },
  timeout: {
    options: {
      flags: 'v',
      values: 'ks',
      long: {
        ...HELP2,
        foreground: 'flag',
        'preserve-status': 'flag',
        verbose: 'flag',
        'kill-after': 'value',
        signal: 'value',
      },
    },
    operands: 1,
  },
  time: {
    options: {
      flags: 'apqvV',
      values: 'fo',
      long: {
        ...HELP2,
        append: 'flag',
        portability: 'flag',
        quiet: 'flag',
        verbose: 'flag',
        format: 'value',
        output: 'value',
      },
    },
  },
  nice: { options: { values: 'n', long: { ...HELP2, adjustment: 'value' }, numeric: /^--?[0-9]+$/ } },
  ionice: {
    options: {
      flags: 'thV',
      values: 'cnpPu',
      long: {
        ...HELP2,
        class: 'value',
        classdata: 'value',
        ignore: 'flag',
        pid: 'value',
        pgid: 'value',
        uid: 'value',
      },
    },
    inert: ['p', 'P', 'u', 'pid', 'pgid', 'uid'],
  },
  stdbuf: { options: { values: 'ioe', long: { ...HELP2, input: 'value', output: 'value', error: 'value' } } },
  setsid: { options: { flags: 'cfwhV', long: { ...HELP2, ctty: 'flag', fork: 'flag', wait: 'flag' } } },
  setarch: {
    options: {
      flags: 'vRFZLXBIST3hVp',
      long: {
        ...HELP2,
        '32bit': 'flag',
        'addr-no-randomize': 'flag',
        'uname-2.6': 'flag',
        verbose: 'flag',
        list: 'flag',
      },
    },
    operands: 1,
  },
  taskset: {
    options: { flags: 'achV', long: { ...HELP2, 'all-tasks': 'flag', 'cpu-list': 'flag' } },
    operands: 1,
  },
  chrt: {
    options: {
      flags: 'bdfiormahVvR',
      values: 'TPD',
      long: {
        ...HELP2,
        batch: 'flag',
        deadline: 'flag',
        fifo: 'flag',
        idle: 'flag',
        other: 'flag',
        rr: 'flag',
        max: 'flag',
      },
    },
    operands: 1,
  },
  chroot: {
    options: { long: { ...HELP2, groups: 'value', userspec: 'value', 'skip-chdir': 'flag' } },
    operands: 1,
  },
  unshare: {
    options: {
      flags: 'fcrhV',
      attached: 'muinpUCT',
      values: 'RwSG',
      long: {
        ...HELP2,
        mount: 'optional',
        uts: 'optional',
        ipc: 'optional',
        net: 'optional',
        pid: 'optional',
        user: 'optional',
        cgroup: 'optional',
        time: 'optional',
        fork: 'flag',
        'kill-child': 'optional',
        'mount-proc': 'optional',
        'map-user': 'value',
        'map-group': 'value',
        'map-root-user': 'flag',
        'map-current-user': 'flag',
        'map-auto': 'flag',
        'map-users': 'value',
        'map-groups': 'value',
        propagation: 'value',
        setgroups: 'value',
        'keep-caps': 'flag',
        root: 'value',
        wd: 'value',
        setuid: 'value',
        setgid: 'value',
        monotonic: 'value',
        boottime: 'value',
      },
    },
    directory: ['w', 'wd'],
  },
  nsenter: {
    options: {
      flags: 'aerFZhV',
      attached: 'muinpUCTrw',
      values: 'tSGW',
      long: {
        ...HELP2,
        all: 'flag',
        target: 'value',
        mount: 'optional',
        uts: 'optional',
        ipc: 'optional',
        net: 'optional',
        pid: 'optional',
        user: 'optional',
        cgroup: 'optional',
        time: 'optional',
        setuid: 'value',
        setgid: 'value',
        root: 'optional',
        wd: 'optional',
        'preserve-credentials': 'flag',
        'no-fork': 'flag',
        env: 'flag',
        wdns: 'value',
        'follow-context': 'flag',
      },
    },
  },
  prlimit: {
    options: {
      flags: 'hV',
      attached: 'cdefilmnqrstuvxy',
      long: {
        ...HELP2,
        core: 'optional',
        data: 'optional',
        nice: 'optional',
        fsize: 'optional',
        nofile: 'optional',
        nproc: 'optional',
        as: 'optional',
        cpu: 'optional',
        stack: 'optional',
        rss: 'optional',
        memlock: 'optional',
        verbose: 'flag',
        noheadings: 'flag',
        raw: 'flag',
      },
    },
  },
  strace: {
    options: {
      flags: 'cCdfhiknqrtTvVwxyYzZD',
      values: 'abeEIoOpPsSuUX',
      long: {
        ...HELP2,
        'follow-forks': 'flag',
        output: 'value',
        trace: 'value',
        'seccomp-bpf': 'flag',
        'summary-only': 'flag',
        'string-limit': 'value',
        attach: 'value',
        env: 'value',
        user: 'value',
      },
    },
    inert: ['p', 'attach'],
  },
  ltrace: { options: { flags: 'bcCfhiLrStTV', values: 'aADeFlnopsuwx' } },
  catchsegv: { options: {} },
  caffeinate: { options: { flags: 'disum', values: 'tw' } },
  unbuffer: { options: { flags: 'p' } },
  'dbus-run-session': { options: { long: { ...HELP2, 'config-file': 'value', 'dbus-daemon': 'value' } } },
  'xvfb-run': {
    options: {
      flags: 'alh',
      values: 'efnpsw',
      long: {
        ...HELP2,
        'auto-servernum': 'flag',
        'server-args': 'value',
        'server-num': 'value',
        'error-file': 'value',
      },
    },
  },
  cgexec: { options: { values: 'g', long: { sticky: 'flag' } } },
  fakeroot: {
    options: {
      flags: 'uhv',
      values: 'lsifb',
      long: { ...HELP2, lib: 'value', faked: 'value', 'unknown-is-real': 'flag' },
    },
  },
  'systemd-run': {
    options: {
      flags: 'dPqrGtS',
      values: 'HMpuE',
      long: {
        ...HELP2,
        user: 'flag',
        system: 'flag',
        scope: 'flag',
        wait: 'flag',
        pipe: 'flag',
        pty: 'flag',
        quiet: 'flag',
        collect: 'flag',
        'same-dir': 'flag',
        unit: 'value',
        property: 'value',
        slice: 'value',
        setenv: 'value',
        'working-directory': 'value',
        uid: 'value',
        gid: 'value',
        description: 'value',
      },
    },
    directory: ['working-directory'],
  },
  'systemd-inhibit': {
    options: { long: { ...HELP2, what: 'value', who: 'value', why: 'value', mode: 'value', list: 'flag' } },
  },
  pkexec: {
    options: { long: { ...HELP2, user: 'value', 'disable-internal-agent': 'flag', 'keep-cwd': 'flag' } },
  },
  gosu: { options: {}, operands: 1 },
  'su-exec': { options: {}, operands: 1 },
  setpriv: {
    options: {
      flags: 'dhV',
      long: {
        ...HELP2,
        'no-new-privs': 'flag',
        'clear-groups': 'flag',
        reuid: 'value',
        regid: 'value',
        'init-groups': 'flag',
        'inh-caps': 'value',
        'bounding-set': 'value',
        'keep-groups': 'flag',
        'reset-env': 'flag',
        ruid: 'value',
        rgid: 'value',
        euid: 'value',
        egid: 'value',
        groups: 'value',
      },
    },
  },
  ccache: { options: {} },
  sccache: { options: {} },
  distcc: { options: {} },
};
var env = (call) => {
  const read3 = readOptions(call.words.slice(1), {
    flags: 'i0v',
    values: 'uCS',
    long: {
      ...HELP2,
      ...SIGNALS,
      'ignore-environment': 'flag',
      null: 'flag',
      debug: 'flag',
      unset: 'value',
      chdir: 'value',
      'split-string': 'value',
      'list-signal-handling': 'flag',
    },
  });
  if (!read3.ok) return refused(`env: ${read3.message}`, read3.word);
  if (optionValue(read3.options, 'S', 'split-string') !== void 0) {
    return refused('env -S splits a text by rules of its own: write the words out.', call.words[0]);
  }
  const isAssignment = (word) => /^[^=]*=/.test(prefixOf(word)) || word.value === '-';
  const first = read3.rest.findIndex((word) => !isAssignment(word));
  const directory = optionValue(read3.options, 'C', 'chdir');
  return first === -1
    ? NOTHING
    : runWords(read3.rest.slice(first), directory === void 0 ? {} : { directory });
};
function launch(launcher, call) {
  const read3 = readOptions(call.words.slice(1), launcher.options);
  if (!read3.ok) return refused(`${call.name}: ${read3.message}`, read3.word);
  if (read3.options.some((option) => launcher.inert?.includes(option.name))) return NOTHING;
  const operands = read3.rest.slice(0, launcher.operands ?? 0);
  const dynamic = operands.find((word) => word.value === void 0);
  if (dynamic !== void 0) {
    return refused(
      `${call.name}: ${dynamic.source} must be written out, or it is not clear what runs.`,
      dynamic,
    );
  }
  const directory = optionValue(read3.options, ...(launcher.directory ?? []));
  return runWords(read3.rest.slice(operands.length), directory === void 0 ? {} : { directory });
}

// src/shell/runners/make.ts
var SHELLS = /^SHELL[:?+]*=\/(?:usr\/)?bin\/(?:ba|da)?sh$/;
var EXECUTING2 = /^(?:SHELL|\.SHELLFLAGS|MAKESHELL|MAKE|MAKEFLAGS|GNUMAKEFLAGS|MAKEFILES)[:?+!]*=/;
var make = (call) => {
  for (const word of call.words.slice(1)) {
    const text = prefixOf(word);
    if (word.value === void 0 && text === '')
      return refused(`${call.name}: ${word.source} could be a setting: write it out.`, word);
    if (SHELLS.test(word.value ?? '')) continue;
    if (EXECUTING2.test(text))
      return refused(`${call.name}: ${word.source} changes what runs the recipes.`, word);
    if (/^--ev/.test(text) || /^-[a-zA-Z]*E/.test(text))
      return refused(`${call.name}: ${word.source} brings rules of its own.`, word);
    if (/^(?:-f-?|--f[a-z]*|--makefile)(?:=?-)?$/.test(text) && isInput2(call.words, word)) {
      return refused(`${call.name} would read rules from its standard input.`, word);
    }
  }
  return NOTHING;
};
function isInput2(words2, word) {
  return /-$/.test(word.value?.slice(2) ?? '') || words2[words2.indexOf(word) + 1]?.value === '-';
}

// src/shell/runners/multi-call.ts
var busybox = (call) => {
  const applet = call.words[1];
  if (applet?.value?.startsWith('-') === true) {
    return /^--(?:list|list-full|help|version)$/.test(applet.value)
      ? NOTHING
      : refused(`${call.name}: the option ${applet.source} is not known here.`, applet);
  }
  return runWords(call.words.slice(1));
};
var loader = (call) => {
  const read3 = readOptions(call.words.slice(1), {
    long: {
      list: 'flag',
      verify: 'flag',
      'inhibit-cache': 'flag',
      'library-path': 'value',
      'inhibit-rpath': 'value',
      preload: 'value',
      audit: 'value',
      argv0: 'value',
      help: 'flag',
      version: 'flag',
      'list-tunables': 'flag',
      'list-diagnostics': 'flag',
      'glibc-hwcaps-prepend': 'value',
      'glibc-hwcaps-mask': 'value',
    },
  });
  if (!read3.ok) return refused(`${call.name}: ${read3.message}`, read3.word);
  if (hasOption2(read3.options, 'preload', 'audit'))
    return refused(`${call.name} would load other code first.`, call.words[0]);
  return runWords(read3.rest);
};
var LOADER_NAME = /^ld(?:-linux|-musl|-[0-9.]+|64)?[A-Za-z0-9_.-]*\.so(?:\.[0-9]+)*$/;
var procRoot = (call) => {
  const [first, ...others] = call.words;
  const path = first?.value ?? '';
  const inner = PROC_ROOT.exec(path)?.[1];
  if (first === void 0 || inner === void 0)
    return refused(`${path} is another name for a program: use its own.`, first);
  return runWords([wordFrom(inner, first), ...others]);
};
var PROC_ROOT = /^\/+proc\/+(?:self|thread-self|[0-9]+)\/+(?:root|task\/+[0-9]+\/+root)(\/.*)$/;
var PROC_NAME = /^\/+(?:proc\/|dev\/fd\/)/;

// src/shell/runners/node-tools.ts
var EXEC = {
  flags: 'yqvhs',
  values: 'pwcC',
  long: {
    yes: 'flag',
    no: 'flag',
    'no-install': 'flag',
    quiet: 'flag',
    silent: 'flag',
    offline: 'flag',
    'prefer-offline': 'flag',
    version: 'flag',
    help: 'flag',
    bun: 'flag',
    package: 'value',
    workspace: 'value',
    workspaces: 'flag',
    'include-workspace-root': 'flag',
    registry: 'value',
    call: 'value',
    loglevel: 'value',
    prefix: 'value',
    'ignore-existing': 'flag',
    recursive: 'flag',
    parallel: 'flag',
    filter: 'value',
    dir: 'value',
  },
};
var npx = (call) => execute(call, call.words.slice(1));
function execute(call, args) {
  const read3 = readOptions(args, EXEC);
  if (!read3.ok) return refused(`${call.name}: ${read3.message}`, read3.word);
  const text = optionValue(read3.options, 'c', 'call');
  if (text !== void 0) return { runs: [{ kind: 'text', text: [text], dialect: 'posix' }] };
  if (hasOption2(read3.options, 'version', 'help', 'v', 'h')) return NOTHING;
  const dashes = read3.rest.findIndex((word) => word.value === '--');
  const command =
    call.name === 'npm' && dashes === 1 ? read3.rest.filter((_, index) => index !== 1) : read3.rest;
  const elsewhere = hasOption2(read3.options, 'w', 'workspace', 'C', 'prefix', 'dir', 'recursive', 'filter');
  return runWords(command, elsewhere ? { directory: 'unknown' } : {});
}
var WITH_VALUE =
  /^(?:-C|-w|-F|--prefix|--workspace|--registry|--loglevel|--filter|--cwd|--dir|--package|-p|--userconfig|--cache)$/;
var EXECUTING3 =
  /^--?(?:script-shell|shell|editor|viewer|browser|git|node-options|init-module|ignore-scripts=false)\b/;
var VERBS3 = {
  npm: /^(?:exec|x|ex|exe)$/,
  pnpm: /^(?:exec|dlx)$/,
  yarn: /^(?:exec|dlx)$/,
  bun: /^(?:x)$/,
};
var packageManager = (call) => {
  const args = call.words.slice(1);
  const setting = args.find((word) => EXECUTING3.test(prefixOf(word)));
  if (setting !== void 0) return refused(`${call.name}: ${setting.source} names a program to run.`, setting);
  let at = 0;
  while (prefixOf(args[at] ?? EMPTY).startsWith('-')) at += WITH_VALUE.test(args[at]?.value ?? '') ? 2 : 1;
  const verb = args[at];
  if (verb === void 0) return NOTHING;
  if (verb.value === void 0)
    return refused(`${call.name}: the verb ${verb.source} must be written out.`, verb);
  if (VERBS3[call.name]?.test(verb.value) !== true) return NOTHING;
  return execute(call, args.slice(at + 1));
};
var EMPTY = { value: '', parts: [], source: '', span: { start: 0, end: 0 } };

// src/shell/runners/privilege.ts
var SUDO = {
  flags: 'AbBeEHiKklnPSsVvN',
  values: 'CDghpRrtTUu',
  long: {
    askpass: 'flag',
    background: 'flag',
    bell: 'flag',
    'close-from': 'value',
    chdir: 'value',
    'preserve-env': 'optional',
    edit: 'flag',
    group: 'value',
    'set-home': 'flag',
    help: 'flag',
    host: 'value',
    login: 'flag',
    'remove-timestamp': 'flag',
    'reset-timestamp': 'flag',
    list: 'flag',
    'non-interactive': 'flag',
    'no-update': 'flag',
    'preserve-groups': 'flag',
    prompt: 'value',
    chroot: 'value',
    role: 'value',
    stdin: 'flag',
    shell: 'flag',
    type: 'value',
    'command-timeout': 'value',
    'other-user': 'value',
    user: 'value',
    version: 'flag',
    validate: 'flag',
  },
};
var sudo = (call) => {
  const read3 = readOptions(call.words.slice(1), SUDO);
  if (!read3.ok) return refused(`sudo: ${read3.message}`, read3.word);
  const first = read3.rest.findIndex((word) => !/^[A-Za-z_][A-Za-z0-9_]*=/.test(prefixOf(word)));
  const command = first === -1 ? [] : read3.rest.slice(first);
  if (hasOption2(read3.options, 'e', 'edit')) return NOTHING;
  if (hasOption2(read3.options, 's', 'i', 'shell', 'login')) return shellOf(call, command);
  const directory = optionValue(read3.options, 'D', 'chdir');
  return runWords(command, directory === void 0 ? {} : { directory });
};
function shellOf(call, command) {
  if (command.length > 0) return runWords(command);
  return refused(
    `${call.name} would start a shell that reads its standard input: name the command.`,
    call.words[0],
  );
}
var doas = (call) => {
  const read3 = readOptions(call.words.slice(1), { flags: 'Lns', values: 'aCu' });
  if (!read3.ok) return refused(`doas: ${read3.message}`, read3.word);
  if (hasOption2(read3.options, 'L', 'C')) return NOTHING;
  return hasOption2(read3.options, 's') ? shellOf(call, []) : runWords(read3.rest);
};
var SU = {
  flags: 'flmpPhV',
  values: 'cCsgGwTu',
  long: {
    command: 'value',
    'session-command': 'value',
    shell: 'value',
    login: 'flag',
    'preserve-environment': 'flag',
    fast: 'flag',
    pty: 'flag',
    group: 'value',
    'supp-group': 'value',
    'whitelist-environment': 'value',
    user: 'value',
    help: 'flag',
    version: 'flag',
  },
};
var su = (call) => {
  const before = readOptions(call.words.slice(1), SU);
  if (before.ok && call.name === 'runuser' && hasOption2(before.options, 'u', 'user'))
    return runWords(before.rest);
  const read3 = readAnywhere(call.words.slice(1), SU);
  if (!read3.ok) return refused(`${call.name}: ${read3.message}`, read3.word);
  if (hasOption2(read3.options, 'help', 'version', 'h', 'V')) return NOTHING;
  const other = optionValue(read3.options, 's', 'shell');
  if (other !== void 0 && !/^\/(?:usr\/)?bin\/(?:ba|da)?sh$/.test(other.value ?? '')) {
    return refused(`${call.name}: the shell ${other.source} is not known.`, other);
  }
  if (read3.rest.filter((word) => word.value !== '-').length > 1) {
    return refused(`${call.name}: words behind the user go to the shell: use -c.`, call.words[0]);
  }
  const text = optionValue(read3.options, 'c', 'command', 'session-command', 'C');
  if (text === void 0) return shellOf(call, []);
  return { runs: [{ kind: 'text', text: [text], dialect: 'posix' }] };
};

// src/shell/runners/project-tools.ts
var GLOBAL = {
  flags: 'qvnhV',
  values: 'CPp',
  long: {
    quiet: 'flag',
    verbose: 'flag',
    version: 'flag',
    help: 'flag',
    directory: 'value',
    project: 'value',
    'no-interaction': 'flag',
    'no-ansi': 'flag',
    ansi: 'flag',
    'no-plugins': 'flag',
    'no-cache': 'flag',
    offline: 'flag',
    color: 'value',
  },
};
var UV_RUN = {
  flags: 'qvnmsi',
  values: 'pwC',
  long: {
    frozen: 'flag',
    locked: 'flag',
    'no-sync': 'flag',
    isolated: 'flag',
    active: 'flag',
    'no-project': 'flag',
    'all-extras': 'flag',
    offline: 'flag',
    'no-dev': 'flag',
    dev: 'flag',
    exact: 'flag',
    'no-env-file': 'flag',
    quiet: 'flag',
    verbose: 'flag',
    refresh: 'flag',
    'no-cache': 'flag',
    'all-packages': 'flag',
    module: 'flag',
    script: 'flag',
    'all-groups': 'flag',
    with: 'value',
    'with-editable': 'value',
    'with-requirements': 'value',
    python: 'value',
    extra: 'value',
    group: 'value',
    'only-group': 'value',
    'no-group': 'value',
    project: 'value',
    directory: 'value',
    'env-file': 'value',
    package: 'value',
    'index-url': 'value',
    from: 'value',
  },
};
var TOOLS = {
  uv: {
    before: GLOBAL,
    verbs: ['run', 'tool run'],
    options: UV_RUN,
    otherwise: ['m', 's', 'module', 'script'],
    directory: ['directory'],
  },
  poetry: { before: GLOBAL, verbs: ['run'], options: { flags: 'qv' }, directory: ['C', 'directory'] },
  pipenv: { before: GLOBAL, verbs: ['run'], options: {} },
  pdm: {
    before: GLOBAL,
    verbs: ['run'],
    options: { flags: 's', values: 'p', long: { site: 'flag', project: 'value' } },
  },
  hatch: {
    before: { flags: 'vq', values: 'ep', long: { env: 'value', project: 'value' } },
    verbs: ['run'],
    options: {},
  },
  rye: { before: GLOBAL, verbs: ['run'], options: {} },
  bundle: {
    before: { long: { gemfile: 'value' } },
    verbs: ['exec', 'e'],
    options: { long: { 'keep-file-descriptors': 'flag', gemfile: 'value' } },
  },
  direnv: { before: {}, verbs: ['exec'], options: {}, operands: 1, directory: [] },
  conda: {
    before: {},
    verbs: ['run'],
    options: {
      values: 'np',
      long: {
        name: 'value',
        prefix: 'value',
        'no-capture-output': 'flag',
        'live-stream': 'flag',
        cwd: 'value',
      },
    },
    directory: ['cwd'],
  },
  mise: { before: { flags: 'qvy', values: 'C' }, verbs: ['exec', 'x'], options: {} },
  rustup: { before: { flags: 'qv' }, verbs: ['run'], options: { long: { install: 'flag' } }, operands: 1 },
};
var PROJECT_TOOLS = Object.keys(TOOLS);
var projectTool = (call) => {
  const tool = TOOLS[call.name];
  if (tool === void 0) return NOTHING;
  const before = readOptions(call.words.slice(1), tool.before);
  if (!before.ok)
    return call.words.some((word) => word.value !== void 0 && tool.verbs.includes(word.value))
      ? refused(`${call.name}: ${before.message}`, before.word)
      : NOTHING;
  const [first, second] = before.rest;
  if (first !== void 0 && first.value === void 0)
    return refused(`${call.name}: the verb ${first.source} must be written out.`, first);
  const length = tool.verbs.includes(first?.value ?? '')
    ? 1
    : tool.verbs.includes(`${first?.value} ${second?.value}`)
      ? 2
      : 0;
  if (length === 0) return NOTHING;
  const read3 = readOptions(before.rest.slice(length), tool.options);
  if (!read3.ok) return refused(`${call.name}: ${read3.message}`, read3.word);
  if (hasOption2(read3.options, ...(tool.otherwise ?? []))) return NOTHING;
  const directory = optionValue([...before.options, ...read3.options], ...(tool.directory ?? []));
  const operands = tool.operands ?? 0;
  const dashes = call.name === 'mise' ? read3.rest.findIndex((word) => word.value === '--') + 1 : 0;
  return runWords(read3.rest.slice(Math.max(operands, dashes)), directory === void 0 ? {} : { directory });
};
var toolRunner = (call) => {
  const args = call.name === 'pipx' ? call.words.slice(2) : call.words.slice(1);
  if (call.name === 'pipx' && call.words[1]?.value !== 'run') return NOTHING;
  const read3 = readOptions(args, {
    ...UV_RUN,
    long: { ...UV_RUN.long, spec: 'value', version: 'flag', help: 'flag', isolated: 'flag' },
  });
  if (!read3.ok) return refused(`${call.name}: ${read3.message}`, read3.word);
  return runWords(read3.rest);
};

// src/shell/runners/remote.ts
var SSH = { flags: '46AaCfGgKkMNnqsTtVvXxYy', values: 'BbcDEeFIiJLlmOopPQRSWw' };
var HARMLESS2 =
  /^(?:BatchMode|ConnectTimeout|ConnectionAttempts|StrictHostKeyChecking|UserKnownHostsFile|GlobalKnownHostsFile|LogLevel|Port|User|IdentitiesOnly|IdentityFile|ServerAlive\w+|PasswordAuthentication|PreferredAuthentications|ForwardAgent|Compression|RequestTTY|HostName|AddressFamily)[ =]/i;
var ssh = (call) => {
  const before = readOptions(call.words.slice(1), SSH);
  if (!before.ok) return refused(`ssh: ${before.message}`, before.word);
  const behind = readOptions(before.rest.slice(1), SSH);
  if (!behind.ok) return refused(`ssh: ${behind.message}`, behind.word);
  for (const option of [...before.options, ...behind.options]) {
    if (option.name === 'o' && !HARMLESS2.test(option.value === void 0 ? '' : `${prefixOf(option.value)} `)) {
      return refused(`ssh: the setting ${option.value?.source} may run a program.`, option.value);
    }
  }
  return behind.rest.length === 0
    ? NOTHING
    : { runs: [{ kind: 'text', text: behind.rest, dialect: 'posix' }] };
};
var ENGINE = {
  flags: 'Dv',
  values: 'HclL',
  long: {
    host: 'value',
    context: 'value',
    config: 'value',
    debug: 'flag',
    'log-level': 'value',
    tls: 'flag',
    version: 'flag',
    help: 'flag',
  },
};
var EXEC2 = {
  flags: 'dit',
  values: 'euw',
  long: {
    detach: 'flag',
    interactive: 'flag',
    tty: 'flag',
    privileged: 'flag',
    env: 'value',
    'env-file': 'value',
    user: 'value',
    workdir: 'value',
    'detach-keys': 'value',
  },
};
var container = (call) => {
  const before = readOptions(call.words.slice(1), ENGINE);
  if (!before.ok) return refused(`${call.name}: ${before.message}`, before.word);
  const verb = before.rest[0];
  const rest = verb?.value === 'container' ? before.rest.slice(1) : before.rest;
  if (rest[0] !== void 0 && rest[0].value === void 0)
    return refused(`${call.name}: the verb must be written out.`, rest[0]);
  if (rest[0]?.value !== 'exec') return NOTHING;
  const read3 = readOptions(rest.slice(1), EXEC2);
  if (!read3.ok) return refused(`${call.name}: ${read3.message}`, read3.word);
  return runWords(read3.rest.slice(1), { directory: 'unknown' });
};

// src/shell/runners/shells.ts
var SHELLS2 = {
  bash: 'bash',
  sh: 'posix',
  dash: 'posix',
  ash: 'posix',
  zsh: 'zsh',
  ksh: 'zsh',
  mksh: 'zsh',
  fish: 'zsh',
};
var LETTERS = /^-[ceuxvnlfab]+$/;
var LONG = /* @__PURE__ */ new Set([
  '--login',
  '--noprofile',
  '--norc',
  '--posix',
  '--restricted',
  '--verbose',
]);
var INERT = /* @__PURE__ */ new Set(['--version', '--help']);
var shell = (call) => {
  const dialect = SHELLS2[call.name] ?? 'posix';
  let hasText = false;
  let at = 1;
  for (; at < call.words.length; at += 1) {
    const word = call.words[at];
    if (word === void 0) break;
    const text = word.value;
    if (beginsWithPath(word)) break;
    if (text === void 0) {
      if (prefixOf(word) !== '' && !prefixOf(word).startsWith('-') && !hasText) break;
      if (hasText) break;
      return refused(`${call.name}: ${word.source} could be an option: write it out.`, word);
    }
    if (INERT.has(text)) return NOTHING;
    if (text === '--' || text === '-') {
      at += 1;
      break;
    }
    if (/^[-+]o$/.test(text) && SAFE_O.has(call.words[at + 1]?.value ?? '')) at += 1;
    else if (
      /^-[a-z]+o$/.test(text) &&
      LETTERS.test(text.slice(0, -1)) &&
      call.words[at + 1]?.value === 'pipefail'
    ) {
      hasText ||= text.includes('c');
      at += 1;
    } else if (LETTERS.test(text)) hasText ||= text.includes('c');
    else if (text.startsWith('-') || text.startsWith('+')) {
      if (!LONG.has(text)) return refused(`${call.name}: the option ${text} is not understood.`, word);
    } else break;
  }
  const operand = call.words[at];
  if (hasText) return textOf(call.name, operand, dialect);
  if (operand !== void 0) return NOTHING;
  return fromInput(call.name, call.words[0], call.input, dialect);
};
var SAFE_O = /* @__PURE__ */ new Set(['pipefail', 'errexit', 'nounset', 'xtrace']);
function textOf(name, operand, dialect) {
  if (operand === void 0) return refused(`${name} -c has no text.`);
  return { runs: [{ kind: 'text', text: [operand], dialect }] };
}
function fromInput(name, word, input, dialect) {
  if (input === void 0 || word === void 0) {
    return refused(
      `${name} would run what it reads from its standard input: use ${name} -c or a file.`,
      word,
    );
  }
  return { runs: [{ kind: 'text', text: [literalWord(input, word.span)], dialect }] };
}

// src/shell/runners/terminal.ts
var watch = (call) => {
  const read3 = readOptions(call.words.slice(1), {
    flags: 'bcCegtprwxhv',
    values: 'nqs',
    attached: 'd',
    long: {
      beep: 'flag',
      color: 'flag',
      'no-color': 'flag',
      differences: 'optional',
      errexit: 'flag',
      chgexit: 'flag',
      equexit: 'value',
      interval: 'value',
      precise: 'flag',
      'no-title': 'flag',
      'no-wrap': 'flag',
      'no-rerun': 'flag',
      exec: 'flag',
      shotsdir: 'value',
      help: 'flag',
      version: 'flag',
    },
  });
  if (!read3.ok) return refused(`watch: ${read3.message}`, read3.word);
  if (hasOption2(read3.options, 'x', 'exec')) return runWords(read3.rest);
  return read3.rest.length === 0 ? NOTHING : { runs: [{ kind: 'text', text: read3.rest, dialect: 'posix' }] };
};
var flock = (call) => {
  const read3 = readOptions(call.words.slice(1), {
    flags: 'sxeunoFvhV',
    values: 'wE',
    long: {
      shared: 'flag',
      exclusive: 'flag',
      unlock: 'flag',
      nonblock: 'flag',
      nb: 'flag',
      close: 'flag',
      'no-fork': 'flag',
      verbose: 'flag',
      timeout: 'value',
      wait: 'value',
      'conflict-exit-code': 'value',
      help: 'flag',
      version: 'flag',
    },
  });
  if (!read3.ok) return refused(`flock: ${read3.message}`, read3.word);
  const [file, first, text] = read3.rest;
  if (file !== void 0 && file.value === void 0)
    return refused(`flock: ${file.source} must be written out.`, file);
  if (first?.value !== '-c' && first?.value !== '--command') return runWords(read3.rest.slice(1));
  if (text === void 0 || read3.rest.length > 3) return refused('flock: -c takes one text.', first);
  return { runs: [{ kind: 'text', text: [text], dialect: 'posix' }] };
};
var script = (call) => {
  const read3 = readAnywhere(call.words.slice(1), {
    flags: 'aefqhV',
    values: 'cEIOBTmo',
    attached: 't',
    long: {
      append: 'flag',
      command: 'value',
      echo: 'value',
      return: 'flag',
      flush: 'flag',
      force: 'flag',
      quiet: 'flag',
      'log-in': 'value',
      'log-out': 'value',
      'log-io': 'value',
      'log-timing': 'value',
      'logging-format': 'value',
      'output-limit': 'value',
      timing: 'optional',
      help: 'flag',
      version: 'flag',
    },
  });
  if (!read3.ok) return refused(`script: ${read3.message}`, read3.word);
  const text = optionValue(read3.options, 'c', 'command');
  if (text === void 0)
    return refused('script would start a shell that reads its standard input: use -c.', call.words[0]);
  return { runs: [{ kind: 'text', text: [text], dialect: 'posix' }] };
};
var entr = (call) => {
  const read3 = readOptions(call.words.slice(1), { flags: 'acdnprsxz' });
  if (!read3.ok) return refused(`entr: ${read3.message}`, read3.word);
  const [first] = read3.rest;
  if (hasOption2(read3.options, 's') && first !== void 0) {
    return { runs: [{ kind: 'text', text: [first], dialect: 'posix' }] };
  }
  return runWords(read3.rest.map((word) => withInput(word, '/_', true)));
};
var GDB_COMMAND =
  /^(?:run|r|start|bt|bt full|backtrace|where|quit|q|continue|c|info [a-z ]+|thread apply all bt(?: full)?|set pagination off|set confirm off|break [\w:.]+)$/;
var gdb = (call) => {
  const args = call.words.slice(1);
  for (let at = 0; at < args.length; at += 1) {
    const word = args[at];
    const text = word?.value?.replace(/^--/, '-');
    if (word === void 0 || text === void 0) return refused(`gdb: ${word?.source} must be written out.`, word);
    if (text === '-args') return runWords(args.slice(at + 1));
    if (/^-(?:batch|q|quiet|nx|n|nh|nw|silent|return-child-result|version|help)$/.test(text)) continue;
    if (text === '-ex' || text === '-eval-command') {
      at += 1;
      if (!GDB_COMMAND.test(args[at]?.value ?? ''))
        return refused(`gdb: ${args[at]?.source} may run anything.`, args[at]);
    } else if (text.startsWith('-'))
      return refused(`gdb: the option ${word.source} is not known here.`, word);
    else
      return args.length > at + 2 ? refused('gdb: use --args before the program.', word) : runWords([word]);
  }
  return NOTHING;
};
var multiplexer = (call) => {
  const verb = call.words[1]?.value ?? '';
  const asks =
    /^(?:ls|list-\w+|has-session|has|kill-\w+|display-message|capture-pane|show-\w+|-V|-ls|-list|-v)$/.test(
      verb,
    );
  return asks
    ? NOTHING
    : refused(
        `${call.name} runs what it is given in a session of its own: run the command directly.`,
        call.words[0],
      );
};

// src/shell/runners/xargs.ts
var XARGS = {
  flags: '0rtpxo',
  values: 'adEILnPs',
  attached: 'eil',
  long: {
    null: 'flag',
    'arg-file': 'value',
    delimiter: 'value',
    eof: 'optional',
    replace: 'optional',
    'max-lines': 'optional',
    'max-args': 'value',
    'max-procs': 'value',
    interactive: 'flag',
    'max-chars': 'value',
    'no-run-if-empty': 'flag',
    'show-limits': 'flag',
    verbose: 'flag',
    exit: 'flag',
    'open-tty': 'flag',
    'process-slot-var': 'value',
    help: 'flag',
    version: 'flag',
  },
};
var xargs = (call) => {
  const read3 = readOptions(call.words.slice(1), XARGS);
  if (!read3.ok) return refused(`xargs: ${read3.message}`, read3.word);
  const [first] = read3.rest;
  if (first === void 0) return NOTHING;
  if (!hasOption2(read3.options, 'I', 'i', 'replace'))
    return runWords([...read3.rest, inputWord(first.span)]);
  const given = optionValue(read3.options, 'I', 'i', 'replace');
  if (given !== void 0 && given.value === void 0)
    return refused('xargs: the marker must be written out.', given);
  const marker = given?.value === void 0 || given.value === '' ? '{}' : given.value;
  return runWords(read3.rest.map((word) => withInput(word, marker, false)));
};
var PARALLEL = {
  flags: '0kmqtuvxX',
  values: 'jINnadCL',
  long: {
    jobs: 'value',
    bar: 'flag',
    eta: 'flag',
    'keep-order': 'flag',
    'dry-run': 'flag',
    null: 'flag',
    verbose: 'flag',
    tag: 'flag',
    halt: 'value',
    timeout: 'value',
    retries: 'value',
    joblog: 'value',
    results: 'value',
    progress: 'flag',
    delay: 'value',
    'line-buffer': 'flag',
    'no-notice': 'flag',
    'will-cite': 'flag',
    'max-args': 'value',
    colsep: 'value',
    ungroup: 'flag',
    group: 'flag',
    help: 'flag',
    version: 'flag',
  },
};
var PLAIN2 = /^[A-Za-z0-9_./:=@%+,{}#-]*$/;
var parallel = (call) => {
  const read3 = readOptions(call.words.slice(1), PARALLEL);
  if (!read3.ok) return refused(`parallel: ${read3.message}`, read3.word);
  if (hasOption2(read3.options, 'I'))
    return refused('parallel: only the usual markers are understood.', call.words[0]);
  const end = read3.rest.findIndex((word) => /^:::/.test(prefixOf(word)));
  const command = read3.rest.slice(0, end === -1 ? void 0 : end);
  const [first] = command;
  if (first === void 0)
    return refused('parallel would run its input as commands: name the command.', call.words[0]);
  const unplain = command.find((word) => word.value === void 0 || !PLAIN2.test(word.value));
  if (unplain !== void 0)
    return refused(`parallel: ${unplain.source} is read by a shell: use plain words.`, unplain);
  const inner = command.map(marked);
  return runWords(
    inner.some((word, index) => word !== command[index]) ? inner : [...inner, inputWord(first.span)],
  );
};
function marked(word) {
  const marker = /\{[^{}]*\}/.exec(word.value ?? '')?.[0];
  return marker === void 0 ? word : withInput(word, marker, false);
}

// src/shell/runners/registry.ts
var RUNNERS2 = {
  env,
  find,
  fd,
  fdfind: fd,
  xargs,
  parallel,
  sudo,
  doas,
  su,
  runuser: su,
  busybox,
  toybox: busybox,
  ssh,
  git,
  npm: packageManager,
  pnpm: packageManager,
  yarn: packageManager,
  bun: packageManager,
  npx,
  pnpx: npx,
  bunx: npx,
  uvx: toolRunner,
  pipx: toolRunner,
  docker: container,
  podman: container,
  nerdctl: container,
  make,
  gmake: make,
  watch,
  flock,
  script,
  entr,
  gdb,
  tmux: multiplexer,
  screen: multiplexer,
};
var REGISTRY = new Map([
  ...Object.entries(LAUNCHERS).map(([name, launcher]) => [name, (call) => launch(launcher, call)]),
  ...Object.keys(SHELLS2).map((name) => [name, shell]),
  ...PROJECT_TOOLS.map((name) => [name, projectTool]),
  ...Object.entries(RUNNERS2),
]);
function runnerOf(name, inShell) {
  if (inShell && Object.hasOwn(BUILTIN_RUNNERS, name)) return BUILTIN_RUNNERS[name];
  if (PROC_NAME.test(name)) return procRoot;
  const base = name.slice(name.lastIndexOf('/') + 1);
  return REGISTRY.get(base) ?? (LOADER_NAME.test(base) ? loader : void 0);
}

// src/shell/walk.ts
function childrenOf(node) {
  switch (node.kind) {
    case 'simple':
    case 'expression':
      return node.substitutions;
    case 'list':
      return node.items.map((item) => item.node);
    case 'and-or':
    case 'pipeline':
      return node.nodes;
    case 'group':
    case 'function':
      return [node.body];
    case 'redirected':
      return [node.body, ...node.substitutions];
    case 'if':
      return [
        ...node.branches.flatMap((branch) => [branch.condition, branch.body]),
        ...(node.otherwise === void 0 ? [] : [node.otherwise]),
      ];
    case 'loop':
      return [...(node.condition === void 0 ? [] : [node.condition]), node.body, ...node.substitutions];
    case 'case':
      return [...node.bodies, ...node.substitutions];
  }
}

// src/shell/functions.ts
function collectFunctions(root, report, inherited2) {
  const all2 = [];
  visit(root, (node) => {
    if (node.kind === 'function') all2.push(node);
  });
  if (all2.length === 0) return inherited2;
  const top = new Set(
    root.kind === 'list' ? root.items.filter((item) => !item.background).map((item) => item.node) : [],
  );
  const bodies = /* @__PURE__ */ new Map();
  for (const definition of all2) {
    const problem = nameProblem(
      definition.name,
      bodies.has(definition.name) || inherited2.has(definition.name),
    );
    const calls = callsOf(definition.body);
    if (calls.has(definition.name)) refuseBomb(report, definition);
    else if (problem !== void 0) refuse(report, 'construct', problem, definition.span);
    else if (!top.has(definition)) {
      refuse(
        report,
        'construct',
        'A function is understood only if it is defined at the top of the command.',
        definition.span,
      );
    }
    bodies.set(definition.name, definition);
  }
  for (const definition of all2) if (reaches(definition, bodies)) refuseBomb(report, definition);
  refuseEarlyCalls(root, bodies, report);
  return /* @__PURE__ */ new Set([...inherited2, ...bodies.keys()]);
}
function nameProblem(name, isKnown) {
  if (!isVariableName(name)) return 'The name of a function must consist of letters, digits and underscores.';
  if (isKnown) return `The function ${name} is defined twice.`;
  const meansSomething = isBuiltin(name) || isCommonProgram(name) || runnerOf(name, true) !== void 0;
  return meansSomething
    ? `A function named ${name} would hide what that name means: choose another.`
    : void 0;
}
function refuseBomb(report, { name, span }) {
  const message = `The function ${name} calls itself, as a fork bomb does: recursive functions are not understood.`;
  refuse(report, 'fork_bomb', message, span);
}
function callsOf(node) {
  const names2 = /* @__PURE__ */ new Set();
  visit(node, (child) => {
    if (child.kind !== 'simple') return;
    for (const word of child.words)
      for (const name of word.value?.match(/[^\s;&|(){}]+/g) ?? []) names2.add(name);
  });
  return names2;
}
function reaches(start, bodies) {
  const seen = /* @__PURE__ */ new Set();
  const open = [...callsOf(start.body)];
  for (let name = open.pop(); name !== void 0; name = open.pop()) {
    if (name === start.name) return true;
    const definition = bodies.get(name);
    if (definition === void 0 || seen.has(name)) continue;
    seen.add(name);
    open.push(...callsOf(definition.body));
  }
  return false;
}
function refuseEarlyCalls(root, bodies, report) {
  const items = root.kind === 'list' ? root.items : [];
  const last = items.findLastIndex((item) => item.node.kind === 'function');
  for (const { node } of items.slice(0, last)) {
    if (node.kind === 'function') continue;
    for (const name of callsOf(node)) {
      const definition = bodies.get(name);
      if (definition === void 0) continue;
      refuse(report, 'ambiguous', `${name} is called before every function is defined.`, spanOf(definition));
    }
  }
}
function spanOf(node) {
  return node.span;
}
function visit(node, look) {
  look(node);
  for (const child of childrenOf(node)) visit(child, look);
}

// src/shell/plain.ts
var NOT_POSIX =
  /\$['"[]|&>|\|&|[0-9]{2,}[<>]|\(\(|\[\[|<<<|[<>]\(|\+=|=\(|\{[^}\s]*(?:,|\.\.)|;;?&|\$\{[!#]?\w+[/:^,@[](?![-=?+])|\$\{!|>&(?![\d-])|\*\*/;
var NOT_POSIX_WORDS = /(?:^|[\s;&|(!])(?:time|coproc|select|function|source|let|declare|typeset|shopt)(?=\s)/;
var PLAIN_EVERYWHERE =
  /^(?:[A-Za-z0-9_.,/:@+\n -]|(?<=[A-Za-z0-9_])=(?=[A-Za-z0-9_./])|&&|\|\|?|;|'[^'\\!]*'|"[A-Za-z0-9_.,/:@+= -]*")*$/;
var ZSH_WORDS =
  /(?:^|[\s;&|])(?:-|repeat|noglob|nocorrect|foreach|end|select|time|coproc|function|autoload|zmodload|emulate|sched|functions|vared|zle|zcompile|print|bindkey|ztcp|zpty|zf_\w+|sysopen|zsystem|where|whence|rehash|setopt|unsetopt|fc|r|zparseopts|zstyle|zformat|alias|if|then|for|while|until|case|do|done)(?=[\s;&|]|$)/;
function plainProblem(text, dialect) {
  switch (dialect) {
    case 'bash':
      return void 0;
    case 'posix':
      if (!NOT_POSIX.test(text) && !NOT_POSIX_WORDS.test(text)) return void 0;
      return 'The text for sh uses what only bash has or reads differently: run it with bash -c.';
    case 'zsh':
      if (PLAIN_EVERYWHERE.test(text) && !ZSH_WORDS.test(text)) return void 0;
      return 'The text for zsh is not plain words: run it with bash -c.';
  }
}

// src/shell/collect.ts
var LOSING = /* @__PURE__ */ new Set(['CDPATH', 'HOME', 'PWD', 'OLDPWD']);
function collectText(source2, report, limits) {
  const numbers = createNumbers();
  const collector = new Collector(report, limits);
  collector.text(
    source2,
    {
      background: false,
      runBy: void 0,
      place: void 0,
      inShell: true,
      functions: /* @__PURE__ */ new Set(),
      numbers,
      depth: 0,
      lost: false,
      moving: false,
    },
    START,
  );
  settleNumbers(numbers, report);
}
var Collector = class {
  report;
  limits;
  constructor(report, limits) {
    this.report = report;
    this.limits = limits;
  }
  /** A whole text, in the shell that the scope describes. */
  text(source2, scope, directories) {
    const bad = badCharacter(source2);
    if (bad !== void 0) {
      refuse(this.report, 'bad_character', bad, scope.place);
      return both(void 0);
    }
    const { report, limits } = this;
    const tree = readShell(source2, {
      report,
      numbers: scope.numbers,
      maxDepth: limits.maxDepth,
      place: scope.place,
    });
    const functions = collectFunctions(tree, report, scope.functions);
    const lost = scope.lost || assignsAny(tree, LOSING);
    const moving = scope.moving || mayMove(tree, /* @__PURE__ */ new Set());
    return this.walk(tree, { ...scope, functions, lost, moving }, directories);
  }
  walk(node, scope, directories) {
    switch (node.kind) {
      case 'simple':
        return this.simple(node, scope, directories);
      case 'list': {
        let now = both(directories);
        for (const item of node.items) {
          const before = afterwards(now);
          const inner = item.background ? { ...scope, background: true } : scope;
          const flow = this.walk(item.node, inner, before);
          now = item.background ? both(before) : flow;
        }
        return now;
      }
      case 'and-or':
        return this.andOr(node.nodes, node.operators, scope, directories);
      case 'pipeline': {
        const [only2, ...others] = node.nodes;
        if (only2 === void 0) return both(directories);
        if (others.length > 0) {
          for (const child of node.nodes) this.walk(child, scope, directories);
          return both(directories);
        }
        const flow = this.walk(only2, scope, directories);
        return node.negated ? { ok: flow.fail, fail: flow.ok } : flow;
      }
      case 'group': {
        const flow = this.walk(node.body, scope, directories);
        return node.subshell ? both(directories) : flow;
      }
      case 'redirected': {
        const { redirects, span } = node;
        this.emit({ words: [], assignments: [], redirects, span }, scope, directories);
        const flow = this.walk(node.body, scope, directories);
        this.substitutions(node.substitutions, scope, directories);
        return { ok: flow.ok, fail: union(flow.fail, directories) };
      }
      case 'if': {
        let outcome = { ok: [], fail: [] };
        let open = directories;
        for (const branch of node.branches) {
          const condition = this.walk(branch.condition, scope, open);
          outcome = joined(outcome, this.walk(branch.body, scope, condition.ok));
          open = condition.fail;
        }
        return joined(
          outcome,
          node.otherwise === void 0 ? both(open) : this.walk(node.otherwise, scope, open),
        );
      }
      case 'loop':
        return this.loop(node, scope, directories);
      case 'case': {
        this.substitutions(node.substitutions, scope, directories);
        return node.bodies
          .map((body) => this.walk(body, scope, directories))
          .reduce(joined, both(directories));
      }
      case 'function':
        this.walk(node.body, scope, scope.moving ? void 0 : directories);
        return both(directories);
      case 'expression':
        this.substitutions(node.substitutions, scope, directories);
        return both(directories);
      default:
        return assertNever(node);
    }
  }
  andOr(nodes, operators, scope, directories) {
    let now = both(directories);
    nodes.forEach((node, index) => {
      const operator = operators[index - 1];
      if (operator === '&&') {
        const next = this.walk(node, scope, now.ok);
        now = { ok: next.ok, fail: union(now.fail, next.fail) };
      } else if (operator === '||') {
        const next = this.walk(node, scope, now.fail);
        now = { ok: union(now.ok, next.ok), fail: next.fail };
      } else now = this.walk(node, scope, directories);
    });
    return now;
  }
  loop(node, scope, directories) {
    this.substitutions(node.substitutions, scope, directories);
    const mayLeave = (part) => part !== void 0 && mayMove(part, scope.functions);
    const moves2 = scope.moving && (mayLeave(node.body) || mayLeave(node.condition));
    const inside = moves2 ? void 0 : directories;
    const condition = node.condition === void 0 ? both(inside) : this.walk(node.condition, scope, inside);
    this.walk(node.body, scope, node.until ? condition.fail : condition.ok);
    return both(inside);
  }
  substitutions(nodes, scope, directories) {
    for (const node of nodes) this.walk(node, scope, directories);
  }
  simple(node, scope, directories) {
    const { words: words2, assignments, redirects, span } = node;
    const index = this.emit({ words: words2, assignments, redirects, span }, scope, directories);
    this.substitutions(node.substitutions, scope, directories);
    return this.call(words2, index, node.input, scope, directories);
  }
  /** A command that is given as words. */
  command(written2, input, scope, directories) {
    return this.call(written2.words, this.emit(written2, scope, directories), input, scope, directories);
  }
  emit(written2, scope, directories) {
    const { report } = this;
    if (report.commands.length >= report.maxCommands) {
      refuse(
        report,
        'too_many_commands',
        `There are more than ${report.maxCommands} commands: split them.`,
        written2.span,
      );
      return report.commands.length - 1;
    }
    const name = written2.words[0]?.value;
    report.commands.push({
      ...written2,
      background: scope.background,
      runBy: scope.runBy,
      ...(scope.inShell && name !== void 0 && scope.functions.has(name) ? { callsFunction: true } : {}),
      // No possibility at all: the place is not reached, and nothing should be built on that.
      directories: scope.lost || directories?.length === 0 ? void 0 : directories,
    });
    return report.commands.length - 1;
  }
  call(words2, index, input, scope, directories) {
    const [first, ...args] = words2;
    if (first === void 0) return both(directories);
    if (first.value === void 0 || first.value === '') {
      refuse(
        this.report,
        'dynamic_command',
        `${first.source || 'The command'} is the name of a command and must be written out.`,
        first.span,
      );
      return both(directories);
    }
    const name = first.value;
    if (scope.inShell && scope.functions.has(name)) return both(scope.moving ? void 0 : directories);
    if (scope.inShell) {
      const problem = builtinProblem(name, args, scope.numbers);
      if (problem !== void 0) refuse(this.report, 'builtin', problem, first.span);
    }
    const moved = scope.inShell ? moves(name, args, directories) : void 0;
    if (moved !== void 0) return moved;
    return this.unwrap(words2, name, index, input, scope, directories);
  }
  unwrap(words2, name, index, input, scope, directories) {
    const runner = runnerOf(name, scope.inShell);
    if (runner === void 0) return both(directories);
    const base = name.slice(name.lastIndexOf('/') + 1);
    const result = runner({ name: base, words: words2, input });
    const place = scope.place ?? words2[0]?.span;
    if ('refusal' in result) {
      const { code, message, word } = result.refusal;
      refuse(this.report, code, message, word?.span ?? place);
      return both(directories);
    }
    if (result.runs.length > 0 && scope.depth >= this.limits.maxRunners) {
      refuse(this.report, 'too_deep', 'Too many programs run each other: run the last one directly.', place);
      return both(directories);
    }
    let flow = both(directories);
    for (const run of result.runs) flow = joined(flow, this.run(run, index, input, scope, directories));
    return flow;
  }
  run(run, index, input, scope, directories) {
    const start = run.directory === void 0 ? directories : intoDirectory(directories, run.directory);
    const inner = { ...scope, runBy: index, depth: scope.depth + 1 };
    if (run.kind === 'argv') {
      const inShell = run.inShell === true;
      const span = { start: run.words[0]?.span.start ?? 0, end: run.words.at(-1)?.span.end ?? 0 };
      const words2 = run.words;
      const flow = this.command(
        { words: words2, assignments: [], redirects: [], span },
        input,
        // `command` and `builtin` pass functions over.
        { ...inner, inShell, functions: /* @__PURE__ */ new Set() },
        start,
      );
      return inShell ? flow : both(directories);
    }
    return this.innerShell(run, inner, start, directories);
  }
  innerShell(run, scope, start, directories) {
    const dynamic = run.text.find((word) => word.value === void 0);
    const first = run.text[0];
    if (dynamic !== void 0 || first === void 0) {
      const message = `${dynamic?.source || 'A text'} is run as a command and must be written out.`;
      refuse(this.report, 'inner_text', message, dynamic?.span);
      return both(directories);
    }
    const text = run.text.map((word) => word.value).join(' ');
    const place = { start: first.span.start, end: run.text.at(-1)?.span.end ?? first.span.end };
    const known = this.report.problem;
    if (run.sameShell === true) return this.text(text, { ...scope, inShell: true, place }, start);
    const problem = plainProblem(text, run.dialect);
    if (problem !== void 0) refuse(this.report, 'inner_text', problem, place);
    const numbers = createNumbers();
    this.text(
      text,
      { ...scope, inShell: true, place, numbers, functions: /* @__PURE__ */ new Set(), moving: false },
      start,
    );
    settleNumbers(numbers, this.report);
    if (known === void 0) this.markInner();
    return both(directories);
  }
  /** A text that cannot be read is a problem of the runner that was given it. */
  markInner() {
    const { problem } = this.report;
    if (problem?.code === 'syntax_error' || problem?.code === 'bad_character') {
      this.report.problem = { ...problem, code: 'inner_text' };
    }
  }
};
function joined(a, b) {
  return { ok: union(a.ok, b.ok), fail: union(a.fail, b.fail) };
}
function intoDirectory(directories, target) {
  return target === 'unknown' ? void 0 : changed(directories, target).ok;
}
function moves(name, args, directories) {
  switch (name) {
    case 'cd':
      return afterCd(args, directories);
    case 'pushd':
    case 'popd':
      return both(void 0);
    case 'exit':
      return args.length < 2 && args.every((word) => word.value !== void 0) ? both([]) : both(directories);
    case 'source':
    case '.':
      return /(?:^|\/)bin\/activate$/.test(args[0]?.value ?? '') ? both(directories) : both(void 0);
    default:
      return void 0;
  }
}
function afterCd(args, directories) {
  let rest = args;
  while (/^-[LPe]+$/.test(rest[0]?.value ?? '')) rest = rest.slice(1);
  if (rest[0]?.value === '--') rest = rest.slice(1);
  const [target, ...others] = rest;
  if (others.length > 0) return both(void 0);
  if (target === void 0) {
    const span = args[0]?.span ?? { start: 0, end: 0 };
    return changed(directories, {
      ...literalWord('~', span),
      value: void 0,
      parts: [{ kind: 'tilde', user: '' }],
    });
  }
  if (/^-|^\+/.test(target.value ?? '')) return both(void 0);
  return target.value === '' ? both(directories) : changed(directories, target);
}
function assignsAny(node, names2) {
  if (node.kind === 'simple') {
    const assigned = node.assignments.some((assignment) => names2.has(assignment.name));
    const declared = node.words.some((word) =>
      names2.has(/^([A-Za-z]+)(?:\+?=|$)/.exec(word.source)?.[1] ?? ''),
    );
    if (assigned || declared) return true;
  }
  return childrenOf(node).some((child) => assignsAny(child, names2));
}

// src/shell/limits.ts
var DEFAULT_LIMITS = {
  maxBytes: 64 * 1024,
  maxDepth: 120,
  maxCommands: 500,
  maxRunners: 16,
};

// src/shell/parse.ts
function parseShell(source2, options = {}) {
  const limits = { ...DEFAULT_LIMITS, ...options };
  return read2(source2, limits, (report) => {
    if (isLongerThan(source2, limits.maxBytes)) {
      const message = `The command is longer than ${limits.maxBytes} bytes: put it into a file or split it.`;
      refuse(report, 'too_long', message, void 0);
    } else collectText(source2, report, limits);
  });
}
function isLongerThan(source2, bytes) {
  if (source2.length > bytes) return true;
  return source2.length * 3 > bytes && new TextEncoder().encode(source2).length > bytes;
}
function read2(source2, limits, collect) {
  const report = createReport(limits.maxCommands);
  try {
    collect(report);
  } catch (error) {
    if (error instanceof RangeError) refuse(report, 'too_deep', 'The command is nested too deeply.', void 0);
    else refuse(report, 'internal', 'The command made the parser fail: write it differently.', void 0);
  }
  const { commands, problem } = report;
  if (problem === void 0) return { understood: true, line: { source: source2, commands } };
  return { understood: false, problem: { ...problem, recognized: commands } };
}

// test/support/policy-world.ts
var WORKSPACE = '/home/agent/project';
var HOME = '/home/agent';
var DIRECTORIES = /* @__PURE__ */ new Set([
  '/',
  '/etc',
  '/usr',
  '/usr/bin',
  '/bin',
  '/tmp',
  '/home',
  HOME,
  WORKSPACE,
  ...[
    'src',
    'tests',
    'docs',
    'web',
    'build',
    'sub',
    '.git',
    '.git/hooks',
    'test_cp_dir',
    'vendored',
    'vendored/.git',
  ].map((name) => `${WORKSPACE}/${name}`),
]);
var FILES2 = /* @__PURE__ */ new Set([
  '/etc/passwd',
  '/etc/shadow',
  ...['README.md', 'a.txt', 'src/main.rs', 'src/app.ts', 'git', 'evil.sh', '.git/config'].map(
    (name) => `${WORKSPACE}/${name}`,
  ),
]);
var LINKS = {
  [`${WORKSPACE}/somelink`]: '/etc/shadow',
  [`${WORKSPACE}/outside`]: '/etc',
  [`${WORKSPACE}/hooks`]: '.git/hooks',
};
var FAKE_PATHS = {
  resolve(path) {
    const rest = path.split('/').filter((part) => part !== '' && part !== '.');
    const links = [];
    let at = '';
    for (;;) {
      const part = rest.shift();
      if (part === void 0) break;
      if (part === '..') {
        at = at.slice(0, at.lastIndexOf('/'));
        continue;
      }
      const next = `${at}/${part}`;
      const content = LINKS[next];
      if (content === void 0) {
        at = next;
        continue;
      }
      links.push({ path: next, content });
      if (links.length > 40) throw new Error('too many links');
      rest.unshift(...content.split('/').filter((name) => name !== ''));
      if (content.startsWith('/')) at = '';
    }
    const canonical = at === '' ? '/' : at;
    const kind = DIRECTORIES.has(canonical) ? 'directory' : FILES2.has(canonical) ? 'other' : 'missing';
    return { kind, canonical, links };
  },
};
function contextOf(parsed, world = {}) {
  const rules = {
    workspace: WORKSPACE,
    writable: ['/tmp'],
    readable: SYSTEM_PATHS.map(({ path }) => path),
    protected: PROTECTED_PATHS.map((path) => `${WORKSPACE}/${path}`),
    home: HOME,
    allow: void 0,
    permitDangerous: [],
    networkOff: true,
    ...world.rules,
  };
  const base = {
    parsed,
    risk: 'high',
    reach: 'unknown',
    autonomy: world.autonomy ?? 'supervised',
    approved: world.approved ?? false,
    taints: new Set(world.taints ?? []),
    cwd: WORKSPACE,
    rules,
    paths: FAKE_PATHS,
    findExecutable: (name) =>
      world.planted?.includes(name) === true ? `${WORKSPACE}/${name}` : `/usr/bin/${name}`,
  };
  const isForeign = isForeignTo(base);
  return { ...base, risk: riskOfLine(parsed, isForeign), reach: reachOfLine(parsed, isForeign) };
}
function judgeText(command, world = {}) {
  const parsed = parseShell(command);
  const context = contextOf(parsed, world);
  const reasons = [];
  for (const check of TEXT_CHECKS) {
    const found = check.judge(context);
    if (found instanceof Promise) throw new TypeError(`${check.name} is not pure`);
    reasons.push(...found);
  }
  const { allow } = context.rules;
  if (allow !== void 0 && parsed.understood) {
    for (const line of parsed.line.commands) {
      const name = programName(line);
      if (name === void 0 || !allow.includes(name)) {
        reasons.push({ check: 'allow-list', verdict: 'deny', code: 'not_listed', message: '', words: [] });
      }
    }
  }
  const rank = Math.max(
    0,
    ...reasons.map(({ verdict }) => (verdict === void 0 ? 0 : VERDICTS.indexOf(verdict))),
  );
  return { verdict: VERDICTS[rank] ?? 'deny', risk: context.risk, reach: context.reach, reasons };
}
var CLASSIC_ALLOW_LIST = 'ls cat cp head printenv pwd rg sed which'.split(' ');

// test/support/policy-corpus.ts
function readCorpus(name) {
  return readFileSync(new URL(`../cases/${name}`, import.meta.url), 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}
function judgeRow(row2) {
  const judged = judgeText(row2.command, {
    autonomy: row2.autonomy ?? 'supervised',
    taints: row2.taint,
    rules: row2.suite === 'allowlist' ? { allow: CLASSIC_ALLOW_LIST } : {},
  });
  return { judged, right: isRight(row2, judged) };
}
function isRight(row2, { verdict, risk, reach }) {
  switch (row2.suite) {
    case 'productive':
      return verdict === 'allow';
    case 'evasion':
      return verdict !== 'allow';
    case 'contain':
      return true;
    case 'risk':
      return risk === row2.expect;
    case 'reach':
      return reach === row2.expect;
    case 'allowlist':
      return (verdict === 'allow') === (row2.expect === 'allow');
  }
}

// ../../tmp/corpus-run.ts
var stat = {};
for (const row2 of readCorpus(process.argv[2] ?? 'policy.jsonl')) {
  const { judged, right } = judgeRow(row2);
  const s = (stat[row2.suite] ??= [0, 0]);
  s[1]++;
  if (right) s[0]++;
  else
    console.log(
      row2.suite,
      JSON.stringify(row2.command),
      'expect',
      row2.expect,
      'got',
      judged.verdict,
      judged.risk,
      judged.reach,
      judged.reasons.map((r) => `${r.check}/${r.code}:${r.message}`).join(' | '),
    );
}
console.log(stat);
