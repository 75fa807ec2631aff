import {
  type Behaviour,
  type Finding,
  finding,
  type PathUse,
  type ProgramRow,
  programs,
  type Use,
} from '../behaviour.ts';
import { hasOption, plainPaths } from '../options.ts';

/** `.shell`, `.system`, `.output`, `.load` of sqlite3, and `\!` of psql. */
function inspectClient({ command }: Use): readonly Finding[] {
  return command.words
    .slice(1)
    .flatMap(({ value, source }) =>
      value !== undefined &&
      /(?:^|[\s;])(?:\.(?:sh|shell|sys|system|load|once|output|import|excel|cd)\b|\\[!ogw|]|\\copy\b)|\bCOPY\b[^;]*\bPROGRAM\b|\b(?:load_extension|edit|readfile|writefile)\s*\(/i.test(
        value,
      )
        ? [
            finding(
              'executes',
              'client_command',
              'can run a program or write files through a command of the client',
              source,
            ),
          ]
        : [],
    );
}

/** `sqlite3 [options] file [SQL]`. */
function pathsOfSqlite(use: Use): readonly PathUse[] {
  // They have two values, of which the second is read as an operand.
  const pairs = use.options.filter(({ name }) => /^(?:lookaside|pagecache)$/.test(name)).length;
  const [file, ...statements] = use.operands.slice(pairs);
  const onlyReads =
    hasOption(use, 'readonly') ||
    (statements.length > 0 &&
      statements.every(({ text }) =>
        /^\s*(?:select\b[^;]*;?\s*$|\.(?:tables|schema|dump|indexes|databases)\b)/i.test(text),
      ));
  return plainPaths([file], onlyReads ? 'reads' : 'writes');
}

const SQLITE: Behaviour = {
  grammar: 'sqlite3',
  paths: pathsOfSqlite,
  inspect: inspectClient,
};

/** Clients of data bases, and the servers. */
const DATA: readonly ProgramRow[] = [
  ...programs('sqlite3 sqlite', 'medium', 'local', () => SQLITE),
  // Its SQL reads URLs.
  ...programs('duckdb', 'medium', 'unknown', () => SQLITE),
  ...programs(
    'psql mysql mariadb mongosh mongo redis-cli clickhouse-client cqlsh sqlcmd sqlplus influx etcdctl kcat kafkacat mc',
    'medium',
    'network',
    () => ({
      operands: 'none',
      inspect: inspectClient,
    }),
  ),
  ...programs(
    'pg_dump pg_dumpall pg_restore pg_isready createdb dropdb createuser initdb pg_ctl mysqldump mysqladmin mongodump mongorestore redis-server mongod mysqld postgres nginx apache2 httpd caddy minio rabbitmqctl kafka-topics',
    'medium',
    'network',
  ),
];

/** Programs that manage machines and services elsewhere. */
const CLOUD: readonly ProgramRow[] = [
  ...programs(
    'aws gcloud gsutil bq az doctl heroku fly flyctl railway oci ibmcloud linode-cli hcloud s3cmd rclone restic borg eksctl kops argocd flux istioctl supabase stripe',
    'high',
    'network',
    () => ({
      operands: 'none',
      needs: 'network',
      outward: 'changes what runs or is stored elsewhere',
    }),
  ),
  ...programs(
    'terraform tofu terragrunt pulumi cdk cdktf sam serverless packer vagrant ansible-galaxy helmfile',
    'high',
    'network',
    () => ({
      outward: 'changes what runs or is stored elsewhere',
      verbs: {
        fmt: { risk: 'medium', reach: 'local' },
        validate: { risk: 'medium' },
        version: { risk: 'low' },
      },
    }),
  ),
  ...programs('helm kustomize skaffold tilt kind minikube k3d k3s k9s', 'high', 'network', () => ({
    outward: 'changes what runs elsewhere',
  })),
];

/** Programs that look after processes, machines, services and data bases without being refused outright. */
export const SYSTEM: readonly ProgramRow[] = [
  ...DATA,
  ...CLOUD,
  ...programs(
    'renice sync timedatectl hostnamectl localectl loginctl busctl dbus-send gdbus gsettings dconf wall write mesg xhost xrandr setterm chvt openvt loadkeys',
    'high',
    'local',
    () => ({
      operands: 'none',
    }),
  ),
  ...programs('logger', 'high', 'local', () => ({ operands: 'none', grammar: 'logger' })),
  ...programs('xdotool xte ydotool wmctrl gnome-terminal xterm konsole', 'high', 'unknown', () => ({
    operands: 'none',
  })),
];
