import type { PathRule } from '../../confine/plan/grant.ts';

const row = (access: PathRule['access'], path: string, reason: string): PathRule => ({
  path,
  access,
  required: false,
  reason,
});

/** What programs need of the system, with a reason per row. What is missing on a host is left out. */
export const SYSTEM_PATHS: readonly PathRule[] = [
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
  row('read', '/nix/var/nix/profiles', 'links to what is installed by Nix'),
  row('read', '/run/current-system/sw', 'programs of NixOS'),
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
  row('data', '/etc/locale.alias', 'every program with translated messages reads it where a locale is set'),
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
  row('data', '/var/lib/dpkg', 'which packages are installed (Debian)'),
  row('data', '/var/lib/rpm', 'which packages are installed (Red Hat, SUSE)'),
  row('data', '/var/lib/pacman/local', 'which packages are installed (Arch)'),
  row('data', '/var/lib/apt/lists', 'which packages there are'),
  row('data', '/var/lib/alternatives', 'chosen implementations (Red Hat)'),
  row('read', '/var/lib/gems', 'gems of the distribution'),
  row('data', '/var/lib/ghc', 'packages of GHC'),
  row('data', '/var/lib/texmf', 'formats and maps of TeX'),
  row('data', '/var/lib/tex-common', 'formats and maps of TeX'),
  row('data', '/var/lib/aspell', 'dictionaries'),
  row('data', '/var/lib/ispell', 'dictionaries'),
  row('data', '/var/lib/dictionaries-common', 'dictionaries'),
  row('data', '/var/lib/emacsen-common', 'packages of Emacs'),
  row('data', '/var/lib/sgml-base', 'catalogues of SGML'),
  row('data', '/var/lib/xml-core', 'catalogues of XML'),
  row('data', '/var/lib/python', 'modules of the distribution'),
  row('data', '/var/lib/gap', 'packages of GAP'),
  row('data', '/var/cache/fontconfig', 'where fonts are'),
  row('data', '/var/cache/man', 'where manual pages are'),
  row('device', '/dev/null', 'bit bucket'),
  row('device', '/dev/zero', 'zeros'),
  row('device', '/dev/full', 'tests of a full disk'),
  row('data', '/dev/random', 'random numbers'),
  row('data', '/dev/urandom', 'random numbers'),
  row('device', '/dev/tty', 'the terminal, if the command has one'),
];

/** Shown as existing and refused: a program then says so instead of "no such file". */
export const MASKED_PATHS: readonly string[] = ['/etc/shadow', '/etc/gshadow', '/etc/sudoers'];

/** Names of files in /etc that hold secrets, by reason. */
export const SYSTEM_SECRET_NAMES: Readonly<Record<string, string>> = {
  'hashes of passwords': 'shadow shadow- gshadow gshadow- security/opasswd',
  'who may become root': 'sudoers sudoers.d doas.conf polkit-1',
  'keys and passwords of servers': `ssl/private pki/tls/private pki/nssdb letsencrypt nginx apache2 httpd lighttpd caddy haproxy traefik`,
  'passwords and keys of networks': `NetworkManager wpa_supplicant iwd netplan network hostapd ppp chatscripts vpnc systemd/network wireguard openvpn
    openvpn3 ipsec.conf ipsec.secrets ipsec.d swanctl strongswan.d nebula tinc fastd xl2tpd ocserv openfortivpn ddclient ddclient.conf
    inadyn.conf`,
  'credentials of clusters and clouds': 'kubernetes rancher cni aws google boto boto.cfg s3cfg rclone',
  'credentials of registries and proxies': `docker containers containerd crio apt/auth.conf apt/auth.conf.d apt/sources.list.d yum.repos.d
    zypp maven/settings-security.xml gradle apt/apt.conf apt/apt.conf.d dnf xdg/pip nuget opt/NuGet`,
  'keys of Kerberos, passwords of directories': `krb5.keytab krb5kdc sssd nslcd.conf pam_ldap.conf ldap`,
  'tells this machine from all others': 'machine-id',
  'passwords and keys of shares and disks': `samba cifs davfs2 fstab crypttab cryptsetup iscsi target rsyncd.conf rsyncd.secrets ceph glusterfs
    netatalk proftpd vsftpd vsftpd.conf pure-ftpd`,
  'passwords and keys of mail': `postfix exim4 dovecot msmtprc ssmtp opendkim nullmailer dma fetchmailrc mailman mailman3 rspamd sogo cyrus
    imapd.conf courier`,
  'passwords of databases': `mysql my.cnf.d postgresql redis mongod mongod.conf odbc pgbouncer pgpool2 patroni cassandra couchdb
    clickhouse-server clickhouse-client neo4j arangodb3 memcached valkey keydb mariadb`,
  'passwords and keys of services': `rabbitmq grafana prometheus zabbix telegraf influxdb elasticsearch filebeat fluent rsyslog snmp munin nagios
    icinga2 monit gitlab jenkins nut datadog-agent newrelic newrelic-infra.yml vault vault.d consul consul.d nomad
    nomad.d salt puppet puppetlabs chef munge slurm cloudflared tailscale tor gitlab-runner buildkite buildkite-agent
    cups ansible bind rndc.key powerdns mosquitto emqx nats nats-server.conf etcd minio loki promtail alloy netdata collectd graylog logstash
    kibana opensearch metricbeat heartbeat zoneminder motion icecast2 asterisk freeswitch kamailio janus jitsi coturn turnserver.conf
    prosody ejabberd matrix-synapse mattermost gitea forgejo gerrit jupyterhub supervisor uwsgi sentry keycloak dex authelia step-ca
    gvm frr quagga squid tinyproxy stunnel privoxy freeradius raddb radsecproxy radcli xrdp vnc x2go zerotier-one headscale netbird
    fail2ban crowdsec wazuh ossec`,
  'passwords of web applications': `phpmyadmin roundcube mediawiki wordpress dokuwiki nextcloud owncloud drupal moodle icingaweb2 cacti glpi
    dbconfig-common php-fpm tomcat tomcat8 tomcat9 tomcat10 wildfly`,
  'passwords of backup programs': `backupninja duply borgmatic borgbackup restic bacula bareos burp amanda pgbackrest pgbackrest.conf barman barman.d
    barman.conf`,
  'what a machine was made with': 'cloud',
  'variables of logins, services and tasks, which may be secrets': `environment.d systemd/system sysconfig conf.d default cron.d cron.daily cron.hourly cron.weekly
    cron.monthly crontab`,
};

/**
 * What may hold secrets and may be readable for everybody all the same, by its name in /etc, with the reason: none is shown. What only
 * some may read, and what is called as secrets are (`src/base/secret-files.ts`), needs no row.
 */
export const SYSTEM_SECRETS: ReadonlyMap<string, string> = new Map(
  Object.entries(SYSTEM_SECRET_NAMES).flatMap(([reason, names]) =>
    names.split(/\s+/).map((name): [string, string] => [name, reason]),
  ),
);

/** The same of single files that hold none on most machines: one is shown where nothing in it looks like a secret. */
export const SYSTEM_LOOKED_AT: ReadonlySet<string> = new Set(
  'environment wgetrc npmrc pip.conf maven/settings.xml ldap.conf my.cnf odbc.ini apt/sources.list'.split(
    ' ',
  ),
);

/**
 * Tool chains that users install beneath their home: programs and libraries only, no settings, no credentials.
 * `path` is relative to the home directory. `env` makes tools find it although HOME is private; `{}` stands for the path.
 */
interface ToolChain {
  readonly path: string;
  readonly reason: string;
  readonly env?: Readonly<Record<string, string>>;
}

export const TOOL_CHAINS: readonly ToolChain[] = [
  { path: '.cargo/bin', reason: 'cargo and rustup' },
  { path: '.rustup', reason: 'Rust compilers', env: { RUSTUP_HOME: '{}' } },
  { path: '.pyenv', reason: 'Pythons of pyenv', env: { PYENV_ROOT: '{}' } },
  { path: '.nvm/versions', reason: 'Nodes of nvm' },
  { path: '.volta', reason: 'Nodes of volta', env: { VOLTA_HOME: '{}' } },
  { path: '.local/share/fnm', reason: 'Nodes of fnm' },
  { path: '.local/share/mise/installs', reason: 'tools of mise' },
  { path: '.local/share/mise/shims', reason: 'tools of mise' },
  { path: '.asdf', reason: 'tools of asdf', env: { ASDF_DIR: '{}', ASDF_DATA_DIR: '{}' } },
  { path: '.local/bin', reason: 'programs of the user' },
  { path: '.local/pipx/venvs', reason: 'programs of pipx' },
  { path: '.local/share/pipx/venvs', reason: 'programs of pipx' },
  { path: '.local/share/uv/python', reason: 'Pythons of uv' },
  { path: '.local/share/uv/tools', reason: 'programs of uv' },
  { path: '.bun/bin', reason: 'bun' },
  { path: '.deno/bin', reason: 'deno' },
  { path: 'go/bin', reason: 'programs of go install' },
  { path: '.sdkman/candidates', reason: 'JVM tools of sdkman' },
  { path: '.local/lib', reason: 'libraries of programs of the user' },
  { path: '.local/share/pnpm/global', reason: 'programs of pnpm' },
  { path: '.npm-global/bin', reason: 'programs of npm' },
  { path: '.npm-global/lib', reason: 'programs of npm' },
  { path: '.yarn/bin', reason: 'programs of yarn' },
  { path: '.config/yarn/global/node_modules', reason: 'programs of yarn' },
  { path: '.fnm', reason: 'Nodes of fnm' },
  { path: '.nodenv', reason: 'Nodes of nodenv', env: { NODENV_ROOT: '{}' } },
  { path: '.rbenv', reason: 'Rubies of rbenv', env: { RBENV_ROOT: '{}' } },
  { path: '.rubies', reason: 'Rubies of chruby' },
  { path: '.rvm', reason: 'Rubies of rvm', env: { rvm_path: '{}' } },
  { path: '.gem/ruby', reason: 'gems of the user' },
  { path: '.local/share/gem/ruby', reason: 'gems of the user' },
  { path: '.goenv', reason: 'Gos of goenv', env: { GOENV_ROOT: '{}' } },
  { path: '.jenv', reason: 'JVMs of jenv', env: { JENV_ROOT: '{}' } },
  { path: '.jdks', reason: 'JVMs' },
  { path: '.jbang/bin', reason: 'jbang' },
  { path: 'miniconda3', reason: 'conda' },
  { path: 'anaconda3', reason: 'conda' },
  { path: 'miniforge3', reason: 'conda' },
  { path: 'mambaforge', reason: 'conda' },
  { path: '.local/share/mamba', reason: 'mamba' },
  { path: 'micromamba', reason: 'mamba' },
  { path: '.pixi/bin', reason: 'programs of pixi' },
  { path: '.pixi/envs', reason: 'programs of pixi' },
  { path: '.rye/shims', reason: 'rye' },
  { path: '.rye/py', reason: 'Pythons of rye' },
  { path: '.rye/self', reason: 'rye' },
  { path: '.rye/tools', reason: 'programs of rye' },
  { path: '.local/share/pypoetry', reason: 'poetry' },
  { path: '.local/share/hatch', reason: 'Pythons of hatch' },
  { path: '.dotnet', reason: '.NET', env: { DOTNET_ROOT: '{}' } },
  { path: '.ghcup/bin', reason: 'Haskell compilers' },
  { path: '.ghcup/ghc', reason: 'Haskell compilers' },
  { path: '.cabal/bin', reason: 'programs of cabal' },
  { path: '.stack/programs', reason: 'Haskell compilers' },
  { path: '.opam', reason: 'OCaml', env: { OPAMROOT: '{}' } },
  { path: '.juliaup', reason: 'Julias of juliaup' },
  { path: '.julia/juliaup', reason: 'Julias of juliaup' },
  { path: '.elan', reason: 'Lean', env: { ELAN_HOME: '{}' } },
  { path: '.nimble/bin', reason: 'programs of nimble' },
  { path: '.luarocks/bin', reason: 'programs of luarocks' },
  { path: '.luarocks/lib', reason: 'libraries of luarocks' },
  { path: '.composer/vendor', reason: 'programs of composer' },
  { path: '.config/composer/vendor', reason: 'programs of composer' },
  { path: '.phpenv', reason: 'PHPs of phpenv' },
  { path: '.plenv', reason: 'Perls of plenv', env: { PLENV_ROOT: '{}' } },
  { path: 'perl5', reason: 'modules of the user' },
  { path: '.pub-cache/bin', reason: 'programs of pub' },
  { path: 'flutter', reason: 'Flutter' },
  { path: '.flutter-sdk', reason: 'Flutter' },
  { path: 'Android/Sdk', reason: 'the Android SDK', env: { ANDROID_HOME: '{}' } },
  { path: '.swiftly/toolchains', reason: 'Swift' },
  { path: '.proto/bin', reason: 'tools of proto' },
  { path: '.proto/shims', reason: 'tools of proto' },
  { path: '.proto/tools', reason: 'tools of proto' },
  { path: '.krew/bin', reason: 'programs of krew' },
  { path: '.krew/store', reason: 'programs of krew' },
  { path: '.linuxbrew', reason: 'programs of Homebrew' },
  { path: '.nix-profile', reason: 'what is installed by Nix' },
  { path: '.guix-profile', reason: 'what is installed by Guix' },
];
