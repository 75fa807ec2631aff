import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { everywhere, type Files, works } from './support/lab.ts';

const SERVER = `
import { createServer } from 'node:https'; import { readFileSync } from 'node:fs'; import { execFile } from 'node:child_process';
const s = createServer({ key: readFileSync('key.pem'), cert: readFileSync('cert.pem') }, (q, r) => r.end('secret served\\n')).listen(0, '127.0.0.1', () => {
  const [program, ...args] = process.argv.slice(2).map((a) => a.replace('URL', 'https://localhost:' + s.address().port + '/'));
  execFile(program, args, (error, out, err) => { console.log(out.trim(), error ? err : ''); s.close(); s.closeAllConnections(); });
});
`;

everywhere(
  (lab) => {
    const files: Files = { 'server.mjs': SERVER, ...certificate() };
    works(lab, 'curl trusts a CA of the project', {
      script: ['node', 'server.mjs', 'curl', '-sS', '--cacert', 'cert.pem', 'URL'],
      files,
      needs: ['curl'],
      prints: 'secret served \n',
    });
    works(lab, 'curl does not trust it without', {
      script: ['node', 'server.mjs', 'curl', '-sS', 'URL'],
      files,
      needs: ['curl'],
      prints: /certificate/,
    });
    works(lab, 'python trusts a CA of the project', {
      script: [
        'node',
        'server.mjs',
        'python3',
        '-c',
        'import ssl, sys, urllib.request as u; print(u.urlopen(sys.argv[1], context=ssl.create_default_context(cafile="cert.pem")).read().decode())',
        'URL',
      ],
      files,
      prints: 'secret served \n',
    });
    works(lab, 'node trusts a CA of the project', {
      script: [
        'node',
        'server.mjs',
        'node',
        '-e',
        'fetch(process.argv[1]).then((r) => r.text()).then(console.log)',
        'URL',
      ],
      files,
      prints: 'secret served \n',
      options: { env: { NODE_EXTRA_CA_CERTS: 'cert.pem' } },
    });
  },
  { tier: 'view' },
);

everywhere((lab) => {
  works(
    lab,
    'certificates of the system and settings of OpenSSL can be read, private keys of servers cannot',
    {
      script: `
      for f in /etc/ssl/certs/ca-certificates.crt /etc/ssl/openssl.cnf; do test ! -e $f || head -c1 $f >/dev/null || echo missing $f; done
      curl --version >/dev/null; openssl version -d >/dev/null
      ls /etc/ssl/private 2>/dev/null; cat /etc/ssl/private/* 2>/dev/null; echo done`,
      prints: 'done\n',
    },
  );
});

/** A self-made certificate for localhost, its own CA. */
function certificate(): Files {
  const directory = mkdtempSync(join(tmpdir(), 'certificate-'));
  try {
    execFileSync(
      'openssl',
      [
        'req',
        '-x509',
        '-newkey',
        'ec',
        '-pkeyopt',
        'ec_paramgen_curve:prime256v1',
        '-nodes',
        '-keyout',
        'key.pem',
        '-out',
        'cert.pem',
        '-days',
        '30',
        '-subj',
        '/CN=localhost',
        '-addext',
        'subjectAltName=DNS:localhost',
      ],
      { cwd: directory, stdio: 'ignore' },
    );
    return {
      'key.pem': readFileSync(join(directory, 'key.pem')),
      'cert.pem': readFileSync(join(directory, 'cert.pem')),
    };
  } finally {
    rmSync(directory, { recursive: true });
  }
}
