import type { ProxyFailure } from "leasehold/router";
import type { Timing } from "../launcher/timing.ts";
import type { Html, PageOwner } from "../web/layout.ts";
import { messagePage } from "../web/message-page.ts";
import { unavailablePage } from "./unavailable-page.ts";

/** Makes the pages for requests that no cell has answered. */
export function failurePages(
  owner: PageOwner,
  timing: Timing,
): (failure: ProxyFailure, request: Request) => Promise<Response> {
  return async (failure, request) => {
    const { status, cell, kind, retryAfterMs } = failure;
    const path = decoded(new URL(request.url).pathname);
    // A cell that does not answer is about to restart, so its page waits for it.
    const isDown = cell !== null && (kind === "unreachable" || kind === "timeout");
    if (kind === "unavailable") process.stderr.write(`example: router: ${failure.detail}\n`);
    const waitMs = isDown ? timing.restartMs : retryAfterMs;
    return new Response(
      String(await (isDown ? unavailablePage(owner, cell, timing) : pageOf(failure, owner, path))),
      {
        status: isDown ? 503 : status,
        headers: {
          "content-type": "text/html; charset=UTF-8",
          "cache-control": "no-store",
          ...(cell === null ? {} : { "leasehold-cell": cell }),
          ...(waitMs === null ? {} : { "retry-after": String(Math.ceil(waitMs / 1_000)) }),
        },
      },
    );
  };
}

function pageOf({ kind, rule }: ProxyFailure, owner: PageOwner, path: string): Html {
  const page = (title: string, text: string): Html => messagePage(owner, path, title, text);
  switch (kind) {
    case "no_cell":
      return rule === "stores" || rule === "handles"
        ? page("Nobody has this name", `No cell has ${path}.`)
        : page(
            "This page does not exist",
            "A profile is at its handle, such as /ada, and a store at /stores/lamps.",
          );
    case "misdirected":
      return page(
        "The name is being claimed",
        `The coordinator knows ${path}, but its cell has no row for it. An open lease holds the name: a ` +
          "sign-up is running, or its process was killed. Reconciliation decides such a lease. If this " +
          "page does not change, rows and claims disagree.",
      );
    case "unavailable":
      return page(
        "The name cannot be looked up",
        "The coordinator does not answer, so the router can't look the name up. Try again later.",
      );
    default:
      return page("The request failed", "The router could not pass it to a cell.");
  }
}

/** The path as a person writes it, if it can be decoded. */
function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
