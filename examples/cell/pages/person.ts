import type { Context } from "hono";
import { getCookie } from "hono/cookie";
import type { Account, Accounts } from "../application/accounts.ts";

/** Cookies are shared by all ports of a host, so each cell has its own. */
export const personCookie = (cell: string): string => `person-of-cell-${cell}`;

/** Whom the browser has picked. Undefined: nobody, or somebody who is gone. */
export function signedIn(context: Context, cell: string, accounts: Accounts): Promise<Account | undefined> {
  return findPerson(getCookie(context, personCookie(cell)) ?? "", accounts);
}

export async function findPerson(given: string, accounts: Accounts): Promise<Account | undefined> {
  return /^\d{1,9}$/.test(given) ? accounts.find(Number(given)) : undefined;
}
