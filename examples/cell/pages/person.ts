import type { Context } from "hono";
import { getCookie } from "hono/cookie";
import type { Account, Accounts } from "../application/accounts.ts";

/** All ports of a host share their cookies, so the name contains the cell. */
export const personCookie = (cell: string): string => `person-of-cell-${cell}`;

/** Returns the signed-in account, or undefined if there is none or it was deleted. */
export function signedIn(context: Context, cell: string, accounts: Accounts): Promise<Account | undefined> {
  return findPerson(getCookie(context, personCookie(cell)) ?? "", accounts);
}

export async function findPerson(given: string, accounts: Accounts): Promise<Account | undefined> {
  return /^\d{1,9}$/.test(given) ? accounts.find(Number(given)) : undefined;
}
