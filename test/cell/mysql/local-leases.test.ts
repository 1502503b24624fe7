import { describe } from "vitest";
import { localLeasesSuite, type LocalWorld } from "../../suites/local-leases.ts";
import { isSkipped } from "../../support/databases/available.ts";
import { Installed } from "./server.ts";

describe.skipIf(isSkipped("MariaDB"))("MariaDB", () => {
  localLeasesSuite("mysql2", async (): Promise<LocalWorld> => {
    const installed = await Installed.start();
    return {
      local: installed.cell,
      save: (uuid) => installed.save(uuid),
      age: (uuid, ms) =>
        installed.run(
          `UPDATE leasehold_outstanding_leases
            SET created_at = created_at - INTERVAL ${ms * 1_000} MICROSECOND WHERE uuid = '${uuid}'`,
        ),
      queued: async () =>
        (await installed.rows("SELECT lease_uuid FROM leasehold_verification_queue")).map((row) =>
          String(row["lease_uuid"]),
        ),
      clear: () =>
        installed.run("TRUNCATE leasehold_outstanding_leases", "TRUNCATE leasehold_verification_queue"),
      stop: () => installed.stop(),
    };
  });
});
