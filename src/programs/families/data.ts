import type { Use } from '../behaviour.ts';
import { type Finding, finding, type ProgramRow, programs } from '../behaviour.ts';

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

/** Clients of data bases, and the servers. */
export const DATA: readonly ProgramRow[] = [
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
