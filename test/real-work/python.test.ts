import { everywhere, works } from './support/lab.ts';

const SERVER_AND_CLIENT = `
import http.server, threading, urllib.request
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b'served')
    def log_message(self, *a): pass
s = http.server.ThreadingHTTPServer(('127.0.0.1', 0), H)
threading.Thread(target=s.serve_forever, daemon=True).start()
print(urllib.request.urlopen(f'http://127.0.0.1:{s.server_port}/').read().decode())
s.shutdown()
`;

everywhere(
  (lab) => {
    const python = (name: string, script: string, prints: string | RegExp) =>
      works(lab, name, { script: 'python3 main.py', files: { 'main.py': script }, prints });

    python(
      'multiprocessing.Pool',
      `
from multiprocessing import Pool
def square(x): return x * x
if __name__ == '__main__':
    with Pool(2) as pool: print(pool.map(square, range(5)))
`,
      '[0, 1, 4, 9, 16]\n',
    );
    python(
      'multiprocessing with spawn',
      `
import multiprocessing as m
def work(q): q.put('from the child')
if __name__ == '__main__':
    c = m.get_context('spawn'); q = c.Queue(); p = c.Process(target=work, args=(q,)); p.start(); print(q.get()); p.join()
`,
      'from the child\n',
    );
    python(
      'multiprocessing semaphores and shared memory',
      `
from multiprocessing import Semaphore, Lock, Value, Process, shared_memory
def work(name, v):
    s = shared_memory.SharedMemory(name); s.buf[0] = 7; s.close()
    with v.get_lock(): v.value += 1
if __name__ == '__main__':
    with Semaphore(1), Lock(): pass
    v = Value('i', 1); s = shared_memory.SharedMemory(create=True, size=16)
    p = Process(target=work, args=(s.name, v)); p.start(); p.join()
    print(s.buf[0], v.value); s.close(); s.unlink()
`,
      '7 2\n',
    );
    python(
      'concurrent.futures',
      `
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
def f(x): return x + 1
if __name__ == '__main__':
    for kind in ProcessPoolExecutor, ThreadPoolExecutor:
        with kind(2) as e: print(list(e.map(f, range(3))))
`,
      '[1, 2, 3]\n[1, 2, 3]\n',
    );
    python(
      'asyncio subprocesses',
      `
import asyncio
async def main():
    p = await asyncio.create_subprocess_exec('echo', 'async', stdout=asyncio.subprocess.PIPE)
    print((await p.communicate())[0].decode(), end='')
asyncio.run(main())
`,
      'async\n',
    );
    python(
      'sqlite3 with a write-ahead log',
      `
import sqlite3
a = sqlite3.connect('d.db'); print(a.execute('pragma journal_mode=wal').fetchone()[0])
a.execute('create table t(x)'); a.execute('insert into t values (1)'); a.commit()
print(sqlite3.connect('d.db').execute('select count(*) from t').fetchone()[0])
`,
      'wal\n1\n',
    );
    python(
      'certificates',
      `
import ssl
c = ssl.create_default_context(); c.load_default_certs(); print(len(c.get_ca_certs()) > 10 or ssl.get_default_verify_paths())
`,
      'True\n',
    );
    python(
      'tempfile, shutil and mmap',
      `
import tempfile, shutil, mmap, os
with tempfile.TemporaryDirectory() as d:
    open(d + '/f', 'w').write('x'); shutil.make_archive('a', 'zip', d); shutil.copytree(d, 'copy')
with open('copy/f', 'r+b') as f: m = mmap.mmap(f.fileno(), 0); m[0:1] = b'y'; m.close()
print(open('copy/f').read(), os.path.exists('a.zip'))
`,
      'y True\n',
    );
    python(
      'user and host names',
      `
import getpass, pathlib, socket, os, platform
getpass.getuser(); platform.platform(); socket.gethostname(); os.cpu_count()
print(pathlib.Path.home() == pathlib.Path(os.environ['HOME']))
`,
      'True\n',
    );
    python(
      'time zones',
      `
import zoneinfo, datetime
print(datetime.datetime(2020, 7, 1, tzinfo=zoneinfo.ZoneInfo('Europe/Berlin')).utcoffset())
`,
      '2:00:00\n',
    );
    python(
      'network interfaces',
      `import socket; print('lo' in [n for _, n in socket.if_nameindex()])`,
      'True\n',
    );
    works(lab, 'unittest', {
      script: 'python3 -m unittest -q test_x.py 2>&1',
      files: {
        'test_x.py':
          'import unittest\nclass T(unittest.TestCase):\n  def test(self): self.assertEqual(1, 1)\n',
      },
      prints: /OK/,
    });
    works(lab, 'byte code is cached', {
      script:
        'echo "x = 1" > m.py; python3 -B -c "import m"; PYTHONDONTWRITEBYTECODE= python3 -c "import m"; ls __pycache__',
      prints: /m\.cpython/,
    });
    works(lab, 'venv without pip', {
      script:
        'python3 -m venv --without-pip v && v/bin/python -c "import sys; print(sys.prefix != sys.base_prefix)" && . v/bin/activate && python -V',
      prints: /^True\nPython 3/,
    });
    works(lab, '/usr/bin/python3', {
      script: ['/usr/bin/python3', '-c', 'import ssl, sqlite3, ctypes, lzma; print("ok")'],
      prints: 'ok\n',
    });
    if (lab.setting.tier === 'view') {
      python('a server on 127.0.0.1 and a client', SERVER_AND_CLIENT, 'served\n');
      python(
        'multiprocessing.Manager',
        `
from multiprocessing import Manager
if __name__ == '__main__':
    with Manager() as m: d = m.dict(a=1); d['b'] = 2; print(sorted(d.items()))
`,
        "[('a', 1), ('b', 2)]\n",
      );
      python(
        'a pseudo-terminal',
        `
import pty, os
pty.spawn(['sh', '-c', 'test -t 1 && echo terminal'])
m, s = pty.openpty(); print(os.ttyname(s).startswith('/dev/pts/'))
`,
        /terminal\r?\nTrue/,
      );
      python(
        'sockets by path',
        `
import socket, os, tempfile
for p in ('s', os.path.join(tempfile.mkdtemp(), 's')):
    a = socket.socket(socket.AF_UNIX); a.bind(p); a.listen(); b = socket.socket(socket.AF_UNIX); b.connect(p); b.send(b'x'); print(a.accept()[0].recv(1))
`,
        "b'x'\nb'x'\n",
      );
    }
  },
  { home: 'fresh', few: true },
);

everywhere(
  (lab) => {
    works(lab, 'venv with pip', {
      script:
        'python3 -m venv v && v/bin/pip --version && v/bin/pip install --no-deps ./pkg >log 2>&1; grep -c . log >/dev/null; v/bin/python -c "import pip; print(pip.__name__)"',
      prints: /pip/,
      options: { timeout: 60_000 },
    });
  },
  { home: 'fresh', tier: 'view', who: 'self' },
);

everywhere(
  (lab) => {
    works(lab, 'pytest', {
      script: 'pytest -q 2>&1',
      files: {
        'test_x.py': 'def test_a(tmp_path):\n    (tmp_path / "f").write_text("x")\n    assert 1 + 1 == 2\n',
      },
      needs: ['pytest'],
      prints: /1 passed/,
    });
  },
  { who: 'self', tier: 'view' },
);
