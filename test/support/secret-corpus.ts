// biome-ignore-all lint/suspicious/noTemplateCurlyInString: npm puts its variables in by itself
/**
 * Files of credentials, keys and histories where real tools keep them, beneath a home; a file with nothing said of it has a
 * word in it that tells nothing, so that it has to be known by its name.
 */
export const SECRET_FILES: Readonly<Record<string, string>> = {
  ...named(`.ssh/id_ed25519 .ssh/config .aws/credentials .aws/sso/cache/0123.json .gnupg/private-keys-v1.d/AB.key .gnupg/secring.gpg
    .kube/config .azure/msal_token_cache.json .netrc _netrc .git-credentials .pgpass .password-store/mail.gpg .docker/config.json
    .dockercfg .config/gcloud/application_default_credentials.json .config/gcloud/credentials.db .config/gh/hosts.yml
    .config/github-copilot/hosts.json .config/github-copilot/apps.json .config/glab-cli/config.yml .config/hub .config/tea/config.yml
    .config/git/credentials .config/op/config .config/stripe/config.toml .config/rclone/rclone.conf .rclone.conf .s3cfg .boto
    .config/doctl/config.yaml .config/hcloud/cli.toml .config/linode-cli .oci/config .config/scw/config.yaml .config/heroku/config.json
    .fly/config.yml .railway/config.json .netlify/config.json .config/netlify/config.json .local/share/com.vercel.cli/auth.json
    .config/configstore/firebase-tools.json .cloudflared/cert.pem .wrangler/config/default.toml .ngrok2/ngrok.yml
    .config/ngrok/ngrok.yml .terraform.d/credentials.tfrc.json .terraformrc .pulumi/credentials.json .vault-token .consul-token
    .config/sops/age/keys.txt .config/argocd/config .config/helm/registry/config.json .config/containers/auth.json
    .m2/settings.xml .m2/settings-security.xml .gradle/gradle.properties .ivy2/.credentials .sbt/.credentials
    .sbt/1.0/credentials.sbt .gem/credentials .local/share/gem/credentials .bundle/config .composer/auth.json
    .config/composer/auth.json .nuget/NuGet/NuGet.Config .config/pypoetry/auth.toml .pypirc .npmrc .cargo/credentials.toml
    .cargo/credentials .config/dart/pub-credentials.json .hex/hex.config .codex/auth.json .claude/.credentials.json .claude.json
    .gemini/oauth_creds.json .local/share/opencode/auth.json .config/io.datasette.llm/keys.json .cache/huggingface/token
    .huggingface/token .kaggle/kaggle.json .config/wandb/settings .my.cnf .mylogin.cnf .pg_service.conf .snowsql/config .databrickscfg
    .dbt/profiles.yml .odbc.ini .config/pgcli/config .local/share/keyrings/login.keyring .pki/nssdb/key4.db .local/share/kwalletd/kdewallet.kwl
    .config/rbw/config.json .config/Bitwarden/data.json .config/1Password/settings.json .lpass/key .google_authenticator
    .mozilla/firefox/p.default/logins.json .mozilla/firefox/p.default/cookies.sqlite .config/google-chrome/Default/Cookies
    .config/chromium/Default/Login_Data .thunderbird/p/prefs.js .config/Slack/Cookies .config/discord/settings.json
    .config/Signal/config.json .mutt/muttrc .muttrc .msmtprc .config/msmtp/config .fetchmailrc .mbsyncrc .authinfo .authinfo.gpg
    .config/filezilla/sitemanager.xml .config/lftp/rc .subversion/auth/svn.simple/0123 .hgrc .cvspass .bitcoin/wallet.dat
    .ethereum/keystore/UTC--2024-01-01 .electrum/wallets/default_wallet .config/solana/id.json .monero/wallet.keys
    .config/Exodus/seed.seco .Xauthority .ICEauthority .erlang.cookie .rhosts .smbcredentials .android/adbkey
    .bash_history .zsh_history .python_history .node_repl_history .psql_history .mysql_history .sqlite_history
    .rediscli_history .irb_history .dbshell .lesshst .viminfo .local/share/fish/fish_history .histfile .ghc/ghci_history
    .tsh/keys/p/u.pem .config/okta/okta.yaml .saml2aws .granted/config .sentryclirc .config/circleci/cli.yml .circleci/cli.yml
    .jira.d/config.yml .twilio-cli/config.json .config/shopify/config.json .doppler/.doppler.yaml .infisical/infisical-config.json
    .vnc/passwd .putty/sshhostkeys .wireguard/wg0.conf .config/remmina/a.remmina .weechat/sec.conf .irssi/config .purple/accounts.xml
    proj/.env proj/.env.production proj/.envrc proj/prod.env proj/secrets.yml proj/config/secrets/db proj/config/master.key
    proj/config/credentials.yml.enc proj/terraform.tfvars proj/prod.auto.tfvars proj/terraform.tfstate proj/terraform.tfstate.backup
    proj/.vault_pass proj/.vault-password proj/vault_password_file proj/ansible/vault-pass.txt proj/service-account.json
    proj/client_secret_123.json proj/local.settings.json proj/kubeconfig proj/server.key proj/tls.p12 proj/a.pfx proj/app.jks
    proj/release.keystore proj/client.ovpn proj/db.kdbx proj/id_rsa proj/deploy_id_rsa.key proj/id_ecdsa.bak proj/krb5.keytab
    proj/api_key.txt proj/passwords.txt proj/db-password proj/aws-credentials.csv proj/.htpasswd proj/wallet.json backup/.ssh/id_rsa
    backup/.aws/credentials proj/.secrets/a proj/AuthKey_ABC.p8 proj/ssh_host_rsa_key .gitcookies .duplicity/conf .tailscale/state
    .config/borg/keys/host__repo .local/share/gnupg/private-keys-v1.d/AB.key .signify/release.sec .julia/logs/repl_history.jl
    .local/share/atuin/history.db backup/atuin/history.db etc/restic.passfile etc/my-restic-password.txt .restic-pass`),
  'proj/registry/.npmrc': '//registry.example/:_authToken=npm_abcdefghijklmnopqrstuvwxyz0123456789\n',
  'proj/settings.ini': '[db]\npassword = hunter2hunter2\n',
  'proj/app.yaml': 'github:\n  token: ghp_abcdefghijklmnopqrstuvwxyz0123456789\n',
  'proj/settings.py': 'KEY = "AKIAIOSFODNN7EXAMPLE"\n',
  ...Object.fromEntries(
    ['js', 'ts', 'py', 'go', 'java', 'html', 'd'].map((ending) => [
      `code/${ending}/inner/c.${ending}`,
      `const a = "ghp_${'aB3dE6gH9j'.repeat(4)}";\n`,
    ]),
  ),
  'proj/dotnet/NuGet.Config':
    '<packageSourceCredentials><a><add key="ClearTextPassword" value="hunter2" /></a></packageSourceCredentials>\n',
  'proj/tls.pem': '-----BEGIN PRIVATE KEY-----\nMIIEvQ\n-----END PRIVATE KEY-----\n',
  'proj/notes':
    'begin\n-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\n-----END OPENSSH PRIVATE KEY-----\n',
  'proj/token': 'a8f5f167f44f4964e6c998dee827110c\n',
  'proj/maven.xml': '<server><id>a</id><username>u</username><password>s3cr3tpass</password></server>\n',
  'proj/mirror.conf': 'index-url = https://user:hunter2hunter@pypi.example/simple\n',
  'proj/netrc.txt': 'machine h.example login u password s3cr3t1\n',
  'proj/session.json': '{"access_token": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abc"}\n',
};

/** Files that work needs and that tell nothing, though some names sound like it. */
export const INNOCENT_FILES: Readonly<Record<string, string>> = {
  ...named(`proj/README.md proj/AUTHORS proj/authors.txt proj/keyboard.conf proj/monkey.txt proj/tokenizer.json proj/tokenizer_config.json
    proj/passing-tests.log proj/compass.yml proj/keymap.xkb proj/session-notes.md proj/history.md proj/CHANGELOG proj/package.json
    proj/pyproject.toml proj/Makefile proj/data.csv proj/include/own.h proj/lib/token.go proj/src/password.tsx proj/src/secrets.py
    proj/auth.ts proj/.env.example proj/credentials.example proj/secrets.yml.sample proj/id_rsa.pub proj/fixture.txt
    proj/go.mod proj/.editorconfig proj/.prettierrc proj/requirements.txt proj/docker-compose.yml proj/Dockerfile
    models/weights.bin fonts/a.ttf shared/schema.sql shared/proto/account.proto shared/keys.txt toolchain/lib/libcrypto.so
    toolchain/bin/tool .config/myapp/settings.toml .local/share/fonts/x.ttf .cache/ccache/ccache.conf go/pkg/mod/cache/lock
    .rustup/settings.toml .nvm/alias/default .pyenv/version proj/login.html proj/private.css`),
  'shared/ca-bundle.pem': '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n',
  'shared/design-tokens.json': '{"color": {"red": "#ff0000"}}\n',
  'proj/plain/.npmrc': `registry=https://registry.example/\n//registry.example/:_authToken=$\{NPM_TOKEN}\n`,
  'proj/pip.conf': '[global]\nindex-url = https://pypi.example/simple\n',
  'proj/dotnet/NuGet.Config': '<add key="ClearTextPassword" value="%FEED_PASSWORD%" />\n',
  'proj/.pre-commit-config.yaml': 'repos:\n- repo: https://github.com/a/b\n  rev: v4.5.0\n',
};

function named(names: string): Readonly<Record<string, string>> {
  return Object.fromEntries(
    names
      .trim()
      .split(/\s+/)
      .map((name) => [name, 'word\n']),
  );
}
