import { everywhere, works } from './support/lab.ts';

everywhere(
  (lab) => {
    const tool = (program: string, script: string, prints: string | RegExp, ...more: readonly string[]) =>
      works(lab, `${program}: ${script.replace(/\s+/g, ' ').slice(0, 60)}`, {
        script,
        prints,
        needs: [program, ...more],
      });

    tool('rg', 'echo needle > f; rg -n needle', /1:needle/);
    tool('grep', 'mkdir d; echo needle > d/f; grep -rn needle .', './d/f:1:needle\n');
    tool(
      'find',
      'mkdir -p a/b; touch a/b/c; find . -name c -newermt 2000-01-01 -exec basename {} \\;',
      'c\n',
    );
    tool('sed', 'echo a > f; sed -i s/a/b/ f; cat f', 'b\n');
    tool('sed', 'echo a > f; sed -i.bak s/a/b/ f; cat f f.bak', 'b\na\n');
    tool(
      'perl',
      'echo a > f; perl -pi -e "s/a/b/" f; cat f; perl -MPOSIX -MFile::Temp -MData::Dumper -e "print qq(ok\\n)"',
      'b\nok\n',
    );
    tool('awk', "printf '1 2\\n3 4\\n' | awk '{ s += $2 } END { print s }'", '6\n');
    tool('jq', 'echo \'{"a":[1,2]}\' | jq -c .a', '[1,2]\n');
    tool(
      'tar',
      'mkdir d; echo x > d/f; chmod 600 d/f; tar czf a.tgz d; rm -r d; tar xzf a.tgz; cat d/f; stat -c %a d/f',
      'x\n600\n',
      'gzip',
    );
    tool('tar', 'echo x > f; tar cJf a.txz f; rm f; tar xJf a.txz; cat f', 'x\n', 'xz');
    tool(
      'tar',
      'echo x > f; tar --owner=1234 --group=1234 -cf a.tar f; rm f; tar --no-same-owner -xf a.tar; cat f',
      'x\n',
    );
    tool('cpio', 'echo x > f; echo f | cpio -o 2>/dev/null > a; rm f; cpio -i 2>/dev/null < a; cat f', 'x\n');
    tool('zip', 'echo x > f; zip -q a.zip f; rm f; unzip -q a.zip; cat f', 'x\n', 'unzip');
    tool(
      'cp',
      'mkdir d; echo x > d/f; ln -s f d/l; cp -a d e; cat e/l; cp --reflink=auto d/f g; cat g',
      'x\nx\n',
    );
    tool(
      'cp',
      'cp -r /usr/share/zoneinfo/Europe z 2>/dev/null || cp -r /usr/share/doc/bash z; ls z | wc -l | grep -q "[1-9]" && rm -rf z && echo done',
      'done\n',
    );
    tool('rsync', 'mkdir d; echo x > d/f; rsync -a d/ e/; cat e/f', 'x\n');
    tool('install', 'echo x > f; install -D -m 755 f d/e/g; stat -c %a d/e/g', '755\n');
    tool('patch', 'printf "a\\n" > f; printf "b\\n" > g; diff -u f g > p; patch -s f p; cat f', 'b\n');
    tool('dd', 'dd if=/dev/zero of=f bs=1k count=4 status=none conv=fsync; stat -c %s f', '4096\n');
    tool('split', 'seq 100 | split -l 40 - part.; ls | tr "\\n" " "', 'part.aa part.ab part.ac ');
    tool('sort', 'seq 50000 | shuf | sort -n -S 1M | tail -1', '50000\n');
    tool(
      'sqlite3',
      'sqlite3 d.db "pragma journal_mode=wal; create table t(x); insert into t values(7); select x from t"',
      'wal\n7\n',
    );
    tool('file', 'file -b /bin/bash', /ELF/);
    tool('strings', 'strings /bin/true | head -1 | wc -l', '1\n');
    tool('xxd', 'echo x | xxd -p', '780a\n');
    tool('sha256sum', 'echo x > f; sha256sum f > s; sha256sum -c s', 'f: OK\n');
    tool('gpg', 'gpg --version', /^gpg /);
    tool('ssh-keygen', 'ssh-keygen -q -t ed25519 -N "" -f k; ssh-keygen -lf k.pub', /ED25519/);
    tool('openssl', 'openssl rand -hex 4 | wc -c', '9\n');
    tool('vim', 'echo a > f; vim -es -u NONE -c "%s/a/b/" -c wq f; cat f', 'b\n');
    tool('vim', 'echo a > f; vim -es -c "%s/a/b/" -c wq f; cat f', 'b\n');
    tool('less', 'echo page | less', 'page\n');
    tool('man', 'man -w man | wc -l', /^\d/);
    tool('tmux', 'tmux -V', /^tmux/);
    tool('bc', 'echo 6*7 | bc', '42\n');
    tool('m4', 'echo "define(x,y)x" | m4', 'y\n');
    tool('ruby', 'ruby -e "puts 42"', '42\n');
    tool('lua', 'lua -e "print(42)"', '42\n');
    tool('php', 'php -r "echo 42;"', '42');
    tool('go', 'go version', /^go version/);

    // Once the background job has become what it is: until then it is another bash.
    const SLEEPS = 'sleep 1000 & until grep -q sleep /proc/$!/comm; do :; done';
    tool('ps', `${SLEEPS}; ps -o comm= -p $!`, 'sleep\n');
    tool('ps', `${SLEEPS}; ps --ppid $$ -o comm= | grep -c sleep`, '1\n');
    tool('ps', 'ps aux | grep -c "[p]s aux"', /^[1-9]/);
    tool('pgrep', `${SLEEPS}; pgrep -P $$ sleep | wc -l`, '1\n');
    tool('pkill', `${SLEEPS}; pkill -P $$ sleep; wait $!; echo $?`, '143\n');
    tool('top', 'top -bn1 | head -1', /^top/);
    tool('free', 'free -m', /Mem:/);
    tool('uptime', 'uptime', /load/);
    tool('nproc', 'nproc', /^\d+\n$/);
    tool('lscpu', 'lscpu', /Architecture/);
    tool('uname', 'uname -a', /^Linux/);
    tool('id', 'id', /^uid=\d+\(\w+\) gid=\d+\(\w+\)/);
    tool('whoami', 'whoami', /^\w+\n$/);
    tool('hostname', 'hostname', /^\S+\n$/);
    tool('date', 'TZ=Asia/Tokyo date -d @0 +%H%Z', '09JST\n');
    tool('date', 'date +%Y', /^\d{4}\n$/);
    tool('locale', 'locale', /LANG=/);
    tool('getent', 'getent hosts localhost; getent passwd $(id -u)', /localhost.*:/s);
    tool('df', 'df . | tail -1 | wc -l', '1\n');
    tool('du', 'du -s . | wc -l', '1\n');
    tool('mount', 'mount | wc -l', /\d/);
    tool('ss', 'ss -ltn', /State/);
    tool('ip', 'ip addr', /lo/);
    tool('tty', 'tty; true', 'not a tty\n');
    tool('stat', 'stat -c %U .', /^\w+\n$/);
    tool('realpath', 'ln -s . self; realpath self/self | grep -qx "$PWD" && echo same', 'same\n');
    tool('which', 'which bash', /\/bash\n$/);
    tool('lsof', 'lsof -v 2>&1 | head -1', /lsof/);
    tool('strace', 'strace -V | head -1', /^strace/);
    tool('busybox', 'busybox echo x', 'x\n');
    tool('setsid', 'setsid -w echo x', 'x\n');
    tool('nice', 'nice -n 19 nice', '19\n');
    tool('ionice', 'ionice -c3 echo x', 'x\n');
    tool('taskset', 'taskset -p $$', /affinity/);
    tool('chrt', 'chrt -p $$', /SCHED_OTHER/);
    tool('stdbuf', 'stdbuf -oL echo x', 'x\n');
    tool('curl', 'echo local > f; curl -s "file://$PWD/f"; curl --version', /^local\ncurl/);
    tool('make', 'printf "a: b\\n\\tcp b a\\nb:\\n\\techo x > b\\n" > Makefile; make -s -j2; cat a', 'x\n');
    if (lab.setting.tier === 'view') {
      // Without a view a command would reach the terminals of others where it makes one of its own.
      tool('unbuffer', 'unbuffer tty', /pts/);
      tool('expect', 'expect -c "spawn echo hello; expect hello; puts found"', /found/);
      // Of the user database, as programs ask it that do not look at HOME.
      tool(
        'python3',
        "python3 -c \"import os, pwd; home = pwd.getpwuid(os.getuid()).pw_dir; open(home + '/x', 'w').close(); print(os.path.exists(os.path.expanduser('~/x')))\"",
        'True\n',
      );
      tool(
        'node',
        "node -p \"fs.writeFileSync(os.userInfo().homedir + '/x', ''); fs.existsSync(os.homedir() + '/x')\"",
        'true\n',
      );
      works(lab, 'java finds a home that it can write', {
        needs: ['java'],
        files: {
          'A.java':
            'public class A { public static void main(String[] a) throws Exception { new java.io.File(System.getProperty("user.home"), "x").createNewFile(); } }',
        },
        script: 'java A.java && ls ~/x | grep -c x',
        prints: '1\n',
      });
      works(lab, 'mvn finds its repository', {
        needs: ['mvn'],
        files: {
          'pom.xml':
            '<project><modelVersion>4.0.0</modelVersion><groupId>a</groupId><artifactId>a</artifactId><version>1</version></project>',
        },
        script: 'mvn -B -o -q validate && ls -d ~/.m2/repository | grep -c m2',
        prints: /1\n$/,
      });
      works(lab, 'go finds a home that it can write', {
        needs: ['go'],
        files: {
          'a.go':
            'package main\nimport (\n"fmt"\n"os"\n"os/user"\n)\nfunc main() { u, _ := user.Current(); fmt.Println(os.WriteFile(u.HomeDir+"/x", nil, 0600)) }\n',
        },
        script: 'CGO_ENABLED=0 go run a.go',
        prints: '<nil>\n',
        options: { timeout: 120_000 },
      });
      tool('script', 'script -qec "tty; stty size" /dev/null', /\/dev\/pts\//);
      tool(
        'tmux',
        'tmux -f /dev/null new-session -d "echo inside > part; mv part out"; until [ -e out ]; do sleep 0.02; done; cat out',
        'inside\n',
      );
    }
  },
  { few: true },
);
