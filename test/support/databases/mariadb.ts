import { spawn } from "node:child_process";
import { join } from "node:path";
import { createConnection } from "mysql2/promise";
import { asUser, giveTo, runAsUser } from "./as-user.ts";
import { programOf } from "./programs.ts";
import { startServer, type DatabaseServer, type Kind } from "./server.ts";

/** The user of the operating system. */
const OWNER = "mysql";
/** The user of the database. */
const USER = "root";

const socketIn = (folder: string): string => join(folder, "socket");

/**
 * Settings for installation and for running. The machine's own configuration is ignored. A small log is
 * created faster.
 */
const settings = (folder: string): string[] => [
  "--no-defaults",
  `--datadir=${join(folder, "data")}`,
  // Each start deletes the temporary tables of other servers that use the same folder.
  `--tmpdir=${folder}`,
  "--innodb-log-file-size=16M",
];

const mariadbWith = (options: readonly string[]): Kind => ({
  database: "MariaDB",
  scheme: "mysql",
  user: USER,
  home: "mysql",
  stopSignal: "SIGKILL",
  socketIn,

  init(folder) {
    const program = programOf("MariaDB", "mariadb-install-db");
    giveTo(OWNER, folder);
    runAsUser(
      OWNER,
      [program, ...settings(folder), "--auth-root-authentication-method=normal", "--skip-test-db"],
      folder,
    );
  },

  run(folder, port, stdio) {
    const flags = [
      `--socket=${socketIn(folder)}`,
      `--pid-file=${join(folder, "pid")}`,
      `--port=${port}`,
      "--bind-address=127.0.0.1",
      // The user without a password is allowed by address, not by host name.
      "--skip-name-resolve",
      "--character-set-server=utf8mb4",
      // A commit is written at once and flushed later. That is enough, because tests only kill processes, and
      // written data survives that.
      "--innodb-flush-log-at-trx-commit=2",
      ...options,
    ];
    const server = programOf("MariaDB", "mariadbd");
    const [program, ...args] = asUser(OWNER, [server, ...settings(folder), ...flags], "KILL");
    return spawn(program, args, { cwd: folder, stdio });
  },

  async query(folder, _port, statement) {
    const connection = await createConnection({ socketPath: socketIn(folder), user: USER });
    try {
      await connection.query(statement);
    } finally {
      await connection.end();
    }
  },
});

/**
 * Starts a MariaDB server for one test.
 *
 * @param options for the server, such as `--lower-case-table-names=1`
 * @throws an error that says how to install MariaDB, if it is missing
 */
export const startMariadb = (options: readonly string[] = []): Promise<DatabaseServer> =>
  startServer(mariadbWith(options));
