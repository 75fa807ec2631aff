import { redact } from './redact.ts';
import { holdsKnownKey } from './secret-patterns.ts';

/**
 * THE table of files and directories of a home that hold credentials, keys, or what was typed. `judged`: a command line that
 * names one is refused. All of them are never proposed to be granted.
 */
const PLACES = {
  judged: `.ssh .aws .gnupg .kube .azure .netrc .git-credentials .pgpass .password-store .docker/config.json .config/gcloud
    .config/gh .config/op .npmrc .pypirc .cargo/credentials .mozilla .bash_history .zsh_history`,
  clouds: `.boto .s3cfg .oci .bluemix .aliyun .config/doctl .config/hcloud .config/linode-cli .linode-cli .config/scw .config/rclone
    .rclone.conf .config/exoscale .config/vultr-cli .vultr-cli.yaml .heroku .config/heroku .fly .config/flyctl .railway .netlify
    .config/netlify .vercel .config/vercel .local/share/com.vercel.cli .config/configstore .config/firebase .config/wrangler
    .wrangler .cloudflared .config/cloudflared .ngrok2 .config/ngrok .config/stripe .config/shopify .twilio-cli .config/okta .okta
    .aws-vault .awsvault .saml2aws .config/saml2aws .granted .config/granted .aws-sso .config/aws-sso .config/infracost .pulumi
    .terraform.d .terraformrc .config/terraform .vault-token .consul-token .nomad-token .config/doppler .doppler .infisical
    .config/infisical .config/sops .config/age .config/argocd .argocd .config/helm/registry .config/containers/auth.json .docker
    .dockercfg .tsh .config/tailscale .config/eksctl .rancher .openshift .config/openstack .supabase .config/supabase .planetscale
    .config/planetscale`,
  forges: `.config/github-copilot .config/glab-cli .config/glab .config/hub .config/tea .config/git/credentials .config/git-credential-manager
    .gcm .cache/git/credential .git-credential-cache .subversion/auth .hgrc .config/hg .cvspass .gitlab .config/lab .jira.d
    .config/.jira .config/jira .config/linear .config/circleci .circleci .travis .buildkite .config/buildkite .sentryclirc
    .config/sentry .databrickscfg .config/codespaces .config/gitea .gitcookies`,
  packages: `.m2/settings.xml .m2/settings-security.xml .gradle/gradle.properties .gradle/init.gradle .gradle/init.d .ivy2/.credentials
    .sbt/.credentials .sbt/1.0/credentials.sbt .config/coursier/credentials.properties .gem/credentials .local/share/gem/credentials
    .bundle/config .composer/auth.json .config/composer/auth.json .nuget/NuGet .config/NuGet     .config/pypoetry .local/share/uv/credentials .continuum .config/dart/pub-credentials.json
    .pub-cache/credentials.json .hex/hex.config .pause .conan2/credentials.json .config/conan
    .luarocks .cargo/credentials.toml .helm`,
  models: `.claude .claude.json .codex .gemini .local/share/opencode .config/opencode .config/openai .openai .anthropic .config/anthropic
    .aider.conf.yml .config/io.datasette.llm .huggingface .cache/huggingface/token .cache/huggingface/stored_tokens .kaggle
    .config/kaggle .config/wandb .config/Cursor .codeium .config/goose .local/share/goose `,
  databases: `.my.cnf .mylogin.cnf .pg_service.conf .dbshell .mongorc.js .mongodb .snowsql .snowflake .config/snowflake .dbt .odbc.ini
    .config/pgcli .config/mycli .myclirc .local/share/DBeaverData .pgadmin .config/dbeaver .cassandra .clickhouse-client .redisclirc`,
  keys: `.pki .local/share/keyrings .local/share/kwalletd .kde/share/apps/kwallet .config/rbw .config/Bitwarden .config/1Password
    .config/keepassxc .cache/keepassxc .lpass .local/share/lpass .config/pass .gopass .config/gopass .local/share/gopass
    .local/share/password-store .google_authenticator .authy .config/Authy .config/Yubico .yubico .config/step .step .minisign
    .config/cosign .sigstore .putty .config/putty .vnc .config/remmina .remmina .local/share/remmina .wireguard .openvpn
    .config/openvpn .Xauthority .ICEauthority .pulse-cookie .config/pulse/cookie .erlang.cookie .rhosts .shosts .android/adbkey
    .smbcredentials .krb5 .config/syncthing .local/state/syncthing .globus .tor .config/mkcert .local/share/mkcert .vault_pass .vault-pass
    .duplicity .config/borg/keys .local/share/gnupg .signify .tailscale`,
  wallets: `.bitcoin .litecoin .dogecoin .ethereum .monero .bitmonero Monero .electrum .electrum-ltc .config/solana .near-credentials .sui
    .aptos .config/Exodus .config/Ledger .config/atomic .brownie .foundry/keystores .zcash .dash`,
  programs: `.thunderbird .config/google-chrome .config/chromium .config/BraveSoftware .config/microsoft-edge .config/vivaldi .config/opera
    .config/Slack .config/discord .config/Signal .config/Element .local/share/TelegramDesktop .purple .irssi .weechat
    .config/weechat .mutt .muttrc .config/mutt .config/neomutt .msmtprc .config/msmtp .fetchmailrc .mbsyncrc .offlineimaprc .getmail
    .authinfo .config/aerc .config/himalaya .config/evolution .local/share/evolution .config/filezilla .filezilla .config/lftp
    .lftp .local/share/lftp .ncftp .config/Code .vscode-server/data .config/JetBrains .local/share/JetBrains .jupyter .config/Insomnia
    .config/Postman .postman .config/httpie .httpie .config/transmission .newsboat .config/spotify`,
  typed: `.viminfo .lesshst .local/share/nvim/shada .local/state/nvim .local/state/bash .local/state/zsh .wget-hsts
    .local/share/recently-used.xbel .local/share/atuin`,
} as const;

const listed = (text: string): readonly string[] => text.trim().split(/\s+/);
const JUDGED: readonly string[] = listed(PLACES.judged);
/** Files and directories of a home that are never proposed. */
export const SECRET_PLACES: readonly string[] = Object.values(PLACES).flatMap(listed);

const isAmong = (places: readonly string[], path: string) =>
  places.some((place) => path.startsWith(place) && /^(?:[/.~-]|$)/.test(path.slice(place.length)));

/** Whether a path, from a home on, is one that commands may not name, what lies in one, or the same with an ending (`.npmrc.old`). */
export function isJudgedPlace(path: string): boolean {
  return JUDGED.some((place) => path.startsWith(place) && /^(?:[/.]|$)/.test(path.slice(place.length)));
}

/** The same of all that is never proposed. */
export const isSecretPlace = (path: string): boolean =>
  isAmong(SECRET_PLACES, path) && !KNOWN_HOSTS.test(path);

/** Public keys of known hosts, which are no secret: without them ssh connects to none. */
const KNOWN_HOSTS = /(?:^|\/)\.ssh\/known_hosts2?$/;

/** Directories of keys wherever they lie: in a copy of a home, say. */
const KEY_DIRECTORY =
  /\/(?:\.ssh|\.aws|\.gnupg|\.kube|\.azure|\.password-store|\.secrets?|ssl\/private|keyrings|system-connections|run\/secrets|private-keys-v1\.d)(?:\/|$)|\/\.docker\/config\.json/i;
/** What people call directories of keys. In a project there may be code in one. */
const SECRET_DIRECTORY = /\/(?:secrets?|credentials?|passwords?|private[-_]keys?)(?:\/|$)/i;

/** Names that say by themselves that a file holds a secret, or what was typed. */
const NAMES: readonly RegExp[] = [
  /^\.env(?:$|[._-])|\.env$|^\.envrc/,
  /^[._]?netrc$|^\.(?:git-credentials|pgpass|mylogin\.cnf|my\.cnf|s3cfg|boto|dockercfg|htpasswd|pypirc|cvspass|authinfo)/,
  /^pgpass\.conf$|^\.?vault[-_.]?(?:pass|token)|^\.?ansible[-_.]?vault|^\.?become[-_.]?pass|restic.*pass/,
  /^(?:ssh_host_\w+_key|id_(?:rsa|dsa|ecdsa|ed25519|xmss)[\w-]*)(?:$|\.(?!pub$))/,
  /\.(?:key|p12|pfx|pkcs12|p8|jks|jceks|bks|keystore|keytab|kdbx?|ppk|psafe3|ovpn|agekey|1pux|opvault|agilekeychain|mobileprovision|sec)(?:$|\.(?:bak|old|orig)$)/,
  /(?:^|[._-])history$|_history\.(?:txt|db|sqlite|jl)$|^history\.db$|^\.(?:histfile|dbshell|lesshst|viminfo|rhistory|octave_hist)$|_hist$/,
  /^(?:wallet(?:\.dat|\.json)?|key[34]\.db|logins\.json|cookies(?:\.sqlite|\.txt)?|login data|web data|local state|shadow|gshadow|kubeconfig|secring\.gpg|master\.key)(?:$|-journal$|-$)/,
  /\.tfvars(?:\.json)?$|\.tfstate(?:\.backup)?$|^\.terraformrc$|^terraform\.rc$|^utc--/,
  /^auth\.(?:json|toml|ya?ml|xml|ini)$|^service[-_]?account.*\.json$|^client_secret.*\.json$/,
  /^(?:settings-security\.xml|sitemanager\.xml|recentservers\.xml|filezilla\.xml|publishsettings|local\.settings\.json)$|\.publishsettings$/,
];
/** Parts of a name that are seldom about anything else. */
const SECRET_WORD =
  /^(?:secrets?|credentials?|creds|passwords?|passwd|passphrases?|apikeys?|privkey|privatekey|accesskeys?|seed|mnemonic)$/;
/** Parts of a name that may be about something else: what is in the file decides. */
const UNSURE_WORD =
  /^(?:tokens?|keys?|auth|session|sessions|cookies?|login|wallet|keystore|account|accounts|private|pem)$/;
/** Such files hold text for people, or programs: their names tell what they are about. */
const TEXTS =
  /\.(?:[cm]?[jt]sx?|py[ix]?|rb|go|rs|c|cc|cpp|cxx|h|hh|hpp|java|kt|kts|scala|cs|fs|swift|php|pl|pm|lua|sh|bash|zsh|fish|ps1|r|jl|ex|exs|erl|hs|ml|clj|dart|zig|vue|svelte|css|scss|less|html?|md|mdx|rst|adoc|tex|svg|png|jpe?g|gif|ico|webp|woff2?|ttf|map|d|o|so|a|class|pyc|wasm)$/i;
/** What comes as an example holds none. */
const EXAMPLE = /[._-](?:example|sample|template|dist|defaults?|tpl|tmpl|pub)$/i;

/** What the name of a file says of what is in it. `unsure`: what is in it decides. */
export type NameSays = 'secret' | 'unsure' | 'text' | 'nothing';

/** What a path tells, whatever home it lies in. */
export function whatNameSays(path: string): NameSays {
  const name = path.slice(path.lastIndexOf('/') + 1).toLowerCase();
  if (KNOWN_HOSTS.test(path)) return 'nothing';
  if (KEY_DIRECTORY.test(path)) return 'secret';
  if (EXAMPLE.test(name)) return 'nothing';
  if (NAMES.some((pattern) => pattern.test(name))) return 'secret';
  if (TEXTS.test(name)) return 'text';
  if (SECRET_DIRECTORY.test(path)) return 'secret';
  const words = name.split(/[^a-z0-9]+/);
  const pairs = words.map((word, at) => `${word}${words[at + 1] ?? ''}`);
  if ([...words, ...pairs].some((word) => SECRET_WORD.test(word))) return 'secret';
  return words.some((word) => UNSURE_WORD.test(word)) ? 'unsure' : 'nothing';
}

/** Larger files hold data: a file of credentials has some lines. */
export const LARGEST_SECRET_FILE = 64 * 1024;

/** Whether a file of at most that size holds a secret, by its name and by what is in it. */
export function holdsSecret(path: string, content: Uint8Array): boolean {
  const says = whatNameSays(path);
  if (says === 'secret') return true;
  const text = Buffer.from(content).toString('latin1');
  if (holdsKnownKey(text)) return true;
  if (/\.pem$/i.test(path)) return !PUBLIC.test(text);
  // In a program, or an example, `password = ` is seldom one that is used anywhere.
  if (says === 'text' || EXAMPLE.test(path) || text.startsWith('#!') || text.includes('\0')) return false;
  return redact(text) !== text || PAIR.test(text) || (says === 'unsure' && BARE.test(text));
}

/** What of such a file everybody may know. */
const PUBLIC =
  /-----BEGIN (?:(?:TRUSTED |X509 )?CERTIFICATE|(?:X509 )?CRL|(?:RSA )?PUBLIC KEY|DH PARAMETERS)/;
/** Only one thing, in which nothing is to be read: `token` is such a file. */
const BARE = /^\s*["']?(?=[^\s]*\d)[\w+/=.~:-]{16,4096}["']?\s*$/;
/** A secret in XML, NuGet or netrc settings: `<password>x</password>`, `<add key="Password" value="x"`, `machine h login u password p`. */
const PAIR =
  /<(?:password|passphrase|privateKey|token|apiKey|clearTextPassword)>(?!\s*(?:\$\{[^<]*)?<)[^<]{4,}<|\skey="(?:clearTextP|p)assword"\s+value="(?!%)[^"]|(?:^|\s)login\s+\S+\s+password\s+\S/i;
