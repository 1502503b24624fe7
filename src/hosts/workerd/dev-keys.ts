import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { v7 as uuid } from "uuid";
import { Hmac } from "../../coordinator/auth/secrets.ts";
import { makeKey, parseKey } from "../../coordinator/auth/key.ts";
import { writeDurably } from "./durable-file.ts";

/** Sends a request to the coordinator without an open port. */
export type Dispatch = (
  path: string,
  init?: { method?: string; headers?: Record<string, string>; body?: string },
) => Promise<Response>;

export interface DevKeys {
  operator: string;
  router: string;
  cells: Record<string, string>;
}

const CELLS: readonly string[] = ["1", "2", "3", "4"];
const LIFETIME_S = 365 * 86_400;
/** Keys that expire sooner than this are replaced at the next start. */
const RENEW_BEFORE_S = 7 * 86_400;

const fileOf = (stateFolder: string): string => join(stateFolder, "dev-keys.json");

/**
 * Returns the keys of an earlier start. Returns undefined if one is missing, has another signing secret, or
 * expires soon.
 */
async function read(stateFolder: string, signingSecret: string, cells = CELLS): Promise<DevKeys | undefined> {
  let keys: DevKeys;
  try {
    keys = JSON.parse(await readFile(fileOf(stateFolder), "utf8")) as DevKeys;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT" || error instanceof SyntaxError) return undefined;
    throw error;
  }
  const all = [keys.operator, keys.router, ...cells.map((cell) => keys.cells?.[cell])];
  const leastExpiry = Date.now() / 1_000 + RENEW_BEFORE_S;
  const hmac = new Hmac(signingSecret);
  for (const key of all) {
    const parsed = typeof key === "string" ? parseKey(key) : undefined;
    if (
      parsed === undefined ||
      parsed.payload.exp < leastExpiry ||
      !(await hmac.verify(parsed.signed, parsed.signature))
    )
      return undefined;
  }
  return keys;
}

/**
 * Registers the cells and makes a key for each role through the HTTP API. It signs its own operator key with
 * the secret for these requests.
 */
async function make(
  stateFolder: string,
  signingSecret: string,
  dispatch: Dispatch,
  cells = CELLS,
): Promise<DevKeys> {
  const now = Math.floor(Date.now() / 1_000);
  const first = await makeKey(
    { v: 1, id: uuid(), role: "operator", iat: now, exp: now + 600 },
    new Hmac(signingSecret),
  );
  const post = async (path: string, body: unknown, tolerated?: number): Promise<unknown> => {
    const headers = { authorization: `Bearer ${first}`, "content-type": "application/json" };
    const answer = await dispatch(path, { method: "POST", headers, body: JSON.stringify(body) });
    if (!answer.ok && answer.status !== tolerated)
      throw new Error(
        `the set-up request POST ${path} failed with status ${answer.status}: ${await answer.text()}`,
      );
    return answer.json();
  };
  for (const cell of cells) {
    // An earlier start that failed later may have registered the cell: 409.
    await post(
      "/v1/admin/cells",
      { cell_id: cell, name: `cell-${cell}`, address: `http://127.0.0.1:${9_000 + Number(cell)}` },
      409,
    );
  }
  const mint = async (body: Record<string, unknown>): Promise<string> => {
    const answer = (await post("/v1/admin/keys", {
      ...body,
      expires_in_s: LIFETIME_S,
      note: "development",
    })) as { key: string };
    return answer.key;
  };
  const keys: DevKeys = {
    operator: await mint({ role: "operator" }),
    router: await mint({ role: "router" }),
    cells: {},
  };
  for (const cell of cells) keys.cells[cell] = await mint({ role: "cell", cell_id: cell });
  await writeDurably(fileOf(stateFolder), `${JSON.stringify(keys, null, 2)}\n`);
  return keys;
}

/** Says where the keys are. Only the owner of the file can read it. */
const describe = (stateFolder: string, keys: DevKeys): string =>
  `${fileOf(stateFolder)}: operator, router, cells ${Object.keys(keys.cells).join(", ")}`;

export const devKeys = { read, make, describe };
