import { usageError } from "../framework/command-error.ts";
import type { Context } from "../framework/context.ts";

/** Reads an address where neither the list of processes nor the history of the shell shows it. */
export async function readAddress({ io }: Context): Promise<string> {
  const given =
    io.prompt === undefined ? await io.readInput() : await io.prompt.askHidden("Address of the webhook: ");
  const address = given.trim();
  if (address === "") throw usageError("no address was given: type it, or pipe it in");
  // The coordinator has more rules. It must not be shown here.
  if (!/^https?:\/\/\S+$/i.test(address) || !URL.canParse(address))
    throw usageError("the address must be a URL that begins with https://");
  return address;
}

/** What may be shown of an address. */
export const originOf = (url: string): string => new URL(url).origin;
