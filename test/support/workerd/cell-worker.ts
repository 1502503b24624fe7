/** A Worker that keeps cells between its requests, as an application does. */
import { Pool } from "pg";
import { createCell } from "../../../src/users/cell/cell.ts";
import { claimable } from "../../../src/users/cell/claimable.ts";
import { pg, table } from "../../../src/users/cell/pg/index.ts";
import { createClient } from "../../../src/users/client/index.ts";

interface CellEnv {
  DATABASE_URL: string;
  LEASEHOLD_URL: string;
  LEASEHOLD_KEY: string;
}

const users = table<{ id: number; username: string }, { username: string }>("users");
const claimableUsers = claimable(users, {
  source: "RAILS_TABLE_USERS",
  subject: { type: "USER", id: "id" },
  attributes: { username: "USERNAMES" },
});

function makeCell({ DATABASE_URL, LEASEHOLD_URL, LEASEHOLD_KEY }: CellEnv) {
  const begins = { max: 1 };
  const client = createClient({ url: LEASEHOLD_URL, key: LEASEHOLD_KEY, cell: "1", begins });
  const pool = new Pool({ connectionString: DATABASE_URL, max: Infinity, maxUses: 1 });
  return createCell({ client, database: pg(pool), tables: [claimableUsers], beginDeadlineMs: 2_000 });
}

const cells = new Map<string, ReturnType<typeof makeCell>>();

async function carryOut(request: Request, env: CellEnv): Promise<unknown> {
  const [, id = "", call, username = ""] = new URL(request.url).pathname.split("/");
  const cell = cells.get(id) ?? makeCell(env);
  cells.set(id, cell);
  if (call === "reconcile") return cell.reconcile();
  if (call === "verify") return cell.verify({ apply: true });
  if (call === "flush") return cell.flush();
  return cell.transaction((tx) => tx.insert(users, { username }));
}

/** Answers `/<cell>/<call>`, also before the call has ended if the test says so. */
export default {
  fetch: async (request, env) => {
    try {
      await Promise.race([carryOut(request, env), fetch(`${env.LEASEHOLD_URL}/answer-now`)]);
      return new Response("done");
    } catch (error) {
      return new Response(String(error), { status: 500 });
    }
  },
} satisfies ExportedHandler<CellEnv>;
