/** The peers of the benchmark give the same answers as Leasehold. bench.test.ts has the quickest one. */
import { test } from "vitest";
import { checkPeer } from "./check-peer.ts";

test.each(["leasehold", "d1-only", "postgres", "postgres-transactions"] as const)(
  "%s grants, refuses, commits and finds",
  checkPeer,
);
