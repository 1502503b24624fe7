/** Details of mysql2. */

/** Pools have `getConnection`. Nothing is assumed about other drivers. */
export function isSingleConnection(db: object): boolean {
  const { $client: client } = db as { $client?: unknown };
  return (
    typeof client === "object" &&
    client !== null &&
    "beginTransaction" in client &&
    !("getConnection" in client)
  );
}

/** Counts the rows that were found, even if unchanged, because mysql2 sets CLIENT_FOUND_ROWS. */
export async function affectedRows(statement: PromiseLike<unknown>): Promise<number> {
  const [{ affectedRows: count }] = (await statement) as [{ affectedRows: number }];
  return count;
}
