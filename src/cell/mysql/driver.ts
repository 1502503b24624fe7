/** What mysql2 has of its own. */

/** Pools give connections; of databases without a client, and other drivers', nothing is known. */
export function isSingleConnection(db: object): boolean {
  const { $client: client } = db as { $client?: unknown };
  return (
    typeof client === "object" &&
    client !== null &&
    "beginTransaction" in client &&
    !("getConnection" in client)
  );
}

/** Of rows that were found, changed or not: mysql2 asks for those. */
export async function affectedRows(statement: PromiseLike<unknown>): Promise<number> {
  const [{ affectedRows: count }] = (await statement) as [{ affectedRows: number }];
  return count;
}
