import { everywhere, works } from './support/lab.ts';

everywhere(
  (lab) => {
    const shell = (name: string, script: string, prints: string | RegExp, needs: readonly string[] = []) =>
      works(lab, name, { script, prints, needs });

    shell('here-document', 'cat <<A\nx$((1 + 1))\nA', 'x2\n');
    shell('here-string', 'cat <<<word', 'word\n');
    shell(
      'large here-document (a temporary file of bash)',
      'wc -c <<A\n$(head -c 300000 /dev/zero | tr "\\0" x)\nA',
      '300001\n',
    );
    shell('process substitution', 'diff <(printf "a\\nb\\n") <(printf "a\\nb\\n") && echo same', 'same\n');
    shell(
      'output process substitution',
      'echo x | tee >(cat > copy) >/dev/null; until [ -s copy ]; do :; done; cat copy',
      'x\n',
    );
    shell(
      'pipeline with status',
      'set -o pipefail; yes | head -3 | sort | uniq -c | tr -s " "; false | true; echo $?',
      / 3 y\n1\n$/,
    );
    shell('time', '{ time true; } 2>&1', /real/);
    shell(
      'background jobs',
      'for i in 1 2 3; do (echo $i >> out) & done; wait; sort out | tr -d "\\n"',
      '123',
    );
    shell('job control', 'set -m; sleep 1000 & kill %1; wait %1; echo $?', '143\n');
    shell('trap', 'trap "echo bye" EXIT; trap "echo usr1" USR1; kill -USR1 $$', 'usr1\nbye\n');
    shell('xargs in parallel', 'seq 20 | xargs -P4 -n1 echo | sort -n | tail -1', '20\n');
    shell(
      'xargs with null bytes',
      'touch "a b" $\'c\\nd\'; find . -type f -print0 | xargs -0 -n1 basename -a | wc -l',
      '3\n',
    );
    shell('nohup', 'nohup echo kept 2>/dev/null', 'kept\n', ['nohup']);
    shell('timeout', 'timeout 0.1 sleep 1000; echo $?', '124\n', ['timeout']);
    shell('named pipe', 'mkfifo p; echo through > p & cat p', 'through\n', ['mkfifo']);
    shell('/dev/stdin', 'echo in | cat /dev/stdin', 'in\n');
    shell('/dev/stdout', 'echo out > /dev/stdout', 'out\n');
    shell('/dev/stderr', 'echo err 2>&1 > /dev/stderr', 'err\n');
    shell('/dev/fd', 'exec 7<<<seven; cat /dev/fd/7', 'seven\n');
    shell('/proc/self/fd', 'echo in | cat /proc/self/fd/0', 'in\n');
    shell(
      '/dev/null, zero, full, urandom',
      'cat < /dev/null; head -c3 /dev/zero | wc -c; head -c5 /dev/urandom | wc -c; echo x > /dev/full || echo full',
      '3\n5\nfull\n',
    );
    shell('ulimit', 'ulimit -a', /open files/);
    shell(
      'umask and modes',
      'umask; touch f; chmod 640 f; stat -c %a f; mkdir -m 700 d; stat -c %a d',
      '0022\n640\n700\n',
    );
    shell(
      'mktemp',
      'f=$(mktemp) && echo t > "$f" && cat "$f" && d=$(mktemp -d) && touch "$d/x" && ls "$d"',
      't\nx\n',
      ['mktemp'],
    );
    shell('HOME is writable', 'cd && mkdir -p .cache/x && echo ok > .cache/x/y && cat ~/.cache/x/y', 'ok\n');
    shell('TMPDIR is writable', 'echo t > "$TMPDIR/x" && cat "$TMPDIR/x"', 't\n');
    shell('script with a shebang', 'printf "#!/bin/sh\\necho ran\\n" > s; chmod +x s; ./s', 'ran\n');
    shell('script through env', 'printf "#!/usr/bin/env bash\\necho ran\\n" > s; chmod +x s; ./s', 'ran\n');
    shell('program in $TMPDIR', 'cp /bin/echo "$TMPDIR/e" && "$TMPDIR/e" ran', 'ran\n');
    shell('sh', 'sh -c "echo \\$0" zero', 'zero\n');
    shell('login shell', 'bash -lc "echo logged in"', 'logged in\n');
    shell('interactive shell without a terminal', 'echo "echo hi" | bash -i 2>/dev/null', /hi\n/);
    shell(
      'deep directories',
      'd=$(printf "%0100d/" {1..30}); mkdir -p "$d" && cd "$d" && echo deep > f && cat f',
      'deep\n',
    );
    shell(
      'unicode and odd names',
      'touch "ü ñ 日本" $\'new\\nline\' -- "-dash" && ls | wc -l && rm -- -dash "ü ñ 日本" && ls',
      '4\nnew\nline\n',
    );
    shell(
      'hard and symbolic links',
      'echo x > a; ln a b; ln -s a c; mkdir d; mv b d/; cat d/b c; readlink c; stat -c %h a',
      'x\nx\na\n2\n',
    );
    shell(
      'rename between directories',
      'mkdir a b; echo x > a/f; mv a/f b/g; mv a b/c; find . -type f',
      './b/g\n',
    );
    shell('move to and from $TMPDIR', 'echo x > f; mv f "$TMPDIR/f"; mv "$TMPDIR/f" g; cat g', 'x\n');
    shell(
      'truncate and sparse files',
      'truncate -s 1M f; : > f; stat -c %s f; fallocate -l 4096 g; stat -c %s g',
      '0\n4096\n',
    );
    shell('lock files', 'flock lock echo locked', 'locked\n', ['flock']);
    shell('times', 'touch -d 2020-01-02T03:04:05Z f; TZ=UTC stat -c %y f', /^2020-01-02 03:04:05/);
  },
  { few: true },
);
