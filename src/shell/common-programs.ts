/** Programs whose names a function must not take: a reader, or a check, would take the call for the program. */
const COMMON = new Set(
  `ls cat cp mv rm ln mkdir rmdir touch chmod chown chgrp stat file du df head tail wc sort uniq cut paste tr tee sed awk
  gawk mawk grep egrep fgrep rg fd ag jq yq diff cmp comm patch tar gzip gunzip zip unzip xz zstd bzip2 date sleep which
  whoami id uname hostname env printenv basename dirname realpath readlink seq yes expr bc dd sync ps top pgrep pkill
  killall free uptime git gh hub svn hg make cmake ninja gcc cc clang ld ar go rustc cargo rustup node npm npx pnpm yarn
  bun deno python python3 pip pip3 uv uvx poetry pipenv pytest tox ruby gem bundle rake perl php composer java javac mvn
  gradle dotnet tsc eslint prettier vitest jest mocha curl wget nc ncat netcat socat ssh scp sftp rsync ftp telnet ping
  dig nslookup host openssl gpg sudo su doas docker podman kubectl helm systemctl service journalctl mount umount vim vi
  nano emacs ed ex less more man code open sqlite3 psql mysql redis apt dpkg yum dnf apk brew sh bash dash zsh ksh fish
  crontab at batch shred mkfs fdisk reboot shutdown halt poweroff iptables ip ifconfig useradd passwd base64 md5sum
  sha256sum xxd od hexdump strings column nl tac rev fold fmt split truncate nproc mktemp mkfifo install tree bat
  command_not_found_handle`.split(/\s+/),
);

export function isCommonProgram(name: string): boolean {
  return COMMON.has(name);
}
