/** The tables of the objects in the state folder of `npm start`. */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, onTestFinished, test } from "vitest";
import { checkTables } from "../../../src/hosts/workerd/state-databases.ts";
import { META_TABLE } from "../../../src/coordinator/kernel/meta.ts";

function stateWith(className: string, name: string, value: string | number): string {
  const state = mkdtempSync(join(tmpdir(), "leasehold-tables-"));
  onTestFinished(() => rmSync(state, { recursive: true, force: true }));
  const folder = join(state, "storage", "do", `leasehold-${className}`);
  mkdirSync(folder, { recursive: true });
  new DatabaseSync(join(folder, "metadata.sqlite")).close();
  const database = new DatabaseSync(join(folder, "object.sqlite"));
  database.exec(META_TABLE);
  database.prepare("INSERT INTO meta (name, value) VALUES (?, ?)").run(name, value);
  database.close();
  return state;
}

test.each(["CellLedger", "ClaimShard", "Directory"])("of a %s that are known pass", async (className) => {
  await checkTables(stateWith(className, "tables", '{"steps":1,"format":1}'));
  await checkTables(stateWith(className, "object_name", "new"));
});

test.each([
  ["CellLedger", "tables", '{"steps":9,"format":9}', /object\.sqlite cannot be used: .*newer version/],
  ["ClaimShard", "schema_version", 1, /object\.sqlite cannot be used: .*before 0\.2\.0/],
  ["Directory", "tables", '{"steps":9,"format":9}', /object\.sqlite.*newer version/],
])("of a %s that are not known fail the start by name: %s %s", async (className, name, value, reason) => {
  await expect(checkTables(stateWith(className, name, value))).rejects.toThrow(reason);
});
