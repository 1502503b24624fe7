/**
 * A small state of each program, which a release keeps. Tests open it with later code, and look for what
 * `found` lists.
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { brotliCompressSync, brotliDecompressSync } from "node:zlib";
import { gitlabTypes } from "../../src/common/types/gitlab.ts";
import { openState } from "../../src/hosts/workerd/state-file.ts";
import { openProgram, PROGRAMS, type Answer, type Opened, type Program } from "./state-program.ts";
import { writeFiles } from "./write-files.ts";

/** Signs the keys of all kept states, and of nothing else. */
export const STATE_SECRET = "signing-secret-of-the-kept-states-and-of-nothing-else";

/** What a kept state has. */
export interface Found {
  claims: { type: string; value: string; cell: string }[];
  /** A name that nobody has any more, and who had it. */
  released: { value: string; cell: string };
  /** A name of a lease that was rolled back. */
  rolledBack: string;
  openLease: { uuid: string; cell: string; value: string };
  keys: { valid: string; revoked: string };
  webhook: string;
  frozenCell: string;
  /** A transfer that both cells have prepared, and its only name. */
  transfer: { id: string; value: string };
  /** The actions of the audit log, those of the calls that made the state. */
  audit: string[];
}

const STALE_MS = 1_100;

const AUDITED = ["change_types", "add_webhook", "revoke_key", "freeze_cell"];

const leaseId = (n: number): string => `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`;

export const claim = (type: string, value: string, more: object = {}) => ({
  bucket: { type, value },
  subject: { type: "USER", id: "1" },
  source: { type: "RAILS_TABLE_USERS", id: value },
  ...more,
});

/** Returns the body of an answer, which must have this status. */
export function bodyOf({ status, body }: Answer, expected: number): Answer["body"] {
  if (status !== expected) throw new Error(`the status is ${status}: ${JSON.stringify(body)}`);
  return body;
}

/** Checks all rows of a part. Returns the pass. */
export async function scrub({ call }: Opened, part: string): Promise<Answer["body"]> {
  const path = `/v1/admin/parts/${part}/scrub`;
  let status = bodyOf(await call("operator", "POST", path, { restart: true }), 200);
  while (status.running !== null)
    status = bodyOf(await call("operator", "POST", path, { restart: false }), 200);
  return status.last;
}

export const PARTS = ["shard-0", "ledger-1", "ledger-2", "ledger-3"] as const;

/** Makes a state of each program below a folder of `formats/`. */
export async function writeStates(folder: string): Promise<void> {
  const states = join(folder, "states");
  rmSync(states, { recursive: true, force: true });
  mkdirSync(states, { recursive: true });
  for (const program of PROGRAMS) {
    const { files, found } = await makeState(program);
    writeFileSync(join(states, `${program}.json.br`), brotliCompressSync(JSON.stringify(files)));
    writeFileSync(join(states, `${program}.found.json`), `${JSON.stringify(found, null, 2)}\n`);
  }
}

/** Returns the files of states that a folder of `formats/` lacks. */
export const missingStates = (folder: string): string[] =>
  PROGRAMS.flatMap((program) => [`states/${program}.json.br`, `states/${program}.found.json`]).filter(
    (path) => !existsSync(join(folder, path)),
  );

/** Unpacks a kept state into a folder. Returns what it has. */
export function unpackState(release: string, program: Program, to: string): Found {
  const path = join(release, "states", program);
  const json = brotliDecompressSync(readFileSync(`${path}.json.br`)).toString();
  const files = Object.entries(JSON.parse(json) as Record<string, string>);
  writeFiles(to, Object.fromEntries(files.map(([name, text]) => [name, Buffer.from(text, "latin1")])));
  return JSON.parse(readFileSync(`${path}.found.json`, "utf8")) as Found;
}

async function makeState(program: Program): Promise<{ files: Record<string, string>; found: Found }> {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-state-"));
  try {
    await openState(folder, program === "start" ? "npm start" : "npm run standalone");
    writeFileSync(join(folder, "signing-secret"), `${STATE_SECRET}\n`);
    const opened = await openProgram(program, folder);
    let found: Found;
    try {
      found = await fill(opened);
    } finally {
      await opened.stop();
    }
    return { files: await filesOf(folder), found };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Returns the bytes of each file, by its path, as text that compresses well. */
async function filesOf(folder: string): Promise<Record<string, string>> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = entries
    .filter((entry) => entry.isFile() && !/^(?:lock\.sqlite|owner)/.test(entry.name))
    .map(({ parentPath, name }) => join(parentPath, name))
    .toSorted();
  return Object.fromEntries(
    await Promise.all(
      paths.map(async (path) => [relative(folder, path), await readFile(path, "latin1")] as const),
    ),
  );
}

async function fill(opened: Opened): Promise<Found> {
  const { call, cron } = opened;
  const admin = async (
    path: string,
    body: object,
    expected: number,
    method = "POST",
  ): Promise<Answer["body"]> =>
    bodyOf(
      await call("operator", method, `/v1/admin/${path}`, { reason: "a kept state", ...body }),
      expected,
    );
  const types = structuredClone(gitlabTypes) as Record<string, Record<string, object>>;
  Object.assign(types["bucket_types"] ?? {}, { VOUCHERS: { number: 900, script: "any", case: "exact" } });
  await admin("types", { version: 0, types, dry_run: false }, 200, "PUT");

  let leases = 0;
  const begin = async (cell: "1" | "2", batch: object): Promise<string> => {
    const uuid = leaseId((leases += 1));
    bodyOf(await call(cell, "PUT", `/v1/cells/${cell}/leases/${uuid}`, batch), 201);
    return uuid;
  };
  const end = async (cell: "1" | "2", uuid: string, how: "commit" | "rollback"): Promise<void> =>
    bodyOf(await call(cell, "POST", `/v1/cells/${cell}/leases/${uuid}/${how}`), 200);
  const own = async (cell: "1" | "2", batch: object): Promise<void> =>
    end(cell, await begin(cell, batch), "commit");

  await own("1", { creates: [claim("ROUTES", "acme/Site"), claim("VOUCHERS", "Winter-7")] });
  await own("2", { creates: [claim("EMAILS", "ada@example.com"), claim("ROUTES", "released")] });
  await own("2", { destroys: [{ bucket: { type: "ROUTES", value: "released" } }] });
  await own("1", { creates: [claim("USERNAMES", "moving", { scope: "9970" })] });
  await end("1", await begin("1", { creates: [claim("ROUTES", "rolled-back")] }), "rollback");
  const uuid = await begin("1", { creates: [claim("ROUTES", "still-open")] });

  const transfer = { uuid: leaseId((leases += 1)), to: "2", scope: "9970" };
  const { id } = bodyOf(await call("1", "POST", "/v1/transfers", transfer), 200).transfer as { id: string };
  bodyOf(await call("2", "POST", `/v1/transfers/${id}/accept`), 200);

  const mint = async (note: string): Promise<string> =>
    (await admin("keys", { role: "viewer", expires_in_s: 34_560_000, note, reason: undefined }, 201)).id;
  const [valid, revoked] = [await mint("valid"), await mint("revoked")];
  await admin(`keys/${revoked}/revoke`, {}, 200);
  // Nobody listens there, so the state has deliveries that wait.
  const { webhook } = await admin("webhooks", { url: "http://127.0.0.1:9/", for_s: 0 }, 201);
  await admin("cells/3/freeze", {}, 200);

  // The lease becomes stale.
  await sleep(STALE_MS);
  await cron();
  for (const part of PARTS) await scrub(opened, part);
  await cron();
  return {
    claims: [
      { type: "ROUTES", value: "acme/site", cell: "1" },
      { type: "VOUCHERS", value: "Winter-7", cell: "1" },
      { type: "EMAILS", value: "ada@example.com", cell: "2" },
    ],
    released: { value: "released", cell: "2" },
    rolledBack: "rolled-back",
    openLease: { uuid, cell: "1", value: "still-open" },
    keys: { valid, revoked },
    webhook: webhook.id,
    frozenCell: "3",
    transfer: { id, value: "moving" },
    audit: AUDITED,
  };
}
